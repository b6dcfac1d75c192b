//! Memories: one living one a key.

use zeroclaw::db::DbErrorKind;
use zeroclaw::model::{MemoryRecord, PageLimit};
use zeroclaw::store::StoreError;
use zeroclaw::store::agent::memory::{self, MemoryFilter};

use super::{agent_database, atlas};
use crate::support::sqlite::{block_on, check_index};

pub(super) fn memory_of(id: &str, key: &str, content: &str) -> MemoryRecord {
    MemoryRecord {
        memory_id: id.to_owned(),
        key: key.to_owned(),
        category: "core".to_owned(),
        namespace: "default".to_owned(),
        kind_json: None,
        importance: Some(0.5),
        pinned: false,
        is_trusted: true,
        session_hint: None,
        tenant_id: None,
        superseded_by: None,
        embedding_provider: None,
        embedding_model: None,
        created_at_ms: 1,
        updated_at_ms: 1,
        created_at_text: None,
        updated_at_text: None,
        expires_at_ms: None,
        content: content.to_owned(),
        embedding: Some(vec![0, 0, 128, 63]),
    }
}

#[test]
fn a_key_has_one_living_memory_and_any_number_of_replaced_ones() {
    let dir = tempfile::tempdir().unwrap();
    let path = block_on(async {
        let db = agent_database(dir.path()).await;
        let [first, second, third] = ["m1", "m2", "m3"].map(|id| memory_of(id, "pump", id));

        let mut bulk = db.begin_bulk().await.unwrap();
        memory::insert(&mut bulk.tx(), &[&first]).await.unwrap();
        let refused = memory::insert(&mut bulk.tx(), &[&second])
            .await
            .unwrap_err();
        assert!(
            matches!(&refused, StoreError::Db(error) if error.kind() == DbErrorKind::Constraint),
            "{refused:?}"
        );
        for (old, new) in [(&first, &second), (&second, &third)] {
            memory::supersede(&mut bulk.tx(), &old.memory_id, &new.memory_id)
                .await
                .unwrap();
            memory::insert(&mut bulk.tx(), &[new]).await.unwrap();
        }
        memory::rebuild(&mut bulk.tx()).await.unwrap();
        bulk.commit().await.unwrap();

        let mut conn = db.read().await.unwrap();
        let living = memory::living(&mut conn, "pump").await.unwrap();
        assert_eq!(living, Some(("m3".to_owned(), 1)));
        for (with_superseded, expected) in [(false, &["m3"][..]), (true, &["m1", "m2", "m3"])] {
            let filter = MemoryFilter {
                category: Some("core".to_owned()),
                with_superseded,
                living_at_ms: None,
            };
            let limit = PageLimit::default();
            let page = memory::list(&mut conn, &atlas(), &filter, None, limit)
                .await
                .unwrap();
            let ids: Vec<_> = page
                .items
                .iter()
                .map(|hit| hit.memory.memory_id.as_str())
                .collect();
            assert_eq!(ids, expected);
            assert_eq!(page.items[0].embedding_dims, Some(1));
        }
        let hits = memory::search(&mut conn, &atlas(), "pump", None, PageLimit::default())
            .await
            .unwrap();
        assert_eq!(hits.len(), 1, "a replaced one is not recalled");
        assert_eq!(memory::pending(&mut conn).await.unwrap(), 0);
        drop(conn);
        let path = db.path().to_owned();
        db.close().await;
        path
    });
    check_index(&path, "memories_fts").unwrap();
}

#[test]
fn a_vector_that_is_no_row_of_floats_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let db = agent_database(dir.path()).await;
        let mut bulk = db.begin_bulk().await.unwrap();
        let mut torn = memory_of("m", "k", "c");
        torn.embedding = Some(vec![0; 7]);

        assert!(memory::insert(&mut bulk.tx(), &[&torn]).await.is_err());

        torn.embedding = None;
        memory::insert(&mut bulk.tx(), &[&torn]).await.unwrap();
    });
}
