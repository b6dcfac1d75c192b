//! As much of Rust's grammar as the rules need: tokens without comments and text, and the paths they form.

/// An identifier, `::`, a single sign, or `"` for any literal text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Token<'a> {
    pub(super) text: &'a str,
    pub(super) line: usize,
}

/// A path of identifiers as it is written, taken out of any `{…}` group.
#[derive(Debug, PartialEq)]
pub(super) struct PathUse<'a> {
    /// Without a leading `::`; `*` at the end of a glob.
    pub(super) segments: Vec<&'a str>,
    pub(super) line: usize,
    /// How many inline `mod name { … }` are around it.
    pub(super) inline_mods: usize,
    /// Whether `as` follows.
    pub(super) is_renamed: bool,
}

/// Splits source text into tokens.
pub(super) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = text;
    let mut line = 1;
    while let Some(first) = rest.chars().next() {
        let (length, token) = scan(rest, first);
        if let Some(text) = token {
            tokens.push(Token { text, line });
        }
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    tokens
}

/// Gives the bytes to step over, and the token they are, unless they are blank, comment or lifetime.
fn scan(rest: &str, first: char) -> (usize, Option<&str>) {
    if rest.starts_with("//") {
        return (rest.find('\n').unwrap_or(rest.len()), None);
    }
    if rest.starts_with("/*") {
        return (block_comment(rest), None);
    }
    if let Some(length) = text_literal(rest) {
        return (length, Some("\""));
    }
    if rest.starts_with("::") {
        return (2, Some("::"));
    }
    if first == '\'' {
        return quote(rest);
    }
    if is_word(first) {
        let raw = if rest.starts_with("r#") { 2 } else { 0 };
        let length = raw + word_length(&rest[raw..]);
        return (length, Some(&rest[raw..length]));
    }
    let length = first.len_utf8();
    (
        length,
        Some(&rest[..length]).filter(|_| !first.is_whitespace()),
    )
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn word_length(text: &str) -> usize {
    text.find(|c| !is_word(c)).unwrap_or(text.len())
}

/// Comments nest.
fn block_comment(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        let here = &rest[at..];
        if here.starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if here.starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                break;
            }
        } else {
            at += here.chars().next().map_or(1, char::len_utf8);
        }
    }
    at
}

/// Length of a text, byte or raw literal at the start.
fn text_literal(rest: &str) -> Option<usize> {
    let prefix = ["br", "cr", "r", "b", "c", ""].into_iter().find(|prefix| {
        let after = rest
            .strip_prefix(prefix)
            .unwrap_or_default()
            .trim_start_matches('#');
        after.starts_with('"') && (prefix.ends_with('r') || rest[prefix.len()..].starts_with('"'))
    })?;
    let body = &rest[prefix.len()..];
    if !prefix.ends_with('r') {
        return Some(prefix.len() + escaped_length(body, '"'));
    }
    let hashes = body.find('"')?;
    let end = format!("\"{}", &body[..hashes]);
    let inside = &body[hashes + 1..];
    let length = inside.find(&end).map_or(inside.len(), |at| at + end.len());
    Some(prefix.len() + hashes + 1 + length)
}

/// Length up to and with the closing sign; `rest` starts with the opening one.
fn escaped_length(rest: &str, close: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        if !is_escaped && c == close {
            return at + c.len_utf8();
        }
        is_escaped = !is_escaped && c == '\\';
    }
    rest.len()
}

/// `'a'` and `'\n'` are characters, `'a` is a lifetime.
fn quote(rest: &str) -> (usize, Option<&str>) {
    let mut after = rest.chars().skip(1);
    match (after.next(), after.next()) {
        (Some('\\'), _) | (Some(_), Some('\'')) => (escaped_length(rest, '\''), Some("\"")),
        _ => (1 + word_length(&rest[1..]), None),
    }
}

