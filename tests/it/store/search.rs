//! Words, in every script, and how far the index is complete.

use zeroclaw::model::PageLimit;
use zeroclaw::store::agent::search::{self, SearchFilter, SearchOrder};

use super::{agent_database, atlas, event_of, insert_session};
use crate::support::sqlite::{block_on, check_index};

/// What was said, a question that finds it, and one that does not.
const SAID: &[(&str, &str, &str)] = &[
    (
        "The quillwort grows in the damp corner",
        "Quillwort damp",
        "quill",
    ),
    ("Café at the façade, 3.14", "cafe facade", "cafes"),
    ("Полив в шесть часов", "полив ШЕСТЬ", "полива"),
    ("Ο κήπος είναι μεγάλος", "ΚΉΠΟΣ", "κήπ"),
    ("הגן גדול מאוד", "גדול", "גד"),
    ("الحديقة كبيرة", "كبيرة", "كبير"),
    // The tokenizer parts such words at their vowel signs, so a part of one may be found as well.
    ("बगीचा बड़ा है", "बगीचा", "नदी"),
    ("会議は明日の朝です", "明日", "昨日"),
    ("정원이 아주 크다", "정원", "바다"),
    ("สวนใหญ่มาก", "ใหญ่", "เล็ก"),
    ("see NEAR(a b) AND \"c*\"", "NEAR(a AND \"c*\"", "NEAR(z"),
    ("100% of user_name", "user_name", "username"),
];

#[test]
fn a_word_is_found_in_each_script_and_only_where_it_was_said() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let db = agent_database(dir.path()).await;
        let mut bulk = db.begin_bulk().await.unwrap();
        let events: Vec<_> = (0..)
            .zip(SAID)
            .map(|(number, (text, ..))| event_of(&format!("e{number}"), text))
            .collect();
        insert_session(&mut bulk, "s", &events).await;
        search::index_slice(&mut bulk.tx()).await.unwrap();
        bulk.commit().await.unwrap();

        let mut conn = db.read().await.unwrap();
        for (seq, (text, found, not_found)) in (1..).zip(SAID) {
            for order in [SearchOrder::Rank, SearchOrder::Newest] {
                let limit = PageLimit::default();
                let hits = search::search(
                    &mut conn,
                    &atlas(),
                    found,
                    order,
                    &SearchFilter::default(),
                    limit,
                )
                .await
                .unwrap();
                let places: Vec<i64> = hits.iter().map(|hit| hit.seq).collect();
                assert_eq!(places, [seq], "{found:?} in {text:?}");
                assert!(hits[0].snippet.contains('['), "{:?}", hits[0].snippet);
                let none = search::search(
                    &mut conn,
                    &atlas(),
                    not_found,
                    order,
                    &SearchFilter::default(),
                    limit,
                )
                .await;
                assert!(none.unwrap().is_empty(), "{not_found:?} in {text:?}");
            }
        }
        for nothing in ["", " ", "*", "\"\"", "--"] {
            let limit = PageLimit::default();
            let order = SearchOrder::Rank;
            let hits = search::search(
                &mut conn,
                &atlas(),
                nothing,
                order,
                &SearchFilter::default(),
                limit,
            )
            .await
            .unwrap();
            assert!(hits.is_empty(), "{nothing:?}");
        }
    });
}

#[test]
fn a_bulk_build_that_was_not_taken_back_shows() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let db = agent_database(dir.path()).await;
        for is_bulk in [false, true, false] {
            if is_bulk
                || search::is_bulk(&mut db.read().await.unwrap())
                    .await
                    .unwrap()
            {
                let mut tx = db.begin_bulk().await.unwrap();
                search::set_bulk(&mut tx.tx(), is_bulk).await.unwrap();
                tx.commit().await.unwrap();
            }
            let mut conn = db.read().await.unwrap();
            assert_eq!(search::is_bulk(&mut conn).await.unwrap(), is_bulk);
        }
    });
}

