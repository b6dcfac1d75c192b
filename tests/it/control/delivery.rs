//! C65: delivered messages are not sent again, hopeless ones are not tried for ever, and dead ones can be seen.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use zeroclaw::model::{
    AgentId, DeadReason, DeliveryEntry, DeliveryRoute, DeliveryStatus, NewDelivery, PageLimit,
    TaskDelivery, TaskOrigin, TaskOwnerKind, TaskRun, TaskStatus, Tier,
};
use zeroclaw::service::{Clock, Deliveries, SendFailure, SendLimits, Service, ServiceError};
use zeroclaw::store::global::delivery_queue::DeliveryFilter;
use zeroclaw::store::global::{delivery, task};

use super::{folder, service as open};
use crate::support::process::{part, played_on};
use crate::support::sandbox::Sandbox;
use crate::support::sqlite::block_on;

/// 2026-01-05T10:15:00Z.
const START_MS: i64 = 1_767_608_100_000;
const HOUR_MS: i64 = 60 * 60 * 1_000;
/// Longest wait for a queue that works.
const PATIENCE: Duration = Duration::from_secs(60);

fn to(channel: &str, target: &str) -> NewDelivery {
    let route = DeliveryRoute {
        channel: channel.to_owned(),
        target: target.to_owned(),
        ..DeliveryRoute::default()
    };
    NewDelivery::new(route, format!("{{\"text\":\"to {target}\"}}"))
}

/// A channel that writes down what it is given, and does with it what the target says.
#[derive(Clone, Default)]
struct FakeChannel {
    log: Arc<Mutex<Vec<DeliveryEntry>>>,
    flying: Arc<Mutex<BTreeMap<String, usize>>>,
    most: Arc<Mutex<BTreeMap<String, usize>>>,
}

impl FakeChannel {
    async fn send(self, entry: DeliveryEntry) -> Result<Option<String>, SendFailure> {
        let before = self.count(&entry.route.target);
        self.log.lock().unwrap().push(entry.clone());
        self.enter(&entry.route.channel);
        tokio::time::sleep(Duration::from_millis(2)).await;
        self.leave(&entry.route.channel);
        match entry.route.target.as_str() {
            "never" => Err(SendFailure::permanent("no such chat")),
            "once" if before == 0 => Err(SendFailure::retry("try later")),
            "hang" => std::future::pending().await,
            "panic" => panic!("the channel's own defect"),
            _ => Ok(Some(format!("m-{}", entry.id))),
        }
    }

    fn enter(&self, channel: &str) {
        let mut flying = self.flying.lock().unwrap();
        for name in [channel, "all"] {
            let now = flying.entry(name.to_owned()).or_default();
            *now += 1;
            let mut most = self.most.lock().unwrap();
            let seen = most.entry(name.to_owned()).or_default();
            *seen = (*seen).max(*now);
        }
    }

    fn leave(&self, channel: &str) {
        let mut flying = self.flying.lock().unwrap();
        for name in [channel, "all"] {
            *flying.get_mut(name).unwrap() -= 1;
        }
    }

    fn count(&self, target: &str) -> usize {
        let log = self.log.lock().unwrap();
        log.iter()
            .filter(|entry| entry.route.target == target)
            .count()
    }
}

