//! Ends that were decided and never applied: each rule of recovery, and an install that has moved.

use super::*;

/// A decided end; `values` stand for columns of the same name.
fn intent(number: u32, values: &[(&str, String)]) -> String {
    let mut columns = [
        ("owner_pid", "4242".to_owned()),
        ("owner_boot_id", "boot-1".to_owned()),
        ("desired_status", "completed".to_owned()),
        ("artifact_path", format!("/old/place/{}.json", id(number))),
        ("artifact_ref", format!("artifact:{}.json", id(number))),
        ("artifact_sha256", "0".repeat(64)),
        ("terminal_error", String::new()),
    ];
    for (name, value) in values {
        let at = columns
            .iter()
            .position(|(column, _)| column == name)
            .unwrap();
        columns[at].1.clone_from(value);
    }
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let texts: Vec<String> = columns
        .iter()
        .map(|(_, value)| format!("nullif('{value}', '')"))
        .collect();
    let insert = format!(
        "INSERT INTO terminal_settlement_intents (task_id, {}) VALUES ('{}', {});",
        names.join(", "),
        id(number),
        texts.join(", ")
    );
    // A path that is none is the empty text there, not NULL.
    insert.replace("nullif('', '')", "''")
}

fn running(number: u32) -> String {
    task(
        number,
        "delegate",
        "running",
        &[("originator_route", "'atlas'")],
    )
}

fn stands(home: &Sandbox, number: u32) -> Vec<String> {
    row(home, number, "status, status_detail, output, error")
}

#[test]
fn a_proven_end_is_applied_from_its_place_or_by_name_where_the_install_has_moved() {
    let bytes = output_file(1, "the answer");
    let (home, install) = install(
        &ddl(8),
        &[
            running(1),
            running(2),
            intent(1, &[("artifact_sha256", digest(&bytes))]),
            intent(
                2,
                &[
                    ("artifact_sha256", digest(&output_file(2, "half"))),
                    ("desired_status", "failed".to_owned()),
                    ("terminal_error", "provider unavailable".to_owned()),
                    ("artifact_ref", String::new()),
                    (
                        "artifact_path",
                        format!("C:\\zc\\delegate_results\\{}.json", id(2)),
                    ),
                ],
            ),
        ],
    );
    install.file(result_path(1), &bytes);
    install.file(
        format!("agents/atlas/workspace/delegate_results/{}.json", id(2)),
        &output_file(2, "half"),
    );

    let report = imported(&home, 0);

    assert_eq!(
        stands(&home, 1),
        ["succeeded", "completed", "the answer", ""]
    );
    assert_eq!(
        stands(&home, 2),
        ["failed", "failed", "half", "provider unavailable"]
    );
    assert_eq!(counts(&report, STORE, "settlements"), [2, 0, 0, 2, 0]);
    assert_eq!(
        codes(&report)
            .iter()
            .filter(|code| *code == "settlement-applied")
            .count(),
        1
    );
    let state = State::of(home.root());
    assert_eq!(state.count(&state.global(), "task_settlements"), 0);
    let kept = sqlite::rows(
        &state.agent("atlas"),
        "SELECT run_id, size_bytes FROM run_artifacts ORDER BY run_id",
    );
    assert_eq!(kept, [[id(1), "10".to_owned()], [id(2), "4".to_owned()]]);
}

#[test]
fn a_result_that_came_in_before_still_proves_the_end_of_its_task() {
    let bytes = output_file(1, "the answer");
    let rows = [
        running(1),
        intent(1, &[("artifact_sha256", digest(&bytes))]),
    ];
    let (home, install) = install(&ddl(8), &rows);
    install.file(result_path(1), &bytes);
    home.zeroclaw(&["doctor", "--fix", "--only", "delegate-results"])
        .exits(0);
    assert!(!install.path(result_path(1)).exists());
    assert_eq!(row(&home, 1, "status, status_detail"), ["lost", "unknown"]);

    imported(&home, 0);

    assert_eq!(
        stands(&home, 1),
        ["succeeded", "completed", "the answer", ""]
    );
}

