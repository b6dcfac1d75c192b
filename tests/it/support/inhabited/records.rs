//! Rows that are known by a key alone.

use zeroclaw::db::WriteTx;
use zeroclaw::model::{
    AuditEvent, ChannelPairingRequest, ChannelPeer, Commitment, CommitmentStatus, DeliveryRoute,
    FlowEvent, FlowProposal, FlowRun, FlowStatus, InstalledPlugins, KnowledgeEdge, KnowledgeNode,
    NewCommitment, NewDelivery, PairedDevice, PairingRequest, PairingStatus, PluginBinding,
    ProposalStatus, TokenHash, TokenStatus,
};
use zeroclaw::store::global::flow_claim::FlowClaimRow;
use zeroclaw::store::global::{
    audit, channel_pairing, commitment, delivery_queue, device, flow, flow_claim, knowledge,
    pairing, plugin, plugin_blob, plugin_index,
};

use super::{HOSTILE, START_MS};

pub(super) async fn fill(tx: &mut WriteTx<'_>) {
    device::insert(tx, &[tablet()]).await.unwrap();
    pairing(tx).await;
    flow::upsert_run(tx, &run()).await.unwrap();
    flow::insert_events(tx, &[vote()]).await.unwrap();
    assert!(flow_claim::insert(tx, &driver()).await.unwrap());
    flow::upsert_proposal(tx, &proposal()).await.unwrap();
    message(tx).await;
    commitment::insert_new(tx, &promise()).await.unwrap();
    plugins(tx).await;
    knowledge::upsert_node(tx, &node()).await.unwrap();
    knowledge::insert_edges(tx, &[edge()]).await.unwrap();
    audit::insert(tx, &[recall()]).await.unwrap();
}

fn tablet() -> PairedDevice {
    PairedDevice {
        device_id: "device-1".to_owned(),
        display_name: Some(HOSTILE.to_owned()),
        device_type: Some("tablet".to_owned()),
        remote_ip: Some("192.0.2.10".to_owned()),
        capabilities_json: Some("[\"screen\"]".to_owned()),
        paired_at_ms: Some(START_MS),
        last_seen_at_ms: Some(START_MS),
        token: TokenHash::of("zc_made-up"),
        status: TokenStatus::Active,
        status_reason: None,
        revoked_at_ms: None,
    }
}

async fn pairing(tx: &mut WriteTx<'_>) {
    let hash = TokenHash::of("made up");
    let code = pairing::insert_code(tx, hash, None, START_MS, START_MS + 1);
    code.await.unwrap();
    let request = PairingRequest {
        request_id: "request-1".to_owned(),
        display_name: Some(HOSTILE.to_owned()),
        device_type: None,
        remote_ip: None,
        status: PairingStatus::Pending,
        created_at_ms: START_MS,
        expires_at_ms: i64::MAX,
        decided_at_ms: None,
        device_id: None,
    };
    let inserted = pairing::insert_request(tx, &request, hash).await;
    inserted.unwrap();
    let stranger = ChannelPairingRequest {
        peer: peer("42"),
        code: "ZW014D2P".to_owned(),
        created_at_ms: START_MS,
        last_seen_at_ms: START_MS,
        expires_at_ms: i64::MAX,
        meta_json: Some(serde_json::json!({ "name": HOSTILE }).to_string()),
    };
    let inserted = channel_pairing::insert_request(tx, &stranger).await;
    assert!(inserted.unwrap());
    let allowed = channel_pairing::allow(tx, &peer("7"), START_MS).await;
    assert!(allowed.unwrap());
}

fn peer(peer_id: &str) -> ChannelPeer {
    ChannelPeer {
        channel: "telegram".to_owned(),
        account_id: "default".to_owned(),
        peer_id: peer_id.to_owned(),
    }
}

async fn message(tx: &mut WriteTx<'_>) {
    let route = DeliveryRoute {
        channel: "matrix.home".to_owned(),
        target: HOSTILE.to_owned(),
        ..DeliveryRoute::default()
    };
    let new = NewDelivery::new(route, serde_json::json!({ "text": HOSTILE }).to_string());
    let done = delivery_queue::insert_new(tx, "message-1", "outbound", &new, START_MS).await;
    assert!(done.unwrap());
}

fn promise() -> Commitment {
    Commitment {
        id: "commitment-1".to_owned(),
        status: CommitmentStatus::Pending,
        what: NewCommitment {
            agent_id: super::agent("atlas"),
            session_key: "matrix:home".to_owned(),
            channel: "matrix.home".to_owned(),
            account_id: None,
            recipient_id: Some(HOSTILE.to_owned()),
            thread_id: None,
            sender_id: None,
            kind: "open_loop".to_owned(),
            sensitivity: "routine".to_owned(),
            source: "agent_promise".to_owned(),
            reason: HOSTILE.to_owned(),
            suggested_text: HOSTILE.to_owned(),
            dedupe_key: "tide".to_owned(),
            confidence: 0.75,
            due_earliest_ms: START_MS,
            due_latest_ms: START_MS + 1_000,
            due_timezone: "Europe/Lisbon".to_owned(),
            source_message_id: None,
            source_run_id: None,
        },
        created_at_ms: START_MS,
        updated_at_ms: START_MS,
        attempts: 0,
        last_attempt_at_ms: None,
        sent_at_ms: None,
        dismissed_at_ms: None,
        snoozed_until_ms: None,
        expired_at_ms: None,
        detail_json: None,
    }
}

