//! A kill at any moment of an import leaves nothing, or what a rerun or any other command finishes.

use std::fs;

use super::super::home::{Home, dumps};
use super::{database, dump, export_from, registered};
use crate::support::sandbox::{Ran, Sandbox};

/// Where an import can be killed, and whether the agent is there in the end.
const POINTS: [(&str, bool); 9] = [
    ("adopt.staging", false),
    ("adopt.unpacked", false),
    ("adopt.staged", false),
    ("adopt.journalled", true),
    ("restore.swap", true),
    ("restore.swap:2", true),
    ("restore.swapped", true),
    ("restore.registered", true),
    ("restore.cleared", true),
];

#[tokio::test]
async fn a_killed_import_is_finished_by_a_rerun_or_by_any_command() {
    let home = Home::with_two_agents().await;
    let workspace = home.root().join("agents/atlas/workspace");
    fs::create_dir_all(&workspace).unwrap();
    fs::write(workspace.join("a"), "draft").unwrap();
    let archive = export_from(&home, &home.root(), "atlas", true).await;
    let archive = archive.archive.archive.to_str().unwrap().to_owned();
    let expected = dump(&home.root(), "atlas");

    for (point, is_there) in POINTS {
        for rerun in [true, false] {
            let place = Sandbox::in_memory();
            home.fill(&place.root(), &["other"]).await;
            let args = ["agents", "import", archive.as_str(), "--yes"];
            let mut killed = place.command(&args);
            killed.env("ZEROCLAW_FAULT", point);
            let killed = Ran::of(killed);
            assert_eq!(killed.code(), None, "{point}: {}", killed.told());

            if rerun {
                place.zeroclaw(&args).exits(0);
            } else {
                place.zeroclaw(&["agents", "list"]).exits(0);
            }

            let found = database(&place.root(), "atlas").exists();
            assert_eq!(found, is_there || rerun, "{point}");
            assert_eq!(
                registered(&place.root(), "atlas").await.is_some(),
                found,
                "{point}"
            );
            if found {
                assert_eq!(dump(&place.root(), "atlas"), expected, "{point}");
                let draft = place.root().join("agents/atlas/workspace/a");
                assert_eq!(fs::read_to_string(draft).unwrap(), "draft", "{point}");
            }
            assert_eq!(
                dumps(&place.root()).len(),
                2 + usize::from(found),
                "{point}"
            );
            let left = fs::read_dir(place.root().join("state")).unwrap();
            let mut left = left.map(|it| it.unwrap().file_name().into_string().unwrap());
            assert!(!left.any(|name| name.contains("restore")), "{point}");
        }
    }
}