#[test]
fn an_end_that_nothing_proves_is_a_failure_and_never_a_success() {
    let whole = output_file(1, "whole");
    let digest_of = |bytes: &[u8]| ("artifact_sha256", digest(bytes));
    let extra =
        serde_json::to_vec(&json!({"task_id": id(5), "output": "x", "status": "completed"}))
            .unwrap();
    let other = output_file(99, "of another");
    let rows = [
        intent(1, &[digest_of(&whole)]),
        intent(2, &[]),
        intent(
            3,
            &[
                digest_of(&output_file(3, "x")),
                ("artifact_path", format!("results/{}.json", id(3))),
            ],
        ),
        intent(
            4,
            &[
                digest_of(&output_file(4, "x")),
                ("artifact_ref", "artifact:other.json".to_owned()),
            ],
        ),
        intent(5, &[digest_of(&extra)]),
        intent(6, &[digest_of(&other)]),
        intent(
            7,
            &[
                digest_of(&output_file(7, "x")),
                ("artifact_path", "/etc/passwd".to_owned()),
            ],
        ),
        intent(8, &[("artifact_sha256", "zz".to_owned())]),
    ];
    let tasks = (1..=8).map(running);
    let (home, install) = install(&ddl(8), &tasks.chain(rows).collect::<Vec<_>>());
    install
        .file(result_path(1), &whole[..whole.len() - 3])
        .file(result_path(3), &output_file(3, "x"))
        .file(result_path(4), &output_file(4, "x"))
        .file(result_path(5), &extra)
        .file(result_path(6), &other)
        .file(result_path(7), &output_file(7, "x"))
        .file(result_path(8), &output_file(8, "x"));

    let report = home
        .zeroclaw(&["doctor", "--fix", "--json", "--only", "tasks"])
        .json();

    for (number, why) in [
        (1, "other bytes"),
        (2, "missing"),
        (3, "not absolute"),
        (4, "not referred to"),
        (5, "not one of its task"),
        (6, "not one of its task"),
        (7, "name of its artifact"),
        (8, "digest of its artifact"),
    ] {
        let found = stands(&home, number);
        assert_eq!(found[..3], ["failed", "settlement_failed", ""], "{number}");
        assert!(found[3].contains(why), "{number}: {}", found[3]);
    }
    assert_eq!(counts(&report, STORE, "settlements"), [8, 0, 0, 8, 0]);
}

#[test]
fn an_end_of_another_process_of_no_task_or_of_one_that_has_ended_is_dropped() {
    let bytes = output_file(1, "late");
    let digest = || ("artifact_sha256", digest(&bytes));
    let (home, install) = install(
        &ddl(8),
        &[
            running(1),
            task(2, "delegate", "cancelled", &[]),
            intent(1, &[digest(), ("owner_boot_id", "boot-2".to_owned())]),
            intent(2, &[digest()]),
            intent(3, &[digest()]),
        ],
    );
    install.folder("data/delegate_results");

    let report = imported(&home, 0);

    assert_eq!(row(&home, 1, "status, status_detail"), ["lost", "running"]);
    assert_eq!(row(&home, 2, "status"), ["cancelled"]);
    assert_eq!(counts(&report, STORE, "settlements"), [3, 0, 0, 3, 0]);
    assert!(codes(&report).contains(&"settlement-dropped".to_owned()));
}

#[test]
fn an_end_that_nobody_understands_is_kept_and_listed() {
    let (home, _install) = install(
        &ddl(8),
        &[
            running(1),
            intent(1, &[("desired_status", "needs_review".to_owned())]),
        ],
    );

    let report = imported(&home, 0);

    assert_eq!(row(&home, 1, "status, status_detail"), ["lost", "running"]);
    assert_eq!(counts(&report, STORE, "settlements"), [1, 1, 0, 0, 0]);
    home.zeroclaw(&["tasks", "settlements"])
        .exits(0)
        .says("needs_review");
    home.zeroclaw(&["tasks", "show", &id(1)])
        .exits(0)
        .says("needs_review");
}

#[test]
fn an_output_proven_outside_every_place_for_results_is_kept_all_the_same() {
    let bytes = output_file(1, "from afar");
    let (home, install) = install(&ddl(8), &[running(1)]);
    let afar = home.home().join("afar");
    let place = LegacyInstall::new(&afar);
    place.file(format!("{}.json", id(1)), &bytes);
    let path = afar
        .join(format!("{}.json", id(1)))
        .to_str()
        .unwrap()
        .to_owned();
    let row_of_intent = intent(
        1,
        &[("artifact_sha256", digest(&bytes)), ("artifact_path", path)],
    );
    install.alter(STORE, Journal::Wal, &row_of_intent);

    let report = imported(&home, 0);

    assert_eq!(
        stands(&home, 1)[..3],
        [
            "succeeded".to_owned(),
            "completed".to_owned(),
            format!("artifact:{}.json", id(1))
        ]
    );
    assert_eq!(counts(&report, STORE, "artifacts"), [1, 1, 0, 0, 0]);
    home.zeroclaw(&["tasks", "output", &id(1)])
        .exits(0)
        .says("from afar");
    assert!(afar.join(format!("{}.json", id(1))).exists());
}
