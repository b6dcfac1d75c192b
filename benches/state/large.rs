//! A few huge events among many: lists, pages and searches pass them by.

use std::path::Path;
use std::time::Duration;

use zeroclaw::model::{
    AgentId, Append, AppendEvent, PageLimit, Payloads, SessionTarget, TranscriptCursor,
    TranscriptOrder,
};
use zeroclaw::service::{Clock, HolderKind, Request, Response, Service};

use crate::Scale;
use crate::data::event;
use crate::measure::{Table, median, ms, timed};

const MEGABYTE: usize = 1_000_000;

/// 2,000 events, 50 of them of 2 MB and one of 30 MB.
fn events() -> impl Iterator<Item = AppendEvent> {
    let payload = |megabytes: usize| Some(format!("\"{}\"", "A".repeat(megabytes * MEGABYTE)));
    (0..2_000).map(move |number| AppendEvent {
        event_json: match number {
            1_000 => payload(30),
            number if number % 40 == 7 => payload(2),
            _ => None,
        },
        ..AppendEvent::message("user", event(number).text)
    })
}

/// Lists, pages and searches beside 130 MB of payloads.
pub(crate) async fn pass_by(dir: &Path, scale: Scale, table: &mut Table) {
    let root = dir.join("large");
    let opened = Service::init(&root, Clock::system(), HolderKind::Cli).await;
    let service = opened.unwrap().0;
    let atlas = AgentId::new("atlas").unwrap();
    service.add_agent(&atlas).await.unwrap();
    let events: Vec<_> = events().collect();
    for some in events.chunks(200) {
        let to = SessionTarget::Id("s".to_owned());
        let append = Append::new(to, some.to_vec());
        service.append(&atlas, append).await.unwrap();
    }
    let show = |cursor| Request::SessionsShow {
        agent: None,
        session: "s".to_owned(),
        order: TranscriptOrder::Branch,
        cursor,
        payloads: Payloads::Bounded,
        limit: PageLimit::from(100),
    };
    let search = |newest| Request::SessionsSearch {
        text: "common".to_owned(),
        agent: None,
        newest,
        role: None,
        since_ms: None,
        until_ms: None,
        limit: PageLimit::from(20),
    };
    for (work, budget_ms, request) in [
        ("list of sessions", 5.0, list_of_sessions()),
        ("newest page of 100", 5.0, show(TranscriptCursor::Newest)),
        (
            "page with the event of 30 MB",
            5.0,
            show(TranscriptCursor::After(950)),
        ),
        ("search, newest first", 5.0, search(true)),
        ("search, best first", 100.0, search(false)),
    ] {
        let mut times = Vec::new();
        for _ in 0..scale.rounds * 3 {
            let (took, answer) = timed(service.dispatch(request.clone())).await;
            times.push(took);
            answer.unwrap();
        }
        let took = median(times);
        let verdict = if took.as_secs_f64() * 1e3 <= budget_ms {
            "met"
        } else {
            "missed"
        };
        let budget = format!("≤ {budget_ms} ms: {verdict}");
        table.ours(
            &format!("beside 130 MB of payload: {work}"),
            &ms(took),
            "",
            &budget,
        );
    }
    service.close().await;
}

fn list_of_sessions() -> Request {
    Request::SessionsList {
        agent: None,
        channel: None,
        chat_type: None,
        status: None,
        text: None,
        with_archived: false,
        since_ms: None,
        until_ms: None,
        before: None,
        limit: PageLimit::from(100),
    }
}

/// One event at a time through the service, with its index: what a runtime pays. Then pages of a long transcript.
pub(crate) async fn through_the_service(dir: &Path, scale: Scale, table: &mut Table) {
    let root = dir.join("root");
    let opened = Service::init(&root, Clock::system(), HolderKind::Cli).await;
    let service = opened.unwrap().0;
    let atlas = AgentId::new("atlas").unwrap();
    service.add_agent(&atlas).await.unwrap();
    let mut times: Vec<Duration> = Vec::new();
    for number in 0..scale.appends {
        let text = event(number).text;
        let to = SessionTarget::Id("s".to_owned());
        let append = Append::new(to, vec![AppendEvent::message("user", text)]);
        let (took, done) = timed(service.append(&atlas, append)).await;
        done.unwrap();
        times.push(took);
    }
    table.ours(
        "append through the service, indexed",
        &ms(median(times)),
        "",
        "",
    );
    for (name, cursor) in [
        ("newest", TranscriptCursor::Newest),
        ("oldest", TranscriptCursor::After(0)),
    ] {
        let mut times = Vec::new();
        for _ in 0..scale.rounds * 3 {
            let limit = PageLimit::from(100);
            let page = service.transcript(&atlas, "s", TranscriptOrder::Branch, cursor, limit);
            let (took, page) = timed(page).await;
            times.push(took);
            assert!(!page.unwrap().events.is_empty());
        }
        table.ours(
            &format!("… the {name} page of it"),
            &ms(median(times)),
            "",
            "",
        );
    }
    let (_, answer) = timed(service.dispatch(list_of_sessions())).await;
    assert!(matches!(answer, Ok(Response::Sessions(page)) if page.items.len() == 1));
    service.close().await;
}
