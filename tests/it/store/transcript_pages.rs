//! Transcripts, page after page, with texts of any kind.

use zeroclaw::model::{Event, NewEvent, PageLimit};
use zeroclaw::store::agent::transcript;

use super::{agent_database, event_of, insert_session};
use crate::support::sqlite::block_on;

const MIB: usize = 1024 * 1024;

/// Texts that a page's own packing could stumble over.
fn hostile_texts() -> Vec<String> {
    [
        "",
        "\0",
        "before\0after",
        "\u{1e}\u{1f}",
        "3 17 2 7 4 -1 6 -1\ne1messageuser",
        "-1",
        "\n\r\n",
        "'; DROP TABLE sessions; --",
        "прилив 潮 🌊 e\u{301} \u{200f}\u{feff}",
        "\u{10ffff}\u{fffd}",
    ]
    .map(str::to_owned)
    .to_vec()
}

#[test]
fn texts_come_back_byte_for_byte() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let mut events = Vec::new();
        for (number, text) in hostile_texts().into_iter().enumerate() {
            let mut event = event_of(&format!("e{number}"), &text);
            // Each text in each of the columns that are packed, with neighbours that are not there.
            event.event_type.clone_from(&text);
            event.role = (number % 2 == 0).then(|| text.clone());
            event.parent_id = (number % 3 == 0).then(|| text.clone());
            event.event_json = (number % 4 == 0).then_some(text);
            events.push(event);
        }
        let db = agent_database(dir.path()).await;
        let mut bulk = db.begin_bulk().await.unwrap();
        let tail = insert_session(&mut bulk, "s", &events).await;
        bulk.commit().await.unwrap();

        let mut conn = db.read().await.unwrap();
        let limit = PageLimit::from(1_000);
        let page = transcript::page(&mut conn, tail.session_no, 0, limit)
            .await
            .unwrap();

        let expected: Vec<Event> = (1..)
            .zip(events)
            .map(|(seq, new)| placed(seq, new))
            .collect();
        assert_eq!(page, expected);
    });
}

fn placed(seq: i64, event: NewEvent) -> Event {
    Event {
        seq,
        event_id: event.event_id,
        event_type: event.event_type,
        role: event.role,
        parent_id: event.parent_id,
        created_at_ms: event.created_at_ms,
        text: event.text,
        event_json: event.event_json,
        cut: None,
    }
}

#[test]
fn pages_are_bounded_in_bytes_and_hold_a_larger_event_alone() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let sizes = [10, 2 * MIB, 2 * MIB, 2 * MIB, 30 * MIB, 10, 10];
        let events: Vec<_> = sizes
            .iter()
            .enumerate()
            .map(|(number, size)| event_of(&format!("e{number}"), &"x".repeat(*size)))
            .collect();
        let db = agent_database(dir.path()).await;
        let mut bulk = db.begin_bulk().await.unwrap();
        let tail = insert_session(&mut bulk, "s", &events).await;
        bulk.commit().await.unwrap();

        let mut conn = db.read().await.unwrap();
        let (mut seen, mut after) = (Vec::new(), 0);
        loop {
            let limit = PageLimit::default();
            let page = transcript::page(&mut conn, tail.session_no, after, limit)
                .await
                .unwrap();
            let Some(last) = page.last() else {
                break;
            };
            after = last.seq;
            let bytes: usize = page.iter().map(|event| event.text.len()).sum();
            let largest = page.iter().map(|event| event.text.len()).max().unwrap();
            assert!(
                bytes <= 4 * MIB + largest,
                "{bytes} bytes in {} events",
                page.len()
            );
            seen.extend(page.into_iter().map(|event| event.text.len()));
        }

        assert_eq!(seen, sizes);
    });
}

#[test]
fn pages_show_every_event_once_across_gaps() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let events: Vec<_> = (0..1_203)
            .map(|n| event_of(&format!("e{n}"), &n.to_string()))
            .collect();
        let db = agent_database(dir.path()).await;
        let mut bulk = db.begin_bulk().await.unwrap();
        let tail = insert_session(&mut bulk, "s", &events).await;
        let other = insert_session(&mut bulk, "other", &events[..3]).await;
        let gap = "DELETE FROM transcript_events WHERE session_no = ?1 AND seq BETWEEN 400 AND 700";
        sqlx::query(gap)
            .bind(tail.session_no)
            .execute(&mut *bulk.tx())
            .await
            .unwrap();
        bulk.commit().await.unwrap();

        let expected: Vec<i64> = (1..400).chain(701..=1_203).collect();
        let mut conn = db.read().await.unwrap();
        for size in [1, 7, 500, 1_000] {
            let (mut seen, mut after) = (Vec::new(), 0);
            loop {
                let limit = PageLimit::from(size);
                let page = transcript::page(&mut conn, tail.session_no, after, limit)
                    .await
                    .unwrap();
                let Some(last) = page.last() else {
                    break;
                };
                after = last.seq;
                seen.extend(page.iter().map(|event| event.seq));
            }
            assert_eq!(seen, expected, "in pages of {size}");
        }
        let others = transcript::page(&mut conn, other.session_no, 0, PageLimit::default()).await;
        assert_eq!(others.unwrap().len(), 3);
    });
}
