//! The form for a browser: one page, no script, nothing from elsewhere; light or dark as the reader's system is.

use super::markdown::about;
use super::parts::{Part, parts};
use crate::clock::rfc3339;
use crate::model::{AgentId, Event};
use crate::store::agent::session_copy::SessionRow;

mod said;

/// Characters of what is folded that its line shows.
const PREVIEW_CHARS: usize = 100;

/// What stands at the end.
pub(super) const END: &str = "</main>\n</body>\n</html>\n";

/// The policy forbids the browser whatever the page itself does not need, whoever's words are in it.
const START: &str = r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
"#;

const STYLE: &str = include_str!("page.css");

/// What stands at the start.
pub(super) fn head(agent: &AgentId, session: &SessionRow) -> String {
    let title = session.display_name.as_deref();
    let title = escaped(title.unwrap_or(&session.session_key));
    let mut page = format!(
        "{START}<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<header>\n<h1 dir=\"auto\">{title}</h1>\n<dl>\n"
    );
    for (name, value) in about(agent, session) {
        page.push_str(&format!(
            "<div><dt>{name}</dt><dd dir=\"auto\">{}</dd></div>\n",
            escaped(&value)
        ));
    }
    page.push_str("</dl>\n</header>\n<main>\n");
    page
}

/// An event.
pub(super) fn event(event: &Event) -> String {
    let when = rfc3339(event.created_at_ms);
    let mut page = format!(
        "<article class=\"{}\" id=\"e{}\">\n<h2><span dir=\"auto\">{}</span> <a href=\"#e{}\"><time datetime=\"{when}\">{}</time></a></h2>\n",
        class(event),
        event.seq,
        escaped(&who(event)),
        event.seq,
        shown(&when),
    );
    for part in parts(event) {
        page.push_str(&match part {
            Part::Said(text) => {
                format!("<div class=\"said\" dir=\"auto\">\n{}</div>\n", said::rendered(&text))
            }
            Part::Folded { title, body } => format!(
                "<details><summary>{} <span dir=\"auto\">{}</span></summary><pre dir=\"auto\">{}</pre></details>\n",
                escaped(&title),
                escaped(&preview(&body)),
                escaped(&body)
            ),
        });
    }
    page.push_str("</article>\n");
    page
}

/// Who said it, or what happened; nothing where what is folded says it.
fn who(event: &Event) -> String {
    match (&event.role, event.event_type.as_str()) {
        (Some(role), _) => role.clone(),
        (None, "tool_call" | "tool_result") => String::new(),
        (None, other) => other.replace('_', " "),
    }
}

/// The start of what is folded, on one line.
fn preview(body: &str) -> String {
    let mut words = String::new();
    for word in body.split_whitespace() {
        // Characters have up to four bytes.
        if words.len() > 4 * PREVIEW_CHARS {
            break;
        }
        words.push_str(word);
        words.push(' ');
    }
    match words.char_indices().nth(PREVIEW_CHARS) {
        Some((end, _)) => format!("{}…", &words[..end]),
        None => words.trim_end().to_owned(),
    }
}

/// `2026-11-30 16:42` of a full time.
fn shown(when: &str) -> String {
    when.get(..16).unwrap_or(when).replace('T', " ")
}

/// Fixed words only: a role is a stranger's.
fn class(event: &Event) -> &'static str {
    match event.role.as_deref() {
        Some("user" | "human") => "user",
        Some("assistant" | "model") => "assistant",
        Some(_) => "other",
        None => "quiet",
    }
}

/// Text as text, whatever is in it.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 16);
    for c in said::visible(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_is_markup() {
        assert_eq!(
            escaped("<script>alert('x')</script>&\"\0\u{202e}"),
            "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;&quot;\u{fffd}[U+202E]"
        );
    }

    #[test]
    fn a_preview_is_one_short_line() {
        let long = "é ".repeat(PREVIEW_CHARS);

        assert_eq!(preview("a\n  b\t c"), "a b c");
        assert_eq!(preview(""), "");
        assert_eq!(preview(&long).chars().count(), PREVIEW_CHARS + 1);
        assert_eq!(preview(&"x".repeat(500)).chars().count(), PREVIEW_CHARS + 1);
    }
}
