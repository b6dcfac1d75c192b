//! One record of a transcript as an event: its readable text, its time, what it follows.
//!
//! The record itself is kept as it was written; what later versions call otherwise (a role, a text that stands alone
//! for its only block) is told by the columns beside it.

use serde_json::{Map, Value};

use super::index::ms;
use crate::doctor::units::LegacyTime;

/// Newest version of a header whose records are known.
pub(crate) const KNOWN_VERSION: i64 = 4;

/// A header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Id of its session.
    pub(crate) id: Option<String>,
    /// Version, 1 where it has none.
    pub(crate) version: i64,
}

/// A record as far as an event needs it.
#[derive(Debug)]
pub(crate) struct Parsed {
    /// Its type.
    pub(crate) event_type: String,
    /// Its id, where it has one.
    pub(crate) id: Option<String>,
    /// What it follows: `None` where it does not say, empty where it says nothing comes before it.
    pub(crate) parent: Option<String>,
    /// When, where it says so.
    pub(crate) at_ms: Option<i64>,
    /// Who spoke.
    pub(crate) role: Option<String>,
    /// What a person would read.
    pub(crate) text: String,
    /// Key of a repeated append.
    pub(crate) idempotency_key: Option<String>,
    /// The header it is.
    pub(crate) header: Option<Header>,
    /// Where it moves the conversation to, for a record that does nothing else; empty for before the first.
    pub(crate) moves_to: Option<String>,
}

/// Takes a record apart; the error says why it is none.
pub(crate) fn parse(value: &Value) -> Result<Parsed, &'static str> {
    let fields = value.as_object().ok_or("no object")?;
    if fields.contains_key("traceSchema") {
        return Err("a line of a trajectory, which is no transcript");
    }
    let message = fields.get("message").and_then(Value::as_object);
    let event_type = match fields.get("type").and_then(Value::as_str) {
        Some(word) => word.to_owned(),
        None if message.is_some() => "message".to_owned(),
        None => return Err("it has no type"),
    };
    let is_header = event_type == "session";
    let text_of = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
    let id = text_of("id").filter(|id| !id.is_empty() && !is_header);
    let parent = match fields.get("parentId") {
        Some(Value::String(parent)) => Some(parent.clone()),
        Some(Value::Null) if id.is_some() => Some(String::new()),
        _ => None,
    };
    let moves_to = (event_type == "leaf").then(|| text_of("targetId").unwrap_or_default());
    Ok(Parsed {
        header: is_header.then(|| Header {
            id: text_of("id").or_else(|| text_of("sessionId")),
            version: fields.get("version").and_then(Value::as_i64).unwrap_or(1),
        }),
        id,
        parent,
        at_ms: at_ms(fields, message),
        role: message.and_then(role),
        text: text(&event_type, fields, message),
        idempotency_key: message.and_then(|message| super::index::text(message, "idempotencyKey")),
        event_type,
        moves_to,
    })
}

fn at_ms(fields: &Map<String, Value>, message: Option<&Map<String, Value>>) -> Option<i64> {
    let told = fields.get("timestamp").and_then(Value::as_str);
    told.and_then(LegacyTime::parse)
        .map(LegacyTime::ms)
        .or_else(|| ms(fields, "timestamp"))
        .or_else(|| message.and_then(|message| ms(message, "timestamp")))
}

fn role(message: &Map<String, Value>) -> Option<String> {
    match message.get("role")?.as_str()? {
        // Version 2 and before.
        "hookMessage" => Some("custom".to_owned()),
        "" => None,
        role => Some(role.to_owned()),
    }
}

fn text(
    event_type: &str,
    fields: &Map<String, Value>,
    message: Option<&Map<String, Value>>,
) -> String {
    let of = |fields: &Map<String, Value>, name: &str| {
        fields
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let Some(message) = message else {
        return match event_type {
            "compaction" | "branch_summary" => of(fields, "summary"),
            "session_info" => of(fields, "name"),
            "label" => of(fields, "label"),
            "custom_message" => content(fields.get("content")),
            _ => String::new(),
        };
    };
    if message
        .get("role")
        .is_some_and(|role| role == "bashExecution")
    {
        let (command, output) = (of(message, "command"), of(message, "output"));
        return [command, output].join("\n").trim_end().to_owned();
    }
    let told = content(message.get("content"));
    match told.is_empty() {
        true => Some(of(message, "summary"))
            .filter(|summary| !summary.is_empty())
            .unwrap_or_else(|| of(message, "errorMessage")),
        false => told,
    }
}

/// The text of a content: a text, a block, or blocks of which some are text.
fn content(content: Option<&Value>) -> String {
    let block = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Object(block) => block.get("text").and_then(Value::as_str).map(str::to_owned),
        _ => None,
    };
    match content {
        Some(Value::Array(blocks)) => {
            let texts: Vec<String> = blocks.iter().filter_map(block).collect();
            texts.join("\n")
        }
        Some(one) => block(one).unwrap_or_default(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_record_of_every_version_tells_who_what_and_when() {
        let old = parse(
            &json!({"type": "message", "timestamp": "2026-01-01T00:00:00Z",
            "message": {"role": "hookMessage", "content": "hi"}}),
        )
        .unwrap();
        assert_eq!(
            (old.role.as_deref(), old.text.as_str(), old.id, old.parent),
            (Some("custom"), "hi", None, None)
        );
        let blocks = json!([{"type": "text", "text": "a"}, {"type": "image", "data": "x"}, {"type": "text", "text": "b"}]);
        let new = parse(&json!({"type": "message", "id": "2", "parentId": "1",
            "message": {"role": "toolResult", "content": blocks, "timestamp": 7}}))
        .unwrap();
        assert_eq!(
            (new.text.as_str(), new.at_ms, new.parent.as_deref()),
            ("a\nb", Some(7), Some("1"))
        );
        let shell = json!({"message": {"role": "bashExecution", "command": "ls", "output": "f\n"}});
        assert_eq!(parse(&shell).unwrap().text, "ls\nf");
        let failed =
            json!({"message": {"role": "assistant", "content": [], "errorMessage": "too long"}});
        assert_eq!(parse(&failed).unwrap().text, "too long");
    }

    #[test]
    fn a_header_and_a_move_are_told_from_what_was_said() {
        let header = parse(&json!({"type": "session", "sessionId": "s"})).unwrap();
        assert_eq!(
            header.header,
            Some(Header {
                id: Some("s".to_owned()),
                version: 1
            })
        );
        let moved =
            parse(&json!({"type": "leaf", "id": "9", "parentId": "8", "targetId": null})).unwrap();
        assert_eq!(moved.moves_to.as_deref(), Some(""));
        assert!(parse(&json!({"traceSchema": "x", "type": "t"})).is_err());
        assert!(parse(&json!({"id": "x"})).is_err() && parse(&json!(7)).is_err());
    }
}
