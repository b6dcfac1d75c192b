//! Sessions themselves: made, patched, rotated, copied, deleted, and taken by rules.

use zeroclaw::model::{
    Append, AppendEvent, PageLimit, Place, SessionHeader, SessionPatch, SessionTarget,
    TranscriptCursor, TranscriptOrder,
};
use zeroclaw::service::{
    Clock, DeleteOptions, ErrorKind, PatchOutcome, RemoveOptions, Request, Response,
    RetentionOptions, RetentionRules, Service, TailEvent,
};

use super::{agent, folder, open, with_agents};
use crate::support::sqlite::{self, block_on, number};

const NOW: i64 = 1_788_000_000_000;
const DAY: i64 = 86_400_000;

async fn root(dir: &std::path::Path) -> (Service, Clock) {
    let clock = Clock::fixed(NOW);
    let service = with_agents(dir, clock.clone(), &[&agent("atlas")]).await;
    (service, clock)
}

async fn say(service: &Service, to: SessionTarget, text: &str) -> (String, String) {
    let append = Append::new(to, vec![AppendEvent::message("user", text)]);
    let done = service.append(&agent("atlas"), append).await.unwrap();
    (done.session_id, done.events[0].event_id.clone())
}

fn id(text: &str) -> SessionTarget {
    SessionTarget::Id(text.to_owned())
}

fn key(text: &str) -> SessionTarget {
    SessionTarget::Key(text.to_owned())
}

#[test]
fn a_patch_of_a_changed_session_is_refused_and_says_what_differs() {
    let dir = folder();
    block_on(async {
        let (service, _) = root(dir.path()).await;
        let atlas = agent("atlas");
        say(&service, id("s"), "hello").await;
        let seen = service.find_session(None, "s").await.unwrap();
        let title = |title: &str| SessionPatch {
            display_name: Some(Some(title.to_owned())),
            ..SessionPatch::default()
        };

        let first = service
            .patch_session(&atlas, "s", title("one"), Some(seen.revision))
            .await;
        let late = service
            .patch_session(&atlas, "s", title("two"), Some(seen.revision))
            .await;
        // What is said meanwhile is no change of the session itself.
        say(&service, id("s"), "more").await;
        let now = service.find_session(None, "s").await.unwrap();
        let third = service
            .patch_session(&atlas, "s", title("three"), Some(now.revision))
            .await;

        assert!(matches!(first.unwrap(), PatchOutcome::Applied(_)));
        let PatchOutcome::Conflict { current, fields } = late.unwrap() else {
            panic!("a late patch was applied");
        };
        assert_eq!(current.display_name.as_deref(), Some("one"));
        assert_eq!(fields.len(), 1);
        assert_eq!(
            (fields[0].field.as_str(), fields[0].found.as_deref()),
            ("display_name", Some("one"))
        );
        assert!(
            matches!(third.unwrap(), PatchOutcome::Applied(it) if it.display_name.as_deref() == Some("three"))
        );
        service.close().await;
    });
}

#[test]
fn a_reset_rotates_the_session_behind_its_key() {
    let dir = folder();
    block_on(async {
        let (service, clock) = root(dir.path()).await;
        let atlas = agent("atlas");
        let (old, _) = say(&service, key("telegram:main:1"), "hello").await;
        clock.advance(5);

        let reset = service.reset_session(&atlas, &old).await.unwrap();
        let (live, _) = say(&service, key("telegram:main:1"), "again").await;
        let twice = service.reset_session(&atlas, &old).await;

        assert_eq!(
            (&reset.old_session_id, &reset.new_session_id),
            (&old, &live)
        );
        assert_ne!(old, live);
        let old = service.find_session(None, &old).await.unwrap();
        assert_eq!((old.archived_at_ms, old.event_count), (Some(NOW + 5), 1));
        let new = service.find_session(None, "telegram:main:1").await.unwrap();
        assert_eq!((new.session_id, new.event_count), (live, 1));
        assert_eq!(twice.unwrap_err().kind(), ErrorKind::Refused);
        service.close().await;
    });
}

#[test]
fn a_fork_holds_the_beginning_and_goes_its_own_way() {
    let dir = folder();
    block_on(async {
        let (service, _) = root(dir.path()).await;
        let atlas = agent("atlas");
        say(&service, id("s"), "one").await;
        let (_, second) = say(&service, id("s"), "two").await;
        say(&service, id("s"), "three").await;

        let at = Some(Place::Event(second.clone()));
        let copy = service
            .fork_session(&atlas, "s", at, Some("aside".to_owned()))
            .await
            .unwrap();
        say(&service, key("aside"), "four").await;
        let taken = service
            .fork_session(&atlas, "s", None, Some("aside".to_owned()))
            .await;

        let copy = copy.session;
        assert_eq!(
            (copy.event_count, copy.forked_from.as_deref()),
            (2, Some("s"))
        );
        let page = service
            .transcript(
                &atlas,
                &copy.session_id,
                TranscriptOrder::Branch,
                TranscriptCursor::Newest,
                PageLimit::default(),
            )
            .await
            .unwrap();
        let texts: Vec<_> = page
            .events
            .iter()
            .map(|event| event.text.as_str())
            .collect();
        assert_eq!(texts, ["one", "two", "four"]);
        assert_eq!(page.events[2].parent_id, Some(second));
        assert_eq!(
            service.find_session(None, "s").await.unwrap().event_count,
            3
        );
        assert_eq!(taken.unwrap_err().kind(), ErrorKind::Refused);
        service.close().await;
    });
}

