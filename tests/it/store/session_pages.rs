//! Lists, page after page.

use std::collections::BTreeSet;

use zeroclaw::model::PageLimit;
use zeroclaw::store::StoreError;
use zeroclaw::store::agent::session::{self, SessionFilter};

use super::{agent_database, atlas, session_of};
use crate::support::rng::Rng;
use crate::support::sqlite::block_on;

#[test]
fn pages_show_every_session_once_whatever_their_size_and_however_many_share_a_time() {
    const SEED: u64 = 7;
    println!("seed {SEED}");
    let mut rng = Rng::new(SEED);
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let db = agent_database(dir.path()).await;
        let mut bulk = db.begin_bulk().await.unwrap();
        let mut expected = Vec::new();
        for number in 0..257 {
            // Few times, negative and extreme ones among them: nearly every page ends among ties.
            let at_ms = [-5, 0, 3, i64::MAX][usize::try_from(rng.below(4)).unwrap()];
            let id = format!("{:03}:{number:03}", rng.below(1_000));
            session::insert(&mut bulk.tx(), &session_of(&id, at_ms))
                .await
                .unwrap();
            expected.push((std::cmp::Reverse(at_ms), id));
        }
        bulk.commit().await.unwrap();
        expected.sort();
        let expected: Vec<_> = expected.into_iter().map(|(_, id)| id).collect();

        let mut conn = db.read().await.unwrap();
        for size in [1, 2, 7, 64, 256, 257, 258] {
            let (mut seen, mut before) = (Vec::new(), None::<String>);
            loop {
                let limit = PageLimit::from(size);
                let filter = SessionFilter::default();
                let page = session::list(&mut conn, &atlas(), &filter, before.as_deref(), limit)
                    .await
                    .unwrap();
                assert!(page.items.len() <= usize::try_from(size).unwrap());
                seen.extend(page.items.into_iter().map(|session| session.session_id));
                before = page.next;
                if before.is_none() {
                    break;
                }
            }
            assert_eq!(seen, expected, "in pages of {size}");
        }
    });
}

#[test]
fn a_cursor_of_somebody_else_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let db = agent_database(dir.path()).await;
        let mut conn = db.read().await.unwrap();

        for cursor in ["", "x", "12", "x:1", ":"] {
            let filter = SessionFilter::default();
            let refused = session::list(
                &mut conn,
                &atlas(),
                &filter,
                Some(cursor),
                PageLimit::default(),
            )
            .await;
            assert!(
                matches!(refused, Err(StoreError::Cursor { .. })),
                "{cursor:?}"
            );
        }
    });
}

#[test]
fn a_start_of_an_id_finds_its_sessions_and_no_wildcard_is_one() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let db = agent_database(dir.path()).await;
        let mut bulk = db.begin_bulk().await.unwrap();
        for id in ["ab1", "ab2", "ac1", "a%", "Ab1"] {
            session::insert(&mut bulk.tx(), &session_of(id, 0))
                .await
                .unwrap();
        }
        session::set_route(&mut bulk.tx(), "the key", "ac1", 0)
            .await
            .unwrap();
        bulk.commit().await.unwrap();

        let mut conn = db.read().await.unwrap();
        for (reference, expected) in [
            ("ab", &["ab1", "ab2"][..]),
            ("ab1", &["ab1"]),
            ("the key", &["ac1"]),
            ("key of ab2", &["ab2"]),
            ("a%", &["a%"]),
            ("a_", &[]),
            ("%", &[]),
        ] {
            let found = session::find(&mut conn, &atlas(), reference).await.unwrap();
            let found: BTreeSet<_> = found.iter().map(|s| s.session_id.as_str()).collect();
            assert_eq!(found, expected.iter().copied().collect(), "{reference}");
        }
    });
}
