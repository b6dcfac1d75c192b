//! C04: a database of every earlier schema version comes up to this one with every row.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::sqlite::{SqliteAutoVacuum, SqliteConnectOptions, SqliteConnection, SqliteJournalMode};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, SqlSafeStr};
use zeroclaw::db::{FULL_TEXT_INDEXES, OpenError, known_version, tables_of};
use zeroclaw::model::Tier;

use super::{differences, migrated, open_for_writing, package, structure, tiers};
use crate::support::dump::{Skip, logical_dump};
use crate::support::sqlite::{block_on, check_index, is_sound, number, run};
use crate::support::tree::{assert_same_tree, tree_hash};

/// What an upgrade itself writes.
const WRITTEN_BY_UPGRADE: Skip<'_> = Skip {
    tables: &[],
    columns: &[
        ("schema_meta", "schema_version"),
        ("schema_meta", "app_version"),
        ("schema_meta", "updated_at_ms"),
    ],
};

fn dump_file(name: &str, version: i64) -> PathBuf {
    package(&format!("tests/fixtures/db/v{version:04}/{name}.sql"))
}

/// All versions of both tiers.
fn versions() -> impl Iterator<Item = (&'static str, Tier, i64)> {
    tiers().into_iter().flat_map(|(name, tier)| {
        (1..=known_version(&tier)).map(move |version| (name, tier.clone(), version))
    })
}

/// Makes a database the way the product does, but for the lock and the schema.
async fn make(path: &Path) -> SqliteConnection {
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .page_size(8192)
        .auto_vacuum(SqliteAutoVacuum::Incremental)
        .journal_mode(SqliteJournalMode::Wal)
        .foreign_keys(false)
        .connect()
        .await
        .unwrap()
}

/// The database of a version in `dir`, at rest, changed by `then`.
pub(crate) fn replay(dir: &Path, name: &str, version: i64, then: &str) -> PathBuf {
    let path = dir.join(format!("{name}.sqlite"));
    let sql = std::fs::read_to_string(dump_file(name, version)).unwrap();
    block_on(async {
        let mut conn = make(&path).await;
        run(&mut conn, &sql).await;
        run(&mut conn, then).await;
        conn.close().await.unwrap();
    });
    path
}

/// What each table says, by the line that names it.
fn sections(dump: &str) -> impl Iterator<Item = &str> {
    dump.split("== ").skip(1)
}

/// A table's section without columns that came later than `before`.
fn narrowed(section: &str, before: &str) -> String {
    let column = |line: &str| line.split_once(" = ").map(|(name, _)| name.to_owned());
    let known: BTreeSet<String> = before.lines().filter_map(column).collect();
    let stays = |line: &&str| column(line).is_none_or(|name| known.contains(&name));
    section
        .lines()
        .filter(stays)
        .flat_map(|line| [line, "\n"])
        .collect()
}

#[test]
fn c04_every_earlier_version_comes_up_with_every_row() {
    for (name, tier, version) in versions() {
        let dir = tempfile::tempdir().unwrap();
        let path = replay(dir.path(), name, version, "");
        let before = logical_dump(&path, WRITTEN_BY_UPGRADE);

        let found = block_on(async {
            let db = open_for_writing(&path, &tier).await.unwrap();
            assert_eq!(db.version(), known_version(&tier));
            let found = structure(&mut db.read().await.unwrap()).await;
            db.close().await;
            found
        });

        let after = logical_dump(&path, WRITTEN_BY_UPGRADE);
        for section in sections(&before) {
            assert!(
                sections(&after).any(|other| narrowed(other, section) == section),
                "{name} {version}: of\n{section}\nbecame\n{after}"
            );
        }
        let expected = differences(&migrated(&tier), &found);
        assert!(
            expected.is_empty(),
            "{name} {version}:\n{}",
            expected.join("\n")
        );
        assert_eq!(number(&path, "PRAGMA user_version"), known_version(&tier));
        assert!(is_sound(&path), "{name} {version}");
        if name == "agent" {
            for index in FULL_TEXT_INDEXES {
                check_index(&path, index).unwrap();
            }
        }
    }
}

#[test]
fn c04_the_comparison_of_rows_sees_a_lost_one() {
    let dir = tempfile::tempdir().unwrap();
    let before = logical_dump(&replay(dir.path(), "global", 4, ""), WRITTEN_BY_UPGRADE);
    let other = tempfile::tempdir().unwrap();
    let path = replay(
        other.path(),
        "global",
        4,
        "DELETE FROM cron_jobs WHERE job_id = 'job-8'",
    );
    let after = logical_dump(&path, WRITTEN_BY_UPGRADE);

    let lost = sections(&before).filter(|section| sections(&after).all(|other| other != *section));
    let lost: Vec<_> = lost.collect();

    assert!(
        matches!(&lost[..], [section] if section.starts_with("cron_jobs: 8 rows")),
        "{lost:?}"
    );
}