/// Drives the queue until `is_done`, or fails.
async fn drive_until(
    queue: &Deliveries,
    channel: &FakeChannel,
    limits: SendLimits,
    is_done: impl AsyncFn() -> bool,
) {
    let sending = channel.clone();
    let send = move |entry| sending.clone().send(entry);
    let stop = async {
        let until = tokio::time::Instant::now() + PATIENCE;
        while !is_done().await {
            assert!(tokio::time::Instant::now() < until, "waited in vain");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    queue.drive(limits, send, stop).await;
}

async fn all(queue: &Deliveries) -> Vec<DeliveryEntry> {
    let page = queue
        .list(&DeliveryFilter::default(), None, PageLimit::from(1_000))
        .await;
    page.unwrap().items
}

async fn status(queue: &Deliveries, id: &str) -> DeliveryStatus {
    queue.get(id).await.unwrap().status
}

fn quick() -> SendLimits {
    SendLimits {
        timeout: Duration::from_millis(200),
        ..SendLimits::default()
    }
}

#[tokio::test]
async fn c65_each_message_ends_as_its_channel_says() {
    let dir = folder();
    let clock = Clock::fixed(START_MS);
    let service = open(dir.path(), clock.clone()).await;
    let queue = service.deliveries();
    let mut ids = BTreeMap::new();
    for target in ["fine", "never", "once", "hang", "panic"] {
        let done = queue.enqueue(to("matrix.home", target)).await.unwrap();
        ids.insert(target, done.id);
    }
    let channel = FakeChannel::default();

    drive_until(&queue, &channel, quick(), async || {
        // The one that may pass waits; time goes on for it.
        clock.advance(100);
        let open = [DeliveryStatus::Pending, DeliveryStatus::Sending];
        let all = all(&queue).await;
        all.iter().all(|entry| !open.contains(&entry.status))
    })
    .await;

    let fine = queue.get(&ids["fine"]).await.unwrap();
    assert_eq!(fine.status, DeliveryStatus::Sent);
    assert_eq!(fine.platform_message_id, Some(format!("m-{}", fine.id)));
    let never = queue.get(&ids["never"]).await.unwrap();
    assert_eq!(never.dead_reason, Some(DeadReason::Permanent));
    assert_eq!(never.last_error.as_deref(), Some("no such chat"));
    assert_eq!(status(&queue, &ids["once"]).await, DeliveryStatus::Sent);
    // No answer came: it may have left, so it is not sent again.
    assert_eq!(status(&queue, &ids["hang"]).await, DeliveryStatus::Unknown);
    assert_eq!(status(&queue, &ids["panic"]).await, DeliveryStatus::Unknown);
    for (target, sends) in [
        ("fine", 1),
        ("never", 1),
        ("once", 2),
        ("hang", 1),
        ("panic", 1),
    ] {
        assert_eq!(channel.count(target), sends, "{target}");
    }
    service.close().await;
}

#[tokio::test]
async fn c65_forty_four_messages_at_start_do_not_storm_and_no_channel_waits_for_another() {
    let dir = folder();
    let service = open(dir.path(), Clock::system()).await;
    let queue = service.deliveries();
    for number in 0..40 {
        let target = format!("chat {number}");
        queue.enqueue(to("loud", &target)).await.unwrap();
    }
    for number in 0..4 {
        let target = format!("room {number}");
        queue.enqueue(to("quiet", &target)).await.unwrap();
    }
    let channel = FakeChannel::default();
    let limits = SendLimits {
        all: 3,
        per_channel: 2,
        timeout: PATIENCE,
    };

    drive_until(&queue, &channel, limits, async || {
        let all = all(&queue).await;
        all.iter().all(|entry| entry.status == DeliveryStatus::Sent)
    })
    .await;

    let most = channel.most.lock().unwrap().clone();
    assert!(most["loud"] <= 2 && most["quiet"] <= 2, "{most:?}");
    assert!(most["all"] <= 3, "{most:?}");
    let log = channel.log.lock().unwrap().clone();
    assert_eq!(log.len(), 44);
    let last_quiet = log.iter().rposition(|entry| entry.route.channel == "quiet");
    assert!(
        last_quiet.unwrap() < 20,
        "the quiet channel waited for the loud one: {last_quiet:?}"
    );
    service.close().await;
}

#[tokio::test]
async fn c65_the_queue_works_while_it_runs() {
    let dir = folder();
    let service = open(dir.path(), Clock::system()).await;
    let queue = service.deliveries();
    let beside = Deliveries::open(dir.path(), Clock::system()).await.unwrap();
    let channel = FakeChannel::default();
    let has_put = AtomicBool::new(false);

    drive_until(&queue, &channel, SendLimits::default(), async || {
        if !has_put.swap(true, Ordering::SeqCst) {
            queue.enqueue(to("matrix.home", "here")).await.unwrap();
            // What another process would do: a connection of its own, which wakes nobody here.
            beside.enqueue(to("matrix.home", "there")).await.unwrap();
        }
        channel.count("here") == 1 && channel.count("there") == 1
    })
    .await;

    beside.close().await;
    service.close().await;
}

#[tokio::test]
async fn c65_what_is_too_old_or_failed_too_often_is_dead_and_can_be_sent_anew() {
    let dir = folder();
    let clock = Clock::fixed(START_MS);
    let service = open(dir.path(), clock.clone()).await;
    let queue = service.deliveries();
    let old = queue.enqueue(to("matrix.home", "old")).await.unwrap().id;
    clock.advance(8 * 24 * HOUR_MS);
    let mut few = to("matrix.home", "few");
    few.max_retries = 2;
    let few = queue.enqueue(few).await.unwrap().id;

    // Eight days later: too old before anybody looks at it, so that it is not sent even without a sweep.
    let claims = queue.claim_due(SendLimits::default()).await.unwrap();
    let ids: Vec<_> = claims
        .iter()
        .map(|claim| claim.entry().id.clone())
        .collect();
    assert_eq!(ids, std::slice::from_ref(&few));
    let mut pauses = Vec::new();
    let mut next = claims.into_iter().next();
    while let Some(claim) = next.take() {
        claim.mark_send_started().await.unwrap();
        let failed = claim.fail(SendFailure::retry("busy")).await.unwrap();
        if failed.status == DeliveryStatus::Pending {
            pauses.push(failed.next_attempt_at_ms - clock.now_ms());
            // Not a moment earlier.
            clock.set(failed.next_attempt_at_ms - 1);
            assert!(
                queue
                    .claim_due(SendLimits::default())
                    .await
                    .unwrap()
                    .is_empty()
            );
            clock.advance(1);
            let due = queue.claim_due(SendLimits::default()).await.unwrap();
            next = due.into_iter().next();
        }
    }
    let sweep = queue.sweep().await.unwrap();

    assert_eq!(sweep.expired, 1);
    assert_eq!(pauses.len(), 2);
    assert!(pauses[1] > pauses[0], "{pauses:?}");
    let dead = |id: String| {
        let queue = queue.clone();
        async move { queue.get(&id).await.unwrap().dead_reason }
    };
    assert_eq!(dead(old.clone()).await, Some(DeadReason::Expired));
    assert_eq!(dead(few.clone()).await, Some(DeadReason::Exhausted));
    assert_eq!(queue.retry_dead(None).await.unwrap().messages, 2);
    assert_eq!(status(&queue, &old).await, DeliveryStatus::Pending);
    let due = queue.claim_due(SendLimits::default()).await.unwrap();
    assert_eq!(due.len(), 2);
    drop(due);
    service.close().await;
}

#[tokio::test]
async fn a_message_of_a_known_key_is_enqueued_once() {
    let dir = folder();
    let clock = Clock::fixed(START_MS);
    let service = open(dir.path(), clock.clone()).await;
    let queue = service.deliveries();
    let new = to("matrix.home", "fine").with_key("answer 1");

    let first = queue.enqueue(new.clone()).await.unwrap();
    let claim = queue.claim_due(SendLimits::default()).await.unwrap().pop();
    let claim = claim.unwrap();
    claim.mark_send_started().await.unwrap();
    claim.acknowledge(None).await.unwrap();
    let second = queue.enqueue(new.clone()).await.unwrap();

    assert!(!first.is_repeat && second.is_repeat);
    assert_eq!(first.id, second.id);
    assert!(
        queue
            .claim_due(SendLimits::default())
            .await
            .unwrap()
            .is_empty()
    );
    // A week later the key is forgotten, and the row is gone.
    clock.advance(8 * 24 * HOUR_MS);
    assert_eq!(queue.sweep().await.unwrap().forgotten, 1);
    service.close().await;
}

#[tokio::test]
async fn one_target_gets_one_message_at_a_time_in_order() {
    let dir = folder();
    let service = open(dir.path(), Clock::system()).await;
    let queue = service.deliveries();
    let mut ids = Vec::new();
    for _ in 0..5 {
        let done = queue.enqueue(to("matrix.home", "one chat")).await.unwrap();
        ids.push(done.id);
    }

    let mut sent = Vec::new();
    for _ in 0..5 {
        let mut claims = queue.claim_due(SendLimits::default()).await.unwrap();
        assert_eq!(claims.len(), 1);
        let claim = claims.pop().unwrap();
        claim.mark_send_started().await.unwrap();
        sent.push(claim.acknowledge(None).await.unwrap().id);
    }

    assert_eq!(sent, ids);
    service.close().await;
}

#[tokio::test]
async fn c64_a_clock_that_is_put_back_holds_no_message_up() {
    let dir = folder();
    let clock = Clock::fixed(START_MS);
    let service = open(dir.path(), clock.clone()).await;
    let queue = service.deliveries();
    queue.enqueue(to("matrix.home", "fine")).await.unwrap();

    clock.advance(-24 * HOUR_MS);
    let claims = queue.claim_due(SendLimits::default()).await.unwrap();

    assert_eq!(claims.len(), 1);
    drop(claims);
    service.close().await;
}

#[tokio::test]
async fn a_claim_that_is_let_go_before_the_send_waits_again_and_after_it_is_unknown() {
    let dir = folder();
    let service = open(dir.path(), Clock::system()).await;
    let queue = service.deliveries();
    let before = queue.enqueue(to("a", "before")).await.unwrap().id;
    let during = queue.enqueue(to("b", "during")).await.unwrap().id;
    let mut twice = to("c", "twice");
    twice.may_resend = true;
    let twice = queue.enqueue(twice).await.unwrap().id;

    let claims = queue.claim_due(SendLimits::default()).await.unwrap();
    for claim in &claims {
        if claim.entry().id != before {
            claim.mark_send_started().await.unwrap();
        }
    }
    // Held, they are nobody else's.
    assert_eq!(
        queue.sweep().await.unwrap(),
        zeroclaw::service::DeliverySweep::default()
    );
    drop(claims);
    let sweep = queue.sweep().await.unwrap();

    assert_eq!((sweep.given_back, sweep.unknown), (2, 1));
    assert_eq!(status(&queue, &before).await, DeliveryStatus::Pending);
    assert_eq!(status(&queue, &twice).await, DeliveryStatus::Pending);
    assert_eq!(status(&queue, &during).await, DeliveryStatus::Unknown);
    // Nothing sends it but a decision.
    assert_eq!(queue.retry_dead(None).await.unwrap().messages, 0);
    let confirmed = queue
        .confirm(&during, Some("m-1".to_owned()))
        .await
        .unwrap();
    assert_eq!(confirmed.status, DeliveryStatus::Sent);
    assert!(matches!(
        queue.retry(&during).await,
        Err(ServiceError::Conflict { .. })
    ));
    service.close().await;
}

#[tokio::test]
async fn a_task_counts_as_told_of_once_its_message_is_sent() {
    let dir = folder();
    let service = open(dir.path(), Clock::fixed(START_MS)).await;
    let importer = zeroclaw::service::Importer::new(service);
    let origin = "{\"channel\":\"matrix.home\",\"to\":\"!room\",\"thread_id\":\"7\"}";
    let mut bulk = importer.begin(&Tier::Global).await.unwrap();
    let waiting = TaskDelivery {
        task_id: "t1".to_owned(),
        requester_origin_json: Some(origin.to_owned()),
        is_delivered: false,
        last_notified_event_at_ms: None,
    };
    task::insert_new(&mut bulk.tx(), &[ended()]).await.unwrap();
    delivery::upsert(&mut bulk.tx(), &waiting).await.unwrap();
    bulk.commit().await.unwrap();
    let service = importer.service();
    let queue = service.deliveries();

    let first = queue.enqueue_task_end("t1").await.unwrap().unwrap();
    let second = queue.enqueue_task_end("t1").await.unwrap().unwrap();
    let claim = queue.claim_due(SendLimits::default()).await.unwrap().pop();
    let claim = claim.unwrap();
    let entry = claim.entry().clone();
    claim.mark_send_started().await.unwrap();
    claim.acknowledge(None).await.unwrap();

    assert_eq!(
        (first.id.as_str(), first.is_repeat),
        (entry.id.as_str(), false)
    );
    assert_eq!((second.id, second.is_repeat), (first.id, true));
    assert_eq!(entry.route.thread_id.as_deref(), Some("7"));
    assert!(entry.entry_json.unwrap().contains("all watered"));
    // Told of, it is not told of again.
    assert_eq!(queue.enqueue_task_end("t1").await.unwrap(), None);
    drop(queue);
    importer.close().await;
}

#[tokio::test]
async fn an_end_that_somebody_waits_for_is_told_of_whoever_ended_the_task() {
    let dir = folder();
    let clock = Clock::fixed(START_MS);
    let importer = zeroclaw::service::Importer::new(open(dir.path(), clock.clone()).await);
    let mut bulk = importer.begin(&Tier::Global).await.unwrap();
    let old = TaskRun {
        task_id: "old".to_owned(),
        ended_at_ms: Some(START_MS - 48 * HOUR_MS),
        ..ended()
    };
    task::insert_new(&mut bulk.tx(), &[ended(), old])
        .await
        .unwrap();
    bulk.commit().await.unwrap();
    let queue = importer.service().deliveries();
    let route = to("matrix.home", "!room").route;

    for task_id in ["t1", "old"] {
        queue.tell_of_end(task_id, route.clone()).await.unwrap();
    }
    let first = queue.sweep().await.unwrap();
    let second = queue.sweep().await.unwrap();

    // What ended two days ago surprises who gets it, and stays untold.
    assert_eq!((first.ends, second.ends), (1, 0));
    let claim = queue.claim_due(SendLimits::default()).await.unwrap().pop();
    let claim = claim.unwrap();
    assert_eq!(claim.entry().task_id.as_deref(), Some("t1"));
    claim.mark_send_started().await.unwrap();
    claim.acknowledge(None).await.unwrap();
    assert!(matches!(
        queue.tell_of_end("nothing", route).await,
        Err(ServiceError::NotFound { .. })
    ));
    drop(queue);
    importer.close().await;
}

fn ended() -> TaskRun {
    TaskRun {
        task_id: "t1".to_owned(),
        owner_kind: TaskOwnerKind::Task,
        source_id: None,
        agent_id: Some(AgentId::new("atlas").unwrap()),
        label: None,
        status: TaskStatus::Succeeded,
        status_detail: None,
        created_at_ms: START_MS,
        started_at_ms: Some(START_MS),
        ended_at_ms: Some(START_MS),
        duration_ms: None,
        output: Some("all watered".to_owned()),
        error: None,
        detail_json: None,
        origin: TaskOrigin::default(),
    }
}

/// Sends until it is killed, and says what it sends; "slow" never gets an answer.
#[tokio::test]
#[ignore = "a part of another test"]
async fn the_sender_that_is_killed() {
    let Some(root) = played_on() else { return };
    let queue = Deliveries::open(&root, Clock::system()).await.unwrap();
    let send = |entry: DeliveryEntry| async move {
        {
            let mut out = std::io::stdout().lock();
            writeln!(out, "sends {}", entry.route.target).unwrap();
            out.flush().unwrap();
        }
        if entry.route.target.starts_with("slow") {
            std::future::pending::<()>().await;
        }
        Ok(None)
    };
    let limits = SendLimits {
        timeout: PATIENCE,
        ..SendLimits::default()
    };
    queue.drive(limits, send, std::future::pending()).await;
}

/// Starts a sender beside the holder of the root, and kills it once it sends the slow one.
fn kill_between_send_and_answer(root: &Path) {
    let mut child = part("control::delivery::the_sender_that_is_killed", root)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().ends_with("sends slow")));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c65_a_kill_between_send_and_answer_is_not_followed_by_a_second_send() {
    let dir = folder();
    let service = open(dir.path(), Clock::system()).await;
    let queue = service.deliveries();
    let slow = queue.enqueue(to("a", "slow")).await.unwrap().id;
    let mut twice = to("b", "slow, may come twice");
    twice.may_resend = true;
    let twice = queue.enqueue(twice).await.unwrap().id;
    let root = dir.path().to_owned();
    let killed = tokio::task::spawn_blocking(move || kill_between_send_and_answer(&root));
    killed.await.unwrap();
    let channel = FakeChannel::default();

    drive_until(&queue, &channel, SendLimits::default(), async || {
        status(&queue, &slow).await == DeliveryStatus::Unknown
            && status(&queue, &twice).await == DeliveryStatus::Sent
    })
    .await;

    assert_eq!(channel.count("slow"), 0, "sent again blindly");
    assert_eq!(channel.count("slow, may come twice"), 1);
    service.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_senders_send_each_message_once() {
    let dir = folder();
    let service = open(dir.path(), Clock::system()).await;
    let queue = service.deliveries();
    for number in 0..60 {
        let channel = format!("channel {}", number % 5);
        let target = format!("chat {number}");
        queue.enqueue(to(&channel, &target)).await.unwrap();
    }
    let channel = FakeChannel::default();
    let beside = Deliveries::open(dir.path(), Clock::system()).await.unwrap();

    let all_sent = async || {
        let all = all(&queue).await;
        all.iter().all(|entry| entry.status == DeliveryStatus::Sent)
    };
    tokio::join!(
        drive_until(&queue, &channel, SendLimits::default(), &all_sent),
        drive_until(&queue, &channel, SendLimits::default(), &all_sent),
        drive_until(&beside, &channel, SendLimits::default(), &all_sent),
    );

    for number in 0..60 {
        assert_eq!(channel.count(&format!("chat {number}")), 1, "{number}");
    }
    beside.close().await;
    service.close().await;
}

/// A root with a dead and an unknown message.
fn troubled() -> (Sandbox, String, String) {
    let home = Sandbox::new();
    home.zeroclaw(&["init"]).exits(0);
    let ids = block_on(async {
        let service = Service::open(
            &home.root(),
            Clock::system(),
            zeroclaw::service::HolderKind::Cli,
        )
        .await
        .unwrap();
        let queue = service.deliveries();
        let dead = queue.enqueue(to("a", "never")).await.unwrap().id;
        let unknown = queue.enqueue(to("b", "slow")).await.unwrap().id;
        for claim in queue.claim_due(SendLimits::default()).await.unwrap() {
            claim.mark_send_started().await.unwrap();
            let failure = match claim.entry().id == dead {
                true => SendFailure::permanent("no such chat"),
                false => SendFailure::unknown("no answer"),
            };
            claim.fail(failure).await.unwrap();
        }
        service.close().await;
        (dead, unknown)
    });
    (home, ids.0, ids.1)
}

#[test]
fn c65_dead_letters_are_listed_retried_and_pruned_by_commands() {
    let (home, dead, unknown) = troubled();

    home.zeroclaw(&["delivery", "list", "--status", "dead"])
        .exits(0)
        .says("dead (permanent)")
        .says("no such chat");
    home.zeroclaw(&["delivery", "show", &unknown])
        .exits(0)
        .says("to slow")
        .complains("delivery confirm");
    home.zeroclaw(&["delivery", "retry", "--all"]).exits(10);
    home.zeroclaw(&["delivery", "retry", "nothing", "--yes"])
        .exits(9);
    home.zeroclaw(&["delivery", "prune", "--dry-run"])
        .exits(0)
        .says("to delete: 1 dead messages");
    home.zeroclaw(&["delivery", "prune"]).exits(10);
    let retried = home
        .zeroclaw(&["delivery", "retry", "--all", "--yes", "--json"])
        .exits(0);
    assert_eq!(retried.json(), serde_json::json!({ "messages": 1 }));
    let dropped = home
        .zeroclaw(&["delivery", "drop", &dead, "--yes", "--json"])
        .exits(0)
        .json();
    assert_eq!(dropped["dead_reason"], "given_up");
    let pruned = home
        .zeroclaw(&["delivery", "prune", "--yes", "--json"])
        .exits(0)
        .json();
    assert_eq!(
        pruned,
        serde_json::json!({ "messages": 1, "is_dry_run": false })
    );
    home.zeroclaw(&["delivery", "confirm", &unknown])
        .exits(0)
        .says("sent");
    home.zeroclaw(&["delivery", "confirm", &unknown]).exits(10);
    home.zeroclaw(&["delivery", "show", &dead]).exits(9);
}
