//! How a device comes to have a token, and who does not.

use std::io::{BufRead, BufReader};

use serde_json::{Value, json};

use super::host::{Host, fresh};
use super::http::{ask, configure, free_port, send};
use crate::support::sandbox::Sandbox;

/// A root that answers on a port of its own, and that nobody is paired with.
fn unpaired() -> (Sandbox, u16, Host) {
    let sandbox = fresh();
    sandbox.zeroclaw(&["agents", "create", "atlas"]).exits(0);
    let port = free_port();
    configure(&sandbox, &format!("listen = \"127.0.0.1:{port}\""));
    let host = Host::start(&sandbox);
    (sandbox, port, host)
}

fn code(sandbox: &Sandbox, more: &[&str]) -> String {
    let args = [&["devices", "pair", "--json"][..], more].concat();
    let issued = sandbox.zeroclaw(&args).exits(0).json();
    issued["code"].as_str().unwrap().to_owned()
}

fn pair(port: u16, code: &str) -> (u16, Value) {
    let body = json!({"code": code, "name": "phone", "device_type": "mobile"});
    ask(port, "POST", "/pair", None, &body.to_string())
}

fn rpc(port: u16, token: &str, method: &str, params: Value) -> Value {
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let (status, mut answer) = ask(port, "POST", "/rpc", Some(token), &call.to_string());
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["error"], Value::Null, "{answer}");
    answer["result"].take()
}

#[test]
fn a_device_with_a_code_pairs_once_and_does_a_full_round() {
    let (sandbox, port, host) = unpaired();
    let code = code(&sandbox, &["--name", "Desk"]);

    let (status, paired) = pair(port, &code.to_lowercase().replace('-', " "));
    let (again, _) = pair(port, &code);

    assert_eq!((status, again), (200, 401), "{paired}");
    let token = paired["token"].as_str().unwrap();
    let made = json!({"agent": "atlas", "session": {"key": "desk"}});
    let session = rpc(port, token, "sessions.create", made);
    let events = "/api/events?session=".to_owned() + session["session_id"].as_str().unwrap();
    let tail = send(port, "GET", &events, Some(token), "");
    let mut tail = BufReader::new(tail).lines().map(Result::unwrap);
    assert!(tail.any(|line| line.is_empty()), "the head ends");
    let message = json!({"event_type": "message", "role": "user", "text": "about a heron"});
    let append = json!({"agent": "atlas", "session": {"key": "desk"}, "events": [message]});
    rpc(port, token, "sessions.append", append);
    let told = tail.find(|line| line.contains("session.appended")).unwrap();
    assert!(told.contains("\"last_seq\":1"), "{told}");
    let hits = rpc(port, token, "sessions.search", json!({"text": "heron"}));
    assert_eq!(hits["hits"][0]["session_key"], "desk", "{hits}");
    let listed = sandbox.zeroclaw(&["devices", "list", "--json"]).exits(0);
    assert_eq!(listed.json()[0]["display_name"], "Desk");
    assert!(!listed.stdout.contains(token));

    let id = paired["device_id"].as_str().unwrap();
    sandbox.zeroclaw(&["devices", "revoke", id]).exits(0);
    assert_eq!(ask(port, "GET", "/api/status", Some(token), "").0, 401);
    drop(tail);
    host.stop();
}

#[test]
fn five_wrong_codes_void_those_that_are_open() {
    let (sandbox, port, host) = unpaired();
    let right = code(&sandbox, &[]);

    for _ in 0..5 {
        let (status, refused) = pair(port, "0000-0000");
        assert_eq!(
            (status, &refused["error"]["data"]["kind"]),
            (401, &json!("refused"))
        );
    }

    assert_eq!(pair(port, &right).0, 401);
    // A new one is as good as the first was, and a daemon that starts anew forgets no wrong one.
    let right = code(&sandbox, &[]);
    for _ in 0..4 {
        assert_eq!(pair(port, "0000-0000").0, 401);
    }
    host.stop();
    let host = Host::start(&sandbox);
    assert_eq!(pair(port, "0000-0000").0, 401);
    assert_eq!(pair(port, &right).0, 401);
    host.stop();
}

#[test]
fn a_code_opens_for_its_time_only() {
    let (sandbox, port, host) = unpaired();
    let late = code(&sandbox, &["--expires", "1s"]);
    std::thread::sleep(std::time::Duration::from_millis(1_100));

    assert_eq!(pair(port, &late).0, 401);

    for wrong in ["0s", "25h", "soon"] {
        let args = ["devices", "pair", "--expires", wrong];
        sandbox.zeroclaw(&args).exits(2);
    }
    host.stop();
}

