//! Several runs at once on one root.

use std::process::Stdio;

use super::state::{State, age};
use crate::support::legacy::copy_sample;
use crate::support::sandbox::Sandbox;

/// Runs at once, and how often.
const AT_ONCE: usize = 6;
const ROUNDS: usize = 5;

#[test]
fn c38_of_runs_at_once_one_does_the_work_and_the_end_is_that_of_one() {
    let alone = Sandbox::in_memory();
    age(copy_sample(alone.root()).root());
    alone.zeroclaw(&["doctor", "--fix"]).exits(0);
    let (dump, retired) = (
        State::of(alone.root()).dump(),
        State::of(alone.root()).retired(),
    );

    for round in 0..ROUNDS {
        let home = Sandbox::in_memory();
        age(copy_sample(home.root()).root());

        let children: Vec<_> = (0..AT_ONCE)
            .map(|_| {
                let mut command = home.command(&["doctor", "--fix", "--json"]);
                command
                    .stdout(Stdio::piped())
                    .stderr(Stdio::piped())
                    .spawn()
                    .unwrap()
            })
            .collect();

        let mut workers = 0;
        for child in children {
            let output = child.wait_with_output().unwrap();
            let told = String::from_utf8(output.stderr).unwrap();
            match output.status.code() {
                Some(0) => {
                    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
                    workers += usize::from(report["changed"] == true);
                }
                Some(4) => assert!(told.contains("doctor (pid "), "{told}"),
                code => panic!("round {round}: {code:?}: {told}"),
            }
            assert!(
                !told.contains("malformed") && !told.contains("panicked"),
                "{told}"
            );
        }
        let state = State::of(home.root());
        assert_eq!(workers, 1, "round {round}");
        assert!(state.dump() == dump, "round {round}: rows differ");
        assert_eq!(state.retired(), retired, "round {round}");
        assert!(state.complaints().is_empty(), "{:?}", state.complaints());
    }
}
