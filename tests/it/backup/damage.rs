//! C47: an archive that is rotten in one place is refused, and the place is named.

use std::fs;
use std::path::PathBuf;

use sqlx::Connection;
use zeroclaw::service::backup;

use super::home::{
    Home, add_memories, clock, damage_of, open, pack, pack_agreeing, unpack, verify,
};
use crate::support::sqlite::{self, Journal};

const ATLAS: &str = "agents/atlas/agent/agent.sqlite";
const BOREA: &str = "agents/borea/agent/agent.sqlite";
const GLOBAL: &str = "state/state.sqlite";

type Members = Vec<(String, Vec<u8>)>;

/// A good archive taken apart, and a place for a bad one.
struct Case {
    home: Home,
    archive: PathBuf,
    members: Members,
}

impl Case {
    async fn new() -> Self {
        let home = Home::with_two_agents().await;
        let archive = home.archive().await;
        let members = unpack(&archive);
        Self {
            home,
            archive,
            members,
        }
    }

    fn bytes(&mut self, name: &str) -> &mut Vec<u8> {
        &mut self.members.iter_mut().find(|it| it.0 == name).unwrap().1
    }

    /// Packs the members as they now are; gives the item and the reason of the refusal.
    async fn damage(&self) -> (String, String) {
        let bad = self.home.path("bad.tar.gz");
        pack(&bad, &self.members);
        damage_of(&bad).await
    }

    /// The same with a manifest that agrees with the members.
    async fn damage_agreeing(
        &mut self,
        edit: impl FnOnce(&mut serde_json::Value),
    ) -> (String, String) {
        let bad = self.home.path("bad.tar.gz");
        pack_agreeing(&bad, &mut self.members, edit);
        damage_of(&bad).await
    }
}

#[tokio::test]
async fn c47_the_good_archive_passes_as_it_is_and_packed_by_others() {
    let case = Case::new().await;
    let other = case.home.path("other.tar.gz");

    pack(&other, &case.members);

    assert!(verify(&case.archive).await.unwrap().ok);
    let deep = backup::verify(&other, clock(), None, true, None)
        .await
        .unwrap();
    assert_eq!(deep.findings, Vec::<String>::new());
}

#[tokio::test]
async fn c47_1_a_flipped_byte_in_a_database_page() {
    let mut case = Case::new().await;
    let page = case.bytes(ATLAS);
    let middle = page.len() / 2;
    page[middle] ^= 1;

    assert_eq!(case.damage().await.0, ATLAS);
}

#[tokio::test]
async fn c47_2_a_flipped_byte_anywhere_in_the_manifest() {
    let mut case = Case::new().await;
    let length = case.bytes("manifest.json").len();

    for at in (0..length).step_by(length / 23) {
        case.bytes("manifest.json")[at] ^= 1;
        assert_eq!(case.damage().await.0, "manifest.json", "byte {at}");
        case.bytes("manifest.json")[at] ^= 1;
    }
}

#[tokio::test]
async fn c47_3_an_archive_cut_by_1_kib_or_anywhere() {
    let case = Case::new().await;
    let bytes = fs::read(&case.archive).unwrap();
    let cut = case.home.path("cut.tar.gz");

    for keep in [
        bytes.len() - 1024,
        bytes.len() - 1,
        bytes.len() / 2,
        100,
        10,
        0,
    ] {
        fs::write(&cut, &bytes[..keep]).unwrap();
        let (member, reason) = damage_of(&cut).await;
        assert!(
            reason.contains("cut short") || reason.contains("read on"),
            "{member}: {reason}"
        );
    }
}

#[tokio::test]
async fn c47_4_an_agents_database_removed() {
    let mut case = Case::new().await;
    case.members.retain(|it| it.0 != BOREA);

    let plain = case.damage().await;
    let agreeing = case
        .damage_agreeing(|manifest| {
            let members = manifest["members"].as_array_mut().unwrap();
            members.retain(|it| it["archive_path"] != BOREA);
        })
        .await;

    assert_eq!(plain.0, BOREA);
    assert_eq!(agreeing.0, BOREA);
    assert!(agreeing.1.contains("registered"), "{}", agreeing.1);
}

