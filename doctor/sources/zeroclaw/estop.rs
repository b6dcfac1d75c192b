//! `estop-state.json`: the emergency stop.
//!
//! Written by: `zeroclaw estop` since 0.1.2, in the root or where `security.estop.state_file` says. A line:
//! `{"kill_all":true,"network_kill":false,"blocked_domains":[],"frozen_tools":["shell"],"updated_at":"…"}`.
//! It is a person's word: it stays where it is, an import neither lifts nor makes one, and while one is in force it
//! is told. What cannot be read counts as a stop of everything, as it did for the old program.

use std::io::Read as _;
use std::path::Path;

use serde_json::Value;

/// More than such a file holds, bytes.
const MAX_BYTES: u64 = 1024 * 1024;

/// What the stop in a file forbids; `None` where it forbids nothing, or there is no such file.
pub(crate) fn in_force(path: &Path) -> Option<String> {
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(_) => return Some(UNREADABLE.to_owned()),
    };
    let mut bytes = Vec::new();
    let read = file.take(MAX_BYTES).read_to_end(&mut bytes);
    match read.ok().and_then(|_| serde_json::from_slice(&bytes).ok()) {
        Some(state) => forbidden(&state),
        None => Some(UNREADABLE.to_owned()),
    }
}

const UNREADABLE: &str = "everything, because it cannot be read";

fn forbidden(state: &Value) -> Option<String> {
    let flag = |name: &str| match &state[name] {
        Value::Null | Value::Bool(false) => false,
        // Whatever else stands there was meant to stop something.
        _ => true,
    };
    let list = |name: &str, what: &str| {
        let count = match &state[name] {
            Value::Null => 0,
            Value::Array(list) => list.len(),
            _ => return Some(format!("{what} that cannot be read")),
        };
        (count > 0).then(|| format!("{count} {what}"))
    };
    if !state.is_object() {
        return Some(UNREADABLE.to_owned());
    }
    let told: Vec<String> = [
        flag("kill_all").then(|| "everything".to_owned()),
        flag("network_kill").then(|| "the network".to_owned()),
        list("blocked_domains", "domains"),
        list("frozen_tools", "tools"),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!told.is_empty()).then(|| told.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_off_is_off_and_what_cannot_be_read_stops_everything() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stop");
        assert_eq!(in_force(&path), None);
        for (text, told) in [
            (
                r#"{"kill_all":false,"network_kill":false,"blocked_domains":[],"frozen_tools":[]}"#,
                None,
            ),
            ("{}", None),
            (r#"{"kill_all":true}"#, Some("everything")),
            (r#"{"kill_all":"yes"}"#, Some("everything")),
            (
                r#"{"network_kill":true,"blocked_domains":["a.example"],"frozen_tools":["shell","web"]}"#,
                Some("the network, 1 domains, 2 tools"),
            ),
            (
                r#"{"frozen_tools":"shell"}"#,
                Some("tools that cannot be read"),
            ),
            ("", Some(UNREADABLE)),
            ("[]", Some(UNREADABLE)),
            (r#"{"kill_all":fa"#, Some(UNREADABLE)),
        ] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(in_force(&path).as_deref(), told, "{text}");
        }
    }
}
