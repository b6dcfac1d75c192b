//! An event for reading: what was said, and what is folded away because it was done rather than said.

use serde_json::Value;

use crate::model::Event;

/// Most bytes of one part; the rest is left out, and said so.
const MAX_PART_BYTES: usize = 64 * 1024;
/// JSON above this is not taken apart.
const MAX_JSON_BYTES: usize = 1024 * 1024;

/// A piece of an event.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// What was said.
    Said(String),
    /// What was done.
    Folded {
        /// One line about it.
        title: String,
        /// All of it.
        body: String,
    },
}

/// Takes an event apart.
pub(super) fn parts(event: &Event) -> Vec<Part> {
    let mut parts = Vec::new();
    if !event.text.is_empty() {
        let text = cut(&event.text);
        parts.push(match event.role.as_deref() {
            Some("tool" | "toolResult" | "tool_result" | "function") => Part::Folded {
                title: "tool result".to_owned(),
                body: text,
            },
            _ => Part::Said(text),
        });
    }
    if let Some(json) = &event.event_json {
        of_json(json, &mut parts);
    }
    parts
}

fn of_json(json: &str, parts: &mut Vec<Part>) {
    if json.len() > MAX_JSON_BYTES {
        let title = format!("event data, {} bytes", json.len());
        let body = "Too large for this page; the export as lines holds it.".to_owned();
        parts.push(Part::Folded { title, body });
        return;
    }
    let Ok(value) = serde_json::from_str::<Value>(json) else {
        let body = cut(json);
        parts.push(folded("event data", body));
        return;
    };
    let before = parts.len();
    let message = value.get("message").unwrap_or(&value);
    for block in message
        .get("content")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        parts.extend(of_block(block));
    }
    for call in message
        .get("tool_calls")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        parts.push(of_call(call));
    }
    if parts.len() == before && message.get("content").is_none() {
        parts.push(folded("event data", pretty(&value)));
    }
}

/// A block of a message; text is nothing new, the event's own text has it.
fn of_block(block: &Value) -> Option<Part> {
    let kind = block.get("type").and_then(Value::as_str).unwrap_or("block");
    match kind {
        "text" | "input_text" | "output_text" => None,
        "tool_use" | "tool_call" | "toolCall" | "function_call" => Some(of_call(block)),
        "tool_result" | "toolResult" | "function_call_output" => {
            Some(folded("tool result", pretty(block)))
        }
        "thinking" | "reasoning" => {
            let text = block.get(kind).or_else(|| block.get("text"));
            let text = text.and_then(Value::as_str).map(cut);
            Some(folded("thinking", text.unwrap_or_else(|| pretty(block))))
        }
        other => Some(folded(other, pretty(block))),
    }
}

fn of_call(call: &Value) -> Part {
    let inner = call.get("function").unwrap_or(call);
    let name = inner
        .get("name")
        .and_then(Value::as_str)
        .unwrap_or("unnamed");
    let given = ["input", "arguments", "args"]
        .iter()
        .find_map(|field| inner.get(*field));
    let body = match given {
        Some(Value::String(text)) => cut(text),
        Some(value) => pretty(value),
        None => pretty(call),
    };
    folded(&format!("tool call: {name}"), body)
}

fn folded(title: &str, body: String) -> Part {
    Part::Folded {
        title: title.chars().take(200).collect(),
        body,
    }
}

fn pretty(value: &Value) -> String {
    cut(&serde_json::to_string_pretty(value).unwrap_or_default())
}

fn cut(text: &str) -> String {
    if text.len() <= MAX_PART_BYTES {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(MAX_PART_BYTES);
    let left = text.len() - end;
    format!(
        "{}\n… {left} more bytes; the export as lines holds them.",
        &text[..end]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(role: &str, text: &str, json: Option<&str>) -> Event {
        Event {
            seq: 1,
            event_id: "e".to_owned(),
            event_type: "message".to_owned(),
            role: Some(role.to_owned()),
            parent_id: None,
            created_at_ms: 0,
            text: text.to_owned(),
            event_json: json.map(str::to_owned),
        }
    }

    fn titles(event: &Event) -> Vec<String> {
        let titles = parts(event).into_iter().map(|part| match part {
            Part::Said(text) => format!("said {text}"),
            Part::Folded { title, .. } => title,
        });
        titles.collect()
    }

    #[test]
    fn what_was_done_is_folded_and_what_was_said_is_not() {
        let calls = r#"{"content":[{"type":"text","text":"hi"},{"type":"thinking","thinking":"hm"},
            {"type":"tool_use","name":"shell","input":{"a":1}},{"type":"image","data":"x"}],
            "tool_calls":[{"function":{"name":"read","arguments":"{}"}}]}"#;

        assert_eq!(titles(&event("user", "hi", None)), ["said hi"]);
        assert_eq!(titles(&event("tool", "out", None)), ["tool result"]);
        assert_eq!(
            titles(&event("assistant", "hi", Some(calls))),
            [
                "said hi",
                "thinking",
                "tool call: shell",
                "image",
                "tool call: read"
            ]
        );
        assert_eq!(
            titles(&event("user", "", Some("{\"a\":1}"))),
            ["event data"]
        );
        assert_eq!(titles(&event("user", "", Some("broken"))), ["event data"]);
    }

    #[test]
    fn what_is_too_large_is_cut_at_a_character_and_says_so() {
        let large = "é".repeat(MAX_PART_BYTES);
        let Part::Said(text) = &parts(&event("user", &large, None))[0] else {
            panic!("not said");
        };
        let json = format!("\"{}\"", "x".repeat(MAX_JSON_BYTES));

        assert!(text.ends_with("more bytes; the export as lines holds them."));
        assert!(
            titles(&event("user", "", Some(&json)))[0].starts_with("event data, 1048578 bytes")
        );
    }
}
