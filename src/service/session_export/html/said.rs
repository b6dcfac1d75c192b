//! What was said, as the Markdown it mostly is. A stranger wrote it: no markup of its own gets through, no picture is
//! loaded, and a link leads to the web or to mail only.

use super::escaped;
use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

/// Schemes a link may have.
const SCHEMES: [&str; 3] = ["https://", "http://", "mailto:"];

/// Gives the HTML of a text.
pub(super) fn rendered(text: &str) -> String {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let text = visible(text);
    let mut links = Vec::new();
    let safe = Parser::new_ext(&text, options).filter_map(|event| tamed(event, &mut links));
    let mut out = String::with_capacity(text.len() + text.len() / 4);
    html::push_html(&mut out, safe);
    out
}

/// An event of the parser as it may be shown. `links` knows of each open link whether it was let through.
fn tamed<'t>(event: Event<'t>, links: &mut Vec<bool>) -> Option<Event<'t>> {
    Some(match event {
        Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => {
            Event::Html(escaped(&text).into())
        }
        Event::Code(text) => Event::InlineHtml(format!("<code>{}</code>", escaped(&text)).into()),
        Event::Start(Tag::HtmlBlock) => Event::Start(Tag::Paragraph),
        Event::End(TagEnd::HtmlBlock) => Event::End(TagEnd::Paragraph),
        // People who write messages end a line where they mean it.
        Event::SoftBreak => Event::HardBreak,
        Event::Start(Tag::Heading { level, .. }) => Event::Start(heading(level)),
        Event::End(TagEnd::Heading(level)) => Event::End(TagEnd::Heading(below(level))),
        Event::Start(Tag::Image { .. }) => Event::Text("[image: ".into()),
        Event::End(TagEnd::Image) => Event::Text("]".into()),
        Event::Start(Tag::Link { ref dest_url, .. }) => {
            let is_safe = SCHEMES.iter().any(|scheme| starts_with(dest_url, scheme));
            links.push(is_safe);
            return is_safe.then_some(event);
        }
        Event::End(TagEnd::Link) => return links.pop().unwrap_or(false).then_some(event),
        event => event,
    })
}

fn starts_with(url: &str, scheme: &str) -> bool {
    url.get(..scheme.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(scheme))
}

fn heading<'t>(level: HeadingLevel) -> Tag<'t> {
    Tag::Heading {
        level: below(level),
        id: None,
        classes: Vec::new(),
        attrs: Vec::new(),
    }
}

/// The page has its own two levels above.
fn below(level: HeadingLevel) -> HeadingLevel {
    match level {
        HeadingLevel::H1 => HeadingLevel::H3,
        HeadingLevel::H2 => HeadingLevel::H4,
        HeadingLevel::H3 => HeadingLevel::H5,
        _ => HeadingLevel::H6,
    }
}

/// Text with its control characters, and marks that turn the direction of what follows, made visible.
pub(super) fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => out.push(c),
            '\r' => {}
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                out.push_str(&format!("[U+{:04X}]", u32::from(c)));
            }
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_write_looks_as_they_meant_it() {
        assert_eq!(
            rendered("# Tides\n**high** at\nnine\n\n- one\n- two"),
            "<h3>Tides</h3>\n<p><strong>high</strong> at<br />\nnine</p>\n<ul>\n<li>one</li>\n<li>two</li>\n</ul>\n"
        );
        assert!(rendered("|a|b|\n|-|-|\n|1|2|").starts_with("<table>"));
        assert_eq!(
            rendered("[keeper](https://example.org/?a=1&b=2)"),
            "<p><a href=\"https://example.org/?a=1&amp;b=2\">keeper</a></p>\n"
        );
        assert_eq!(
            rendered("```rust\nlet a = \"<b>\";\n```"),
            "<pre><code class=\"language-rust\">let a = &quot;&lt;b&gt;&quot;;\n</code></pre>\n"
        );
    }

    #[test]
    fn no_markup_of_a_stranger_gets_through() {
        for hostile in [
            "<script>alert(1)</script>",
            "hi <img src=x onerror=alert(1)> there",
            "<div onclick=\"x()\">\n\n**bold**\n\n</div>",
            "[a](javascript:alert(1)) [b](JaVaScRiPt:alert(1)) [c](data:text/html,x) [d](file:///etc/passwd)",
            "![p](https://example.org/track.png)",
            "<https://example.org/\"onmouseover=x>",
            "```\"onload=x <svg>\ncode\n```",
            "[x]: javascript:alert(1)\n[x]",
            "<!-- <b> --> <![CDATA[<i>]]> <?php <u> ?>",
        ] {
            let shown = rendered(hostile);
            for tag in shown.split('<').skip(1) {
                let known = [
                    "p>",
                    "/",
                    "strong>",
                    "pre>",
                    "code",
                    "br />",
                    "a href=\"https://example.org/",
                ];
                assert!(
                    known.iter().any(|known| tag.starts_with(known)),
                    "{hostile}: {shown}"
                );
                let inside = tag.split('>').next().unwrap_or_default();
                assert!(inside.matches('"').count() <= 2, "{hostile}: {shown}");
            }
        }
        assert_eq!(rendered("a\0\u{202e}"), "<p>a\u{fffd}[U+202E]</p>\n");
    }
}
