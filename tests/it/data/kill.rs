//! A process that is killed while it appends keeps every event it acknowledged.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::sync::Arc;

use zeroclaw::model::{
    Append, AppendEvent, PageLimit, Payloads, SessionTarget, TranscriptCursor, TranscriptOrder,
};
use zeroclaw::service::{Clock, Request, Response, Service};

use super::{agent, folder, is_one_chain, open, with_agents};
use crate::support::process::{part, played_on};
use crate::support::sqlite::block_on;

const TASKS: u64 = 16;
/// Acknowledged events after which each process is killed.
const KILLED_AFTER: [usize; 3] = [1, 40, 300];

/// Appends until it is killed, and says after each append that it is done.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a part of another test"]
async fn the_one_that_is_killed() {
    let Some(root) = played_on() else { return };
    let service = Arc::new(open(&root, Clock::system()).await);
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| tokio::spawn(append_for_ever(Arc::clone(&service), task)))
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

async fn append_for_ever(service: Arc<Service>, task: u64) {
    let pid = std::process::id();
    for number in 0_u64.. {
        let text = format!("{pid}-{task}-{number}");
        let to = SessionTarget::Id(format!("session{}", task % 4));
        let events = vec![AppendEvent::message("user", &text); 2];
        let append = Append::new(to, events).with_key(&text);
        service.append(&agent("atlas"), append).await.unwrap();
        let mut out = std::io::stdout().lock();
        writeln!(out, "done {text}").unwrap();
        out.flush().unwrap();
    }
}

/// Starts one, kills it after `count` acknowledged appends, and gives those.
fn kill_after(root: &std::path::Path, count: usize) -> Vec<String> {
    let mut child = part("data::kill::the_one_that_is_killed", root)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let done = |line: std::io::Result<String>| {
        let line = line.unwrap();
        line.rsplit_once("done ").map(|(_, text)| text.to_owned())
    };
    let mut acknowledged: Vec<String> = lines.by_ref().filter_map(done).take(count).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    // What it managed to say before the kill was acknowledged too; a last line may be cut.
    let rest = lines.map_while(Result::ok);
    acknowledged.extend(rest.filter_map(|line| done(Ok(line))));
    assert!(acknowledged.len() >= count, "it ended by itself");
    acknowledged
}

#[test]
fn a_killed_process_keeps_what_it_acknowledged() {
    let dir = folder();
    block_on(async {
        let service = with_agents(dir.path(), Clock::system(), &[&agent("atlas")]).await;
        service.close().await;
    });
    let mut acknowledged = BTreeSet::new();

    for count in KILLED_AFTER {
        acknowledged.extend(kill_after(dir.path(), count));
        let found = block_on(all(dir.path()));
        let lost: Vec<_> = acknowledged.difference(&found).collect();
        // The very last line may have been cut by the kill: it is then the start of a longer one.
        let lost: Vec<_> = lost
            .into_iter()
            .filter(|text| !found.iter().any(|found| found.starts_with(text.as_str())))
            .collect();
        assert!(lost.is_empty(), "{lost:?}");
    }
}

/// The texts of all events, each there twice in one append and never more often.
async fn all(root: &std::path::Path) -> BTreeSet<String> {
    let service = open(root, Clock::system()).await;
    let mut found = BTreeSet::new();
    for session in 0..4 {
        let mut events = Vec::new();
        loop {
            let request = Request::SessionsShow {
                agent: Some(agent("atlas")),
                session: format!("session{session}"),
                order: TranscriptOrder::Accepted,
                cursor: TranscriptCursor::After(
                    events
                        .last()
                        .map_or(0, |event: &zeroclaw::model::Event| event.seq),
                ),
                payloads: Payloads::Whole,
                limit: PageLimit::from(1_000),
            };
            // The first process may have been killed before it made them all.
            let Ok(Response::Transcript(page)) = service.dispatch(request).await else {
                break;
            };
            let is_end = page.next_after.is_none();
            events.extend(page.events);
            if is_end {
                break;
            }
        }
        is_one_chain(&events);
        for pair in events.chunks(2) {
            assert_eq!(pair[0].text, pair[1].text, "half of an append is there");
            assert!(
                found.insert(pair[0].text.clone()),
                "an append is there twice"
            );
        }
    }
    service.close().await;
    found
}
