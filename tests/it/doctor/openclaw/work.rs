//! Jobs of every age, their runs, devices and messages that were not sent.

use serde_json::{Value, json};

use super::super::state::State;
use super::{codes, has, import};
use crate::support::openclaw::{NOON, home, lines};
use crate::support::sandbox::Sandbox;
use crate::support::sqlite;

fn jobs(sandbox: &Sandbox, columns: &str) -> Vec<Vec<String>> {
    sqlite::rows(
        &State::of(sandbox.root()).global(),
        &format!("SELECT {columns} FROM cron_jobs ORDER BY job_id"),
    )
}

#[test]
fn jobs_of_every_age_come_in_and_none_is_switched_on() {
    let sandbox = Sandbox::in_memory();
    let there = home(sandbox.home().join("there"));
    let all = json!([
        {"jobId": 1, "schedule": "0 7 * * *", "message": "bare", "deliver": false},
        {"id": "2", "enabled": "false", "schedule": {"cron": "0 8 * * *"}, "payload": {"kind": "SYSTEMEVENT", "text": "said off"}},
        {"id": "3", "agentId": "nobody", "schedule": {"everyMs": "60000"}, "message": "of nobody"},
        {"id": "4", "schedule": {"at": "2026-01-01T00:00:00Z"}, "text": "had its time", "state": {"lastRunAtMs": 1_767_225_600_000_i64}},
        {"id": "5", "schedule": {"kind": "cron", "expr": "* * * * *", "tz": "Europe/Berlin", "staggerMs": 500}, "sessionTarget": "isolated",
            "payload": {"kind": "agentTurn", "message": "whole", "model": "m", "timeoutSeconds": 60, "toolsAllow": ["*"]},
            "delivery": {"mode": "announce", "channel": "telegram", "to": -100, "threadId": 7}, "state": {"nextRunAtMs": 9, "runningAtMs": 8}},
        null,
    ]);
    there.file("cron/jobs.json", format!("// mine\n{all}").as_bytes());
    there.file("cron/jobs.json.bak", b"[]");

    let report = import(&sandbox, there.root(), 0);

    assert_eq!(
        jobs(
            &sandbox,
            "job_id, enabled, schedule_kind, payload_kind, ifnull(agent_id, '-')"
        ),
        [
            ["1", "1", "cron", "agent_turn", "main"],
            ["2", "0", "cron", "system_event", "main"],
            ["3", "0", "every", "agent_turn", "-"],
            ["4", "0", "at", "system_event", "main"],
            ["5", "1", "cron", "agent_turn", "main"],
        ]
    );
    let whole = sqlite::rows(
        &State::of(sandbox.root()).global(),
        "SELECT delivery_to, delivery_thread_id, timeout_ms, stagger_ms, ifnull(payload_tools_allow_json, '-'), catch_up FROM cron_jobs WHERE job_id = '5'",
    );
    assert_eq!(whole, [["-100", "7", "60000", "500", "-", "skip"]]);
    for code in ["unowned", "past-job", "claim-dropped", "zone-recorded"] {
        assert!(has(&report, code), "{code}: {:?}", codes(&report));
    }
}

#[test]
fn a_job_that_cannot_be_one_is_refused_with_its_reason_and_the_others_come_in() {
    let sandbox = Sandbox::in_memory();
    let there = home(sandbox.home().join("there"));
    let all = json!({"version": 1, "jobs": [
        {"id": "a"}, {"id": "b", "schedule": {"kind": "at", "at": "soon"}, "text": "t"}, {"id": "c", "schedule": "x"},
        {"id": "d", "schedule": "0 7 * * *", "payload": {"kind": "command", "command": "rm"}}, {"id": "e", "schedule": "0 7 * * *", "text": "t"},
    ]});
    there.file("cron/jobs.json", all.to_string().as_bytes());

    let report = import(&sandbox, there.root(), 1);

    let refused = report["sources"][0]["refused"].as_array().unwrap();
    let reasons: Vec<&str> = refused
        .iter()
        .map(|refused| refused["reason"].as_str().unwrap())
        .collect();
    assert_eq!(
        reasons,
        [
            "it has no schedule",
            "its schedule has no readable time",
            "it does not say what it does",
            "it does something that this release cannot"
        ]
    );
    assert_eq!(jobs(&sandbox, "job_id"), [["e"]]);
}

#[test]
fn state_beside_the_jobs_wins_and_counts_only_for_the_schedule_it_speaks_of() {
    let sandbox = Sandbox::in_memory();
    let there = home(sandbox.home().join("there"));
    let job = |id: &str| json!({"id": id, "schedule": {"kind": "every", "everyMs": 60_000}, "text": "t", "state": {"nextRunAtMs": 1, "lastStatus": "error"}});
    there.file(
        "cron/jobs.json",
        json!({"version": 1, "jobs": [job("same"), job("other")]})
            .to_string()
            .as_bytes(),
    );
    let state = |identity: &Value| json!({"scheduleIdentity": identity.to_string(), "state": {"nextRunAtMs": 77, "lastRunStatus": "ok"}});
    let same =
        json!({"version": 1, "enabled": true, "schedule": {"kind": "every", "everyMs": 60_000}});
    let other = json!({"version": 1, "enabled": true, "schedule": {"kind": "every", "everyMs": 5}});
    let all = json!({"version": 1, "jobs": {"same": state(&same), "other": state(&other), "ghost": state(&same)}});
    there.file("cron/jobs-state.json", all.to_string().as_bytes());

    import(&sandbox, there.root(), 0);

    assert_eq!(
        jobs(
            &sandbox,
            "job_id, ifnull(next_run_at_ms, '-'), last_run_status"
        ),
        [["other", "-", "ok"], ["same", "77", "ok"]]
    );
}