/// Finds all paths; a single identifier counts too.
pub(super) fn paths<'a>(tokens: &[Token<'a>]) -> Vec<PathUse<'a>> {
    let mut found = Vec::new();
    let mut braces = Vec::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let text = |offset: usize| tokens.get(at + offset).map_or("", |token| token.text);
        match token.text {
            "mod" if text(2) == "{" => {
                braces.push(true);
                at += 3;
            }
            "{" => {
                braces.push(false);
                at += 1;
            }
            "}" => {
                braces.pop();
                at += 1;
            }
            word if word.starts_with(is_word) => {
                let inline_mods = braces.iter().filter(|is_mod| **is_mod).count();
                let mut segments = Vec::new();
                at = expand(tokens, at, &mut Vec::new(), &mut segments);
                let is_renamed = tokens.get(at).is_some_and(|token| token.text == "as");
                found.extend(segments.into_iter().map(|segments| PathUse {
                    segments,
                    line: token.line,
                    inline_mods,
                    is_renamed,
                }));
            }
            _ => at += 1,
        }
    }
    found
}

/// Adds the paths that start at `at` behind `base`, one for each leaf of a group; gives the place behind them.
fn expand<'a>(
    tokens: &[Token<'a>],
    mut at: usize,
    base: &mut Vec<&'a str>,
    found: &mut Vec<Vec<&'a str>>,
) -> usize {
    let depth = base.len();
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text);
    loop {
        match text(at) {
            "{" => {
                at = expand_group(tokens, at + 1, base, found);
                break;
            }
            word if word == "*" || word.starts_with(is_word) => {
                base.push(word);
                at += 1;
            }
            _ => {
                found.push(base.clone());
                break;
            }
        }
        if text(at) != "::" {
            found.push(base.clone());
            break;
        }
        at += 1;
    }
    base.truncate(depth);
    at
}

fn expand_group<'a>(
    tokens: &[Token<'a>],
    mut at: usize,
    base: &mut Vec<&'a str>,
    found: &mut Vec<Vec<&'a str>>,
) -> usize {
    while let Some(token) = tokens.get(at) {
        match token.text {
            "}" => return at + 1,
            "as" => at += 2,
            word if word == "*" || word.starts_with(is_word) => {
                at = expand(tokens, at, base, found)
            }
            _ => at += 1,
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        tokens(text).into_iter().map(|token| token.text).collect()
    }

    fn written(text: &str) -> Vec<String> {
        paths(&tokens(text))
            .into_iter()
            .map(|path| path.segments.join("::"))
            .collect()
    }

    #[test]
    fn comments_texts_and_lifetimes_are_no_words() {
        assert_eq!(words("a // b\nc /* d /* e */ f */ g"), ["a", "c", "g"]);
        assert_eq!(words(r#"x("a \" b") y"#), ["x", "(", "\"", ")", "y"]);
        assert_eq!(
            words("r#\"a \" b\"# br\"c\" b\"d\" e"),
            ["\"", "\"", "\"", "e"]
        );
        assert_eq!(
            words(r"'a' '\'' '\\' '{' <'b> c"),
            ["\"", "\"", "\"", "\"", "<", ">", "c"]
        );
        assert_eq!(words("r#type bar \"unclosed"), ["type", "bar", "\""]);
    }

    #[test]
    fn lines_are_counted_through_comments_and_texts() {
        let lines: Vec<_> = tokens("a\n/*\n*/ \"\n\" b")
            .into_iter()
            .map(|token| token.line)
            .collect();

        assert_eq!(lines, [1, 3, 4]);
    }

    #[test]
    fn groups_give_one_path_for_each_leaf() {
        assert_eq!(
            written("use crate::{a, b::{self, C as D, e::*}};"),
            [
                "use",
                "crate::a",
                "crate::b::self",
                "crate::b::C",
                "crate::b::e::*"
            ]
        );
        assert_eq!(written("::x::y::<z>()"), ["x::y", "z"]);
        assert_eq!(written("if a::b { c }"), ["if", "a::b", "c"]);
    }

    #[test]
    fn inline_modules_are_counted() {
        let tokens = tokens("fn f() { a } mod m { fn g() { b } mod n { c } } d");
        let depth = |name| {
            paths(&tokens)
                .into_iter()
                .find(|path| path.segments == [name])
                .unwrap()
                .inline_mods
        };

        assert_eq!(["a", "b", "c", "d"].map(depth), [0, 1, 2, 0]);
    }
}
