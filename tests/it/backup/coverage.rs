//! Nothing is forgotten: a row of every table of both tiers goes through an archive and comes back.

use std::path::Path;

use super::home::{Home, dumps, open};
use crate::support::every_table::{self, empty_tables};
use crate::support::sqlite::{self, rows};

/// A root with a row in every ordinary table of both tiers.
pub(super) async fn full_root() -> Home {
    let home = Home::with_two_agents().await;
    every_table::fill_global(&home.global());
    every_table::fill_agent(&home.agent("atlas"));
    home
}

/// What the filler wrote into `backup_runs`; the rows of real runs are other ones.
fn filled_run(root: &Path) -> Vec<Vec<String>> {
    rows(
        &root.join("state/state.sqlite"),
        "SELECT * FROM backup_runs WHERE id = 'every-table'",
    )
}

#[tokio::test]
async fn c48_a_row_of_every_table_comes_back() {
    let home = full_root().await;
    let none: Vec<String> = Vec::new();
    assert_eq!(empty_tables(&home.global()), none);
    assert_eq!(empty_tables(&home.agent("atlas")), none);

    let archive = home.archive().await;
    let target = home.path("elsewhere");
    let report = home.restore(&archive, &target).await.unwrap();

    // Leases and the record of runs are of a machine and a moment; the rest is equal to the byte.
    assert_eq!(dumps(&target), dumps(&home.root()));
    assert_eq!(filled_run(&target), filled_run(&home.root()));
    assert_eq!(
        empty_tables(&target.join("state/state.sqlite")),
        ["state_leases"]
    );
    let told = report.notes.join("\n");
    assert!(told.contains("leases"), "{told}");
    for index in zeroclaw::db::FULL_TEXT_INDEXES {
        sqlite::check_index(&target.join("agents/atlas/agent/agent.sqlite"), index).unwrap();
    }
    // The first writer finds nothing to repair.
    open(&target).await.close().await;
    assert_eq!(dumps(&target), dumps(&home.root()));
}

#[tokio::test]
#[should_panic(expected = "planted_table")]
async fn a_table_that_nobody_covers_is_found() {
    let home = Home::with_two_agents().await;
    sqlite::change(
        &home.agent("atlas"),
        "CREATE TABLE planted_table (a TEXT) STRICT",
    );

    every_table::fill_agent(&home.agent("atlas"));
}

#[test]
fn the_schema_people_read_has_no_table_without_a_row() {
    // The comparer of schemas proves the two equal; here the names stand as people read them.
    for name in ["global", "agent"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("schema/{name}.sql"));
        let text = std::fs::read_to_string(path).unwrap();
        let tables = text
            .lines()
            .filter_map(|line| line.strip_prefix("CREATE TABLE "))
            .filter_map(|rest| rest.split([' ', '(']).next());
        for table in tables {
            assert!(every_table::covers(name, table), "{name}.{table}");
        }
    }
}