#[test]
fn c04_a_missing_stable_table_stops_the_upgrade_and_the_file_stays_as_it_was() {
    for (name, tier, version) in versions() {
        for table in tables_of(&tier, version) {
            let dir = tempfile::tempdir().unwrap();
            let path = replay(dir.path(), name, version, &format!("DROP TABLE {table}"));
            let before = tree_hash(dir.path());

            let refused = block_on(async { open_for_writing(&path, &tier).await }).unwrap_err();

            assert!(
                matches!(&refused, OpenError::MissingTable { table: named, version: at, .. }
                    if named == table && *at == version),
                "{name} {version} without {table}: {refused:?}"
            );
            assert_same_tree(&before, &tree_hash(dir.path()));
        }
    }
}

#[test]
fn every_version_has_a_dump_with_rows_in_every_table() {
    for (name, tier, version) in versions() {
        let file = dump_file(name, version);
        if !file.exists() && std::env::var_os("ZEROCLAW_BLESS").is_some() {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, bless(name, &tier, version)).unwrap();
        }
        let dir = tempfile::tempdir().unwrap();
        let path = replay(dir.path(), name, version, "");

        assert_eq!(number(&path, "PRAGMA user_version"), version);
        for table in tables_of(&tier, version) {
            let rows = number(&path, &format!("SELECT count(*) FROM {table}"));
            assert!(rows > 0, "{name} {version}: {table} is empty");
        }
    }
}

/// The dump of a version, from the migrations and rows up to its number.
fn bless(name: &str, tier: &Tier, version: i64) -> String {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("new.sqlite");
    let application_id = match tier {
        Tier::Global => 0x5A43_4C47,
        Tier::Agent(_) => 0x5A43_4C41,
    };
    block_on(async {
        let mut conn = make(&path).await;
        let mut files = sql_files(&package(&format!("migrations/{name}")));
        files.truncate(usize::try_from(version).unwrap());
        let migrations = (1..).zip(&files).map(|(number, file)| {
            let what = file.file_stem().unwrap().to_str().unwrap()[5..].to_owned();
            let sql = AssertSqlSafe(std::fs::read_to_string(file).unwrap()).into_sql_str();
            Migration::new(number, what.into(), MigrationType::Simple, sql, false)
        });
        let migrator = Migrator::with_migrations(migrations.collect());
        migrator.run_direct(None, &mut conn, false).await.unwrap();
        for rows in sql_files(&package(&format!("tests/fixtures/db/rows/{name}")))
            .iter()
            .take(files.len())
        {
            run(&mut conn, &std::fs::read_to_string(rows).unwrap()).await;
        }
        let set = format!(
            "UPDATE _sqlx_migrations SET installed_on = '2026-11-30 12:00:00', execution_time = 0;
             UPDATE schema_meta SET schema_version = {version};"
        );
        run(&mut conn, &set).await;
        let mut dump = format!(
            "-- The {name} tier at schema version {version}; see README.md.\n\
             PRAGMA application_id = {application_id};\nPRAGMA user_version = {version};\nBEGIN;\n"
        );
        dump_into(&mut conn, &mut dump).await;
        dump.push_str("COMMIT;\n");
        dump
    })
}

fn sql_files(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Everything but shadow tables, which their virtual table makes, in the order it was made.
async fn dump_into(conn: &mut SqliteConnection, dump: &mut String) {
    let objects: Vec<(String, String, bool)> = sqlx::query_as(
        "SELECT s.name, s.sql, ifnull(t.type = 'table', 0) FROM sqlite_schema s
         LEFT JOIN pragma_table_list t ON t.schema = 'main' AND t.name = s.name
         WHERE s.sql IS NOT NULL AND s.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND ifnull(t.type, '') <> 'shadow'
         ORDER BY s.rowid",
    )
    .fetch_all(&mut *conn)
    .await
    .unwrap();
    for (name, sql, has_rows) in objects {
        dump.push_str(&format!("{sql};\n"));
        if sql.contains("USING fts5") {
            dump.push_str(&format!(
                "INSERT INTO {name} ({name}) VALUES ('rebuild');\n"
            ));
        }
        if has_rows {
            dump_rows(conn, &name, dump).await;
        }
    }
}

async fn dump_rows(conn: &mut SqliteConnection, table: &str, dump: &mut String) {
    let columns: Vec<String> =
        sqlx::query_scalar("SELECT concat('quote(\"', name, '\")') FROM pragma_table_info(?1)")
            .bind(table)
            .fetch_all(&mut *conn)
            .await
            .unwrap();
    let select = format!(
        "SELECT concat_ws(', ', {}) FROM {table} ORDER BY 1",
        columns.join(", ")
    );
    let rows: Vec<String> = sqlx::query_scalar(AssertSqlSafe(select))
        .fetch_all(conn)
        .await
        .unwrap();
    for row in rows {
        dump.push_str(&format!("INSERT INTO {table} VALUES ({row});\n"));
    }
}
