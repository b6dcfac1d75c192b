//! C64: clocks that jump. No occurrence runs twice, and none blocks a job for good.

use zeroclaw::service::{Clock, Scheduler, TickReport};

use super::{DAY_MS, HOUR_MS, every, global, home, plant, runs, seen, witness};
use crate::support::sandbox::Sandbox;
use crate::support::sqlite::{block_on, change};

const NOON_MS: i64 = 1_780_000_000_000 / HOUR_MS * HOUR_MS;

async fn tick(home: &Sandbox, clock: &Clock) -> TickReport {
    let scheduler = Scheduler::open(&home.root(), clock.clone()).await.unwrap();
    let report = scheduler.tick().await.unwrap();
    scheduler.close().await;
    report
}

fn hourly(catch_up: &str) -> (Sandbox, std::path::PathBuf) {
    let home = home();
    let file = home.home().join("witness");
    let mut job = every(HOUR_MS, NOON_MS);
    job.retain(|(name, _)| *name != "catch_up");
    job.push(("catch_up", format!("'{catch_up}'")));
    plant(&home, "hourly", &witness(&file), &job);
    (home, file)
}

#[test]
fn c64_a_clock_set_back_a_day_runs_nothing_again() {
    let (home, file) = hourly("once");
    block_on(async {
        let clock = Clock::fixed(NOON_MS);
        for _ in 0..3 {
            assert_eq!(tick(&home, &clock).await.succeeded, 1);
            clock.advance(HOUR_MS);
        }
        clock.advance(-DAY_MS);
        for _ in 0..24 {
            assert_eq!(tick(&home, &clock).await.succeeded, 0, "it all ran before");
            clock.advance(HOUR_MS);
        }
        assert_eq!(tick(&home, &clock).await.succeeded, 1, "then it goes on");
    });

    assert!(seen(&file).values().all(|times| *times == 1));
    assert_eq!(runs(&home).len(), 4);
}

#[test]
fn c64_a_clock_set_forward_a_day_follows_the_policy_and_back_again_repeats_nothing() {
    for (catch_up, caught) in [("once", 1), ("skip", 1), ("all", 24)] {
        let (home, file) = hourly(catch_up);
        block_on(async {
            let clock = Clock::fixed(NOON_MS);
            assert_eq!(tick(&home, &clock).await.succeeded, 1);
            clock.advance(DAY_MS);
            assert_eq!(tick(&home, &clock).await.succeeded, caught, "{catch_up}");
            clock.advance(-DAY_MS);
            for _ in 0..24 {
                clock.advance(HOUR_MS);
                assert_eq!(tick(&home, &clock).await.succeeded, 0, "{catch_up}");
            }
            clock.advance(HOUR_MS);
            assert_eq!(tick(&home, &clock).await.succeeded, 1, "{catch_up}");
        });

        assert!(seen(&file).values().all(|times| *times == 1), "{catch_up}");
    }
}

#[test]
fn c64_the_clock_jumps_while_a_command_runs() {
    for jump in [DAY_MS, -DAY_MS] {
        let (home, file) = hourly("all");
        change(
            &global(&home),
            "UPDATE cron_jobs SET payload_message = 'sleep 0.4; ' || payload_message",
        );
        block_on(async {
            let clock = Clock::fixed(NOON_MS);
            let moved = clock.clone();
            let mover = tokio::spawn(async move {
                tokio::time::sleep(std::time::Duration::from_millis(150)).await;
                moved.advance(jump);
            });
            assert_eq!(tick(&home, &clock).await.succeeded, 1);
            mover.await.unwrap();
            clock.set(NOON_MS + 2 * HOUR_MS);
            assert_eq!(tick(&home, &clock).await.succeeded, 2);
            let ran = crate::support::sqlite::number(
                &global(&home),
                "SELECT count(*) FROM task_runs WHERE duration_ms BETWEEN 0 AND 60000",
            );
            assert_eq!(ran, 3, "measured by the clock that nobody sets");
        });

        assert_eq!(seen(&file).len(), 3);
        assert!(seen(&file).values().all(|times| *times == 1));
    }
}

#[test]
fn c64_a_job_that_a_wrong_clock_put_far_ahead_runs_again() {
    let (home, file) = hourly("once");
    block_on(async {
        let clock = Clock::fixed(NOON_MS);
        assert_eq!(tick(&home, &clock).await.succeeded, 1);
        clock.advance(300 * DAY_MS);
        assert_eq!(tick(&home, &clock).await.succeeded, 1);
        clock.set(NOON_MS + HOUR_MS / 2);
        // Planned anew; due at the next hour.
        assert_eq!(tick(&home, &clock).await.succeeded, 0);
        clock.advance(HOUR_MS / 2);
        assert_eq!(tick(&home, &clock).await.succeeded, 1);
    });

    assert_eq!(seen(&file).len(), 3);
    assert!(seen(&file).values().all(|times| *times == 1));
}
