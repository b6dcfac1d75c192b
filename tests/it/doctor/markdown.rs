//! Memories that are files: indexed where they are memories, left alone where they are not, and never moved.

use serde_json::Value;

use super::state::State;
use crate::support::legacy::LegacyInstall;
use crate::support::sandbox::Sandbox;
use crate::support::sqlite;

const CORE: &str = "agents/cedar/workspace/MEMORY.md";
const TEXT: &[u8] = "# Long-Term Memory\n\n- **home**: by the lake\n- **tea**: green\n  and hot\n- **tea**: green\nобычная строка\n".as_bytes();

fn install(home: &Sandbox, global: &str) -> LegacyInstall {
    let install = LegacyInstall::new(home.root());
    install
        .config(&format!(
            "schema_version = 3\n[memory]\nbackend = '{global}'\n[agents.atlas]\nenabled = true\n\
             [agents.cedar]\nenabled = false\n[agents.cedar.memory]\nbackend = 'markdown'\n"
        ))
        .file(CORE, TEXT)
        .file(
            "agents/cedar/workspace/memory/2026-08-01.md",
            b"# Daily\n- **standup**: went well\n",
        )
        .file(
            "agents/atlas/workspace/MEMORY.md",
            b"- **prompt**: of atlas\n",
        )
        .file("data/MEMORY.md", b"- **shared**: by all\n")
        .file("data/memory/archive/2026-07-01_1.md", b"- old news\n");
    install
}

fn fix(home: &Sandbox) -> Value {
    home.zeroclaw(&["doctor", "--fix", "--json"])
        .exits(0)
        .json()
}

fn indexed(home: &Sandbox, more: &[&str]) -> Vec<(String, String)> {
    let args = [&["memory", "indexed", "--json"], more].concat();
    let hits = home.zeroclaw(&args).exits(0).json();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let hits = hits.as_array().unwrap().iter();
    hits.map(|hit| (text(&hit["agent_id"]), text(&hit["text"])))
        .collect()
}

#[test]
fn an_agents_own_files_are_indexed_and_stay_and_prompt_files_are_no_memories() {
    let home = Sandbox::in_memory();
    let install = install(&home, "sqlite");

    let report = fix(&home);

    let found = indexed(&home, &[]);
    assert!(found.iter().all(|(agent, _)| agent == "cedar"), "{found:?}");
    let texts: Vec<&str> = found.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "by the lake",
            "green",
            "and hot",
            "green",
            "обычная строка",
            "went well"
        ]
    );
    assert_eq!(report["total"]["imported"], 2);
    assert_eq!(std::fs::read(install.path(CORE)).unwrap(), TEXT);
    assert!(State::of(home.root()).memories().is_empty());
    assert_eq!(indexed(&home, &["LAKE"]).len(), 1);
    assert_eq!(fix(&home)["changed"], false);
    home.zeroclaw(&["doctor"]).exits(0);
}

#[test]
fn a_file_that_was_edited_is_indexed_anew_and_nothing_stands_twice() {
    let home = Sandbox::in_memory();
    let install = install(&home, "sqlite");
    fix(&home);
    install.file(
        CORE,
        "- **home**: by the sea\n- **tea**: green\n".as_bytes(),
    );

    home.zeroclaw(&["doctor"]).exits(7);
    fix(&home);

    assert_eq!(indexed(&home, &["lake"]).len(), 0);
    assert_eq!(indexed(&home, &["sea"]).len(), 1);
    assert_eq!(indexed(&home, &["green"]).len(), 1);
    let state = State::of(home.root());
    assert!(state.complaints().is_empty(), "{:?}", state.complaints());
    // Back to what it said first: the index follows the file.
    install.file(CORE, TEXT);
    fix(&home);
    assert_eq!(indexed(&home, &["lake"]).len(), 1);
}

#[test]
fn files_of_all_agents_go_to_the_fallback_where_files_are_the_store() {
    let home = Sandbox::in_memory();
    install(&home, "markdown");

    fix(&home);

    let found = indexed(&home, &[]);
    let of = |agent: &str| found.iter().filter(|(owner, _)| owner == agent).count();
    assert_eq!((of("atlas"), of("cedar")), (2, 6));
    assert_eq!(
        sqlite::number(
            &State::of(home.root()).agent("cedar"),
            "SELECT revision FROM memory_index_state"
        ),
        2
    );
}

#[test]
fn a_file_has_one_name_whoever_indexes_it() {
    let home = Sandbox::in_memory();
    install(&home, "markdown").file(
        "agents/cedar/workspace/memory/50%-rule.md",
        b"- **rule**: half of it\n",
    );
    fix(&home);
    let imported = indexed(&home, &["--agent", "cedar"]);

    home.zeroclaw(&["memory", "reindex", "--agent", "cedar"])
        .exits(0);

    assert!(imported.iter().any(|(_, text)| text.contains("half of it")));
    assert_eq!(indexed(&home, &["--agent", "cedar"]), imported);
}
