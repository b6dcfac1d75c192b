//! Runs of procedures: one driver each, bounded by caps, changed by compare-and-set, closed until approved.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use zeroclaw::model::{FlowEvent, FlowRun, FlowStatus, ProposalStatus};
use zeroclaw::service::{
    Clock, FlowClaim, FlowClaimed, FlowStep, FlowSweep, Flows, HolderKind, NewFlowEvent,
    NewFlowRun, NewProposal, Request, Response, Service, ServiceError,
};

use super::{NOW, folder, service};
use crate::support::process::{part, played_on};
use crate::support::rng::Rng;
use crate::support::sandbox::Sandbox;
use crate::support::sqlite::block_on;

const MINUTE_MS: i64 = 60 * 1_000;
/// Room for all.
const MANY: u32 = 1_000;

fn new_run(procedure: &str) -> NewFlowRun {
    NewFlowRun {
        flow_id: None,
        controller_id: procedure.to_owned(),
        trigger_source: Some("manual".to_owned()),
        total_steps: Some(3),
        state_json: "{}".to_owned(),
    }
}

/// A root whose configuration says this.
async fn configured(root: &Path, clock: Clock, sop: &str) -> Service {
    std::fs::create_dir_all(root).unwrap();
    std::fs::write(root.join("config.toml"), format!("[sop]\n{sop}\n")).unwrap();
    service(root, clock).await
}

async fn claim(flows: &Flows, flow_id: &str, per_procedure: u32) -> Option<FlowClaim> {
    match flows
        .claim(flow_id, "a driver", per_procedure)
        .await
        .unwrap()
    {
        FlowClaimed::Claimed(claim) => Some(*claim),
        _ => None,
    }
}

async fn show(service: &Service, run: &str) -> (FlowRun, Vec<FlowEvent>) {
    let request = Request::FlowsShow {
        run: run.to_owned(),
    };
    let Response::Flow(found) = service.dispatch(request).await.unwrap() else {
        panic!("another answer");
    };
    (found.run, found.events)
}

fn kinds(events: &[FlowEvent]) -> Vec<&str> {
    events.iter().map(|event| event.kind.as_str()).collect()
}

/// A run of `watering` that waits for an approval.
async fn waiting(flows: &Flows) -> FlowRun {
    let run = flows.create(new_run("watering")).await.unwrap();
    let claim = claim(flows, &run.flow_id, MANY).await.unwrap();
    let asked = claim.wait_for_approval("cuts are for good", FlowStep::default());
    asked.await.unwrap()
}

