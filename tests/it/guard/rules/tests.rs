use super::*;

type Rule = fn(&[Source]) -> Vec<String>;

fn violations(rule: Rule, path: &str, text: &str) -> Vec<String> {
    rule(&[Source::new(path, text)])
}

fn catches(rule: Rule, cases: &[(&str, &str)]) {
    for (path, text) in cases {
        assert_eq!(violations(rule, path, text).len(), 1, "{path}: {text}");
    }
}

fn accepts(rule: Rule, cases: &[(&str, &str)]) {
    for (path, text) in cases {
        assert_eq!(
            violations(rule, path, text),
            Vec::<String>::new(),
            "{path}: {text}"
        );
    }
}

#[test]
fn a_stray_a_second_and_a_missing_path_attribute_are_caught() {
    catches(
        path_attributes,
        &[
            ("src/lib.rs", "#[path = \"../doctor/mod.rs\"] mod doctor;"),
            ("src/db/mod.rs", "#[cfg_attr(unix, path = \"x.rs\")] mod x;"),
            ("src/db/mod.rs", "#![cfg_attr(unix, path = \"x.rs\")]"),
            (
                "src/main.rs",
                "#[path = \"a\"] mod a;\n#[path = \"b\"] mod b;",
            ),
            ("doctor/mod.rs", "mod scan;"),
        ],
    );
}

#[test]
fn the_mount_of_the_doctor_and_other_attributes_are_accepted() {
    accepts(
        path_attributes,
        &[
            ("src/main.rs", "#[path = \"../doctor/mod.rs\"]\nmod doctor;"),
            (
                "src/db/mod.rs",
                "// #[path = \"x\"]\n#[error(\"{path}\", path = path.display())]\nstruct X;",
            ),
            (
                "src/db/mod.rs",
                "let path = [path]; #[derive(Debug)] struct X { path: P }",
            ),
        ],
    );
}

#[test]
fn a_legacy_word_is_caught_in_code_comment_text_and_schema() {
    catches(
        legacy_words,
        &[
            ("src/store/session.rs", "// As OpenClaw did."),
            (
                "src/store/session.rs",
                "const OLD: &str = \"data/sessions/sessions.db\";",
            ),
            ("src/service/x.rs", "path.ends_with(\".jsonl\")"),
            ("src/cli/x.rs", "/// Reads MEMORY_SNAPSHOT.md."),
            ("migrations/global/0001_x.sql", "-- From jobs.db."),
            ("schema/agent.sql", "-- once brain.db"),
            ("build.rs", "// clawdbot"),
            ("benches/state/data.rs", "// jobs.db"),
        ],
    );
}

#[test]
fn legacy_words_in_their_places_and_words_like_them_are_accepted() {
    accepts(
        legacy_words,
        &[
            (
                "doctor/sources/zeroclaw/sessions.rs",
                "const FILE: &str = \"sessions.db\";",
            ),
            ("tests/it/doctor.rs", "// openclaw"),
            ("benches/import/install.rs", "/// `jobs.db`."),
            (
                "src/store/session.rs",
                "state.sqlite session_key acp_sessions task_runs.db json lines sessions_db",
            ),
            (
                "migrations/global/0001_x.sql",
                "CREATE TABLE acp_sessions (x);",
            ),
        ],
    );
}

#[test]
fn printing_is_caught() {
    catches(
        printing,
        &[
            ("src/service/open.rs", "fn f() { println!(\"x\") }"),
            ("src/main.rs", "eprintln ! (\"x\")"),
            ("doctor/report.rs", "std::print!(\"x\");"),
            ("src/cli/session.rs", "dbg!(x)"),
            ("src/cli/session.rs", "eprint!()"),
            ("src/cli/session.rs", "writeln!(io::stdout(), \"x\")"),
        ],
    );
}

#[test]
fn output_and_words_like_printing_are_accepted() {
    accepts(
        printing,
        &[
            (
                "src/cli/output.rs",
                "println!(\"x\"); eprint!(); io::stdout().lock()",
            ),
            ("src/cli/output/table.rs", "println!(\"x\")"),
            (
                "src/service/open.rs",
                "// println!(\"x\")\nlet x = \"println!()\"; print(x); a != print",
            ),
            (
                "src/cli/session.rs",
                "command.stdout(Stdio::null()); output::println(x)",
            ),
            ("tests/it/x.rs", "println!(\"x\")"),
            ("build.rs", "println!(\"x\")"),
        ],
    );
}

#[test]
fn an_end_of_the_process_is_caught() {
    catches(
        exits,
        &[
            ("src/cli/session.rs", "std::process::exit(1)"),
            ("doctor/mod.rs", "use std::process::{Command, exit};"),
            ("src/daemon/x.rs", "process::abort()"),
            ("src/daemon/x.rs", "use std::process::*;"),
        ],
    );
}

#[test]
fn the_end_in_main_and_words_like_it_are_accepted() {
    accepts(
        exits,
        &[
            ("src/main.rs", "std::process::exit(code)"),
            (
                "src/cli/session.rs",
                "// process::exit\nuse std::process::{ExitCode, id}; loop_.exit(); exit(1)",
            ),
        ],
    );
}

#[test]
fn sql_outside_its_rooms_is_caught() {
    catches(
        sql_crates,
        &[
            ("src/service/open.rs", "use sqlx::Row;"),
            ("src/cli/x.rs", "fn f() { ::sqlx::query(\"x\") }"),
            ("doctor/plan.rs", "use sqlx::{Row, query};"),
            ("src/store/x.rs", "use libsqlite3_sys::sqlite3_libversion;"),
            ("doctor/plan.rs", "query(AssertSqlSafe(text))"),
        ],
    );
}

#[test]
fn sql_in_its_rooms_and_words_like_it_are_accepted() {
    accepts(
        sql_crates,
        &[
            (
                "src/db/open.rs",
                "use sqlx::{AssertSqlSafe, Row}; use libsqlite3_sys as ffi;",
            ),
            ("src/store/x.rs", "sqlx::query(sqlx::AssertSqlSafe(text))"),
            ("doctor/sources/x.rs", "use sqlx::Row;"),
            (
                "src/service/x.rs",
                "// sqlx::Row\nlet sqlx_like = \"sqlx::Row\"; use crate::db::Tx;",
            ),
            ("tests/it/x.rs", "use sqlx::Row;"),
        ],
    );
}

#[test]
fn unsafe_code_is_caught_anywhere() {
    catches(
        unsafe_code,
        &[
            ("src/db/x.rs", "fn f() { unsafe { g() } }"),
            ("src/db/x.rs", "unsafe impl Send for X {}"),
            ("tests/it/x.rs", "unsafe fn f() {}"),
            ("build.rs", "unsafe {}"),
        ],
    );
}

#[test]
fn words_about_unsafe_code_are_accepted() {
    accepts(
        unsafe_code,
        &[(
            "src/lib.rs",
            "#![forbid(unsafe_code)]\n// unsafe\nlet x = \"unsafe\";",
        )],
    );
}