#[test]
fn runs_of_jobs_come_in_by_their_status_also_of_jobs_that_are_gone() {
    let sandbox = Sandbox::in_memory();
    let there = home(sandbox.home().join("there"));
    let run = |ts: i64, more: Value| {
        let mut line = json!({"ts": NOON + ts, "jobId": "gone", "action": "finished", "runAtMs": NOON, "sessionKey": "agent:main:cron:gone"});
        line.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        line
    };
    let mut bytes = lines(&[
        run(
            1,
            json!({"status": "ok", "delivered": false, "summary": "told nobody"}),
        ),
        run(2, json!({"status": "error", "error": "no"})),
        run(3, json!({"status": "skipped"})),
        run(4, json!({"action": "started"})),
        json!({"ts": 1, "jobId": "another"}),
    ]);
    bytes.extend(b"{\"ts\":1");
    there.file("cron/runs/gone.jsonl", &bytes);

    let report = import(&sandbox, there.root(), 1);

    let global = State::of(sandbox.root()).global();
    let found = sqlite::rows(
        &global,
        "SELECT status, agent_id FROM task_runs ORDER BY ended_at_ms",
    );
    assert_eq!(
        found,
        [
            ["succeeded", "main"],
            ["failed", "main"],
            ["cancelled", "main"]
        ]
    );
    let source = &report["sources"][0];
    assert_eq!(
        (
            source["refused"].as_array().unwrap().len(),
            source["partial_tails"].as_array().unwrap().len()
        ),
        (1, 1)
    );
}

#[test]
fn devices_are_known_and_let_in_by_a_person_alone() {
    let sandbox = Sandbox::in_memory();
    let there = home(sandbox.home().join("there"));
    let token = |token: &str, more: Value| {
        let mut found = json!({"token": token, "scopes": ["operator.read"], "createdAtMs": NOON});
        found
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        found
    };
    let all = json!({
        "d1": {"deviceId": "d1", "publicKey": "pk", "displayName": "Phone", "createdAtMs": 1, "approvedAtMs": 2,
            "tokens": {"node": token("token-one", json!({})), "operator": token("token-two", json!({"revokedAtMs": 5}))}},
        "d2": {"deviceId": "d2", "publicKey": "pk", "createdAtMs": 1, "approvedAtMs": 2, "tokens": {}},
    });
    there.file("devices/paired.json", all.to_string().as_bytes());
    there.file("devices/pending.json", b"{}");

    let report = import(&sandbox, there.root(), 1);

    let global = State::of(sandbox.root()).global();
    let found = sqlite::rows(
        &global,
        "SELECT status, device_id FROM device_auth_tokens ORDER BY 1",
    );
    assert_eq!(found, [["revoked", "d1"], ["unverified", "d1"]]);
    assert!(has(&report, "unverified-device"));
    let said = format!(
        "{report}{}",
        sandbox.zeroclaw(&["devices", "list"]).exits(0).stdout
    );
    assert!(
        said.contains("Phone") && !said.contains("token-one"),
        "{said}"
    );
}

#[test]
fn messages_that_were_not_sent_are_not_sent_by_coming_in() {
    let sandbox = Sandbox::in_memory();
    let there = home(sandbox.home().join("there"));
    let message = |id: &str, more: Value| {
        let mut found = json!({"id": id, "enqueuedAt": NOON, "channel": "telegram", "to": "42", "payloads": [{"text": "hi"}], "retryCount": 1});
        found
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        found.to_string().into_bytes()
    };
    there.file(
        "delivery-queue/waits.json",
        &message("waits", json!({"threadId": null})),
    );
    there.file(
        "delivery-queue/begun.json",
        &message("begun", json!({"recoveryState": "send_attempt_started"})),
    );
    there.file("delivery-queue/sent.json", &message("sent", json!({})));
    there.file("delivery-queue/sent.delivered", b"");
    there.file(
        "delivery-queue/failed/dead.json",
        &message("dead", json!({"retryCount": 5})),
    );
    there.file("session-delivery-queue/session.json", &message("session", json!({"kind": "systemEvent", "sessionKey": "agent:main:main", "channel": null, "to": null})));
    there.file("delivery-queue/other.json", &message("name", json!({})));

    let report = import(&sandbox, there.root(), 1);

    let global = State::of(sandbox.root()).global();
    let found = sqlite::rows(
        &global,
        "SELECT id, queue_name, status, ifnull(dead_reason, '-') FROM delivery_queue_entries ORDER BY 1",
    );
    assert_eq!(
        found,
        [
            ["begun", "outbound", "unknown", "-"],
            ["dead", "outbound", "dead", "exhausted"],
            ["session", "session-delivery", "dead", "expired"],
            ["waits", "outbound", "dead", "expired"],
        ]
    );
    assert!(has(&report, "held-delivery") && has(&report, "unreadable-source"));
}
