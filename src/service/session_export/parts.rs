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
    let json = event.event_json.as_deref();
    match tool_title(event, json) {
        Some(title) => parts.push(folded(&title, cut(&event.text))),
        None if !event.text.is_empty() => parts.push(Part::Said(cut(&event.text))),
        None => {}
    }
    if let Some(json) = json {
        of_json(json, &mut parts);
    }
    parts
}

/// What to call an event that is a call of a tool or its result; `None` for all others.
fn tool_title(event: &Event, json: Option<&str>) -> Option<String> {
    let word = match (event.role.as_deref(), event.event_type.as_str()) {
        _ if event.text.is_empty() => return None,
        (None, "tool_call") => "tool call",
        (None, "tool_result") => "tool result",
        (Some("tool" | "toolResult" | "tool_result" | "function"), _) => "tool result",
        _ => return None,
    };
    // Which tool, and how it went, is told beside the text.
    let about = json.filter(|json| json.len() <= MAX_JSON_BYTES);
    let about: Value = about
        .and_then(|json| serde_json::from_str(json).ok())
        .unwrap_or_default();
    let field = |name: &str| about.get(name).and_then(Value::as_str);
    let mut title = word.to_owned();
    if let Some(name) = field("tool_name").filter(|name| *name != "unknown") {
        title.push_str(&format!(": {name}"));
    }
    if let Some(outcome) = field("outcome").filter(|outcome| *outcome != "unknown") {
        title.push_str(&format!(" ({outcome})"));
    }
    Some(title)
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
    if let Some(text) = message.get("reasoning_content").and_then(Value::as_str) {
        parts.push(folded("thinking", cut(text)));
    }
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
    if parts.len() == before && message.get("content").is_none() && !is_told(&value) {
        parts.push(folded("event data", pretty(&value)));
    }
}

/// Whether all there is stands in the title of a call or a result, but for the number that ties the two.
fn is_told(value: &Value) -> bool {
    let told = ["tool_call_id", "tool_name", "outcome"];
    let fields = value.as_object();
    fields.is_some_and(|fields| {
        fields.contains_key("tool_name") && fields.keys().all(|name| told.contains(&name.as_str()))
    })
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
            cut: None,
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
        let thought = r#"{"reasoning_content":"hm"}"#;
        assert_eq!(
            titles(&event("assistant", "hi", Some(thought))),
            ["said hi", "thinking"]
        );
    }

    #[test]
    fn a_call_and_its_result_are_folded_under_the_name_of_the_tool() {
        let of = |event_type: &str, text: &str, json: &str| {
            let event_type = event_type.to_owned();
            titles(&Event {
                role: None,
                event_type,
                ..event("", text, Some(json))
            })
        };
        let call = r#"{"tool_call_id":"c1","tool_name":"shell"}"#;
        let failed = r#"{"tool_call_id":"c1","tool_name":"shell","outcome":"error"}"#;
        let lost = r#"{"tool_call_id":"c9","tool_name":"unknown","outcome":"unknown"}"#;
        let more = r#"{"tool_name":"shell","exit_code":3}"#;

        assert_eq!(of("tool_call", "{}", call), ["tool call: shell"]);
        assert_eq!(
            of("tool_result", "no", failed),
            ["tool result: shell (error)"]
        );
        assert_eq!(of("tool_result", "?", lost), ["tool result"]);
        assert_eq!(of("tool_result", "", r#"{"a":1}"#), ["event data"]);
        assert_eq!(
            of("tool_result", "no", more),
            ["tool result: shell", "event data"]
        );
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
