//! Branches beside a naive model: a list of events, each with its parent, and a mark where the talk stands.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use zeroclaw::model::{
    Append, AppendEvent, Event, PageLimit, Place, SessionTarget, TranscriptCursor, TranscriptOrder,
};
use zeroclaw::service::{Clock, Compaction, Service};

use super::{agent, folder, with_agents};
use crate::support::sqlite::{self, block_on};

/// Something done to a session. Numbers pick among what is there.
#[derive(Clone, Debug)]
enum Step {
    Append(usize),
    Branch(usize),
    Rewind(usize),
    Switch(usize),
    Truncate(usize),
    Checkpoint,
    Compact,
    RestoreCheckpoint(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (1_usize..4).prop_map(Step::Append),
        2 => (0_usize..50).prop_map(Step::Branch),
        2 => (0_usize..50).prop_map(Step::Rewind),
        1 => (0_usize..50).prop_map(Step::Switch),
        1 => (0_usize..50).prop_map(Step::Truncate),
        1 => Just(Step::Checkpoint),
        1 => Just(Step::Compact),
        1 => (0_usize..9).prop_map(Step::RestoreCheckpoint),
    ];
    prop::collection::vec(step, 1..24)
}

/// An event of the model.
#[derive(Clone, Debug)]
struct Known {
    seq: i64,
    id: String,
    /// Place of the parent, 0 for none.
    parent: i64,
}

#[derive(Default)]
struct Model {
    events: Vec<Known>,
    /// Place the talk stands at, 0 before its first event.
    stand: i64,
    next: i64,
    /// Places and ids of checkpoints, in the order they were made.
    checkpoints: Vec<(i64, String)>,
}

impl Model {
    fn add(&mut self, ids: Vec<String>) {
        for id in ids {
            self.next += 1;
            self.events.push(Known {
                seq: self.next,
                id,
                parent: self.stand,
            });
            self.stand = self.next;
        }
    }

    fn at(&self, seq: i64) -> Option<&Known> {
        self.events.iter().find(|event| event.seq == seq)
    }

    /// Places from the start to where the talk stands.
    fn branch(&self) -> Vec<i64> {
        let mut places = Vec::new();
        let mut at = self.stand;
        while let Some(event) = self.at(at) {
            places.push(at);
            at = event.parent;
        }
        places.reverse();
        places
    }

    fn all(&self) -> Vec<i64> {
        self.events.iter().map(|event| event.seq).collect()
    }

    fn place(&self, number: usize) -> (i64, Place) {
        let number = number % (self.events.len() + 1);
        match number.checked_sub(1).map(|number| &self.events[number]) {
            Some(event) => (event.seq, Place::Event(event.id.clone())),
            None => (0, Place::Start),
        }
    }
}

fn say(count: usize) -> Vec<AppendEvent> {
    (0..count)
        .map(|n| AppendEvent::message("user", format!("word{n}")))
        .collect()
}

async fn apply(service: &Service, model: &mut Model, step: &Step) {
    let atlas = agent("atlas");
    let ids = |events: Vec<zeroclaw::model::EventPlace>| -> Vec<String> {
        events.into_iter().map(|event| event.event_id).collect()
    };
    match step {
        Step::Append(count) => {
            let append = Append::new(SessionTarget::Id("s".to_owned()), say(*count));
            let done = service.append(&atlas, append).await.unwrap();
            model.add(ids(done.events));
        }
        Step::Branch(number) => {
            let (seq, place) = model.place(*number);
            let done = service.branch(&atlas, "s", place, say(1)).await.unwrap();
            model.stand = seq;
            model.add(ids(done.events));
        }
        Step::Rewind(number) => {
            let (seq, place) = model.place(*number);
            let done = service.rewind(&atlas, "s", place).await;
            let is_on_branch = seq == 0 || model.branch().contains(&seq);
            assert_eq!(done.is_ok(), is_on_branch, "{done:?}");
            if is_on_branch {
                model.stand = seq;
            }
        }
        Step::Switch(number) => {
            let (seq, place) = model.place(*number);
            let done = service.switch_branch(&atlas, "s", place).await.unwrap();
            model.stand = seq;
            assert_eq!(done.tail.map_or(0, |tail| tail.seq), seq);
        }
        Step::Truncate(number) => {
            let (seq, place) = model.place(*number);
            let left = model.branch().into_iter().rfind(|at| *at <= seq);
            let before = model.events.len();
            model.events.retain(|event| event.seq <= seq);
            model.checkpoints.retain(|(at, _)| *at <= seq);
            model.stand = left.unwrap_or(0);
            let done = service.truncate(&atlas, "s", place).await.unwrap();
            assert_eq!(done.deleted as usize, before - model.events.len());
        }
        Step::Checkpoint => {
            let made = service
                .checkpoint(&atlas, "s", "by hand", None)
                .await
                .unwrap();
            assert_eq!(made.seq, model.stand);
            assert_eq!(made.event_count as usize, model.branch().len());
            model.checkpoints.push((made.seq, made.snapshot_id));
        }
        Step::Compact => {
            let compaction = Compaction {
                summary: AppendEvent {
                    event_type: "compaction".to_owned(),
                    role: None,
                    ..AppendEvent::message("", "in short")
                },
                metadata_json: None,
                expected_parent: None,
            };
            let done = service.compact(&atlas, "s", compaction).await.unwrap();
            model
                .checkpoints
                .push((done.snapshot.seq, done.snapshot.snapshot_id));
            model.add(vec![done.event.event_id]);
        }
        Step::RestoreCheckpoint(number) => {
            let count = model.checkpoints.len();
            let Some((seq, id)) = model.checkpoints.get(number % count.max(1)) else {
                return;
            };
            service.restore_checkpoint(&atlas, "s", id).await.unwrap();
            model.stand = *seq;
        }
    }
}

