//! Leases: free at once when their holder is gone, never taken from one that lives.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use zeroclaw::fs::process;
use zeroclaw::service::{Clock, ErrorKind, HeldLease, Service, ServiceError};

use super::{NOW, folder, service};
use crate::support::process::{part, played_on};
use crate::support::sqlite::{block_on, change};

const SILENCE: Duration = Duration::from_secs(30);
const ONCE: Duration = Duration::ZERO;
const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;

/// Puts a lease of a key `k` as somebody else wrote it: expiry, heartbeat, pid, start, boot as SQL.
fn plant(service: &Service, expiry: &str, heartbeat: i64, process: &str) {
    let sql = format!(
        "INSERT OR REPLACE INTO state_leases (scope, lease_key, owner, expires_at_ms, heartbeat_at_ms, created_at_ms,
             updated_at_ms, owner_pid, owner_start_identity, owner_boot_id, fencing_token)
         VALUES ('test', 'k', 'the other', {expiry}, {heartbeat}, {heartbeat}, {heartbeat}, {process}, 1);"
    );
    change(&service.layout().global_db(), &sql);
}

async fn take(service: &Service, wait: Duration) -> Result<HeldLease, ServiceError> {
    service
        .leases()
        .acquire("test", "k", "me", SILENCE, wait)
        .await
}

#[test]
fn a_held_lease_names_its_holder_and_a_given_one_can_be_taken() {
    let dir = folder();
    block_on(async {
        let service = service(dir.path(), Clock::fixed(NOW)).await;
        let first = take(&service, ONCE).await.unwrap();

        let refused = take(&service, ONCE).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Busy);
        let pid = std::process::id().to_string();
        let told = refused.to_string();
        assert!(told.contains("me") && told.contains(&pid), "{told}");

        assert!(first.release().await.unwrap());
        let second = take(&service, ONCE).await.unwrap();
        assert_eq!(service.leases().list().await.unwrap().len(), 1);
        drop(second);
        // What is dropped is given back soon.
        take(&service, SILENCE).await.unwrap();
        service.close().await;
    });
}

#[test]
fn a_fencing_token_never_goes_back_and_an_old_one_is_refused() {
    let dir = folder();
    block_on(async {
        let clock = Clock::fixed(NOW);
        let service = service(dir.path(), clock.clone()).await;
        let mut tokens = Vec::new();
        for moved in [0, -DAY_MS, DAY_MS, 3 * DAY_MS, -DAY_MS] {
            clock.set(NOW + moved);
            let held = take(&service, ONCE).await.unwrap();
            tokens.push(held.lease().fencing_token);
            held.release().await.unwrap();
        }
        assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");

        // Somebody took it for gone, and took over.
        let old = take(&service, ONCE).await.unwrap();
        change(
            &service.layout().global_db(),
            "UPDATE state_leases SET owner_start_identity = '1' WHERE scope = 'test'",
        );
        let new = take(&service, ONCE).await.unwrap();

        assert!(new.lease().fencing_token > old.lease().fencing_token);
        assert_eq!(old.beat().await.unwrap_err().kind(), ErrorKind::Busy);
        assert!(
            !old.release().await.unwrap(),
            "the new one's was given back"
        );
        new.beat().await.unwrap();
        service.close().await;
    });
}

#[test]
fn c64_a_lease_of_the_future_without_an_owner_blocks_nobody() {
    let dir = folder();
    block_on(async {
        let service = service(dir.path(), Clock::fixed(NOW)).await;
        let later = NOW + 3 * HOUR_MS;

        plant(&service, "NULL", later, "NULL, NULL, NULL");
        take(&service, ONCE).await.unwrap().release().await.unwrap();
        plant(
            &service,
            &(later + HOUR_MS).to_string(),
            later,
            "NULL, NULL, NULL",
        );
        take(&service, ONCE).await.unwrap().release().await.unwrap();
        // One that makes sense holds as long as it says.
        plant(
            &service,
            &(NOW + HOUR_MS).to_string(),
            NOW,
            "NULL, NULL, NULL",
        );
        assert!(take(&service, ONCE).await.is_err());
        service.close().await;
    });
}

