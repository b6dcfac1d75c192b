//! What is said on the socket, and what strangers get for an answer.

use std::time::Duration;

use serde_json::{Value, json};

use super::host::{Host, fresh};
use crate::support::rng::Rng;

#[test]
fn initialize_comes_first_and_tells_what_there_is() {
    let sandbox = fresh();
    let host = Host::start(&sandbox);

    let mut hasty = host.stranger();
    let error = hasty.call("status", json!({})).unwrap_err();
    assert_eq!(error["code"], -32_600);
    assert_eq!(hasty.rest(), "", "the connection is closed");

    let mut caller = host.stranger();
    let hello = caller.call("initialize", json!({})).unwrap();
    assert_eq!(
        (&hello["protocol"], &hello["pid"]),
        (&json!(1), &json!(host.pid()))
    );
    let methods = hello["methods"].as_array().unwrap();
    assert!(methods.contains(&json!("sessions.list")));
    assert!(caller.call("initialize", json!({})).is_err());
    let status = caller.call("status", json!({})).unwrap();
    assert_eq!(status["root"], sandbox.root().display().to_string());

    let mut newer = host.stranger();
    assert!(newer.call("initialize", json!({"protocol": 99})).is_err());
    host.stop();
}

#[test]
fn what_is_wrong_with_a_call_is_told_and_the_connection_goes_on() {
    let sandbox = fresh();
    let host = Host::start(&sandbox);
    let mut caller = host.caller();

    for (method, params, code) in [
        ("no.such", json!({}), -32_601),
        ("agents.show", json!({}), -32_602),
        ("agents.show", json!({"agent": 7}), -32_602),
        ("agents.show", json!([1]), -32_602),
        ("agents.show", json!({"agent": "nobody"}), -32_009),
        ("events.subscribe", json!({"cursor": "x"}), -32_602),
    ] {
        let error = caller.call(method, params).unwrap_err();
        assert_eq!(error["code"], code, "{error}");
    }
    let missing = caller
        .call("agents.show", json!({"agent": "nobody"}))
        .unwrap_err();
    assert_eq!(missing["data"]["kind"], "not_found");
    assert!(
        missing["data"]["hint"]
            .as_str()
            .unwrap()
            .contains("agents list")
    );
    // A notification has no answer, whatever it says.
    caller.send(b"{\"jsonrpc\":\"2.0\",\"method\":\"no.such\"}\n\n");
    caller.send(b"{\"jsonrpc\":\"1.0\",\"id\":\"a\",\"method\":\"status\"}\n");
    let wrong = caller.next().unwrap();
    assert_eq!(
        (&wrong["id"], &wrong["error"]["code"]),
        (&json!("a"), &json!(-32_600))
    );
    assert!(caller.call("health", json!({})).is_ok());
    host.stop();
}

#[test]
fn what_is_committed_is_told_to_who_subscribed_and_can_be_resumed() {
    let sandbox = fresh();
    let host = Host::start(&sandbox);
    let mut caller = host.caller();
    let first = caller.call("events.subscribe", json!({})).unwrap();

    let generation = caller.call("config.reload", json!({})).unwrap()["generation"].clone();

    let event = caller.told.pop().or_else(|| caller.next()).unwrap();
    assert_eq!(event["method"], "event");
    assert_eq!(event["params"]["subscription"], first["subscription"]);
    assert_eq!(
        event["params"]["event"],
        json!({"kind": "reloaded", "generation": generation})
    );

    // Another connection goes on where this one began, and hears the same.
    let mut later = host.caller();
    later
        .call("events.subscribe", json!({"cursor": first["cursor"]}))
        .unwrap();
    let again = later.told.pop().or_else(|| later.next()).unwrap();
    assert_eq!(again["params"]["event"], event["params"]["event"]);
    assert_eq!(again["params"]["cursor"], event["params"]["cursor"]);

    // A cursor of another daemon cannot be gone on from: that is told.
    later
        .call("events.subscribe", json!({"cursor": "1-1:5"}))
        .unwrap();
    let gap = later.told.pop().or_else(|| later.next()).unwrap();
    assert_eq!(
        gap["params"]["event"],
        json!({"kind": "gap", "missed": null})
    );
    host.stop();
}

