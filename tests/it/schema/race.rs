//! C38: several processes that open the same new or old database in one instant.
//!
//! Shown able to fail: without the lock file round a migration, two runs in three lost a process in one of their 20 rounds
//! to "database is locked", and its row with it: SQLite does not wait when two switch a file to its log at once. The lock
//! must cover the switch, so it is taken before the first writing connection. A schema made twice was not seen even then,
//! because the migrations look at what is applied inside their `BEGIN IMMEDIATE`.

use std::path::Path;
use std::process::Child;

use zeroclaw::db::{Access, Db, OpenError, known_version};
use zeroclaw::model::Tier;
use zeroclaw::store::global::lease::{self, Lease};

use super::{differences, migrated, structure, write_access};
use crate::support::process::{part, played_on, wait_until};
use crate::support::sqlite::{PrivateCopy, block_on, is_sound, number};

const PROCESSES: usize = 8;
const ROUNDS: usize = 20;

/// One of many: opens the database as soon as the start is given, and writes one row.
#[test]
#[ignore = "run by the tests beside it, in processes of their own"]
fn one_of_many() {
    let Some(path) = played_on() else {
        return;
    };
    wait_until("the start", || path.with_extension("go").exists());

    block_on(async {
        let access = write_access(path.parent().unwrap());
        let db = Db::open_or_create(&path, &Tier::Global, access)
            .await
            .unwrap();
        let row = Lease {
            scope: "race".to_owned(),
            lease_key: std::process::id().to_string(),
            owner: "one of many".to_owned(),
            ..Lease::default()
        };
        db.write(move |tx| Box::pin(async move { lease::replace(tx, &row).await }))
            .await
            .unwrap();
        db.close().await;
    });
}

fn racer(path: &Path) -> Child {
    part("schema::race::one_of_many", path).spawn().unwrap()
}

/// Lets all processes at the database at once; gives what those said that failed.
fn race(path: &Path) -> Vec<String> {
    let racers: Vec<Child> = (0..PROCESSES).map(|_| racer(path)).collect();
    std::fs::write(path.with_extension("go"), "").unwrap();
    let ended = racers
        .into_iter()
        .map(|racer| racer.wait_with_output().unwrap());
    ended
        .filter(|output| !output.status.success())
        .map(|output| String::from_utf8_lossy(&output.stderr).into_owned())
        .collect()
}

/// What went wrong with one race: processes that failed, rows and tables that are not there.
fn faults(path: &Path) -> Vec<String> {
    let mut faults = race(path);
    if !is_sound(path) {
        faults.push("the file is not sound".to_owned());
        return faults;
    }
    let rows = number(
        path,
        "SELECT count(*) FROM state_leases WHERE scope = 'race'",
    );
    if rows != i64::try_from(PROCESSES).unwrap() {
        faults.push(format!("{rows} rows of {PROCESSES}"));
    }
    if number(path, "PRAGMA user_version") != known_version(&Tier::Global) {
        faults.push("not the newest schema".to_owned());
    }
    let found = block_on(async { structure(&mut PrivateCopy::of(path).open().await).await });
    faults.extend(differences(&migrated(&Tier::Global), &found));
    faults
}

#[test]
fn c38_first_start_of_eight_processes_makes_one_schema_and_loses_no_row() {
    for round in 0..ROUNDS {
        let dir = tempfile::tempdir().unwrap();

        let faults = faults(&dir.path().join("state.sqlite"));

        assert!(faults.is_empty(), "round {round}:\n{}", faults.join("\n"));
    }
}

#[test]
fn c38_eight_processes_that_meet_an_old_schema_bring_it_up_once() {
    for version in 1..known_version(&Tier::Global) {
        let dir = tempfile::tempdir().unwrap();
        let path = super::upgrade::replay(dir.path(), "global", version, "");

        let faults = faults(&path);

        assert!(faults.is_empty(), "from {version}:\n{}", faults.join("\n"));
        assert_eq!(number(&path, "SELECT count(*) FROM agent_databases"), 3);
    }
}

#[test]
fn c38_who_looks_in_the_middle_of_a_first_start_is_not_told_of_damage() {
    let mut looks = 0;
    for round in 0..ROUNDS {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.sqlite");
        let mut maker = racer(&path);
        std::fs::write(path.with_extension("go"), "").unwrap();

        let told = block_on(async {
            let mut told = Vec::new();
            while maker.try_wait().unwrap().is_none() {
                for is_at_rest in [true, false] {
                    let look = Access::Look { is_at_rest };
                    told.extend(Db::open(&path, &Tier::Global, look).await.err());
                    looks += 1;
                }
            }
            told
        });

        let is_fair = |error: &OpenError| {
            matches!(error, OpenError::NotFound { .. } | OpenError::Empty { .. })
        };
        let unfair: Vec<_> = told.iter().filter(|error| !is_fair(error)).collect();
        assert!(unfair.is_empty(), "round {round}: {unfair:?}");
    }
    assert!(looks > ROUNDS, "nobody looked in time");
}