#[test]
fn c67_a_deleted_session_leaves_nothing_but_a_copy_that_comes_back() {
    let dir = folder();
    let store = dir.path().join("agents/atlas/agent/agent.sqlite");
    block_on(async {
        let (service, _) = root(dir.path()).await;
        let atlas = agent("atlas");
        say(&service, id("s"), "quillwort").await;
        say(&service, id("other"), "quillwort too").await;
        service
            .checkpoint(&atlas, "s", "by hand", None)
            .await
            .unwrap();
        let dry = RemoveOptions {
            dry_run: true,
            ..RemoveOptions::default()
        };

        let planned = service.remove_session(&atlas, "s", dry).await.unwrap();
        assert!(!planned.deleted && planned.copy.is_none() && planned.bytes == 9);
        let removed = service
            .remove_session(&atlas, "s", RemoveOptions::default())
            .await
            .unwrap();

        for table in [
            "sessions",
            "transcript_events",
            "transcript_event_identities",
            "session_routes",
        ] {
            assert_eq!(
                number(&store, &format!("SELECT count(*) FROM {table}")),
                1,
                "{table}"
            );
        }
        assert_eq!(
            number(&store, "SELECT count(*) FROM transcript_snapshots"),
            0
        );
        let search = Request::SessionsSearch {
            text: "quillwort".to_owned(),
            agent: None,
            newest: false,
            role: None,
            since_ms: None,
            until_ms: None,
            limit: PageLimit::default(),
        };
        let Response::Search(found) = service.dispatch(search).await.unwrap() else {
            panic!()
        };
        assert_eq!(found.hits.len(), 1);
        let copy = removed.copy.unwrap();
        let mut file = std::io::BufReader::new(std::fs::File::open(&copy).unwrap());
        let back = service
            .import_session(None, &mut file, &copy)
            .await
            .unwrap();
        assert_eq!((back.session_id.as_str(), back.events), ("s", 1));
        assert_eq!(
            service.find_session(None, "s").await.unwrap().event_count,
            1
        );
        service.close().await;
    });
    sqlite::check_index(&store, "transcript_events_fts").unwrap();
}

#[test]
fn c67_rules_take_what_the_dry_run_names_and_spare_the_protected() {
    let dir = folder();
    block_on(async {
        let (service, clock) = root(dir.path()).await;
        let atlas = agent("atlas");
        for name in ["pinned", "running", "old", "older/../..", "fresh"] {
            say(&service, id(name), "x").await;
        }
        let pin = SessionPatch {
            is_pinned: Some(true),
            ..SessionPatch::default()
        };
        service
            .patch_session(&atlas, "pinned", pin, None)
            .await
            .unwrap();
        let turn = service
            .begin_turn(&atlas, "running", "bot", std::time::Duration::ZERO)
            .await
            .unwrap();
        clock.advance(40 * DAY);
        say(&service, id("fresh"), "y").await;
        let options = |yes, dry_run| RetentionOptions {
            rules: Some(RetentionRules {
                max_age_days: 30,
                ..RetentionRules::default()
            }),
            yes,
            dry_run,
            ..RetentionOptions::default()
        };
        let names = |report: &zeroclaw::service::RetentionReport| -> Vec<String> {
            report
                .items
                .iter()
                .map(|item| item.session_id.clone())
                .collect()
        };

        let off = RetentionOptions {
            yes: true,
            ..RetentionOptions::default()
        };
        let nothing = service.apply_retention(&off).await.unwrap();
        let dry = service.apply_retention(&options(true, true)).await.unwrap();
        let unasked = service
            .apply_retention(&options(false, false))
            .await
            .unwrap();
        let done = service
            .apply_retention(&options(true, false))
            .await
            .unwrap();

        assert!(nothing.items.is_empty());
        assert_eq!(names(&dry), ["old", "older/../.."]);
        assert!(!dry.written && !unasked.written && done.written);
        assert_eq!(names(&dry), names(&done));
        assert!(
            done.items
                .iter()
                .all(|item| item.deleted && item.copy.as_ref().unwrap().exists())
        );
        assert_eq!((done.sessions, done.protected), (5, 2));

        // A clock that jumps takes nothing without a look at it, and copies go when their time is over.
        clock.advance(60 * DAY);
        let jumped = service
            .apply_retention(&options(true, false))
            .await
            .unwrap();
        assert!(jumped.clock_doubt.is_some() && !jumped.written);
        assert_eq!(jumped.expired_copies.len(), 2);
        let copies = service.apply_retention(&off).await.unwrap();
        assert!(
            copies.clock_doubt.is_some() && !copies.written,
            "copies too"
        );
        let sure = RetentionOptions {
            clock_is_right: true,
            ..options(true, false)
        };
        let sure = service.apply_retention(&sure).await.unwrap();
        assert_eq!(names(&sure), ["fresh"]);
        assert!(jumped.expired_copies.iter().all(|copy| !copy.exists()));
        turn.finish(zeroclaw::model::SessionStatus::Idle)
            .await
            .unwrap();
        service.close().await;
    });
}

