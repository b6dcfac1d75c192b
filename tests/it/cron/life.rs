//! C61, C43: jobs longer than the poll, one-shots, kills in mid-run, a busy database.

use std::process::Stdio;
use std::time::Duration;

use zeroclaw::model::{AgentId, TaskEnd, TaskOwnerKind};
use zeroclaw::service::{Clock, Scheduler, TaskWorker};

use super::{HOUR_MS, at, config, every, global, home, now_ms, plant, runs, seen, witness};
use crate::support::process::wait_until;
use crate::support::sqlite::{block_on, change, number, rows};

#[test]
fn c61_a_job_longer_than_the_poll_runs_once_under_two_schedulers() {
    let home = home();
    let file = home.home().join("witness");
    let command = format!("sleep 2; {}", witness(&file));
    plant(&home, "long", &command, &every(24 * HOUR_MS, now_ms()));
    plant(&home, "shot", &witness(&file), &at(now_ms() + 500));

    // Both look again and again while it runs.
    let mut ticking = Vec::new();
    for _ in 0..8 {
        for _ in 0..2 {
            let mut command = home.command(&["cron", "tick"]);
            command.stdout(Stdio::null()).stderr(Stdio::null());
            ticking.push(command.spawn().unwrap());
        }
        std::thread::sleep(Duration::from_millis(250));
    }
    for mut child in ticking {
        assert!(child.wait().unwrap().success());
    }

    let seen = seen(&file);
    assert_eq!(seen.len(), 2, "{seen:?}");
    assert!(seen.values().all(|times| *times == 1), "{seen:?}");
    let stands = "SELECT enabled, disabled_reason, next_run_at_ms IS NULL FROM cron_jobs WHERE job_id = 'shot'";
    assert_eq!(rows(&global(&home), stands), [["0", "done", "1"]]);
    let free = "SELECT count(*) FROM cron_jobs WHERE claim_task_id IS NULL";
    assert_eq!(number(&global(&home), free), 2);
}