#[test]
fn a_hang_up_reads_the_configuration_anew_and_a_broken_one_changes_nothing() {
    let sandbox = fresh();
    let host = Host::start(&sandbox);
    let mut caller = host.caller();
    caller.call("events.subscribe", json!({})).unwrap();
    let generation = |health: &Value| health["generation"].as_u64().unwrap();
    let before = generation(&caller.call("health", json!({})).unwrap());

    host.signal("-HUP");
    let event = caller.next().unwrap();
    assert_eq!(event["params"]["event"]["generation"], before + 1);

    std::fs::write(sandbox.root().join("config.toml"), "this is [ no").unwrap();
    assert!(caller.call("config.reload", json!({})).is_err());
    let health = caller.call("health", json!({})).unwrap();
    assert_eq!(
        (generation(&health), &health["status"]),
        (before + 1, &json!("degraded"))
    );

    std::fs::remove_file(sandbox.root().join("config.toml")).unwrap();
    caller.call("config.reload", json!({})).unwrap();
    assert_eq!(caller.call("health", json!({})).unwrap()["status"], "ok");
    host.stop();
}

/// What a stranger might send: calls cut, bent and mixed with bytes of all kinds.
fn noise(rng: &mut Rng) -> Vec<u8> {
    let calls: [&[u8]; 6] = [
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocol\":1}}\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"status\"}\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"sessions.list\",\"params\":{\"with_archived\":true,\"limit\":3}}\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"events.subscribe\",\"params\":{}}\n",
        b"{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel\",\"params\":{\"id\":3}}\n",
        b"[[[[[[[[[[[[[[[[[[{\"a\":\"\\ud800\"}",
    ];
    let mut bytes = calls[0].to_vec();
    if rng.below(4) == 0 {
        bytes.clear();
    }
    for _ in 0..rng.below(6) {
        let mut call = calls[rng.below(6) as usize].to_vec();
        for _ in 0..rng.below(3) {
            let at = rng.below(call.len() as u64) as usize;
            match rng.below(4) {
                0 => call.truncate(at),
                1 => call[at] = rng.below(256) as u8,
                2 => call.insert(at, b"{}[]\",:\\\n\0"[rng.below(10) as usize]),
                _ => call.extend(std::iter::repeat_n(b'[', 300)),
            }
            if call.is_empty() {
                break;
            }
        }
        bytes.extend(call);
    }
    bytes
}

#[test]
fn noise_is_answered_with_json_rpc_and_hurts_nobody() {
    let seconds = match std::env::var("ZEROCLAW_FUZZ_SECONDS") {
        Ok(text) => text.parse().unwrap(),
        Err(_) => 3,
    };
    let seed = std::env::var("ZEROCLAW_FUZZ_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or(7);
    println!("seed {seed}");
    let mut rng = Rng::new(seed);
    let sandbox = fresh();
    let host = Host::start(&sandbox);
    let mut steady = host.caller();
    let resident = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", host.pid())).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmRSS"))
            .unwrap();
        line.split_whitespace()
            .nth(1)
            .unwrap()
            .parse::<u64>()
            .unwrap()
    };
    let mut warm = None;
    let mut rounds = 0;
    let since = std::time::Instant::now();
    while since.elapsed() < Duration::from_secs(seconds) {
        let mut stranger = host.stranger();
        stranger.send(&noise(&mut rng));
        stranger.no_more();
        for line in stranger.rest().lines() {
            let message: Value = serde_json::from_str(line).unwrap();
            assert_eq!(message["jsonrpc"], "2.0", "{line}");
        }
        rounds += 1;
        if rounds == 200 {
            warm = Some(resident());
        }
    }

    assert_eq!(steady.call("health", json!({})).unwrap()["status"], "ok");
    if let Some(warm) = warm {
        let now = resident();
        assert!(
            now < warm + 32 * 1024,
            "grew from {warm} to {now} KiB in {rounds} rounds"
        );
    }
    host.stop();
}

#[test]
fn a_message_without_end_is_refused_at_its_bound() {
    let sandbox = fresh();
    let host = Host::start(&sandbox);
    let mut endless = host.caller();

    let chunk = vec![b'x'; 1 << 20];
    let went = (0..80).take_while(|_| endless.send(&chunk)).count();

    assert!(went < 80);
    let told = endless.rest();
    assert!(told.is_empty() || told.contains("longer than"), "{told}");
    assert!(host.caller().call("health", json!({})).is_ok());
    host.stop();
}
