//! Grants × categories: no row that was not granted, by no way of asking.

use std::collections::BTreeSet;

use zeroclaw::model::RecallQuery;

use super::{NOW_MS, agent, home, keys, memory, open, store};
use crate::support::sqlite::block_on;

const CATEGORIES: [&str; 4] = ["core", "daily", "Core", ""];

/// What `read_memory_from` of `atlas` says, and the categories it opens of `birch`.
const GRANTS: [(&str, &[&str]); 14] = [
    ("", &[]),
    ("\"birch\"", &CATEGORIES),
    ("\"cedar\"", &[]),
    ("\"Birch\", \"birch \", \"*\", \"bir%\"", &[]),
    ("{ agent = \"birch\" }", &CATEGORIES),
    ("{ agent = \"birch\", categories = [] }", &[]),
    ("{ agent = \"birch\", categories = [\"core\"] }", &["core"]),
    (
        "{ agent = \"birch\", categories = [\"Core\", \"\"] }",
        &["Core", ""],
    ),
    (
        "{ agent = \"birch\", categories = [\"nothing\", \"*\", \"%\", \"cor_\"] }",
        &[],
    ),
    ("{ agent = \"birch\", categories = \"core\" }", &[]),
    ("{ agent = \"birch\", categories = [1, true] }", &[]),
    (
        "{ agent = \"birch\", categories = [\"core\"] }, { agent = \"birch\", categories = [\"daily\"] }",
        &["core", "daily"],
    ),
    (
        "{ agent = \"birch\", categories = [\"core\"] }, \"birch\"",
        &CATEGORIES,
    ),
    ("{ owner = \"birch\" }, 7, [\"birch\"]", &[]),
];

/// Ways to narrow what is asked for, and what they leave.
fn asked() -> Vec<(Option<Vec<String>>, BTreeSet<&'static str>)> {
    let named = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
    vec![
        (None, CATEGORIES.into()),
        (named(&[]), BTreeSet::new()),
        (named(&["core"]), ["core"].into()),
        (named(&["daily", "nothing"]), ["daily"].into()),
        (named(&["core\"]", "%", "' OR 1 --"]), BTreeSet::new()),
    ]
}

/// The ways to look: by words, by vector, by both.
fn ways() -> [(Option<String>, Option<Vec<f32>>); 3] {
    let (text, vector) = (Some("tide".to_owned()), Some(vec![1.0, 0.0]));
    [(text.clone(), None), (None, vector.clone()), (text, vector)]
}

#[test]
fn every_grant_opens_exactly_what_it_says() {
    block_on(async {
        for (grant, opened) in GRANTS {
            // What birch may read of cedar opens nothing of cedar's to atlas.
            let config = format!(
                "[agents.atlas.workspace]\nread_memory_from = [{grant}]\n\
                 [agents.birch.workspace]\nread_memory_from = [\"cedar\", \"atlas\"]\n[agents.cedar]\n"
            );
            let sandbox = home(&config).await;
            let service = open(&sandbox, NOW_MS).await;
            for owner in ["atlas", "birch", "cedar"] {
                for category in CATEGORIES {
                    let mut new = memory(&format!("of {category}"), "the tide turns");
                    new.category = category.to_owned();
                    new.vector = Some(vec![1.0, 0.5]);
                    store(&service, owner, new).await;
                }
            }
            let of_cedar: &[&str] = if grant == "\"cedar\"" {
                &CATEGORIES
            } else {
                &[]
            };
            for (categories, left) in asked() {
                for (text, vector) in ways() {
                    let query = RecallQuery {
                        text,
                        vector,
                        categories: categories.clone(),
                        ..RecallQuery::default()
                    };
                    let recalled = service.recall(&agent("atlas"), &query).await.unwrap();

                    let found: BTreeSet<_> = keys(&recalled).into_iter().collect();
                    let mut expected = BTreeSet::new();
                    for (owner, open) in [
                        ("atlas", &CATEGORIES[..]),
                        ("birch", opened),
                        ("cedar", of_cedar),
                    ] {
                        let seen = open.iter().filter(|category| left.contains(*category));
                        expected.extend(seen.map(|category| format!("{owner}/of {category}")));
                    }
                    assert_eq!(found, expected, "{grant}: {query:?}");
                }
            }
            service.close().await;
        }
    });
}

#[test]
fn a_sibling_that_is_not_there_is_left_out_and_a_reader_that_is_not_is_told() {
    block_on(async {
        let config =
            "[agents.atlas.workspace]\nread_memory_from = [\"nobody\", \"../birch\", \"cedar\"]\n";
        let sandbox = home(config).await;
        let service = open(&sandbox, NOW_MS).await;
        store(&service, "cedar", memory("k", "the tide turns")).await;
        let query = super::words("tide");

        let recalled = service.recall(&agent("atlas"), &query).await.unwrap();
        let nobody = service.recall(&agent("nobody"), &query).await.unwrap_err();

        assert_eq!(keys(&recalled), ["cedar/k"]);
        assert_eq!(nobody.kind(), zeroclaw::model::ErrorKind::NotFound);
    });
}