#[test]
fn c61_a_run_whose_scheduler_was_killed_is_recorded_and_not_repeated() {
    let home = home();
    let file = home.home().join("witness");
    let command = format!("{}; sleep 3", witness(&file));
    let due = now_ms();
    plant(&home, "long", &command, &every(24 * HOUR_MS, due));
    let mut child = home
        .command(&["cron", "tick"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the command runs", || file.exists());
    child.kill().unwrap();
    child.wait().unwrap();

    let report = home.zeroclaw(&["cron", "tick", "--json"]).exits(1).json();

    assert_eq!(
        (&report["lost"], &report["succeeded"]),
        (&1.into(), &0.into())
    );
    assert_eq!(seen(&file).values().sum::<usize>(), 1);
    assert_eq!(runs(&home), [(format!("long {due}"), "lost".to_owned())]);
    let job = home.zeroclaw(&["cron", "show", "long", "--json"]).json();
    assert_eq!(job["claim_task_id"], serde_json::Value::Null);
    assert_eq!(job["last_run_status"], "lost");
    assert_eq!(job["next_run_at_ms"], due + 24 * HOUR_MS);
    home.zeroclaw(&["cron", "tick"]).exits(0);
}

#[test]
fn c43_jobs_run_while_another_process_holds_the_database() {
    let home = home();
    let file = home.home().join("witness");
    for number in 0..10 {
        plant(
            &home,
            &format!("j{number}"),
            &witness(&file),
            &at(now_ms() - 1_000),
        );
    }
    let path = global(&home);
    let holder = std::thread::spawn(move || {
        for _ in 0..4 {
            change(
                &path,
                "BEGIN IMMEDIATE; CREATE TABLE IF NOT EXISTS held (x); ROLLBACK;",
            );
            hold(&path, Duration::from_millis(800));
        }
    });
    std::thread::sleep(Duration::from_millis(100));

    let report = home.zeroclaw(&["cron", "tick", "--json"]).exits(0).json();

    holder.join().unwrap();
    assert_eq!(report["succeeded"], 10);
    assert_eq!(seen(&file).len(), 10);
}

/// Has the database for itself for a while.
fn hold(path: &std::path::Path, span: Duration) {
    use sqlx::{Connection, SqliteConnection};

    block_on(async {
        let url = format!("sqlite://{}", path.display());
        let mut conn = SqliteConnection::connect(&url).await.unwrap();
        sqlx::raw_sql("BEGIN IMMEDIATE")
            .execute(&mut conn)
            .await
            .unwrap();
        tokio::time::sleep(span).await;
        sqlx::raw_sql("ROLLBACK").execute(&mut conn).await.unwrap();
        conn.close().await.unwrap();
    });
}

#[test]
fn a_missed_one_shot_is_switched_off_as_skipped_where_nothing_is_caught_up_on() {
    let home = home();
    let file = home.home().join("witness");
    plant(&home, "shot", &witness(&file), &at(now_ms() - HOUR_MS));
    config(&home, "catch_up_on_startup = false\n");

    let report = home.zeroclaw(&["cron", "tick", "--json"]).exits(0).json();

    assert_eq!(report["passed_over"], 1);
    assert!(!file.exists());
    let stands = "SELECT enabled, disabled_reason, last_run_status FROM cron_jobs";
    assert_eq!(rows(&global(&home), stands), [["0", "skipped", "skipped"]]);
    let record = "SELECT status, status_detail FROM task_runs WHERE source_id = 'shot'";
    assert_eq!(rows(&global(&home), record), [["cancelled", "skipped"]]);
}

#[test]
fn a_one_shot_that_is_to_go_goes_after_success_alone() {
    let home = home();
    let mut gone = at(now_ms() - 1_000);
    gone.push(("delete_after_run", "1".to_owned()));
    plant(&home, "good", "true", &gone);
    plant(&home, "bad", "false", &gone);

    let report = home.zeroclaw(&["cron", "tick", "--json"]).exits(1).json();

    assert_eq!(
        (&report["succeeded"], &report["failed"]),
        (&1.into(), &1.into())
    );
    let stands = "SELECT job_id, enabled, disabled_reason FROM cron_jobs";
    assert_eq!(rows(&global(&home), stands), [["bad", "0", "done, error"]]);
    assert_eq!(runs(&home).len(), 2, "runs stay");
}

#[test]
fn failures_in_a_row_raise_one_alert_and_history_is_bounded() {
    let home = home();
    let started = now_ms() - 9 * HOUR_MS;
    let mut often = every(HOUR_MS, started);
    often.retain(|(name, _)| *name != "runs_kept");
    often.extend([
        ("runs_kept", "3".to_owned()),
        ("failure_alert_after", "2".to_owned()),
        ("failure_alert_channel", "'telegram'".to_owned()),
        ("failure_alert_to", "'ops'".to_owned()),
    ]);
    plant(&home, "bad", "echo no >&2; exit 4", &often);

    let report = home.zeroclaw(&["cron", "tick", "--json"]).exits(1).json();

    assert_eq!(report["failed"], 10);
    let alerts = report["alerts"].as_array().unwrap();
    assert_eq!(alerts.len(), 1);
    assert_eq!(
        (&alerts[0]["failures"], &alerts[0]["to"]),
        (&2.into(), &"ops".into())
    );
    assert_eq!(alerts[0]["error"], "exit status: 4: no");
    let kept = "SELECT count(*) FROM task_runs WHERE source_id = 'bad'";
    assert_eq!(number(&global(&home), kept), 3);
    home.zeroclaw(&["logs"])
        .exits(0)
        .says("failed 2 times in a row");
    let queued = home
        .zeroclaw(&["delivery", "list", "--json"])
        .exits(0)
        .json();
    let queued = queued["items"].as_array().unwrap();
    assert_eq!(queued.len(), 1, "told once: {queued:?}");
    assert_eq!(
        (&queued[0]["channel"], &queued[0]["target"]),
        (&"telegram".into(), &"ops".into())
    );
}

#[test]
fn jobs_of_agents_wait_for_a_worker_and_do_not_pile_up() {
    let home = home();
    let mut often = every(HOUR_MS, now_ms() - 5 * HOUR_MS);
    often.push(("payload_model", "'m'".to_owned()));
    plant(&home, "ask", "look at the tide", &often);
    change(
        &global(&home),
        "UPDATE cron_jobs SET payload_kind = 'agent_turn'",
    );

    let first = home.zeroclaw(&["cron", "tick", "--json"]).exits(0).json();
    let second = home.zeroclaw(&["cron", "tick", "--json"]).exits(0).json();

    assert_eq!(
        (&first["offered"], &second["offered"]),
        (&1.into(), &0.into())
    );
    let waits = "SELECT status, agent_id, json_extract(detail_json, '$.message'), execution_owner_pid IS NULL FROM task_runs";
    let wanted = [["pending", "atlas", "look at the tide", "1"]];
    assert_eq!(rows(&global(&home), waits), wanted);
    // Once a worker has ended it, the next one comes.
    block_on(async {
        let atlas = AgentId::new("atlas").unwrap();
        let worker = TaskWorker::open(&home.root(), &atlas, Clock::system())
            .await
            .unwrap();
        let claimed = worker.claim_next(TaskOwnerKind::Cron).await.unwrap();
        let mut run = claimed.expect("it waits for this agent");
        run.settle(TaskEnd::succeeded(Some("calm".to_owned())))
            .await
            .unwrap();
        drop(run);
        worker.close().await;
    });
    let third = home.zeroclaw(&["cron", "tick", "--json"]).exits(0).json();
    assert_eq!(third["offered"], 1);
    let told = "SELECT last_run_status, consecutive_failures FROM cron_jobs";
    assert_eq!(rows(&global(&home), told), [["ok", "0"]]);
}

#[test]
fn a_scheduler_that_is_asked_to_stop_ends_what_it_runs() {
    let home = home();
    let command = "touch began; (sleep 1; touch late) & sleep 30";
    plant(&home, "long", command, &every(24 * HOUR_MS, now_ms()));
    let workspace = home.root().join("agents/atlas/workspace");
    for args in [&["cron", "tick"][..], &["cron", "run", "long"]] {
        let mut child = home
            .command(args)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        wait_until("the command runs", || workspace.join("began").exists());

        let id = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();

        assert_eq!(child.wait().unwrap().code(), Some(130), "{args:?}");
        std::fs::remove_file(workspace.join("began")).unwrap();
    }
    let ended = "SELECT status, status_detail FROM task_runs";
    assert_eq!(
        rows(&global(&home), ended),
        [["cancelled", "interrupted"]; 2]
    );
    std::thread::sleep(Duration::from_millis(1_300));
    assert!(!workspace.join("late").exists(), "its children too");
    home.zeroclaw(&["cron", "tick"]).exits(0);
}

#[test]
fn a_run_that_somebody_cancels_is_ended() {
    let home = home();
    plant(
        &home,
        "long",
        "touch began; sleep 30",
        &every(24 * HOUR_MS, now_ms()),
    );
    let began = home.root().join("agents/atlas/workspace/began");
    let child = home
        .command(&["cron", "tick", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("the command runs", || began.exists());

    change(
        &global(&home),
        "UPDATE task_runs SET cancel_state = 'requested'",
    );

    let output = child.wait_with_output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["cancelled"], 1);
    let job = home.zeroclaw(&["cron", "show", "long", "--json"]).json();
    assert_eq!(
        (&job["claim_task_id"], &job["enabled"]),
        (&serde_json::Value::Null, &true.into())
    );
}

#[test]
fn ticks_of_one_process_share_the_bound_on_commands() {
    let home = home();
    let path = home.root().join("config.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(
        &path,
        text.replace("max_concurrent = 8", "max_concurrent = 1"),
    )
    .unwrap();
    let command = "mkdir alone || echo clash >> clash; sleep 0.2; rmdir alone; echo ran >> ran";
    for job in ["a", "b", "c"] {
        plant(&home, job, command, &every(24 * HOUR_MS, now_ms()));
    }

    block_on(async {
        let one = Scheduler::open(&home.root(), Clock::system())
            .await
            .unwrap();
        // As after a reload of the configuration: another scheduler of the same process.
        let other = Scheduler::open(&home.root(), Clock::system())
            .await
            .unwrap();
        let (first, second, third) = tokio::join!(one.tick(), one.tick(), other.tick());
        let ended = [first, second, third].map(|report| report.unwrap().succeeded);
        assert_eq!(ended.iter().sum::<u64>(), 3, "{ended:?}");
        one.close().await;
        other.close().await;
    });

    let workspace = home.root().join("agents/atlas/workspace");
    let ran = std::fs::read_to_string(workspace.join("ran")).unwrap();
    assert_eq!(ran.lines().count(), 3);
    assert!(!workspace.join("clash").exists(), "two at once");
}

#[test]
fn a_run_that_this_process_let_go_without_an_end_holds_its_job_no_longer() {
    let home = home();
    plant(
        &home,
        "stuck",
        "true",
        &every(24 * HOUR_MS, now_ms() + HOUR_MS),
    );
    // What a tick leaves that could not write the end of its command: its process lives on.
    let own = zeroclaw::fs::process::own();
    let boot = own.boot_id.as_deref().unwrap_or_default();
    let start = own.start_column().unwrap_or_default();
    change(
        &global(&home),
        &format!(
            "INSERT INTO task_runs (task_id, owner_kind, source_id, agent_id, status, created_at_ms, started_at_ms,
                 execution_owner_pid, execution_owner_start_identity, execution_owner_boot_id)
             VALUES ('left', 'cron', 'stuck', 'atlas', 'running', 1, 1, {}, '{start}', '{boot}');
             UPDATE cron_jobs SET claim_task_id = 'left';",
            own.pid
        ),
    );

    // Of a process that lives, and is not the one that looks: left alone.
    home.zeroclaw(&["cron", "tick"]).exits(0);
    let stands = "SELECT status, error FROM task_runs";
    assert_eq!(rows(&global(&home), stands)[0][0], "running");
    let report = block_on(async {
        let scheduler = Scheduler::open(&home.root(), Clock::system())
            .await
            .unwrap();
        let report = scheduler.tick().await.unwrap();
        scheduler.close().await;
        report
    });

    assert_eq!(report.lost, 1);
    let row = &rows(&global(&home), stands)[0];
    assert_eq!(row[0], "lost");
    assert!(
        row[1].starts_with("its end could not be recorded"),
        "{row:?}"
    );
    let free = "SELECT count(*) FROM cron_jobs WHERE claim_task_id IS NULL";
    assert_eq!(number(&global(&home), free), 1);
}
