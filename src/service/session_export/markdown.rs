//! The form for reading as text.

use super::parts::{Part, parts};
use crate::clock::rfc3339;
use crate::model::{AgentId, Event};
use crate::store::agent::session_copy::SessionRow;

/// What stands at the end.
pub(super) const END: &str = "";

/// What stands at the start.
pub(super) fn head(agent: &AgentId, session: &SessionRow) -> String {
    let title = session.display_name.as_deref();
    let mut text = format!("# {}\n\n", one_line(title.unwrap_or(&session.session_key)));
    for (name, value) in about(agent, session) {
        text.push_str(&format!("- {name}: {}\n", code(&value)));
    }
    text
}

/// What is told of a session, in readable exports.
pub(super) fn about(agent: &AgentId, session: &SessionRow) -> Vec<(&'static str, String)> {
    let mut about = vec![
        ("agent", agent.to_string()),
        ("session", session.session_id.clone()),
        ("key", session.session_key.clone()),
        ("status", session.status.to_string()),
    ];
    let known = [
        ("channel", session.channel.clone()),
        ("model", session.model.clone()),
        ("forked from", session.forked_from.clone()),
        ("archived", session.archived_at_ms.map(rfc3339)),
    ];
    about.extend(
        known
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    about.push(("created", rfc3339(session.created_at_ms)));
    about.push(("updated", rfc3339(session.updated_at_ms)));
    about
}

/// An event.
pub(super) fn event(event: &Event) -> String {
    let who = event.role.as_deref().unwrap_or(&event.event_type);
    let when = rfc3339(event.created_at_ms);
    let mut text = format!("\n## {} · {when}\n", one_line(who));
    for part in parts(event) {
        match part {
            Part::Said(said) => {
                text.push('\n');
                text.push_str(said.trim_end_matches('\n'));
                text.push('\n');
            }
            Part::Folded { title, body } => {
                text.push_str(&format!("\n{}:\n\n{}\n", one_line(&title), fenced(&body)));
            }
        }
    }
    text
}

/// A block of code that its content cannot end.
fn fenced(body: &str) -> String {
    let fence = "`".repeat(longest_run(body).max(2) + 1);
    format!("{fence}\n{}\n{fence}", body.trim_end_matches('\n'))
}

/// A word of code that its content cannot end.
fn code(value: &str) -> String {
    let value = one_line(value);
    let tick = "`".repeat(longest_run(&value) + 1);
    let space = if value.starts_with('`') || value.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{tick}{space}{value}{space}{tick}")
}

fn longest_run(text: &str) -> usize {
    let runs = text.split(|c| c != '`').map(str::len);
    runs.max().unwrap_or(0)
}

fn one_line(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_content_ends_its_own_fence() {
        assert_eq!(fenced("a\n```\nb"), "````\na\n```\nb\n````");
        assert_eq!(fenced("a"), "```\na\n```");
        assert_eq!(code("a`b"), "``a`b``");
        assert_eq!(code("`"), "`` ` ``");
        assert_eq!(code("a\nb"), "`a b`");
    }
}