fn driver() -> FlowClaimRow {
    FlowClaimRow {
        flow_id: "flow-1".to_owned(),
        controller_id: "watering".to_owned(),
        owner: HOSTILE.to_owned(),
        token: "claim-1".to_owned(),
        owner_json: "{}".to_owned(),
        claimed_at_ms: START_MS,
    }
}

fn run() -> FlowRun {
    FlowRun {
        flow_id: "flow-1".to_owned(),
        controller_id: "watering".to_owned(),
        revision: 2,
        status: FlowStatus::WaitingApproval,
        status_detail: None,
        trigger_source: Some("cron".to_owned()),
        current_step: Some(1),
        total_steps: Some(3),
        started_at_ms: Some(START_MS),
        waiting_since_ms: Some(START_MS),
        updated_at_ms: START_MS,
        ended_at_ms: None,
        state_json: Some("{}".to_owned()),
        detail_json: None,
    }
}

fn vote() -> FlowEvent {
    FlowEvent {
        event_id: "event-1".to_owned(),
        flow_id: "flow-1".to_owned(),
        seq: 1,
        at_ms: Some(START_MS),
        kind: "gate_vote".to_owned(),
        actor: Some("demo".to_owned()),
        reason: Some(HOSTILE.to_owned()),
        payload_json: "{}".to_owned(),
        detail_json: None,
    }
}

fn proposal() -> FlowProposal {
    FlowProposal {
        proposal_id: "proposal-1".to_owned(),
        controller_id: "watering".to_owned(),
        source_flow_id: Some("flow-1".to_owned()),
        kind: "update".to_owned(),
        status: ProposalStatus::Pending,
        status_detail: None,
        status_reason: Some(HOSTILE.to_owned()),
        created_at_ms: Some(START_MS),
        updated_at_ms: START_MS,
        applied_at_ms: None,
        applied_by: None,
        proposal_json: Some("{}".to_owned()),
        detail_json: None,
    }
}

fn node() -> KnowledgeNode {
    KnowledgeNode {
        node_id: "node-1".to_owned(),
        node_type: "decision".to_owned(),
        title: HOSTILE.to_owned(),
        content: "heating is off at night".to_owned(),
        tags: vec!["house".to_owned()],
        source_project: None,
        created_at_ms: Some(START_MS),
        updated_at_ms: START_MS,
        detail_json: None,
    }
}

fn edge() -> KnowledgeEdge {
    KnowledgeEdge {
        from_id: "node-1".to_owned(),
        to_id: "node-2".to_owned(),
        relation: "uses".to_owned(),
    }
}

fn recall() -> AuditEvent {
    AuditEvent {
        event_id: "audit-1".to_owned(),
        subject: "memory".to_owned(),
        operation: "recall".to_owned(),
        subject_key: None,
        namespace: None,
        session_hint: Some("s1".to_owned()),
        agent_id: Some(super::agent("atlas")),
        at_ms: START_MS,
        at_text: Some("2026-01-05T11:15:00+01:00".to_owned()),
        metadata: Some(HOSTILE.to_owned()),
        detail_json: None,
    }
}

async fn plugins(tx: &mut WriteTx<'_>) {
    let value = serde_json::json!(HOSTILE).to_string();
    let sticker = plugin::NewEntry {
        plugin_id: "telegram",
        namespace: "sticker-cache",
        entry_key: HOSTILE,
        value_json: &value,
        now_ms: START_MS,
        expires_at_ms: None,
        claim_owner: None,
    };
    plugin::put(tx, sticker, true).await.unwrap();
    let picture = plugin_blob::NewBlob {
        plugin_id: "telegram",
        namespace: "pictures",
        entry_key: "heron",
        metadata_json: "null",
        blob: &[0, 255, 42],
        now_ms: START_MS,
        expires_at_ms: None,
    };
    plugin_blob::put(tx, picture).await.unwrap();
    let binding = PluginBinding {
        plugin_root: "/opt/plugins/telegram".to_owned(),
        channel: "telegram".to_owned(),
        account_id: "main".to_owned(),
        plugin_id: "telegram".to_owned(),
        plugin_name: Some(HOSTILE.to_owned()),
        approved_at_ms: START_MS,
    };
    plugin_index::approve(tx, &binding).await.unwrap();
    let index = InstalledPlugins {
        index_key: "default".to_owned(),
        version: 1,
        host_contract_version: "1".to_owned(),
        compat_registry_version: "1".to_owned(),
        migration_version: 1,
        policy_hash: "none".to_owned(),
        generated_at_ms: START_MS,
        refresh_reason: None,
        install_records_json: "[]".to_owned(),
        plugins_json: "[{\"id\":\"telegram\"}]".to_owned(),
        diagnostics_json: "[]".to_owned(),
        warning: Some(HOSTILE.to_owned()),
        updated_at_ms: START_MS,
    };
    plugin_index::put_installed(tx, &index).await.unwrap();
}