#[test]
fn a_device_without_a_code_waits_for_a_person() {
    let (sandbox, port, host) = unpaired();
    let asked = || {
        let (status, asked) = ask(port, "POST", "/pair/request", None, r#"{"name": "tablet"}"#);
        assert_eq!(status, 202, "{asked}");
        asked
    };
    let collect = |asked: &Value| {
        let body = json!({"request_id": asked["request_id"], "secret": asked["secret"]});
        ask(port, "POST", "/pair/collect", None, &body.to_string())
    };
    let (first, second) = (asked(), asked());
    let id = |asked: &Value| asked["request_id"].as_str().unwrap().to_owned();

    assert_eq!(collect(&first), (200, json!({"status": "pending"})));
    let listed = sandbox.zeroclaw(&["devices", "requests"]).exits(0);
    assert!(listed.stdout.contains(&id(&first)), "{}", listed.stdout);
    assert!(!listed.stdout.contains(first["secret"].as_str().unwrap()));
    sandbox
        .zeroclaw(&["devices", "approve", &id(&first)])
        .exits(0);
    sandbox
        .zeroclaw(&["devices", "deny", &id(&second)])
        .exits(0);
    sandbox
        .zeroclaw(&["devices", "approve", &id(&second)])
        .exits(10);
    sandbox.zeroclaw(&["devices", "approve", "none"]).exits(9);

    let stolen = json!({"request_id": id(&first), "secret": second["secret"]});
    assert_eq!(collect(&stolen).0, 401);
    let (_, paired) = collect(&first);
    assert_eq!(paired["status"], "paired");
    let token = paired["token"].as_str().unwrap();
    assert_eq!(ask(port, "GET", "/api/status", Some(token), "").0, 200);
    // Once.
    assert_eq!(collect(&first), (200, json!({"status": "denied"})));
    assert_eq!(collect(&second), (200, json!({"status": "denied"})));
    host.stop();
}

#[test]
fn too_many_devices_that_ask_are_told_to_come_later() {
    let (_sandbox, port, host) = unpaired();
    let request = || ask(port, "POST", "/pair/request", None, "{}").0;

    let told: Vec<_> = (0..17).map(|_| request()).collect();

    assert_eq!(told[..16], [202; 16]);
    assert_eq!(told[16], 429);
    host.stop();
}

#[test]
fn a_stranger_on_a_channel_is_let_in_by_the_owner_alone() {
    let (sandbox, _port, host) = unpaired();
    let mut caller = host.caller();
    let peer = json!({"channel": "telegram", "account_id": "default", "peer_id": "42"});
    let mut standing = || {
        caller
            .call("channels.standing", json!({"peer": peer}))
            .unwrap()
    };

    let first = standing();
    let again = standing();

    assert_eq!(first["standing"], "asked");
    assert_eq!(again["code"], first["code"]);
    let code = first["code"].as_str().unwrap();
    sandbox
        .zeroclaw(&["channels", "requests"])
        .exits(0)
        .says(code);
    sandbox
        .zeroclaw(&["channels", "approve", "matrix", code])
        .exits(9);
    sandbox
        .zeroclaw(&["channels", "approve", "telegram", code])
        .exits(0);
    assert_eq!(standing(), json!({"standing": "allowed"}));
    sandbox
        .zeroclaw(&["channels", "allowed"])
        .exits(0)
        .says("42");
    sandbox
        .zeroclaw(&["channels", "remove", "telegram", "42"])
        .exits(0);
    sandbox
        .zeroclaw(&["channels", "remove", "telegram", "42"])
        .exits(9);
    assert_eq!(standing()["standing"], "asked");
    // Nobody is everybody.
    sandbox
        .zeroclaw(&["channels", "allow", "telegram", "*"])
        .exits(2);
    host.stop();
}

#[test]
fn the_client_in_python_does_a_full_round() {
    let python = std::process::Command::new("python3")
        .arg("--version")
        .output();
    if !python.is_ok_and(|ran| ran.status.success()) {
        // The same round is done by `a_device_with_a_code_pairs_once_and_does_a_full_round`.
        return;
    }
    let (sandbox, port, host) = unpaired();
    let code = code(&sandbox, &[]);
    let client = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/client.py");

    let ran = std::process::Command::new("python3")
        .args([client, &format!("http://127.0.0.1:{port}"), &code, "atlas"])
        .output()
        .unwrap();

    let told = String::from_utf8_lossy(&ran.stdout);
    let wrong = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{told}{wrong}");
    assert!(
        told.contains("event 1 says a heron stands by the harbour"),
        "{told}"
    );
    assert!(told.contains("messages found: 1"), "{told}");
    host.stop();
}