#[test]
fn the_index_says_how_many_events_it_lacks_and_takes_them_in_slices() {
    let dir = tempfile::tempdir().unwrap();
    let path = block_on(async {
        let db = agent_database(dir.path()).await;
        let events: Vec<_> = (0..search::INDEX_SLICE + 500)
            .map(|n| event_of(&format!("e{n}"), "lantern"))
            .collect();
        let mut bulk = db.begin_bulk().await.unwrap();
        insert_session(&mut bulk, "s", &events).await;
        bulk.commit().await.unwrap();

        let mut left = Vec::new();
        loop {
            left.push(
                search::pending(&mut db.read().await.unwrap())
                    .await
                    .unwrap(),
            );
            let mut bulk = db.begin_bulk().await.unwrap();
            let taken = search::index_slice(&mut bulk.tx()).await.unwrap();
            bulk.commit().await.unwrap();
            if taken == 0 {
                break;
            }
        }
        assert_eq!(left, [search::INDEX_SLICE + 500, 500, 0]);

        let mut bulk = db.begin_bulk().await.unwrap();
        insert_session(&mut bulk, "late", &events[..3]).await;
        bulk.commit().await.unwrap();
        let pending = search::pending(&mut db.read().await.unwrap())
            .await
            .unwrap();
        assert_eq!(pending, 3, "what comes later waits");
        let mut bulk = db.begin_bulk().await.unwrap();
        search::rebuild(&mut bulk.tx()).await.unwrap();
        bulk.commit().await.unwrap();
        let pending = search::pending(&mut db.read().await.unwrap())
            .await
            .unwrap();
        assert_eq!(pending, 0);
        let path = db.path().to_owned();
        db.close().await;
        path
    });
    check_index(&path, "transcript_events_fts").unwrap();
}

#[test]
fn a_filter_takes_what_a_loop_over_all_hits_would_take() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let db = agent_database(dir.path()).await;
        let mut bulk = db.begin_bulk().await.unwrap();
        let events: Vec<_> = (0..60)
            .map(|number| {
                let mut event = event_of(&format!("e{number}"), &format!("kiln {number} 窯の"));
                event.role = [Some("user"), Some("assistant"), None][number % 3].map(str::to_owned);
                event.created_at_ms = (number as i64 * 37) % 60;
                event
            })
            .collect();
        insert_session(&mut bulk, "s", &events).await;
        search::index_slice(&mut bulk.tx()).await.unwrap();
        bulk.commit().await.unwrap();
        let mut conn = db.read().await.unwrap();

        for word in ["kiln", "窯の"] {
            for order in [SearchOrder::Rank, SearchOrder::Newest] {
                for role in [None, Some("user"), Some("nobody")] {
                    for (since_ms, until_ms) in [
                        (None, None),
                        (Some(20), None),
                        (None, Some(20)),
                        (Some(20), Some(21)),
                    ] {
                        let filter = SearchFilter {
                            role: role.map(str::to_owned),
                            since_ms,
                            until_ms,
                        };
                        let limit = PageLimit::from(500);
                        let hits =
                            search::search(&mut conn, &atlas(), word, order, &filter, limit).await;
                        let mut found: Vec<i64> = hits.unwrap().iter().map(|hit| hit.seq).collect();
                        found.sort_unstable();
                        let fits = |event: &zeroclaw::model::NewEvent| {
                            role.is_none_or(|role| event.role.as_deref() == Some(role))
                                && since_ms.is_none_or(|since| event.created_at_ms >= since)
                                && until_ms.is_none_or(|until| event.created_at_ms < until)
                        };
                        let expected: Vec<i64> = (1..)
                            .zip(&events)
                            .filter(|(_, event)| fits(event))
                            .map(|(seq, _)| seq)
                            .collect();
                        assert_eq!(found, expected, "{word} {order:?} {filter:?}");
                    }
                }
            }
        }
    });
}
