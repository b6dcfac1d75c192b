//! Many callers at once, some of whom go away: every acknowledged event is there once, in one chain, in each caller's order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use zeroclaw::model::{
    Append, AppendEvent, Event, PageLimit, Payloads, SessionTarget, TranscriptCursor,
    TranscriptOrder,
};
use zeroclaw::service::{Clock, Request, Response, Service};

use super::{agent, folder, is_one_chain, with_agents};
use crate::support::rng::Rng;

const AGENTS: u64 = 8;
const SESSIONS: u64 = 8;
const TASKS: u64 = 64;
/// Appends of each task in ordinary runs; `ZEROCLAW_STORM=200` is the full storm.
const APPENDS: u64 = 20;

/// What a task saw acknowledged: agent, session, its number.
type Acknowledged = BTreeMap<(u64, u64), BTreeSet<(u64, u64)>>;

fn of_agent(number: u64) -> zeroclaw::model::AgentId {
    agent(&format!("agent{number}"))
}

fn text(task: u64, number: u64) -> String {
    format!("task {task} number {number}")
}

/// Appends to sessions at random; a third of the calls are dropped half way, and half of those asked again by key.
async fn task(service: Arc<Service>, task: u64, appends: u64) -> Acknowledged {
    let mut rng = Rng::new(0xda7a_0000 + task);
    let mut acknowledged = Acknowledged::new();
    for number in 0..appends {
        let (agent, session) = (rng.below(AGENTS), rng.below(SESSIONS));
        let to = SessionTarget::Id(format!("session{session}"));
        let event = AppendEvent::message("user", text(task, number));
        let append = Append::new(to, vec![event]).with_key(text(task, number));
        let owner = of_agent(agent);
        let is_dropped = rng.below(3) == 0;
        let done = if is_dropped {
            let patience = Duration::from_micros(rng.below(3_000));
            let call = service.append(&owner, append.clone());
            match tokio::time::timeout(patience, call).await {
                Ok(done) => Some(done.unwrap()),
                Err(_) if rng.below(2) == 0 => Some(service.append(&owner, append).await.unwrap()),
                Err(_) => None,
            }
        } else {
            Some(service.append(&owner, append).await.unwrap())
        };
        if done.is_some() {
            let seen = acknowledged.entry((agent, session)).or_default();
            seen.insert((task, number));
        }
    }
    acknowledged
}

async fn events(service: &Service, agent: u64, session: u64) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    loop {
        let request = Request::SessionsShow {
            agent: Some(of_agent(agent)),
            session: format!("session{session}"),
            order: TranscriptOrder::Accepted,
            cursor: TranscriptCursor::After(events.last().map_or(0, |event| event.seq)),
            payloads: Payloads::Whole,
            limit: PageLimit::from(1_000),
        };
        let Response::Transcript(page) = service.dispatch(request).await.unwrap() else {
            panic!("no answer");
        };
        let is_end = page.next_after.is_none();
        assert_eq!(page.session.event_count, page.session.message_count);
        events.extend(page.events);
        if is_end {
            let count = usize::try_from(page.session.event_count).unwrap();
            assert_eq!(events.len(), count);
            return events;
        }
    }
}

/// The task and number of an event.
fn caller(event: &Event) -> (u64, u64) {
    let mut words = event.text.split(' ').filter_map(|word| word.parse().ok());
    (words.next().unwrap(), words.next().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_acknowledged_event_is_there_once_and_in_order() {
    let appends = std::env::var("ZEROCLAW_STORM").map_or(APPENDS, |text| text.parse().unwrap());
    let dir = folder();
    let agents: Vec<_> = (0..AGENTS).map(of_agent).collect();
    let service = Arc::new(
        with_agents(
            dir.path(),
            Clock::system(),
            &agents.iter().collect::<Vec<_>>(),
        )
        .await,
    );

    let tasks: Vec<_> = (0..TASKS)
        .map(|number| tokio::spawn(task(Arc::clone(&service), number, appends)))
        .collect();
    let mut acknowledged = Acknowledged::new();
    for task in tasks {
        for (place, seen) in task.await.unwrap() {
            acknowledged.entry(place).or_default().extend(seen);
        }
    }

    let total: usize = acknowledged.values().map(BTreeSet::len).sum();
    assert!(total > 0);
    for ((agent, session), expected) in acknowledged {
        let events = events(&service, agent, session).await;
        is_one_chain(&events);
        let callers: Vec<_> = events.iter().map(caller).collect();
        let found: BTreeSet<_> = callers.iter().copied().collect();
        assert_eq!(found.len(), callers.len(), "an event is there twice");
        let lost: Vec<_> = expected.difference(&found).collect();
        assert!(
            lost.is_empty(),
            "lost of agent {agent}, session {session}: {lost:?}"
        );
        let mut last = BTreeMap::new();
        for (task, number) in callers {
            let before = last.insert(task, number);
            assert!(
                before < Some(number),
                "task {task}: {number} after {before:?}"
            );
        }
    }
    Arc::into_inner(service).unwrap().close().await;
}
