//! Exports: what leaves comes back byte for byte, and what is for reading is safe to read.

use std::path::Path;

use zeroclaw::model::{
    Append, AppendEvent, ChatType, ConversationAddress, Place, SessionHeader, SessionPatch,
    SessionTarget,
};
use zeroclaw::service::{Clock, DeleteOptions, ErrorKind, ExportFormat, Service};

use super::{agent, folder, with_agents};
use crate::support::sqlite::block_on;

const NOW: i64 = 1_788_000_000_000;
const HOSTILE: &str = "</pre></div><script src=https://example.invalid/x.js></script><img src=x onerror=alert(1)>\
    \u{202e}\0\r\n```\n# no heading\n<style>@import 'x'</style>&amp;\"'";

/// A session with a branch, a checkpoint, keys, large and hostile events.
async fn filled(root: &Path) -> Service {
    let atlas = agent("atlas");
    let service = with_agents(root, Clock::fixed(NOW), &[&atlas]).await;
    let header = SessionHeader {
        session_key: Some("telegram:main:42".to_owned()),
        conversation: Some(ConversationAddress {
            channel: "telegram".to_owned(),
            account_id: "main".to_owned(),
            kind: ChatType::Direct,
            peer_id: "42".to_owned(),
            thread_id: None,
        }),
        display_name: Some(format!("title {HOSTILE}").replace(|c: char| c.is_control(), "")),
        ..SessionHeader::default()
    };
    let call = serde_json::json!({ "content": [
        { "type": "text", "text": "see" },
        { "type": "tool_use", "name": HOSTILE, "input": { "path": HOSTILE } },
    ] });
    let events = vec![
        AppendEvent::message("user", "How is the lantern?"),
        AppendEvent {
            event_json: Some(call.to_string()),
            ..AppendEvent::message("assistant", "see")
        },
        AppendEvent::message("tool", HOSTILE),
        AppendEvent::message("evil\" onclick=\"x", HOSTILE),
        AppendEvent {
            event_type: HOSTILE.replace(|c: char| c.is_control(), ""),
            role: None,
            ..AppendEvent::message("", "")
        },
    ];
    let append = Append::new(SessionTarget::Id("s".to_owned()), events)
        .with_header(header)
        .with_key("k");
    let done = service.append(&atlas, append).await.unwrap();
    let large = AppendEvent {
        event_json: Some(format!(
            "{{ \"data\" : \"{}\" }}",
            "A".repeat(3 * 1024 * 1024)
        )),
        ..AppendEvent::message("user", "x".repeat(200_000))
    };
    service
        .checkpoint(&atlas, "s", "before", Some("{\"a\":1}".to_owned()))
        .await
        .unwrap();
    let back = Place::Event(done.events[3].event_id.clone());
    service
        .branch(&atlas, "s", back, vec![large])
        .await
        .unwrap();
    let pin = SessionPatch {
        is_pinned: Some(true),
        ..SessionPatch::default()
    };
    service.patch_session(&atlas, "s", pin, None).await.unwrap();
    service
}

async fn export(service: &Service, format: ExportFormat) -> String {
    let mut out = Vec::new();
    let done = service
        .export_session(&agent("atlas"), "s", format, &mut out, Path::new("memory"))
        .await
        .unwrap();
    assert_eq!(done.bytes as usize, out.len());
    String::from_utf8(out).unwrap()
}

async fn import(service: &Service, text: &str) -> Result<u64, zeroclaw::service::ServiceError> {
    let mut from = text.as_bytes();
    let done = service
        .import_session(None, &mut from, Path::new("memory"))
        .await?;
    Ok(done.events)
}

#[test]
fn what_was_exported_comes_back_byte_for_byte() {
    let dir = folder();
    block_on(async {
        let service = filled(dir.path()).await;
        let first = export(&service, ExportFormat::Jsonl).await;
        let here = import(&service, &first).await.unwrap_err();
        let gone = DeleteOptions {
            even_pinned: true,
            ..DeleteOptions::default()
        };
        service
            .delete_session(&agent("atlas"), "s", gone)
            .await
            .unwrap();

        let events = import(&service, &first).await.unwrap();

        assert_eq!(here.kind(), ErrorKind::Refused);
        assert_eq!(events, 6);
        assert_eq!(export(&service, ExportFormat::Jsonl).await, first);
        // A repeat with the old key is still known.
        let again = Append::new(
            SessionTarget::Id("s".to_owned()),
            vec![AppendEvent::message("user", "?")],
        );
        let again = service
            .append(&agent("atlas"), again.with_key("k"))
            .await
            .unwrap();
        assert!(again.is_repeat && again.events.len() == 5);
        service.close().await;

        // And in a root that has never heard of it.
        let other = folder();
        let service = with_agents(other.path(), Clock::fixed(NOW), &[&agent("atlas")]).await;
        import(&service, &first).await.unwrap();
        assert_eq!(export(&service, ExportFormat::Jsonl).await, first);
        service.close().await;
    });
}

