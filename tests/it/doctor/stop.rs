//! Asked to stop, a run stops in good order and can be run again; killed, it leaves no copies for long.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::state::State;
use crate::support::legacy::{LegacyInstall, copy_sample};
use crate::support::sandbox::{Ran, Sandbox};
use crate::support::scale::Scale;
use crate::support::sqlite;

const CONFIG: &str = "schema_version = 3\n[agents.atlas]\nchannels = ['telegram.main']\n";

fn home_with_much() -> Sandbox {
    let home = Sandbox::in_memory();
    let install = LegacyInstall::new(home.root());
    install.config(CONFIG);
    install.many_files(200, 20, Scale::default());
    install.many_sessions(10, 200, Scale::default());
    home
}

fn fix(home: &Sandbox) -> Child {
    let mut command = home.command(&["doctor", "--fix", "--json"]);
    command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Sends a signal once a phase has begun; gives how it ended and what it said last.
fn stopped_in(home: &Sandbox, phase: &str, signal: Signal, times: usize) -> (Option<i32>, String) {
    let mut child = fix(home);
    let begun = format!("\"phase\":\"{phase}\"");
    let mut last = String::new();
    let mut is_sent = false;
    for line in BufReader::new(child.stderr.take().unwrap()).lines() {
        last = line.unwrap();
        if !is_sent && last.contains(&begun) {
            is_sent = true;
            let pid = Pid::from_child(&child);
            for _ in 0..times {
                kill_process(pid, signal).unwrap();
                // Two that come at once count as one.
                std::thread::sleep(std::time::Duration::from_millis(3));
            }
        }
    }
    (child.wait().unwrap().code(), last)
}

fn undisturbed() -> String {
    let home = home_with_much();
    home.zeroclaw(&["doctor", "--fix"]).exits(0);
    rows_of(&home)
}

/// Rows, but for times of files, which differ between two installs made one after another.
fn rows_of(home: &Sandbox) -> String {
    let state = State::of(home.root());
    assert!(state.complaints().is_empty());
    format!("{:?} {:?}", state.sessions(), state.receipts().len())
}

#[test]
fn asked_to_stop_in_any_phase_it_says_how_to_go_on_and_the_next_run_ends_as_one() {
    let whole = undisturbed();
    let mut stopped = 0;

    for (phase, signal) in [
        ("look", Signal::INT),
        ("apply", Signal::INT),
        ("apply", Signal::TERM),
        ("verify", Signal::TERM),
        ("index", Signal::INT),
    ] {
        let home = home_with_much();

        let (code, last) = stopped_in(&home, phase, signal, 1);

        // It may have come to its end before it heard.
        if code != Some(0) {
            assert_eq!(code, Some(130), "{phase}: {last}");
            stopped += 1;
            let told: serde_json::Value = serde_json::from_str(&last).unwrap();
            assert_eq!(told["error"]["kind"], "interrupted");
            assert!(
                told["error"]["hint"]
                    .as_str()
                    .unwrap()
                    .contains("doctor --fix")
            );
        }
        // Nobody seems to hold the root, and no copies are left.
        let state = State::of(home.root());
        if state.global().exists() {
            let held = "SELECT count(*) FROM state_leases";
            assert_eq!(sqlite::number(&state.global(), held), 0, "{phase}");
        }
        let left = std::fs::read_dir(home.home().join("tmp")).unwrap().count();
        assert_eq!(left, 0, "{phase}");
        home.zeroclaw(&["doctor", "--fix"]).exits(0);
        assert!(rows_of(&home) == whole, "{phase}");
    }
    assert!(stopped > 0, "every run ended before it heard");
}

#[test]
fn the_second_signal_ends_it_at_once_and_the_next_run_ends_as_one() {
    let whole = undisturbed();
    let home = home_with_much();

    let (code, _) = stopped_in(&home, "apply", Signal::INT, 2);

    // Killed, or stopped in good order before the second came.
    assert!(matches!(code, None | Some(130 | 0)), "{code:?}");
    home.zeroclaw(&["doctor", "--fix"]).exits(0);
    assert!(rows_of(&home) == whole);
}

#[test]
fn copies_that_a_killed_run_left_go_with_the_next() {
    let home = Sandbox::in_memory();
    copy_sample(home.root());
    let tmp = home.home().join("tmp");
    let copies = || {
        let entries = std::fs::read_dir(&tmp).unwrap().map(Result::unwrap);
        let names = entries.map(|entry| entry.file_name().into_string().unwrap());
        names
            .filter(|name| name.starts_with("zeroclaw-doctor-"))
            .count()
    };
    let mut command = home.command(&["doctor", "--fix"]);
    command.env("ZEROCLAW_FAULT", "doctor-apply");
    assert_eq!(Ran::of(command).code(), None);
    assert_eq!(copies(), 1);

    // A look changes nothing, here neither.
    home.zeroclaw(&["doctor"]).exits(7);
    assert_eq!(copies(), 1);
    home.zeroclaw(&["doctor", "--fix"]).exits(0);

    assert_eq!(copies(), 0);
}
