//! `docs/rpc.md` is made from the code, and says what it says.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::host::{Host, fresh};

const INTRODUCTION: &str = "\
# What the daemon understands

Made from `src/service/request.rs`; `ZEROCLAW_BLESS=1 cargo test --test it daemon::described` makes it anew.

JSON-RPC 2.0 on the socket, one message a line, at most 64 MiB. `initialize` comes first, and tells protocol, limits and methods:

```json
{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocol\":1}}
{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"agents.list\"}
```

Answers come in the order in which they are ready; whoever wants one thing after the other waits for the answer. What a write
answers is on disk. A result is what the command of that name prints with `--json`: see [cli-json.md](cli-json.md).

An error has JSON-RPC's code, or -32000 less the exit code of the command that fails so (-32004 busy, -32009 not found), and in
`data` the `kind`, the `causes` and a `hint`.

| of the connection | parameters | what it does |
|---|---|---|
| `initialize` | `protocol` | the first word |
| `$/cancel` | `id` | forgets a call under way; a write that had begun is done all the same |
| `events.subscribe` | `agent`, `session`, `cursor` | tells what happens from now on, or behind a cursor, as `event` notifications |
| `events.unsubscribe` | `subscription` | no more of it |
| `health` | | how the daemon is |
| `config.reload` | | reads the configuration anew; gives its generation |

An `event` notification holds `subscription`, `cursor` and `event`: `session.appended` (with `last_seq`), `session.moved`,
`session.changed`, `session.deleted`, `task.changed`, `cron.run`, `delivery.changed`, `health`, `reloaded`, or `gap`: `missed` events are gone, `null` where nobody knows how many. It
says that there is something new; the rows say what.

Over HTTP, where `[state.http]` has `listen = \"127.0.0.1:42680\"`: `POST /rpc` takes one call, `GET /api/status`, `GET /api/events`
(server-sent, `agent`, `session` and `cursor` as in `events.subscribe`, ids are cursors), `POST /admin/reload`, each with
`Authorization: Bearer` and the token of a paired device; `GET /health` without. An address that others reach needs
`allow_remote = true`, and a paired device.

A device comes to have a token over HTTP too, with `Content-Type: application/json`: `POST /pair` takes the `code` that
`zeroclaw devices pair` shows, and `name` and `device_type` if it likes, and gives `device_id` and `token`. Without a code
`POST /pair/request` gives a `request_id` and a `secret`; once a person has said `zeroclaw devices approve`, `POST /pair/collect` with
both gives `status` `paired` and the token, `pending` before. A token is told once. `examples/client.py` does a full round.

";

/// A method, as the text of the type has it.
#[derive(Default)]
struct Method {
    name: String,
    doc: Vec<String>,
    fields: Vec<Field>,
}

#[derive(Default)]
struct Field {
    name: String,
    kind: String,
    doc: Vec<String>,
    /// Whether a call may leave it out.
    is_optional: bool,
}

impl Method {
    /// A call of it with all that it must have.
    fn example(&self) -> Value {
        let needed = self.fields.iter().filter(|field| !field.is_optional);
        let params: Map<String, Value> = needed
            .map(|field| (field.name.clone(), field.example()))
            .collect();
        json!({"jsonrpc": "2.0", "id": 2, "method": self.name, "params": params})
    }
}

impl Field {
    fn example(&self) -> Value {
        match (self.kind.as_str(), self.name.as_str()) {
            ("AgentId", "to") => json!("birch"),
            ("AgentId", _) => json!("atlas"),
            ("bool", _) => json!(true),
            ("u64" | "i64" | "usize", _) => json!(1_000),
            ("String", "session") => json!("desk"),
            ("String", "text") => json!("heron"),
            ("String", "event") => json!("1"),
            ("String", "channel") => json!("telegram"),
            ("String", "actor") => json!("me"),
            ("String", name) => json!(format!("{name}-1")),
            ("VfsNamespace", _) => json!("default"),
            ("VfsPath", "to") => json!("/notes/yesterday.md"),
            ("VfsPath", _) => json!("/notes/today.md"),
            ("Content", _) => json!({"text": "a heron by the harbour"}),
            ("ChannelPeer", _) => {
                json!({"channel": "telegram", "account_id": "default", "peer_id": "42"})
            }
            ("SessionTarget", _) => json!({"key": "desk"}),
            ("Vec<AppendEvent>", _) => {
                json!([{"event_type": "message", "role": "user", "text": "a heron by the harbour"}])
            }
            ("SessionPatch", _) => json!({"display_name": "Desk"}),
            ("NewMemory", _) => json!({"key": "bird", "content": "a heron by the harbour"}),
            ("CostGrouping", _) => json!("model"),
            ("MediaRules", _) => json!({"max_age_days": 30, "max_bytes": 0}),
            (kind, name) => panic!("no example of {name}: {kind}"),
        }
    }
}

