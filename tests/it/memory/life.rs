//! A key's memories from the first to none.

use serde_json::json;
use zeroclaw::model::ErrorKind;

use super::{NOW_MS, agent, home, keys, memory, open, store, words};
use crate::cli::json::is_documented;
use crate::support::sqlite::{block_on, check_index};

#[test]
fn a_key_is_stored_replaced_brought_up_to_date_pinned_and_forgotten() {
    let (sandbox, database) = block_on(async {
        let sandbox = home("").await;
        let service = open(&sandbox, NOW_MS).await;
        let atlas = agent("atlas");
        let mut first = memory("pump", "behind the shed");
        first.vector = Some(vec![1.0, 2.0]);
        let first = store(&service, "atlas", first).await;
        assert_eq!(first.embedding_dims, Some(2));

        let mut same = memory("pump", "behind the shed");
        same.importance = Some(7.0);
        let same = store(&service, "atlas", same).await;
        assert_eq!(same.memory.memory_id, first.memory.memory_id);
        assert_eq!(same.memory.importance, Some(1.0));
        assert_eq!(same.embedding_dims, Some(2), "the vector still holds");

        service.pin_memory(&atlas, "pump", true).await.unwrap();
        let second = store(&service, "atlas", memory("pump", "in the well")).await;
        assert!(second.memory.pinned, "pins pass on");
        let all = service.show_memory(&atlas, "pump").await.unwrap();
        assert_eq!(all.len(), 2);
        assert_eq!(all[0].memory.content, "in the well");
        assert_eq!(
            all[1].memory.superseded_by.as_ref(),
            Some(&second.memory.memory_id)
        );

        let gone = service.forget_memory(&atlas, "pump").await.unwrap();
        assert_eq!(gone.len(), 2);
        let missing = service.forget_memory(&atlas, "pump").await.unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
        let recalled = service.recall(&atlas, &words("well")).await.unwrap();
        assert_eq!(keys(&recalled), Vec::<String>::new());
        store(&service, "atlas", memory("kept", "the kettle")).await;
        service.close().await;
        let database = sandbox.root().join("agents/atlas/agent/agent.sqlite");
        (sandbox, database)
    });
    check_index(&database, "memories_fts").unwrap();
    drop(sandbox);
}

#[test]
fn memories_are_kept_by_command() {
    let sandbox = block_on(home(""));
    let of = ["--agent", "atlas"];
    let run = |args: &[&str]| sandbox.zeroclaw(&[&["memory"], args, &of].concat());

    run(&["store", "pump", "behind the shed"]).exits(0);
    run(&["store", "pump", "in the well", "--pin"])
        .exits(0)
        .says("pinned");
    run(&["show", "pump"])
        .exits(0)
        .says("behind the shed")
        .says("in the well");
    run(&["search", "well"]).exits(0).says("pump");
    run(&["store", "x", "y", "--importance", "2"]).exits(2);
    run(&["forget", "pump"]).exits(10).complains("--yes");
    run(&["forget", "pump", "--dry-run"])
        .exits(0)
        .says("in the well");
    run(&["forget", "pump", "--yes"])
        .exits(0)
        .says("in the well");
    run(&["show", "pump"]).exits(9);

    let json = |args: &[&str]| run(&[args, &["--json"]].concat()).exits(0).json();
    let stored = json(&["store", "tide", "turns at nine"]);
    is_documented(&["memory", "store"], &stored);
    is_documented(&["memory", "show"], &json(&["show", "tide"]));
    let gone = json(&["forget", "tide", "--yes"]);
    is_documented(&["memory", "forget"], &gone);
    assert_eq!(gone["dry_run"], json!(false));
    assert_eq!(gone["items"][0]["content"], "turns at nine");
}
