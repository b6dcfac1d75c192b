//! Single appends: what they make, repeat, refuse and tell.

use zeroclaw::model::{
    Append, AppendEvent, ChatType, ConversationAddress, MAX_APPEND_EVENTS, PageLimit, Payloads,
    Place, SessionHeader, SessionTarget, TranscriptCursor, TranscriptOrder,
};
use zeroclaw::service::{Change, ChangeKind, Clock, ErrorKind, Request, Response, Service};

use super::{agent, folder, is_one_chain, with_agents};
use crate::support::sqlite::block_on;

const NOW: i64 = 1_788_000_000_000;

fn to(id: &str) -> SessionTarget {
    SessionTarget::Id(id.to_owned())
}

fn say(text: &str) -> AppendEvent {
    AppendEvent::message("user", text)
}

fn one(id: &str, text: &str) -> Append {
    Append::new(to(id), vec![say(text)])
}

async fn shown(service: &Service, session: &str) -> zeroclaw::service::SessionTranscript {
    let request = Request::SessionsShow {
        agent: Some(agent("atlas")),
        session: session.to_owned(),
        order: TranscriptOrder::Accepted,
        cursor: TranscriptCursor::After(0),
        payloads: Payloads::Whole,
        limit: PageLimit::from(1_000),
    };
    match service.dispatch(request).await.unwrap() {
        Response::Transcript(transcript) => transcript,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_append_makes_the_session_and_later_ones_follow_it() {
    let dir = folder();
    block_on(async {
        let atlas = agent("atlas");
        let clock = Clock::fixed(NOW);
        let service = with_agents(dir.path(), clock.clone(), &[&atlas]).await;
        let header = SessionHeader {
            conversation: Some(ConversationAddress {
                channel: "telegram".to_owned(),
                account_id: "main".to_owned(),
                kind: ChatType::Direct,
                peer_id: "42".to_owned(),
                thread_id: None,
            }),
            display_name: Some("Lantern".to_owned()),
            ..SessionHeader::default()
        };
        let key = SessionTarget::Key("telegram:main:42".to_owned());
        let first = Append::new(key.clone(), vec![say("one"), say("two")]).with_header(header);

        let made = service.append(&atlas, first).await.unwrap();
        clock.advance(1_000);
        let more = Append::new(key, vec![say("three")]);
        let more = service.append(&atlas, more).await.unwrap();

        assert!(made.is_new_session && !more.is_new_session);
        assert_eq!(made.session_id, more.session_id);
        assert_eq!(more.events[0].seq, 3);
        let found = shown(&service, "telegram:main:42").await;
        is_one_chain(&found.events);
        let texts: Vec<_> = found
            .events
            .iter()
            .map(|event| event.text.as_str())
            .collect();
        assert_eq!(texts, ["one", "two", "three"]);
        let session = found.session;
        assert_eq!((session.event_count, session.message_count), (3, 3));
        assert_eq!(session.updated_at_ms, NOW + 1_000);
        assert_eq!(session.channel.as_deref(), Some("telegram"));
        assert_eq!(session.chat_type, Some(ChatType::Direct));
        assert!(session.primary_conversation_id.is_some());
        service.close().await;
    });
}

#[test]
fn a_repeat_with_the_same_key_gives_the_first_result() {
    let dir = folder();
    block_on(async {
        let atlas = agent("atlas");
        let service = with_agents(dir.path(), Clock::fixed(NOW), &[&atlas]).await;
        let batch = Append::new(to("s"), vec![say("a"), say("b"), say("c")]).with_key("k1");

        let first = service.append(&atlas, batch.clone()).await.unwrap();
        let other = service.append(&atlas, one("s", "d").with_key("k1x")).await;
        let again = service.append(&atlas, batch).await.unwrap();

        assert!(other.is_ok_and(|other| !other.is_repeat));
        assert!(again.is_repeat && !first.is_repeat);
        assert_eq!(again.events, first.events);
        assert_eq!(shown(&service, "s").await.events.len(), 4);
        service.close().await;
    });
}

#[test]
fn a_stale_parent_is_refused_and_leaves_nothing() {
    let dir = folder();
    block_on(async {
        let atlas = agent("atlas");
        let service = with_agents(dir.path(), Clock::fixed(NOW), &[&atlas]).await;
        let start = one("s", "a").after(Place::Start).with_key("k");
        let first = service.append(&atlas, start.clone()).await.unwrap();
        let at = Place::Event(first.events[0].event_id.clone());

        let next = service
            .append(&atlas, one("s", "b").after(at.clone()))
            .await;
        let stale = service
            .append(&atlas, one("s", "c").after(at))
            .await
            .unwrap_err();
        let fresh = service
            .append(&atlas, one("s", "d").after(Place::Start))
            .await;
        let repeat = service.append(&atlas, start).await.unwrap();

        assert!(next.is_ok());
        assert_eq!(stale.kind(), ErrorKind::Refused);
        assert!(
            stale.to_string().contains(&first.events[0].event_id),
            "{stale}"
        );
        assert!(fresh.is_err());
        assert!(repeat.is_repeat, "a key is looked up before the parent");
        assert_eq!(shown(&service, "s").await.events.len(), 2);
        service.close().await;
    });
}

#[test]
fn what_cannot_be_appended_is_refused_by_name() {
    let dir = folder();
    block_on(async {
        let atlas = agent("atlas");
        let service = with_agents(dir.path(), Clock::fixed(NOW), &[&atlas]).await;
        service.append(&atlas, one("s", "a")).await.unwrap();
        let json = AppendEvent {
            event_json: Some("{".to_owned()),
            ..say("")
        };
        let named = |id: &str| AppendEvent {
            event_id: Some(id.to_owned()),
            ..say("")
        };
        let twice = vec![named("e"), named("e")];
        let many = vec![say("x"); MAX_APPEND_EVENTS + 1];

        for (what, append, kind) in [
            ("no events", Append::new(to("s"), vec![]), ErrorKind::Usage),
            ("too many", Append::new(to("s"), many), ErrorKind::Usage),
            ("no id", one("", "x"), ErrorKind::Usage),
            (
                "a strange key",
                one("s", "x").with_key("k\u{1f}1"),
                ErrorKind::Usage,
            ),
            (
                "no JSON",
                Append::new(to("s"), vec![json]),
                ErrorKind::Usage,
            ),
            (
                "one id twice",
                Append::new(to("s"), twice),
                ErrorKind::Refused,
            ),
        ] {
            let refused = service.append(&atlas, append).await.unwrap_err();
            assert_eq!(refused.kind(), kind, "{what}: {refused}");
        }
        let nobody = service.append(&agent("nobody"), one("s", "x")).await;

        assert_eq!(nobody.unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(shown(&service, "s").await.events.len(), 1);
        service.close().await;
    });
}

#[test]
fn what_was_appended_is_found_and_told() {
    let dir = folder();
    block_on(async {
        let atlas = agent("atlas");
        let service = with_agents(dir.path(), Clock::fixed(NOW), &[&atlas]).await;
        let mut ear = service.listen();

        service
            .append(&atlas, one("s", "the quillwort grows"))
            .await
            .unwrap();

        let kind = ChangeKind::Appended { last_seq: 1 };
        let heard = Change {
            agent_id: atlas,
            session_id: "s".to_owned(),
            kind,
        };
        assert_eq!(ear.try_recv().unwrap(), heard);
        let request = Request::SessionsSearch {
            text: "Quillwort".to_owned(),
            agent: None,
            newest: false,
            role: None,
            since_ms: None,
            until_ms: None,
            limit: PageLimit::default(),
        };
        let Response::Search(answer) = service.dispatch(request).await.unwrap() else {
            panic!("no answer to a search");
        };
        assert_eq!(answer.hits.len(), 1);
        assert!(answer.incomplete.is_empty());
        service.close().await;
    });
}