/// The methods, from the text of the type.
fn methods(source: &str) -> Vec<Method> {
    let body = source.split_once("pub enum Request {").unwrap().1;
    let body = body.split_once("\n}\n").unwrap().0;
    let (mut all, mut method, mut field) = (Vec::new(), Method::default(), Field::default());
    let mut inside = false;
    for line in body.lines() {
        let word = line.trim();
        let depth = line.len() - line.trim_start().len();
        if depth == 4 && word.starts_with("///") {
            method
                .doc
                .push(word.trim_start_matches("///").trim().to_owned());
        } else if let Some(rest) = word.strip_prefix("#[serde(rename = \"") {
            if depth == 4 {
                method.name = rest.split('"').next().unwrap().to_owned();
            }
        } else if inside && depth == 8 && word.starts_with("///") {
            field
                .doc
                .push(word.trim_start_matches("///").trim().to_owned());
        } else if inside && depth == 8 && word.starts_with("#[serde(default") {
            field.is_optional = true;
        } else if inside && depth == 8 && !word.starts_with('#') && word.contains(": ") {
            let (name, kind) = word.trim_end_matches(',').split_once(": ").unwrap();
            (field.name, field.kind) = (name.to_owned(), kind.to_owned());
            field.is_optional |= kind.starts_with("Option<");
            method.fields.push(std::mem::take(&mut field));
        } else if depth == 4 && word.ends_with('{') {
            inside = true;
        }
        let is_unit = !inside && word.starts_with(char::is_uppercase) && word.ends_with(',');
        if depth == 4 && (word == "}," || is_unit) {
            all.push(std::mem::take(&mut method));
            inside = false;
        }
    }
    all
}

/// What the page says of the methods.
fn described(methods: &[Method]) -> String {
    let mut told = String::new();
    for method in methods {
        writeln!(told, "## `{}`\n\n{}\n", method.name, method.doc.join(" ")).unwrap();
        for field in &method.fields {
            let kind = field.kind.replace("Option<", "").replace('>', "");
            let optional = if field.is_optional { "optional " } else { "" };
            let doc = field.doc.join(" ");
            writeln!(told, "- `{}` ({optional}{kind}): {doc}", field.name).unwrap();
        }
        if !method.fields.is_empty() {
            told.push('\n');
        }
        writeln!(told, "```json\n{}\n```\n", method.example()).unwrap();
    }
    told
}

#[test]
fn the_description_of_the_methods_is_that_of_the_code() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = std::fs::read_to_string(root.join("src/service/request.rs")).unwrap();
    let wanted = format!("{INTRODUCTION}{}", described(&methods(&source)).trim_end()) + "\n";
    let path = root.join("docs/rpc.md");
    if std::env::var_os("ZEROCLAW_BLESS").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    }

    let told = std::fs::read_to_string(&path).unwrap_or_default();

    assert!(told == wanted, "docs/rpc.md is old: see its first lines");
}

#[test]
fn every_method_that_is_described_is_known_and_the_other_way_round() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = std::fs::read_to_string(root.join("src/service/request.rs")).unwrap();
    let methods = methods(&source);
    let described: Vec<_> = methods.iter().map(|method| &method.name).collect();
    let sandbox = fresh();
    let host = Host::start(&sandbox);

    let hello = host.stranger().call("initialize", json!({})).unwrap();

    assert_eq!(hello["methods"], json!(described));
    // The example of each is understood, here and there: what is wrong with it is what is in the root.
    let mut caller = host.caller();
    for method in &methods {
        let mut example = method.example();
        let params = example["params"].take();
        if let Err(error) = caller.call(&method.name, params.clone()) {
            assert_ne!(error["code"], -32_601, "{}: {error}", method.name);
        }
        let told = match method.fields.is_empty() {
            true => json!({"method": method.name}),
            false => json!({"method": method.name, "params": params}),
        };
        if let Err(error) = serde_json::from_value::<zeroclaw::service::Request>(told.clone()) {
            panic!("{told}: {error}");
        }
    }
    host.stop();
}
