//! What has expired is not shown unless asked for, and goes when swept.

use super::{DAY_MS, NOW_MS, agent, home, memory, open, store, words};
use crate::cli::json::is_documented;
use crate::support::sqlite::{block_on, check_index};

/// Pinned or not, expiry before, at and after now, or none: who is living.
const LIVES: [(bool, Option<i64>, bool); 8] = [
    (false, None, true),
    (false, Some(DAY_MS), true),
    (false, Some(0), false),
    (false, Some(-DAY_MS), false),
    (true, None, true),
    (true, Some(DAY_MS), true),
    (true, Some(0), true),
    (true, Some(-DAY_MS), true),
];

#[test]
fn expired_memories_are_listed_found_and_recalled_only_when_asked_for_and_swept_once() {
    let (living, all): (Vec<String>, Vec<String>) = {
        let name = |place: usize| format!("m{place}");
        let living = (0..LIVES.len()).filter(|place| LIVES[*place].2).map(name);
        (living.collect(), (0..LIVES.len()).map(name).collect())
    };
    let sandbox = block_on(async {
        let sandbox = home("").await;
        let service = open(&sandbox, NOW_MS).await;
        for (place, (pinned, expires, _)) in LIVES.iter().enumerate() {
            let mut new = memory(&format!("m{place}"), "the tide 潮");
            new.pinned = *pinned;
            // Every command runs at the time of the machine, which is later than this clock.
            new.expires_at_ms = expires.map(|at| match at {
                DAY_MS => i64::MAX / 2,
                at => NOW_MS + at,
            });
            store(&service, "atlas", new).await;
        }
        let recalled = service.recall(&agent("atlas"), &words("tide")).await;
        let mut keys: Vec<_> = recalled
            .unwrap()
            .into_iter()
            .map(|one| one.hit.memory.key)
            .collect();
        keys.sort();
        assert_eq!(keys, living);
        service.close().await;
        sandbox
    });
    let keys = |args: &[&str]| {
        let page = sandbox
            .zeroclaw(&[&["memory"], args, &["--agent", "atlas", "--json"]].concat())
            .exits(0)
            .json();
        let mut keys: Vec<String> = page["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|hit| hit["key"].as_str().unwrap().to_owned())
            .collect();
        keys.sort();
        keys
    };
    // The last is found as a part of text, the others by words.
    for asked in [&["list"][..], &["search", "tide"], &["search", "潮"]] {
        assert_eq!(keys(asked), living, "{asked:?}");
        assert_eq!(
            keys(&[asked, &["--with-expired"]].concat()),
            all,
            "{asked:?}"
        );
    }

    sandbox
        .zeroclaw(&["memory", "prune"])
        .exits(10)
        .complains("--dry-run");
    let expired = all.len() - living.len();
    for (how, went) in [("--dry-run", expired), ("--yes", expired), ("--yes", 0)] {
        let args = ["memory", "prune", how, "--json"];
        let report = sandbox.zeroclaw(&args).exits(0).json();
        is_documented(&args, &report);
        assert_eq!(report["items"][0]["agent_id"], "atlas");
        assert_eq!(report["items"][0]["expired"], went, "{how}");
    }
    assert_eq!(keys(&["list", "--with-expired"]), living);
    let database = sandbox.root().join("agents/atlas/agent/agent.sqlite");
    check_index(&database, "memories_fts").unwrap();
}