#[tokio::test]
async fn c47_5_an_agents_database_swapped_for_anothers() {
    let mut case = Case::new().await;
    *case.bytes(ATLAS) = case.bytes(BOREA).clone();

    let plain = case.damage().await;
    let agreeing = case.damage_agreeing(|_| {}).await;

    assert_eq!(plain.0, ATLAS);
    assert_eq!(agreeing.0, ATLAS);
    assert!(agreeing.1.contains("borea"), "{}", agreeing.1);
}

#[tokio::test]
async fn c47_6_a_database_replaced_by_an_older_valid_one() {
    let mut case = Case::new().await;
    let importer = open(&case.home.root()).await;
    let id = zeroclaw::model::AgentId::new("ceto").unwrap();
    let active = zeroclaw::model::AgentStatus::Active;
    importer.ensure_agent(&id, active, None).await.unwrap();
    add_memories(&importer, "ceto", 1).await;
    importer.close().await;
    let older = case.bytes(GLOBAL).clone();
    case.members = unpack(&case.home.archive().await);
    *case.bytes(GLOBAL) = older;

    let plain = case.damage().await;
    let agreeing = case.damage_agreeing(|_| {}).await;

    assert_eq!(plain.0, GLOBAL);
    assert_eq!(agreeing.0, GLOBAL);
    assert!(agreeing.1.contains("rows"), "{}", agreeing.1);
}

#[tokio::test]
async fn c47_7_an_extra_file_added() {
    let mut case = Case::new().await;
    let extra = ("agents/atlas/agent/evil.sh".to_owned(), b"#!".to_vec());

    case.members.push(extra);

    let (member, reason) = case.damage().await;
    assert_eq!(member, "agents/atlas/agent/evil.sh");
    assert!(reason.contains("not listed"), "{reason}");
}

#[tokio::test]
async fn c47_8_a_schema_emptied() {
    let mut case = Case::new().await;
    let empty = case.home.path("empty.sqlite");
    let mut db = sqlite::open(&empty, Journal::Rollback).await;
    sqlite::run(
        &mut db,
        "PRAGMA application_id = 1514359873; PRAGMA user_version = 4",
    )
    .await;
    db.close().await.unwrap();
    *case.bytes(ATLAS) = fs::read(&empty).unwrap();

    let plain = case.damage().await;
    let agreeing = case.damage_agreeing(|_| {}).await;

    assert_eq!(plain.0, ATLAS);
    assert_eq!(agreeing.0, ATLAS);
}

#[tokio::test]
async fn c47_a_stale_index_and_a_broken_relation_are_found_by_looking() {
    let mut case = Case::new().await;
    let good = case.bytes(ATLAS).clone();
    let scratch = case.home.path("scratch.sqlite");
    let damages = [
        "UPDATE memories SET content = 'not indexed' WHERE memory_no = 1",
        "INSERT INTO transcript_events (session_no, seq, event_type, created_at_ms, text)
         VALUES (77, 1, 'message', 1, '')",
    ];
    for damage in damages {
        fs::write(&scratch, &good).unwrap();
        let mut db = sqlite::open(&scratch, Journal::Rollback).await;
        sqlite::run(&mut db, damage).await;
        db.close().await.unwrap();
        *case.bytes(ATLAS) = fs::read(&scratch).unwrap();

        let (member, reason) = case.damage_agreeing(|_| {}).await;

        assert_eq!(member, ATLAS, "{reason}");
        assert!(!reason.contains("rows, the manifest"), "{reason}");
    }
}

#[tokio::test]
async fn c47_any_flipped_byte_is_found_or_changes_nothing() {
    let case = Case::new().await;
    let bytes = fs::read(&case.archive).unwrap();
    let flipped = case.home.path("flipped.tar.gz");

    for at in (0..bytes.len()).step_by(bytes.len() / 61) {
        let mut bad = bytes.clone();
        bad[at] ^= 0x10;
        fs::write(&flipped, &bad).unwrap();
        if verify(&flipped).await.is_ok() {
            // Time and system in a gzip header mean nothing.
            assert_eq!(unpack(&flipped), case.members, "byte {at}");
        }
    }
}

#[tokio::test]
async fn what_is_no_archive_is_named() {
    let home = Home::empty();
    let text = home.path("text");
    fs::write(&text, "hello").unwrap();

    let missing = verify(&home.path("none")).await.unwrap_err();

    assert_eq!(missing.kind(), zeroclaw::model::ErrorKind::NotFound);
    assert_eq!(damage_of(&text).await.0, "manifest.json");
    assert_eq!(damage_of(&home.path("")).await.0, "manifest.json");
}