#[test]
fn c67_rules_of_the_configuration_take_what_they_say_and_garbage_takes_nothing() {
    let dir = folder();
    let clock = Clock::fixed(1_800_000_000_000);
    let config = |text: &str| std::fs::write(dir.path().join("config.toml"), text).unwrap();
    let left = |clock: &Clock, dry_run| {
        let clock = clock.clone();
        let root = dir.path();
        block_on(async move {
            let service = open(root, clock).await;
            let options = RetentionOptions {
                yes: true,
                dry_run,
                ..RetentionOptions::default()
            };
            let done = service.apply_retention(&options).await;
            service.close().await;
            done.map(|report| (report.items.len(), report.rules_on, report.written))
        })
    };
    block_on(async {
        let (atlas, birch) = (agent("atlas"), agent("birch"));
        let service = with_agents(dir.path(), clock.clone(), &[&atlas, &birch]).await;
        for agent in [&atlas, &birch] {
            for name in ["old", "older"] {
                let append = Append::new(id(name), vec![AppendEvent::message("user", "x")]);
                service.append(agent, append).await.unwrap();
            }
        }
        clock.advance(40 * DAY);
        for agent in [&atlas, &birch] {
            let append = Append::new(id("fresh"), vec![AppendEvent::message("user", "x")]);
            service.append(agent, append).await.unwrap();
        }
        service.close().await;
    });

    config("");
    assert_eq!(left(&clock, false).unwrap(), (0, false, true));
    for garbage in [
        "max_age_days = \"30\"",
        "max_age = 30",
        "max_age_days = 30\n[state.retention.agents.birch]\nmax_age_days = \"never\"",
    ] {
        config(&format!("[state.retention]\n{garbage}"));
        let refused = left(&clock, false).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Refused);
        assert!(
            refused
                .to_string()
                .contains("config.toml: state.retention."),
            "{refused}"
        );
    }
    config(
        "[state.retention]\nmax_age_days = 30\n[state.retention.agents.birch]\nmax_age_days = 0\n",
    );
    assert_eq!(left(&clock, true).unwrap(), (2, true, false));
    assert_eq!(left(&clock, false).unwrap(), (2, true, true));
    config("[state.retention]\nmax_sessions = -1\nmax_bytes = 0\n");
    assert_eq!(left(&clock, false).unwrap(), (0, false, true));
    config("[state.retention]\nmax_sessions = 1\n");
    assert_eq!(left(&clock, false).unwrap(), (2, true, true));
}

#[test]
fn a_pinned_session_is_deleted_only_on_purpose() {
    let dir = folder();
    block_on(async {
        let (service, _) = root(dir.path()).await;
        let atlas = agent("atlas");
        service
            .create_session(&atlas, id("s"), SessionHeader::default())
            .await
            .unwrap();
        let again = service
            .create_session(&atlas, id("s"), SessionHeader::default())
            .await;
        let pin = SessionPatch {
            is_pinned: Some(true),
            ..SessionPatch::default()
        };
        service.patch_session(&atlas, "s", pin, None).await.unwrap();

        let refused = service
            .delete_session(&atlas, "s", DeleteOptions::default())
            .await;
        let meant = DeleteOptions {
            even_pinned: true,
            ..DeleteOptions::default()
        };
        let meant = service.delete_session(&atlas, "s", meant).await;

        assert_eq!(again.unwrap_err().kind(), ErrorKind::Refused);
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Refused);
        assert!(meant.is_ok());
        service.close().await;
    });
}

#[test]
fn a_tail_sees_what_was_there_and_what_comes() {
    let dir = folder();
    block_on(async {
        let (service, _) = root(dir.path()).await;
        let atlas = agent("atlas");
        say(&service, id("s"), "one").await;
        say(&service, id("s"), "two").await;
        let mut tail = service.tail(&atlas, "s", 1).await.unwrap();

        let TailEvent::Events(old) = tail.next().await.unwrap() else {
            panic!()
        };
        say(&service, id("other"), "elsewhere").await;
        let (_, third) = say(&service, id("s"), "three").await;
        let TailEvent::Events(new) = tail.next().await.unwrap() else {
            panic!()
        };
        service.rewind(&atlas, "s", Place::Start).await.unwrap();
        let moved = loop {
            match tail.next().await.unwrap() {
                TailEvent::Events(events) => assert!(events.is_empty()),
                other => break other,
            }
        };
        service
            .delete_session(&atlas, "s", DeleteOptions::default())
            .await
            .unwrap();
        let gone = tail.next().await.unwrap();

        assert_eq!(old.len(), 1);
        assert_eq!((new.len(), &new[0].event_id), (1, &third));
        assert_eq!((moved, gone), (TailEvent::Moved, TailEvent::Gone));
        drop(tail);
        service.close().await;
    });
}
