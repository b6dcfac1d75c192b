//! Words and vectors together, and what stays out.

use zeroclaw::model::RecallQuery;

use super::{DAY_MS, NOW_MS, agent, home, keys, memory, open, store, words};
use crate::support::sqlite::block_on;

#[test]
fn words_and_vectors_are_joined_and_each_finds_what_the_other_does_not() {
    block_on(async {
        let sandbox = home("").await;
        let service = open(&sandbox, NOW_MS).await;
        for (key, content, vector) in [
            ("both", "the tide turns at nine", vec![0.9, 0.1, 0.0]),
            ("words", "a tide of letters", vec![0.0, 0.0, 1.0]),
            ("vector", "ebb and flow", vec![1.0, 0.0, 0.0]),
            ("other dims", "something else", vec![1.0, 0.0]),
            ("neither", "the kettle", vec![0.0, 1.0, 0.0]),
        ] {
            let mut new = memory(key, content);
            new.vector = Some(vector);
            store(&service, "atlas", new).await;
        }
        store(&service, "atlas", memory("no vector", "the kettle again")).await;

        let query = RecallQuery {
            vector: Some(vec![1.0, 0.0, 0.0]),
            limit: 3.into(),
            ..words("tide")
        };
        let recalled = service.recall(&agent("atlas"), &query).await.unwrap();

        assert_eq!(keys(&recalled)[0], "atlas/both");
        let mut rest = keys(&recalled)[1..].to_vec();
        rest.sort();
        assert_eq!(rest, ["atlas/vector", "atlas/words"]);
        assert_eq!(recalled[0].vector_rank, Some(2));
        let nearest = recalled.iter().find(|one| one.vector_rank == Some(1));
        let similarity = nearest.unwrap().similarity.unwrap();
        assert!((similarity - 1.0).abs() < 1e-6);
        let none = RecallQuery::default();
        assert_eq!(service.recall(&agent("atlas"), &none).await.unwrap(), []);
    });
}

#[test]
fn replaced_expired_and_other_namespaces_stay_out_and_pinned_ones_outlive_their_date() {
    block_on(async {
        let sandbox = home("").await;
        let service = open(&sandbox, NOW_MS).await;
        store(&service, "atlas", memory("plain", "old tide")).await;
        store(&service, "atlas", memory("plain", "new tide")).await;
        let mut expiring = memory("expiring", "tide until tomorrow");
        expiring.expires_at_ms = Some(NOW_MS + DAY_MS);
        store(&service, "atlas", expiring.clone()).await;
        expiring.key = "pinned".to_owned();
        expiring.pinned = true;
        store(&service, "atlas", expiring).await;
        let mut elsewhere = memory("elsewhere", "tide");
        elsewhere.namespace = "garden".to_owned();
        store(&service, "atlas", elsewhere).await;
        service.close().await;

        let service = open(&sandbox, NOW_MS + 2 * DAY_MS).await;
        let query = RecallQuery {
            namespace: Some("default".to_owned()),
            ..words("tide")
        };
        let recalled = service.recall(&agent("atlas"), &query).await.unwrap();

        let mut found = keys(&recalled);
        found.sort();
        assert_eq!(found, ["atlas/pinned", "atlas/plain"]);
        assert!(
            recalled
                .iter()
                .all(|one| one.hit.memory.content != "old tide")
        );
        assert_eq!(service.expire_memories(&agent("atlas")).await.unwrap(), 1);
        assert_eq!(service.expire_memories(&agent("atlas")).await.unwrap(), 0);
    });
}

#[test]
fn more_vectors_than_a_page_are_all_compared() {
    block_on(async {
        let sandbox = home("").await;
        let service = open(&sandbox, NOW_MS).await;
        let angle = |number: u32| f64::from(number) / 1_300.0;
        for number in 0..1_200_u32 {
            let mut new = memory(&format!("m{number}"), "x");
            let (sin, cos) = angle(number).sin_cos();
            // Bytes of all kinds, the NUL and no UTF-8 among them.
            #[expect(clippy::cast_possible_truncation, reason = "a vector has 32 bits")]
            let vector = vec![cos as f32, sin as f32];
            new.vector = Some(vector);
            store(&service, "atlas", new).await;
        }

        for wanted in [0, 499, 500, 777, 1_199] {
            let (sin, cos) = angle(wanted).sin_cos();
            #[expect(clippy::cast_possible_truncation, reason = "a vector has 32 bits")]
            let query = RecallQuery {
                vector: Some(vec![cos as f32, sin as f32]),
                limit: 1.into(),
                ..RecallQuery::default()
            };
            let recalled = service.recall(&agent("atlas"), &query).await.unwrap();
            let similarity = recalled[0].similarity.unwrap();
            assert!(similarity > 0.999_999, "{wanted}: {similarity}");
        }
    });
}