#[test]
fn a_file_that_is_not_whole_is_refused_by_line_and_leaves_nothing() {
    let dir = folder();
    block_on(async {
        let service = filled(dir.path()).await;
        let whole = export(&service, ExportFormat::Jsonl).await;
        let gone = DeleteOptions {
            even_pinned: true,
            ..DeleteOptions::default()
        };
        service
            .delete_session(&agent("atlas"), "s", gone)
            .await
            .unwrap();
        let lines: Vec<&str> = whole.lines().collect();
        let count = lines.len();
        let join = |lines: &[&str]| {
            lines
                .iter()
                .flat_map(|line| [*line, "\n"])
                .collect::<String>()
        };
        let twice = [&lines[..2], &lines[1..]].concat();
        let newer = whole.replacen("\"format\":1", "\"format\":2", 1);

        for (what, text, line) in [
            ("empty", String::new(), 1),
            ("no end", join(&lines[..count - 1]), count),
            ("cut in a line", whole[..whole.len() - 5].to_owned(), count),
            (
                "an event less",
                join(&[&lines[..2], &lines[3..]].concat()),
                count - 1,
            ),
            ("an event twice", join(&twice), 3),
            ("something behind", format!("{whole}{{}}\n"), count + 1),
            ("no JSON", join(&[lines[0], "secret{"]), 2),
            ("another form", newer, 1),
        ] {
            let refused = import(&service, &text).await.unwrap_err();
            let told = refused.to_string();
            assert_eq!(refused.kind(), ErrorKind::Usage, "{what}: {told}");
            assert!(told.contains(&format!("line {line}:")), "{what}: {told}");
            assert!(!told.contains("secret"), "{told}");
            assert!(service.find_session(None, "s").await.is_err(), "{what}");
        }
        assert_eq!(import(&service, &whole).await.unwrap(), 6);
        service.close().await;
    });
}

#[test]
fn the_page_is_one_file_without_script_or_anything_from_elsewhere() {
    let dir = folder();
    block_on(async {
        let service = filled(dir.path()).await;

        let page = export(&service, ExportFormat::Html).await;

        for never in [
            "<script",
            "<img",
            "<link",
            "<iframe",
            "onerror=alert(1)>",
            "onclick=\"x",
            "@import '",
            "\0",
            "\u{202e}",
            "url(",
        ] {
            assert!(!page.contains(never), "{never:?}");
        }
        for there in [
            "default-src 'none'",
            "prefers-color-scheme: dark",
            "&lt;script",
            "<details>",
            "more bytes",
            "[U+202E]",
        ] {
            assert!(page.contains(there), "{there:?}");
        }
        for tag in [
            "html", "body", "main", "article", "details", "pre", "dl", "h1", "h2", "p", "summary",
            "div",
        ] {
            let (opened, closed) = (
                page.matches(&format!("<{tag}>")).count()
                    + page.matches(&format!("<{tag} ")).count(),
                page.matches(&format!("</{tag}>")).count(),
            );
            assert_eq!(opened, closed, "<{tag}>");
        }
        // The branch the conversation left is not on it.
        assert_eq!(page.matches("<article").count(), 5);
        assert!(page.len() < 1_500_000, "a payload of 3 MiB is left out");
        service.close().await;
    });
}

#[test]
fn the_text_folds_no_content_out_of_its_fence() {
    let dir = folder();
    block_on(async {
        let service = filled(dir.path()).await;

        let text = export(&service, ExportFormat::Markdown).await;

        assert!(text.starts_with("# title "));
        assert!(text.contains("\n## user · 2026-"));
        assert!(
            text.contains("\n````\n"),
            "a fence longer than the one inside"
        );
        service.close().await;
    });
}
