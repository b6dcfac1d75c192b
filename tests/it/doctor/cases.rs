//! Every small install of `support::cases`, imported in place and from a foreign root, and judged.

use std::path::Path;

use serde_json::Value;

use super::state::{State, age, digest_of, source};
use crate::support::cases::{self, NamedCase};
use crate::support::expect::{Expected, Place, Refused, Why};
use crate::support::recipe::hex;
use crate::support::sandbox::{Ran, Sandbox};
use crate::support::tree::{assert_same_tree, tree_hash};

/// One test a case, and the list of them.
macro_rules! judged {
    ($($name:ident),* $(,)?) => {
        const JUDGED: &[&str] = &[$(stringify!($name)),*];
        $(#[test] fn $name() { judge(stringify!($name)); })*
    };
}

judged![
    c15_torn_and_malformed,
    c17_non_utf8,
    c35_fts_drift,
    c37_undecodable_memories,
    jobs_in_two_places,
    sessions_in_two_places,
    split_brain,
    hot_rollback_journal,
    duplicated_prefix,
    live_beside_rows,
    staged_with_and_without_receipt,
    damaged_metadata_page,
    damaged_message_page,
    decoys,
    sessions_v0_4_3,
    sessions_v0_5_9,
    sessions_v0_6_5,
    sessions_v0_8,
    cron_v0_1,
    cron_v0_1_2,
    cron_v0_8_4,
    brain_v0_1,
    brain_v0_1_2,
    brain_v0_5_7,
    brain_v0_8_0,
    brain_v0_8_3,
    brain_hydrated,
];

#[test]
fn no_case_is_left_out() {
    let all: Vec<&str> = cases::all().iter().map(|(name, _)| *name).collect();

    assert_eq!(all, JUDGED);
}

fn judge(name: &str) {
    let (_, build): NamedCase = *cases::all()
        .iter()
        .find(|(found, _)| *found == name)
        .unwrap();
    let foreign = imported_from_elsewhere(build);
    let own = imported_in_place(build);

    let faults: Vec<String> = foreign
        .into_iter()
        .map(|fault| format!("--from: {fault}"))
        .chain(own.into_iter().map(|fault| format!("in place: {fault}")))
        .collect();
    assert!(faults.is_empty(), "{name}:\n{}", faults.join("\n"));
}

/// Copies from a foreign root: all comes in, and there it stays as it was.
fn imported_from_elsewhere(build: fn(&Path) -> cases::Case) -> Vec<String> {
    let home = Sandbox::in_memory();
    let there = home.home().join("there");
    let (_, expected) = build(&there);
    let before = tree_hash(&there);

    let run = home.zeroclaw(&[
        "doctor",
        "--fix",
        "--json",
        "--from",
        there.to_str().unwrap(),
    ]);

    assert_same_tree(&before, &tree_hash(&there));
    let mut faults = outcome(&home, &run, &expected);
    faults.extend(second_run_does_nothing(
        &home,
        &["--from", there.to_str().unwrap()],
    ));
    faults
}

/// Imports the root itself: what is proven is moved aside, the rest stays.
fn imported_in_place(build: fn(&Path) -> cases::Case) -> Vec<String> {
    let home = Sandbox::in_memory();
    let (install, expected) = build(&home.root());
    age(install.root());
    let stays: Vec<_> = expected
        .stays
        .iter()
        .map(|path| (path, digest_of(&install.path(path))))
        .collect();

    let looked = home.zeroclaw(&["doctor", "--json"]).exits(7).json();
    let run = home.zeroclaw(&["doctor", "--fix", "--json"]);

    let mut faults = outcome(&home, &run, &expected);
    for (path, digest) in stays {
        let now = install.path(path);
        if !now.exists() || digest_of(&now) != digest {
            faults.push(format!("{} did not stay", path.display()));
        }
    }
    let report = run.json();
    if looked["total"]["records"] != report["total"]["records"] {
        faults.push(format!(
            "the look promised {} records, the run read {}",
            looked["total"]["records"], report["total"]["records"]
        ));
    }
    faults.extend(second_run_does_nothing(&home, &[]));
    faults
}

fn second_run_does_nothing(home: &Sandbox, more: &[&str]) -> Vec<String> {
    let before = home.tree();

    let again = home.zeroclaw(&[&["doctor", "--fix", "--json"], more].concat());

    home.is_unchanged_since(&before);
    let mut faults = Vec::new();
    if again.json()["changed"] != Value::Bool(false) {
        faults.push("the second run claims a change".to_owned());
    }
    let told = home.zeroclaw(&[&["doctor", "--fix"], more].concat());
    if !told.stdout.contains("nothing was changed") {
        faults.push(format!("the second run does not say so: {}", told.stdout));
    }
    faults
}

/// What is not as expected.
fn outcome(home: &Sandbox, run: &Ran, expected: &Expected) -> Vec<String> {
    let report = run.json();
    let state = State::of(home.root());
    let mut faults = state.complaints();
    let is_whole = expected
        .refused
        .iter()
        .all(|refused| refused.why == Why::TornTail);
    let has_rest = !is_whole || says_lone_log(&report);
    if run.code() != Some(i32::from(has_rest)) {
        faults.push(format!("wrong exit code: {}", run.told()));
    }
    sessions(&state, expected, &mut faults);
    control(&state, expected, &mut faults);
    balance(&state, &report, expected, &mut faults);
    for refused in &expected.refused {
        refusal(&state, &report, refused, &mut faults);
    }
    for (agent, word, hits) in &expected.found {
        let found = search(home, agent, word);
        if found != *hits {
            faults.push(format!("{word:?} of {agent}: {found} hits, not {hits}"));
        }
    }
    faults
}

fn says_lone_log(report: &Value) -> bool {
    let all = report["findings"].as_array().unwrap();
    all.iter().any(|finding| finding["code"] == "lone-sidecar")
}

fn sessions(state: &State, expected: &Expected, faults: &mut Vec<String>) {
    let mut left = state.sessions();
    let (named, any): (Vec<_>, Vec<_>) = expected.sessions.iter().partition(|s| s.key.is_some());
    for session in named.into_iter().chain(any) {
        let fits = |found: &(String, String, usize)| {
            found.0 == session.agent
                && found.2 == session.messages
                && session.key.as_ref().is_none_or(|key| *key == found.1)
        };
        match left.iter().position(fits) {
            Some(at) => drop(left.remove(at)),
            None => faults.push(format!("no session {session:?}")),
        }
    }
    faults.extend(
        left.iter()
            .map(|more| format!("unexpected session {more:?}")),
    );
}

fn control(state: &State, expected: &Expected, faults: &mut Vec<String>) {
    let memories = state.memories();
    let wanted = expected
        .memories
        .iter()
        .map(|(agent, n)| ((*agent).to_owned(), *n))
        .collect();
    if memories != wanted {
        faults.push(format!("memories {memories:?}, not {wanted:?}"));
    }
    let jobs = state.jobs();
    let mut wanted: Vec<_> = expected.jobs.iter().collect();
    wanted.sort_by_key(|job| job.id);
    let fits = jobs.len() == wanted.len()
        && jobs.iter().zip(&wanted).all(|((id, agent, enabled), job)| {
            id == job.id
                && job.agent.is_none_or(|wanted| wanted == agent)
                && job.enabled.is_none_or(|wanted| wanted == *enabled)
        });
    if !fits {
        faults.push(format!("jobs {jobs:?}, not {wanted:?}"));
    }
    if state.runs() != expected.runs {
        faults.push(format!("{} runs, not {}", state.runs(), expected.runs));
    }
}

/// Every record is accounted for, by the report, by the receipts and by the rows that are there.
fn balance(state: &State, report: &Value, expected: &Expected, faults: &mut Vec<String>) {
    let of = |value: &Value, name: &str| value[name].as_u64().unwrap();
    let (mut by_kind, mut present) = (std::collections::BTreeMap::new(), 0);
    for source in report["sources"].as_array().unwrap() {
        for (kind, count) in source["counts"].as_object().unwrap() {
            let parts = ["imported", "present", "merged", "refused"].map(|name| of(count, name));
            if of(count, "records") != parts.iter().sum::<u64>() {
                faults.push(format!(
                    "{} {kind} does not balance: {count}",
                    source["path"]
                ));
            }
            *by_kind.entry(kind.as_str()).or_insert(0) += parts[0];
            if !matches!(kind.as_str(), "sessions" | "receipts") {
                present += parts[1] + parts[2];
            }
        }
    }
    if present != expected.already_present as u64 {
        faults.push(format!(
            "{present} already there, not {}",
            expected.already_present
        ));
    }
    let rows = [
        ("sessions", state.sessions().len()),
        (
            "messages",
            state.sessions().iter().map(|session| session.2).sum(),
        ),
        ("memories", state.memories().values().sum()),
        ("cron jobs", state.jobs().len()),
        ("cron runs", state.runs()),
    ];
    for (kind, rows) in rows {
        let told = by_kind.get(kind).copied().unwrap_or(0);
        if told != rows as u64 {
            faults.push(format!("{told} {kind} told as imported, {rows} are there"));
        }
    }
    for (path, status, counts) in state.receipts() {
        let reported = source(report, &path).map(|source| {
            let total = |name| -> u64 {
                let counts = source["counts"].as_object().unwrap().values();
                counts.map(|count| of(count, name)).sum()
            };
            ["records", "imported", "present", "merged", "refused"].map(total)
        });
        if reported != Some(counts) {
            faults.push(format!(
                "{path} ({status}): receipt {counts:?}, report {reported:?}"
            ));
        }
    }
}

/// A record that was not taken is named, with its reason, and its bytes are kept.
fn refusal(state: &State, report: &Value, refused: &Refused, faults: &mut Vec<String>) {
    let path = refused.path.to_str().unwrap();
    let Some(source) = source(report, path) else {
        faults.push(format!("{path} is not named"));
        return;
    };
    if let Place::Page(page) = refused.place {
        let told = report["findings"]
            .as_array()
            .unwrap()
            .iter()
            .any(|finding| {
                finding["code"] == "damaged-source"
                    && finding["place"].as_str().unwrap().starts_with(path)
                    && finding["message"]
                        .as_str()
                        .unwrap()
                        .contains(&format!("page {page}"))
            });
        if !told {
            faults.push(format!(
                "{path}: page {page} is not named: {}",
                report["findings"]
            ));
        }
        return;
    }
    let place = match refused.place {
        Place::Line { number, offset } => format!("line {number} at byte {offset}"),
        Place::Row { table, rowid } => format!("table {table}, row {rowid}"),
        Place::Page(_) => String::new(),
    };
    let reason = match refused.why {
        Why::TornTail => "",
        Why::NotJson => "not JSON",
        Why::NotUtf8 | Why::WrongType => "not UTF-8",
        Why::Missing => "missing",
        Why::DamagedPage => "damaged",
    };
    let named = source["refused"].as_array().unwrap().iter().any(|found| {
        found["place"].as_str().unwrap().contains(&place)
            && found["reason"].as_str().unwrap().contains(reason)
    });
    let tail = source["partial_tails"].as_array().unwrap();
    let is_tail = refused.why == Why::TornTail && tail.iter().any(|found| *found == *place);
    // A file of which nothing can be taken stays where it is: that keeps its bytes.
    let left = source["reason"].as_str().unwrap_or_default();
    let is_left = source["status"] == "left" && left.contains(&place) && left.contains(reason);
    if !named && !is_tail && !is_left {
        faults.push(format!(
            "{path}: {place} ({reason}) is not named in {source}"
        ));
    }
    let raw = &refused.raw;
    // A row is kept as an object, its odd values as hex.
    let as_hex = hex(raw).into_bytes();
    let holds = |kept: &[u8], part: &[u8]| kept.windows(part.len()).any(|found| found == part);
    let is_kept = raw.is_empty()
        || is_left
        || state
            .quarantined()
            .iter()
            .any(|kept| holds(kept, raw) || holds(kept, &as_hex));
    if !is_kept {
        faults.push(format!("{path}: the bytes of {place} are not kept"));
    }
}

/// Hits for a word in an agent's sessions and memories.
fn search(home: &Sandbox, agent: &str, word: &str) -> usize {
    let hits = |family: &str, list: &str| {
        let found = home
            .zeroclaw(&[family, "search", word, "--agent", agent, "--json"])
            .exits(0);
        found.json()[list].as_array().unwrap().len()
    };
    hits("sessions", "hits") + hits("memory", "items")
}
