//! What agents have promised: due in its window, and never after.

use zeroclaw::model::{AgentId, Commitment, CommitmentStatus, NewCommitment, PageLimit};
use zeroclaw::service::{Clock, Commitments, HolderKind, Service, ServiceError};

use super::{NOW, folder, service};
use crate::support::sandbox::Sandbox;
use crate::support::sqlite::block_on;

const HOUR_MS: i64 = 60 * 60 * 1_000;

/// To ask, between one hour and three from now.
fn ask(key: &str, now_ms: i64) -> NewCommitment {
    NewCommitment {
        agent_id: AgentId::new("atlas").unwrap(),
        session_key: "matrix:home".to_owned(),
        channel: "matrix.home".to_owned(),
        account_id: None,
        recipient_id: Some("@mira:example.org".to_owned()),
        thread_id: None,
        sender_id: None,
        kind: "event_check_in".to_owned(),
        sensitivity: "routine".to_owned(),
        source: "agent_promise".to_owned(),
        reason: "the exam".to_owned(),
        suggested_text: "How was the exam?".to_owned(),
        dedupe_key: key.to_owned(),
        confidence: 0.75,
        due_earliest_ms: now_ms + HOUR_MS,
        due_latest_ms: now_ms + 3 * HOUR_MS,
        due_timezone: "Europe/Lisbon".to_owned(),
        source_message_id: None,
        source_run_id: None,
    }
}

async fn due(commitments: &Commitments) -> Vec<String> {
    let found = commitments.due(None, PageLimit::default()).await.unwrap();
    found
        .into_iter()
        .map(|found| found.what.dedupe_key)
        .collect()
}

async fn make(commitments: &Commitments, key: &str) -> Commitment {
    let made = commitments.create(ask(key, NOW)).await.unwrap();
    assert!(!made.is_repeat);
    made.commitment
}

#[tokio::test]
async fn a_commitment_is_due_in_its_window_and_expires_after_it() {
    let dir = folder();
    let clock = Clock::fixed(NOW);
    let service = service(dir.path(), clock.clone()).await;
    let commitments = service.commitments();
    let made = make(&commitments, "exam").await;

    let mut seen = Vec::new();
    for at in [HOUR_MS - 1, HOUR_MS, 3 * HOUR_MS, 3 * HOUR_MS + 1] {
        clock.set(NOW + at);
        seen.push(due(&commitments).await.len());
    }
    let expired = commitments.expire().await.unwrap();

    assert_eq!(seen, [0, 1, 1, 0]);
    assert_eq!(expired, 1);
    let after = commitments.get(&made.id).await.unwrap();
    assert_eq!(after.status, CommitmentStatus::Expired);
    // Past its window, nothing brings it back: neither a clock put back nor an attempt.
    clock.set(NOW + 2 * HOUR_MS);
    assert!(due(&commitments).await.is_empty());
    assert!(matches!(
        commitments.attempt(&made.id).await,
        Err(ServiceError::Conflict { .. })
    ));
    service.close().await;
}

#[tokio::test]
async fn a_commitment_can_be_put_off_within_its_window_kept_or_dropped() {
    let dir = folder();
    let clock = Clock::fixed(NOW);
    let service = service(dir.path(), clock.clone()).await;
    let commitments = service.commitments();
    let later = make(&commitments, "later").await;
    let kept = make(&commitments, "kept").await;
    let dropped = make(&commitments, "dropped").await;
    clock.advance(HOUR_MS);
    assert_eq!(due(&commitments).await.len(), 3);

    commitments.attempt(&kept.id).await.unwrap();
    let tried = commitments.attempt(&kept.id).await.unwrap();
    commitments.fulfil(&kept.id).await.unwrap();
    commitments.dismiss(&dropped.id).await.unwrap();
    let until_ms = clock.now_ms() + HOUR_MS;
    commitments.snooze(&later.id, until_ms).await.unwrap();

    assert_eq!(tried.attempts, 2);
    assert!(due(&commitments).await.is_empty());
    let of_the_day = commitments.due_within(None, NOW, NOW + 24 * HOUR_MS, PageLimit::default());
    assert_eq!(of_the_day.await.unwrap().len(), 1);
    clock.set(until_ms);
    assert_eq!(due(&commitments).await, ["later"]);
    let too_late = later.what.due_latest_ms + 1;
    assert!(matches!(
        commitments.snooze(&later.id, too_late).await,
        Err(ServiceError::Invalid { .. })
    ));
    service.close().await;
}

#[tokio::test]
async fn a_conversation_has_one_living_commitment_of_a_key() {
    let dir = folder();
    let service = service(dir.path(), Clock::fixed(NOW)).await;
    let commitments = service.commitments();
    let beside = Commitments::open(dir.path(), Clock::fixed(NOW))
        .await
        .unwrap();
    let first = make(&commitments, "exam").await;

    let again = beside.create(ask("exam", NOW)).await.unwrap();
    commitments.dismiss(&first.id).await.unwrap();
    let anew = beside.create(ask("exam", NOW)).await.unwrap();

    assert!(again.is_repeat);
    assert_eq!(again.commitment.id, first.id);
    assert!(!anew.is_repeat);
    for wrong in [
        NewCommitment {
            due_latest_ms: NOW,
            ..ask("x", NOW)
        },
        NewCommitment {
            confidence: f64::NAN,
            ..ask("x", NOW)
        },
    ] {
        let refused = commitments.create(wrong).await;
        assert!(matches!(refused, Err(ServiceError::Invalid { .. })));
    }
    beside.close().await;
    service.close().await;
}

#[test]
fn commitments_are_listed_shown_and_dismissed_by_commands() {
    let home = Sandbox::new();
    home.zeroclaw(&["init"]).exits(0);
    let made = block_on(async {
        let opened = Service::open(&home.root(), Clock::system(), HolderKind::Cli).await;
        let service = opened.unwrap();
        let made = make(&service.commitments(), "exam").await;
        service.close().await;
        made
    });

    home.zeroclaw(&[
        "commitments",
        "list",
        "--agent",
        "atlas",
        "--status",
        "pending",
    ])
    .exits(0)
    .says("the exam");
    let dismissed = home
        .zeroclaw(&["commitments", "dismiss", &made.id, "--json"])
        .exits(0)
        .json();
    assert_eq!(dismissed["status"], "dismissed");
    home.zeroclaw(&["commitments", "dismiss", &made.id])
        .exits(10);
    home.zeroclaw(&["commitments", "show", &made.id])
        .exits(0)
        .says("How was the exam?");
    home.zeroclaw(&["commitments", "show", "nothing"]).exits(9);
}