#[test]
fn c64_a_lease_of_a_living_owner_is_not_taken_however_the_clock_jumps() {
    let dir = folder();
    block_on(async {
        let clock = Clock::fixed(NOW);
        let service = service(dir.path(), clock.clone()).await;
        let held = take(&service, ONCE).await.unwrap();

        for moved in [DAY_MS, -DAY_MS, 365 * DAY_MS] {
            clock.set(NOW + moved);
            assert!(take(&service, ONCE).await.is_err(), "{moved}");
        }
        held.beat().await.unwrap();
        service.close().await;
    });
}

#[test]
fn an_owner_nobody_can_tell_of_has_it_until_it_lapses() {
    let dir = folder();
    block_on(async {
        let service = service(dir.path(), Clock::fixed(NOW)).await;
        let pid = std::process::id();

        plant(
            &service,
            &(NOW + 1).to_string(),
            NOW,
            &format!("{pid}, NULL, NULL"),
        );
        assert!(take(&service, ONCE).await.is_err());
        plant(
            &service,
            &NOW.to_string(),
            NOW,
            &format!("{pid}, NULL, NULL"),
        );
        assert!(take(&service, ONCE).await.is_ok());
        service.close().await;
    });
}

#[test]
fn a_reused_process_id_holds_nothing() {
    let dir = folder();
    block_on(async {
        let service = service(dir.path(), Clock::fixed(NOW)).await;
        let own = process::own();
        let boot = own.boot_id.unwrap_or_default();
        let ours = format!("{}, '1', '{boot}'", own.pid);
        let before = format!(
            "{}, '{}', 'the boot before'",
            own.pid,
            own.start_ticks.unwrap()
        );

        for process in [ours, before] {
            plant(&service, "NULL", NOW, &process);
            take(&service, ONCE).await.unwrap().release().await.unwrap();
        }
        service.close().await;
    });
}

#[test]
fn c64_a_wait_ends_on_time_though_the_clock_is_set() {
    let dir = folder();
    block_on(async {
        let clock = Clock::fixed(NOW);
        let service = service(dir.path(), clock.clone()).await;
        let _held = take(&service, ONCE).await.unwrap();
        let since = Instant::now();

        let (ended, ()) = tokio::join!(take(&service, Duration::from_millis(400)), async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            clock.set(NOW - DAY_MS);
            tokio::time::sleep(Duration::from_millis(100)).await;
            clock.set(NOW + DAY_MS);
        });

        assert!(ended.is_err());
        let waited = since.elapsed();
        assert!(waited >= Duration::from_millis(400), "{waited:?}");
        assert!(waited < Duration::from_secs(20), "{waited:?}");
        service.close().await;
    });
}

/// Takes the lease and keeps it until it is killed.
#[tokio::test]
#[ignore = "a part of another test"]
async fn the_holder() {
    let Some(root) = played_on() else { return };
    let service = service(&root, Clock::system()).await;
    let _held = take(&service, ONCE).await.unwrap();
    println!("held");
    // The root is for others now, as it is beside a worker: what counts is the process.
    service.close().await;
    println!("closed");
    std::thread::sleep(Duration::from_secs(120));
}

fn holder(root: &Path) -> Child {
    let mut child = part("control::lease::the_holder", root).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let is_closed = lines
        .map_while(Result::ok)
        .any(|line| line.ends_with("closed"));
    assert!(is_closed, "the holder never got it");
    child
}

#[test]
fn a_stopped_holder_keeps_its_lease_and_a_killed_one_loses_it_at_once() {
    let dir = folder();
    let mut child = holder(dir.path());
    let pid = Pid::from_child(&child);
    kill_process(pid, Signal::STOP).unwrap();

    block_on(async {
        // A year passed by the clock: every heartbeat is old and every time is over.
        let clock = Clock::fixed(Clock::system().now_ms() + 365 * DAY_MS);
        let service = service(dir.path(), clock).await;
        let refused = take(&service, Duration::from_secs(2)).await.unwrap_err();
        assert!(
            refused.to_string().contains(&child.id().to_string()),
            "{refused}"
        );

        // Nobody collects it: a zombie is gone too.
        child.kill().unwrap();
        let since = Instant::now();
        take(&service, Duration::from_secs(20)).await.unwrap();
        assert!(since.elapsed() < Duration::from_secs(5));
        service.close().await;
    });
    child.wait().unwrap();
}
