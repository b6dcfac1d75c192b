//! The same vocabulary over HTTP, for paired devices alone.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};

use super::host::{Host, PATIENCE, fresh};
use crate::support::sandbox::Sandbox;
use crate::support::sqlite::block_on;

const TOKEN: &str = "zc_a_token_of_a_test";

/// A root that answers on a port of its own, with one paired device.
fn paired() -> (Sandbox, u16) {
    let sandbox = fresh();
    let port = free_port();
    configure(&sandbox, &format!("listen = \"127.0.0.1:{port}\""));
    let hash = zeroclaw::model::TokenHash::of(TOKEN).to_hex();
    block_on(async {
        use sqlx::Connection as _;
        let path = sandbox.root().join("state/state.sqlite");
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
        let mut conn = sqlx::SqliteConnection::connect_with(&options)
            .await
            .unwrap();
        let insert = sqlx::query(
            "INSERT INTO device_auth_tokens (token_sha256, device_id, status) VALUES (?1, 'd1', 'active')",
        );
        insert.bind(hash).execute(&mut conn).await.unwrap();
        conn.close().await.unwrap();
    });
    (sandbox, port)
}

pub(super) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

pub(super) fn configure(sandbox: &Sandbox, http: &str) {
    let text = format!("schema_version = 3\n[state.http]\n{http}\n");
    std::fs::write(sandbox.root().join("config.toml"), text).unwrap();
}

pub(super) fn send(
    port: u16,
    method: &str,
    path: &str,
    token: Option<&str>,
    body: &str,
) -> TcpStream {
    let since = std::time::Instant::now();
    let mut stream = loop {
        match TcpStream::connect(("127.0.0.1", port)) {
            Ok(stream) => break stream,
            Err(error) => assert!(since.elapsed() < PATIENCE, "{error}"),
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    };
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let bearer = token
        .map(|token| format!("Authorization: Bearer {token}\r\n"))
        .unwrap_or_default();
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n{bearer}Content-Length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    stream
}

/// Status and body of one request.
pub(super) fn ask(
    port: u16,
    method: &str,
    path: &str,
    token: Option<&str>,
    body: &str,
) -> (u16, Value) {
    let mut text = String::new();
    send(port, method, path, token, body)
        .read_to_string(&mut text)
        .unwrap();
    let status = text.split(' ').nth(1).unwrap().parse().unwrap();
    let body = text.split_once("\r\n\r\n").unwrap().1;
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}

#[test]
fn who_has_no_token_learns_whether_it_is_well_and_nothing_else() {
    let (sandbox, port) = paired();
    let host = Host::start(&sandbox);

    assert_eq!(
        ask(port, "GET", "/health", None, ""),
        (200, json!({"status": "ok"}))
    );
    for token in [None, Some("zc_another"), Some("")] {
        for (method, path) in [
            ("POST", "/rpc"),
            ("GET", "/api/status"),
            ("GET", "/api/events"),
            ("POST", "/admin/reload"),
        ] {
            let (status, body) = ask(port, method, path, token, "");
            assert_eq!(
                (status, &body["error"]["data"]["kind"]),
                (401, &json!("refused")),
                "{path}"
            );
        }
    }
    host.stop();
}

#[test]
fn a_paired_device_asks_what_the_socket_is_asked() {
    let (sandbox, port) = paired();
    let host = Host::start(&sandbox);
    let rpc = |call: Value| ask(port, "POST", "/rpc", Some(TOKEN), &call.to_string());

    let (status, made) = rpc(
        json!({"jsonrpc": "2.0", "id": 7, "method": "agents.create", "params": {"agent": "atlas"}}),
    );
    assert_eq!(
        (status, &made["id"], &made["result"]["agent_id"]),
        (200, &json!(7), &json!("atlas"))
    );
    let (status, missing) =
        rpc(json!({"jsonrpc": "2.0", "id": 8, "method": "agents.show", "params": {"agent": "x"}}));
    assert_eq!((status, &missing["error"]["code"]), (200, &json!(-32_009)));
    assert_eq!(rpc(json!("noise")).1["error"]["code"], -32_600);
    let (status, report) = ask(port, "GET", "/api/status", Some(TOKEN), "");
    assert_eq!(
        (status, report["tiers"].as_array().unwrap().len()),
        (200, 2)
    );
    host.stop();
}

#[test]
fn events_come_as_they_happen_and_end_with_the_daemon() {
    let (sandbox, port) = paired();
    let host = Host::start(&sandbox);
    let mut stream = BufReader::new(send(port, "GET", "/api/events", Some(TOKEN), ""));
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        stream.read_line(&mut line).unwrap();
    }

    let (status, reloaded) = ask(port, "POST", "/admin/reload", Some(TOKEN), "");

    assert_eq!(status, 200);
    let mut told = String::new();
    while !told.contains("data:") || !told.ends_with("\n\n") {
        stream.read_line(&mut told).unwrap();
    }
    let generation = &reloaded["generation"];
    assert!(
        told.contains(&format!(
            "{{\"kind\":\"reloaded\",\"generation\":{generation}}}"
        )),
        "{told}"
    );
    assert!(told.contains("id: ") || told.contains("id:"), "{told}");
    host.stop();
    stream.read_to_string(&mut told).unwrap();
}

#[test]
fn an_address_that_others_reach_needs_more_than_its_name() {
    let (sandbox, port) = paired();
    configure(&sandbox, &format!("listen = \"0.0.0.0:{port}\""));
    let host = Host::start(&sandbox);
    let mut caller = host.caller();

    let health = caller.call("health", json!({})).unwrap();

    assert_eq!(health["status"], "degraded");
    assert!(
        health["problems"][0]
            .as_str()
            .unwrap()
            .contains("allow_remote"),
        "{health}"
    );
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
    // Set right, it serves without a restart.
    configure(&sandbox, &format!("listen = \"127.0.0.1:{port}\""));
    caller.call("config.reload", json!({})).unwrap();
    assert_eq!(ask(port, "GET", "/health", None, "").0, 200);
    host.stop();
}