async fn read(
    service: &Service,
    order: TranscriptOrder,
    cursor: TranscriptCursor,
    size: u32,
) -> zeroclaw::service::TranscriptPage {
    let limit = PageLimit::from(size);
    let atlas = agent("atlas");
    let page = service.transcript(&atlas, "s", order, cursor, limit);
    page.await.unwrap()
}

fn places(events: &[Event]) -> Vec<i64> {
    events.iter().map(|event| event.seq).collect()
}

/// Reads the transcript in pages of `size` from both ends, and as a stream.
async fn compare(service: &Service, order: TranscriptOrder, expected: &[i64], size: u32) {
    let (mut seen, mut cursor) = (Vec::new(), TranscriptCursor::After(0));
    loop {
        let page = read(service, order, cursor, size).await;
        seen.extend(places(&page.events));
        let Some(next) = page.next_after else { break };
        cursor = TranscriptCursor::After(next);
    }
    assert_eq!(seen, expected, "forward in pages of {size}");
    let (mut seen, mut cursor) = (Vec::new(), TranscriptCursor::Newest);
    loop {
        let page = read(service, order, cursor, size).await;
        let mut older = places(&page.events);
        older.extend(seen);
        seen = older;
        let Some(next) = page.next_before else { break };
        cursor = TranscriptCursor::Before(next);
    }
    assert_eq!(seen, expected, "backward in pages of {size}");
    let mut stream = service
        .stream_transcript(&agent("atlas"), "s", order)
        .await
        .unwrap();
    let mut seen = Vec::new();
    while let Some(events) = stream.next().await.unwrap() {
        seen.extend(places(&events));
    }
    assert_eq!(seen, expected, "as a stream");
}

async fn play(steps: &[Step], size: u32) {
    let dir = folder();
    let atlas = agent("atlas");
    let service = with_agents(dir.path(), Clock::fixed(1_000), &[&atlas]).await;
    let target = SessionTarget::Id("s".to_owned());
    service
        .create_session(&atlas, target, Default::default())
        .await
        .unwrap();
    let mut model = Model::default();

    for step in steps {
        apply(&service, &mut model, step).await;
        compare(&service, TranscriptOrder::Branch, &model.branch(), size).await;
    }

    compare(&service, TranscriptOrder::Accepted, &model.all(), size).await;
    let session = service.find_session(None, "s").await.unwrap();
    assert_eq!(session.event_count as usize, model.events.len());
    let limit = PageLimit::from(1_000);
    let kept = service.checkpoints(&atlas, "s", limit).await.unwrap();
    assert_eq!(kept.len(), model.checkpoints.len());
    let tips = service.branches(&atlas, "s", limit).await.unwrap();
    let has_child = |event: &Known| model.events.iter().any(|other| other.parent == event.seq);
    let ends = model
        .events
        .iter()
        .filter(|event| !has_child(event))
        .count();
    assert_eq!(tips.len(), ends);
    // A copy holds the branch and nothing else, and goes on from there.
    let copy = service
        .fork_session(&atlas, "s", None, None)
        .await
        .unwrap()
        .session;
    assert_eq!(copy.event_count as usize, model.branch().len());
    service.close().await;
    let store = dir.path().join("agents/atlas/agent/agent.sqlite");
    sqlite::check_index(&store, "transcript_events_fts").unwrap();
}

#[test]
fn transcripts_are_what_a_list_with_parents_says() {
    let cases = std::env::var("PROPTEST_CASES").map_or(24, |text| text.parse().unwrap());
    let mut runner = TestRunner::new(Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    });
    let sizes = prop_oneof![Just(1_u32), Just(2), Just(3), Just(100)];
    let ran = runner.run(&(steps(), sizes), |(steps, size)| {
        block_on(play(&steps, size));
        Ok(())
    });
    ran.unwrap();
}

#[test]
fn a_session_taken_back_to_its_start_begins_anew() {
    let steps = [
        Step::Append(3),
        Step::Rewind(0),
        Step::Append(2),
        Step::Truncate(1),
        Step::Append(1),
        Step::Switch(1),
    ];
    block_on(play(&steps, 2));
}
