//! C20: a few huge events among many. Lists, pages and searches pass them by; what is asked for by name is whole.

use std::os::unix::fs::FileExt;
use std::path::Path;

use zeroclaw::model::{
    AgentId, Append, AppendEvent, CutEvent, Event, PageLimit, Payloads, SessionTarget,
    TranscriptCursor, TranscriptOrder,
};
use zeroclaw::service::{Clock, ErrorKind, Request, Response, Service, SessionTranscript};

use super::{agent, folder, with_agents};
use crate::support::sqlite::block_on;

const MIB: usize = 1024 * 1024;

fn event(id: &str, text: &str, json: Option<String>) -> AppendEvent {
    AppendEvent {
        event_id: Some(id.to_owned()),
        event_json: json,
        ..AppendEvent::message("user", text)
    }
}

fn payload(bytes: usize) -> Option<String> {
    Some(format!("\"{}\"", "A".repeat(bytes - 2)))
}

async fn append(service: &Service, events: Vec<AppendEvent>) {
    let to = SessionTarget::Id("s".to_owned());
    service
        .append(&agent("atlas"), Append::new(to, events))
        .await
        .unwrap();
}

async fn show(
    service: &Service,
    cursor: TranscriptCursor,
    payloads: Payloads,
) -> SessionTranscript {
    let request = Request::SessionsShow {
        agent: None,
        session: "s".to_owned(),
        order: TranscriptOrder::Branch,
        cursor,
        payloads,
        limit: PageLimit::from(100),
    };
    match service.dispatch(request).await {
        Ok(Response::Transcript(page)) => page,
        other => panic!("{other:?}"),
    }
}

async fn found(service: &Service, word: &str) -> Vec<(i64, String)> {
    let request = Request::SessionsSearch {
        text: word.to_owned(),
        agent: None,
        newest: true,
        role: None,
        since_ms: None,
        until_ms: None,
        limit: PageLimit::from(10),
    };
    match service.dispatch(request).await {
        Ok(Response::Search(answer)) => answer
            .hits
            .into_iter()
            .map(|hit| (hit.seq, hit.snippet))
            .collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn c20_a_bounded_page_shows_what_is_small_and_the_true_sizes_of_the_rest() {
    let dir = folder();
    block_on(async {
        let service = with_agents(dir.path(), Clock::system(), &[&agent("atlas")]).await;
        let just = payload(65_536);
        let events = vec![
            event("small", "kiln one", Some("{\"a\":1}".to_owned())),
            event("just", "kiln two", just.clone()),
            event("json", "kiln three", payload(65_537)),
            event("long", &"é ".repeat(20_000), None),
            event(
                "longest",
                &format!("quillwort {}", "x ".repeat(MIB)),
                payload(MIB),
            ),
        ];
        append(&service, events).await;

        let page = show(&service, TranscriptCursor::After(0), Payloads::Bounded).await;
        let newest = show(&service, TranscriptCursor::Newest, Payloads::Bounded).await;
        let whole = show(&service, TranscriptCursor::After(0), Payloads::Whole).await;

        assert_eq!(page, newest);
        let cuts: Vec<_> = page.events.iter().map(|event| event.cut).collect();
        let cut = |text_bytes: usize, json_bytes: Option<usize>| {
            let number = |size: usize| i64::try_from(size).unwrap();
            Some(CutEvent {
                text_bytes: number(text_bytes),
                json_bytes: json_bytes.map(number),
            })
        };
        let longest = "quillwort ".len() + 2 * MIB;
        assert_eq!(
            cuts,
            [
                None,
                None,
                cut("kiln three".len(), Some(65_537)),
                cut(60_000, None),
                cut(longest, Some(MIB)),
            ]
        );
        assert_eq!(page.events[1].event_json, just);
        assert_eq!(page.events[2].text, "kiln three");
        assert_eq!(page.events[3].text, "é ".repeat(8_192));
        assert_eq!(page.events[4].text, "");
        assert!(whole.events.iter().all(|event| event.cut.is_none()));
        assert_eq!(whole.events[..2], page.events[..2]);
        for (place, event) in whole.events.iter().enumerate() {
            for name in [event.event_id.clone(), (place + 1).to_string()] {
                let one = service.event(&agent("atlas"), "s", &name).await.unwrap();
                assert_eq!(one, *event, "{name}");
            }
        }
        let nobody = service.event(&agent("atlas"), "s", "9").await.unwrap_err();
        assert_eq!(nobody.kind(), ErrorKind::NotFound);
        // A snippet of a text so long is not made.
        assert_eq!(found(&service, "quillwort").await, [(5, "…".to_owned())]);
        service.close().await;
    });
}

/// Zeroes pages deep within the payload: who reads it finds that its chain ends too soon.
fn damage_payload(database: &Path) -> usize {
    const PAGE: usize = 4096;
    let bytes = std::fs::read(database).unwrap();
    let inside: Vec<usize> = (0..bytes.len() / PAGE)
        .filter(|page| {
            bytes[page * PAGE + 4..(page + 1) * PAGE]
                .iter()
                .all(|byte| *byte == b'A')
        })
        .collect();
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(database)
        .unwrap();
    for page in &inside[inside.len() / 2..] {
        file.write_all_at(&[0; PAGE], (page * PAGE) as u64).unwrap();
    }
    inside.len()
}

#[test]
fn c20_lists_pages_and_searches_do_not_read_large_payloads() {
    let dir = folder();
    let clock = Clock::system();
    let service = block_on(async {
        let service = with_agents(dir.path(), clock.clone(), &[&agent("atlas")]).await;
        let events: Vec<_> = (0..50)
            .map(|number| {
                event(
                    &format!("e{number}"),
                    &format!("kiln {number}"),
                    (number == 20).then(|| payload(30 * MIB)).flatten(),
                )
            })
            .collect();
        append(&service, events).await;
        let database = service.layout().agent_db("atlas");
        service.close().await;
        // Nobody has it open now.
        assert!(damage_payload(&database) > 5_000);
        Service::look(dir.path(), clock.clone()).await.unwrap()
    });

    block_on(async {
        let list = Request::SessionsList {
            agent: None,
            channel: None,
            chat_type: None,
            status: None,
            text: Some("s".to_owned()),
            with_archived: true,
            since_ms: None,
            until_ms: None,
            before: None,
            limit: PageLimit::default(),
        };
        let Ok(Response::Sessions(list)) = service.dispatch(list).await else {
            panic!("no list");
        };
        assert_eq!(list.items.len(), 1);
        assert_eq!(found(&service, "kiln").await.len(), 10);
        assert_eq!(found(&service, "20").await, [(21, "kiln [20]".to_owned())]);
        for cursor in [
            TranscriptCursor::After(0),
            TranscriptCursor::Newest,
            TranscriptCursor::Before(30),
        ] {
            let page = show(&service, cursor, Payloads::Bounded).await;
            let large: Vec<&Event> = page
                .events
                .iter()
                .filter(|event| event.cut.is_some())
                .collect();
            assert_eq!(large.len(), 1);
            assert_eq!(large[0].text, "kiln 20");
        }

        // Shows that the damage would have been met.
        let atlas: AgentId = agent("atlas");
        let read = service.event(&atlas, "s", "e20").await.unwrap_err();
        assert_eq!(read.kind(), ErrorKind::Damaged, "{read}");
        assert_eq!(
            service.event(&atlas, "s", "e21").await.unwrap().text,
            "kiln 21"
        );
        service.close().await;
    });
}