#[tokio::test]
async fn a_run_goes_from_step_to_step_and_every_change_is_recorded() {
    let dir = folder();
    let service = service(dir.path(), Clock::fixed(NOW)).await;
    let flows = service.flows();
    let run = flows.create(new_run("watering")).await.unwrap();
    let mut claim = claim(&flows, &run.flow_id, 1).await.unwrap();
    let first = claim.run().revision;

    let step = FlowStep {
        current_step: Some(1),
        state_json: Some("{\"done\":[1]}".to_owned()),
        events: vec![
            NewFlowEvent::new("step_retry"),
            NewFlowEvent::new("step_promoted"),
        ],
    };
    let after = claim.advance(first, step).await.unwrap().clone();
    let stale = claim.advance(first, FlowStep::default()).await.map(|_| ());
    let ended = claim
        .finish(FlowStatus::Completed, None, FlowStep::default())
        .await
        .unwrap();

    assert_eq!(after.revision, first + 1);
    assert!(matches!(stale, Err(ServiceError::Conflict { .. })));
    assert_eq!(ended.ended_at_ms, Some(NOW));
    let (found, events) = show(&service, &run.flow_id).await;
    assert_eq!(found.revision, ended.revision);
    assert_eq!(found.state_json.as_deref(), Some("{\"done\":[1]}"));
    assert_eq!(
        kinds(&events),
        [
            "created",
            "claimed",
            "step_retry",
            "step_promoted",
            "completed"
        ]
    );
    let places: Vec<_> = events.iter().map(|event| event.seq).collect();
    assert_eq!(places, [1, 2, 3, 4, 5]);
    assert!(flows.claims().await.unwrap().is_empty());
    // What has ended is nobody's to drive.
    let again = flows.claim(&run.flow_id, "late", MANY).await.unwrap();
    assert!(matches!(again, FlowClaimed::NotWaiting { .. }));
    service.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_claims_at_once_have_one_winner() {
    let dir = folder();
    let service = service(dir.path(), Clock::system()).await;
    let flows = service.flows();
    let beside = Flows::open(dir.path(), Clock::system()).await.unwrap();
    let run = flows.create(new_run("watering")).await.unwrap();
    // The winner keeps it until all have asked.
    let (done, _) = tokio::sync::broadcast::channel::<()>(1);

    let asking: Vec<_> = (0..1_000)
        .map(|number| {
            let flows = if number % 2 == 0 { &flows } else { &beside }.clone();
            let (flow_id, mut end) = (run.flow_id.clone(), done.subscribe());
            let has_asked = Arc::new(AtomicUsize::new(0));
            let asked = Arc::clone(&has_asked);
            let task = tokio::spawn(async move {
                let claim = claim(&flows, &flow_id, MANY).await;
                asked.store(1, Ordering::SeqCst);
                let is_winner = claim.is_some();
                let _ = end.recv().await;
                is_winner
            });
            (task, has_asked)
        })
        .collect();
    while !asking
        .iter()
        .all(|(_, asked)| asked.load(Ordering::SeqCst) == 1)
    {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    drop(done);
    let mut winners = 0;
    for (task, _) in asking {
        winners += usize::from(task.await.unwrap());
    }

    assert_eq!(winners, 1);
    beside.close().await;
    service.close().await;
}

/// What the tasks of the storm have seen.
#[derive(Default)]
struct Seen {
    driven: Mutex<BTreeMap<String, usize>>,
    changes: Mutex<BTreeMap<String, i64>>,
    refused: AtomicUsize,
    stale: AtomicUsize,
}

impl Seen {
    fn enter(&self, procedure: &str, per_procedure: usize, total: usize) {
        let mut driven = self.driven.lock().unwrap();
        *driven.entry(procedure.to_owned()).or_default() += 1;
        assert!(driven[procedure] <= per_procedure, "{driven:?}");
        assert!(driven.values().sum::<usize>() <= total, "{driven:?}");
    }

    fn leave(&self, procedure: &str) {
        *self.driven.lock().unwrap().get_mut(procedure).unwrap() -= 1;
    }

    fn changed(&self, run: &str) {
        *self
            .changes
            .lock()
            .unwrap()
            .entry(run.to_owned())
            .or_default() += 1;
    }
}

const PER_PROCEDURE: usize = 2;
const TOTAL: usize = 3;

async fn drive_some(flows: Flows, runs: Arc<Vec<FlowRun>>, seed: u64, seen: Arc<Seen>) {
    let mut rng = Rng::new(seed);
    for _ in 0..12 {
        let run = &runs[usize::try_from(rng.below(runs.len() as u64)).unwrap()];
        let (id, procedure) = (&run.flow_id, &run.controller_id);
        let Some(mut claim) = claim(&flows, id, u32::try_from(PER_PROCEDURE).unwrap()).await else {
            seen.refused.fetch_add(1, Ordering::SeqCst);
            continue;
        };
        seen.enter(procedure, PER_PROCEDURE, TOTAL);
        seen.changed(id);
        for _ in 0..rng.below(4) {
            let revision = claim.run().revision;
            // One in three writes from a revision that is past.
            let from = revision - i64::from(rng.below(3) == 0);
            match claim.advance(from, FlowStep::default()).await {
                Ok(after) => {
                    assert_eq!(after.revision, from + 1);
                    assert_eq!(from, revision);
                    seen.changed(id);
                }
                Err(ServiceError::Conflict { .. }) => {
                    assert_ne!(from, revision);
                    seen.stale.fetch_add(1, Ordering::SeqCst);
                }
                Err(error) => panic!("{error}"),
            }
        }
        seen.leave(procedure);
        claim.give_back().await.unwrap();
        seen.changed(id);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn caps_and_revisions_hold_under_many_drivers_of_two_connections() {
    for seed in [1, 20_260_105] {
        let dir = folder();
        let sop = format!("max_concurrent_total = {TOTAL}");
        let service = configured(dir.path(), Clock::system(), &sop).await;
        let flows = service.flows();
        let beside = Flows::open(dir.path(), Clock::system()).await.unwrap();
        let mut runs = Vec::new();
        for number in 0..6 {
            let procedure = format!("procedure {}", number % 2);
            runs.push(flows.create(new_run(&procedure)).await.unwrap());
        }
        let (runs, seen) = (Arc::new(runs), Arc::new(Seen::default()));

        let tasks: Vec<_> = (0..16)
            .map(|number| {
                let flows = if number % 2 == 0 { &flows } else { &beside }.clone();
                let (runs, seen) = (Arc::clone(&runs), Arc::clone(&seen));
                tokio::spawn(drive_some(flows, runs, seed * 100 + number, seen))
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }

        assert!(seen.refused.load(Ordering::SeqCst) > 0, "seed {seed}");
        assert!(seen.stale.load(Ordering::SeqCst) > 0, "seed {seed}");
        for run in runs.iter() {
            let (found, events) = show(&service, &run.flow_id).await;
            let changes = seen.changes.lock().unwrap().get(&run.flow_id).copied();
            assert_eq!(found.revision, changes.unwrap_or(0), "seed {seed}");
            // One event a change, and the one of its making.
            let places: Vec<_> = events.iter().map(|event| event.seq).collect();
            let expected: Vec<_> = (1..=found.revision + 1).collect();
            assert_eq!(places, expected, "seed {seed}");
            assert_eq!(found.status, FlowStatus::Pending, "seed {seed}");
        }
        beside.close().await;
        service.close().await;
    }
}

#[tokio::test]
async fn an_approval_that_nobody_gives_stays_closed() {
    let dir = folder();
    let clock = Clock::fixed(NOW);
    let service = configured(dir.path(), clock.clone(), "approval_timeout_secs = 60").await;
    let flows = service.flows();
    let run = waiting(&flows).await;

    assert_eq!(flows.sweep().await.unwrap(), FlowSweep::default());
    for _ in 0..3 {
        clock.advance(MINUTE_MS);
        assert_eq!(flows.sweep().await.unwrap().escalated, 1);
        // Once for each time that passes, not once a look.
        assert_eq!(flows.sweep().await.unwrap(), FlowSweep::default());
    }

    let (found, events) = show(&service, &run.flow_id).await;
    assert_eq!(found.status, FlowStatus::WaitingApproval);
    assert_eq!(found.waiting_since_ms, Some(NOW));
    assert_eq!(
        kinds(&events)[2..5],
        ["gate_requested", "gate_escalated", "gate_escalated"]
    );
    assert!(claim(&flows, &run.flow_id, MANY).await.is_none());
    // Late is not too late for a person.
    let approved = flows.approve(&run.flow_id, "mira").await.unwrap();
    assert_eq!(approved.status, FlowStatus::Pending);
    assert!(claim(&flows, &run.flow_id, MANY).await.is_some());
    service.close().await;
}

#[tokio::test]
async fn c64_a_clock_that_is_set_neither_ends_nor_prolongs_the_wait_for_an_approval() {
    let dir = folder();
    let clock = Clock::fixed(NOW);
    let sop = "approval_timeout_secs = 60\napproval_timeout_action = \"cancel\"";
    let service = configured(dir.path(), clock.clone(), sop).await;
    let flows = service.flows();
    let run = waiting(&flows).await;
    let day_ms = 24 * 60 * MINUTE_MS;

    for set_to in [NOW + day_ms, NOW - day_ms] {
        clock.set(set_to);
        assert_eq!(flows.sweep().await.unwrap(), FlowSweep::default());
    }
    clock.advance(MINUTE_MS);
    flows.sweep().await.unwrap();

    let (found, _) = show(&service, &run.flow_id).await;
    assert_eq!(found.status, FlowStatus::Cancelled);
    service.close().await;
}

#[tokio::test]
async fn only_the_configuration_cancels_or_opens_an_approval_in_time() {
    for (word, expected) in [
        ("cancel", FlowStatus::Cancelled),
        ("auto_approve", FlowStatus::Pending),
        // A word that is none leaves it closed.
        ("approve", FlowStatus::WaitingApproval),
    ] {
        let dir = folder();
        let clock = Clock::fixed(NOW);
        let sop = format!("approval_timeout_secs = 60\napproval_timeout_action = {word:?}");
        let service = configured(dir.path(), clock.clone(), &sop).await;
        let flows = service.flows();
        let run = waiting(&flows).await;

        clock.advance(MINUTE_MS - 1);
        flows.sweep().await.unwrap();
        let (before, _) = show(&service, &run.flow_id).await;
        clock.advance(1);
        flows.sweep().await.unwrap();
        let (after, events) = show(&service, &run.flow_id).await;

        assert_eq!(before.status, FlowStatus::WaitingApproval, "{word}");
        assert_eq!(after.status, expected, "{word}");
        let timed_out = events.iter().find(|event| event.kind == "gate_timed_out");
        assert_eq!(
            timed_out.and_then(|event| event.actor.as_deref()),
            Some("system").filter(|_| expected != FlowStatus::WaitingApproval),
            "{word}"
        );
        service.close().await;
    }
}

#[tokio::test]
async fn what_waits_goes_on_waiting_and_what_lost_its_driver_is_interrupted_after_a_restart() {
    let dir = folder();
    let clock = Clock::fixed(NOW);
    let service = super::service(dir.path(), clock.clone()).await;
    let flows = service.flows();
    let waits = waiting(&flows).await;
    let ended = flows.create(new_run("watering")).await.unwrap();
    let claimed = claim(&flows, &ended.flow_id, MANY).await.unwrap();
    let failed = claimed.finish(FlowStatus::Failed, Some("no water"), FlowStep::default());
    failed.await.unwrap();
    service.close().await;
    let root = dir.path().to_owned();
    let driven = tokio::task::spawn_blocking(move || kill_a_driver(&root)).await;
    let driven = driven.unwrap();

    let service = super::service(dir.path(), clock).await;
    let flows = service.flows();
    let before = flows.claims().await.unwrap();
    let sweep = flows.sweep().await.unwrap();

    assert!(before.iter().all(|claim| claim.is_void) && before.len() == 1);
    assert_eq!(sweep.interrupted, 1);
    assert!(flows.claims().await.unwrap().is_empty());
    let status = async |id: &str| show(&service, id).await.0.status;
    assert_eq!(status(&driven).await, FlowStatus::Interrupted);
    assert_eq!(status(&waits.flow_id).await, FlowStatus::WaitingApproval);
    assert_eq!(status(&ended.flow_id).await, FlowStatus::Failed);
    assert_eq!(flows.sweep().await.unwrap(), FlowSweep::default());
    // It can be taken up where it was.
    let claim = claim(&flows, &driven, MANY).await.unwrap();
    assert_eq!(claim.run().current_step, Some(2));
    drop(claim);
    service.close().await;
}

/// Drives a run until it is killed.
#[tokio::test]
#[ignore = "a part of another test"]
async fn the_driver_that_is_killed() {
    let Some(root) = played_on() else { return };
    let flows = Flows::open(&root, Clock::system()).await.unwrap();
    let run = flows.create(new_run("pruning")).await.unwrap();
    let mut claim = claim(&flows, &run.flow_id, MANY).await.unwrap();
    let step = FlowStep {
        current_step: Some(2),
        ..FlowStep::default()
    };
    claim.advance(claim.run().revision, step).await.unwrap();
    {
        let mut out = std::io::stdout().lock();
        writeln!(out, "drives {}", run.flow_id).unwrap();
        out.flush().unwrap();
    }
    std::future::pending::<()>().await;
}

/// Starts one, kills it while it drives, and gives its run.
fn kill_a_driver(root: &Path) -> String {
    let mut child = part("control::flows::the_driver_that_is_killed", root)
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let driven = lines.map_while(Result::ok).find_map(|line| {
        let (_, run) = line.rsplit_once("drives ")?;
        Some(run.to_owned())
    });
    child.kill().unwrap();
    child.wait().unwrap();
    driven.unwrap()
}

#[tokio::test]
async fn a_driver_that_lets_go_without_an_end_loses_the_run_and_can_write_no_more() {
    let dir = folder();
    let service = service(dir.path(), Clock::fixed(NOW)).await;
    let flows = service.flows();
    let run = flows.create(new_run("watering")).await.unwrap();

    drop(claim(&flows, &run.flow_id, 1).await.unwrap());
    // Nobody waits for a sweep: the next driver finds out itself.
    let mut second = claim(&flows, &run.flow_id, 1).await.unwrap();
    second
        .advance(second.run().revision, FlowStep::default())
        .await
        .unwrap();

    let (found, events) = show(&service, &run.flow_id).await;
    assert_eq!(found.status, FlowStatus::Running);
    assert_eq!(
        kinds(&events),
        ["created", "claimed", "driver_lost", "claimed", "advanced"]
    );
    drop(second);
    service.close().await;
}

#[tokio::test]
async fn a_proposal_is_decided_once_and_not_applied_to_what_has_changed() {
    let dir = folder();
    let service = service(dir.path(), Clock::fixed(NOW)).await;
    let flows = service.flows();
    let propose = async || {
        let new = NewProposal {
            controller_id: "watering".to_owned(),
            source_flow_id: None,
            kind: "update".to_owned(),
            target_content_hash: Some("abc".to_owned()),
            proposal_json: "{\"procedure_markdown\":\"# Less\"}".to_owned(),
        };
        flows.propose(new).await.unwrap().proposal_id
    };
    let (applied, stale, rejected) = (propose().await, propose().await, propose().await);

    let applied = flows.apply_proposal(&applied, "mira", Some("abc")).await;
    let stale = flows.apply_proposal(&stale, "mira", Some("def")).await;
    flows
        .reject_proposal(&rejected, Some("too bold"))
        .await
        .unwrap();

    let applied = applied.unwrap();
    assert_eq!(applied.status, ProposalStatus::Applied);
    assert_eq!(applied.applied_by.as_deref(), Some("mira"));
    assert_eq!(stale.unwrap().status, ProposalStatus::Stale);
    assert!(matches!(
        flows.apply_proposal(&rejected, "mira", Some("abc")).await,
        Err(ServiceError::Conflict { .. })
    ));
    service.close().await;
}

#[test]
fn approvals_are_given_and_refused_by_commands() {
    let home = Sandbox::new();
    home.zeroclaw(&["init"]).exits(0);
    let (first, second) = block_on(async {
        let opened = Service::open(&home.root(), Clock::system(), HolderKind::Cli).await;
        let service = opened.unwrap();
        let flows = service.flows();
        let ids = (waiting(&flows).await.flow_id, waiting(&flows).await.flow_id);
        service.close().await;
        ids
    });

    let approved = home
        .zeroclaw(&["flows", "approve", &first, "--json"])
        .exits(0)
        .json();
    assert_eq!(approved["status"], "pending");
    home.zeroclaw(&["flows", "approve", &first]).exits(10);
    home.zeroclaw(&["flows", "deny", &second, "--reason", "not in winter"])
        .exits(0)
        .says("cancelled");
    home.zeroclaw(&["flows", "show", &second])
        .exits(0)
        .says("not in winter");
    home.zeroclaw(&["flows", "deny", "nothing"]).exits(9);
    home.zeroclaw(&["flows", "claims", "--json"])
        .exits(0)
        .json();
    home.zeroclaw(&["flows", "claims"])
        .exits(0)
        .complains("nobody drives a run");
}
