//! What is said in one place only, or nowhere.

use super::Source;
use super::syntax::{Token, paths, tokens};

/// Names, products and files of the formats that only the importer knows.
const LEGACY_WORDS: &[&str] = &[
    ".jsonl",
    "acp-sessions",
    "active_workspace",
    "auth-profiles",
    "brain.db",
    "clawdbot",
    "control_plane.db",
    "daemon_state.json",
    "delegate_results",
    "devices.db",
    "discord.db",
    "heartbeat/history.db",
    "jobs.db",
    "jobs.json",
    "knowledge.db",
    "legacy-workspace",
    "memory_hygiene_state",
    "memory_snapshot.md",
    "moldbot",
    "moltbot",
    "openclaw",
    "response_cache.db",
    "runs.db",
    "runtime-trace",
    "session-store.json",
    "sessions.db",
    "sessions.json",
    "webauthn_credentials",
];

/// May say them. `tests/it` and the fixtures are tests, and what an import costs is measured on old files; migrations
/// and schemas are the runtime's.
const LEGACY_PLACES: &[&str] = &["doctor", "tests", "benches/import"];

const OUTPUT: &[&str] = &["src/cli/output.rs", "src/cli/output"];
const SQL_ROOMS: &[&str] = &["src/db", "src/store", "doctor/sources"];
const SQLITE_ROOMS: &[&str] = &["src/db"];
const BUILT_SQL_ROOMS: &[&str] = &["src/db", "src/store", "doctor/sources"];

/// Finds `#[path]` anywhere but once in `main.rs`, where it mounts the doctor.
pub(super) fn path_attributes(files: &[Source]) -> Vec<String> {
    let product = files
        .iter()
        .filter(|file| file.is_rust() && !file.is_in("tests"));
    let found: Vec<_> = product
        .flat_map(|file| {
            path_attribute_lines(&file.text)
                .into_iter()
                .map(move |line| (file, line))
        })
        .collect();
    let (mounts, strays): (Vec<_>, Vec<_>) = found
        .into_iter()
        .partition(|(file, _)| file.path == "src/main.rs");

    let main_mounts_doctor = files.iter().any(|file| file.is_in("doctor"));
    let mut violations: Vec<_> = strays
        .iter()
        .map(|(file, line)| file.says(*line, "a path attribute"))
        .collect();
    violations.extend(
        mounts
            .iter()
            .skip(1)
            .map(|(file, line)| file.says(*line, "a second path attribute")),
    );
    if main_mounts_doctor && mounts.is_empty() {
        violations.push("src/main.rs: no path attribute mounts the doctor".to_owned());
    }
    violations
}

/// Both `#[path = …]` and `#[cfg_attr(…, path = …)]`.
fn path_attribute_lines(text: &str) -> Vec<usize> {
    let tokens = tokens(text);
    let starts = tokens
        .windows(2)
        .enumerate()
        .filter(|(_, pair)| pair[0].text == "#" && ["[", "!"].contains(&pair[1].text));
    starts
        .filter_map(|(at, _)| path_in_attribute(&tokens[at..]))
        .collect()
}

fn path_in_attribute(tokens: &[Token<'_>]) -> Option<usize> {
    let open = tokens.iter().position(|token| token.text == "[")?;
    let inside = &tokens[open + 1..];
    if !["path", "cfg_attr"].contains(&inside.first()?.text) {
        return None;
    }
    let end = inside
        .iter()
        .position(|token| token.text == "]")
        .unwrap_or(inside.len());
    let found = inside[..end]
        .windows(2)
        .find(|pair| pair[0].text == "path" && pair[1].text == "=")?;
    Some(found[0].line)
}

/// Finds legacy words outside their places, in comments and texts too.
pub(super) fn legacy_words(files: &[Source]) -> Vec<String> {
    let product = files
        .iter()
        .filter(|file| !LEGACY_PLACES.iter().any(|place| file.is_in(place)));
    let lines = product.flat_map(|file| {
        file.text
            .lines()
            .zip(1..)
            .map(move |(line, number)| (file, number, line))
    });
    lines
        .flat_map(|(file, number, line)| {
            let line = line.to_lowercase();
            let words = LEGACY_WORDS
                .iter()
                .filter(move |word| says_word(&line, word));
            words.map(move |word| file.says(number, &format!("says {word}")))
        })
        .collect()
}

/// A word that starts like a name must not be the end of a longer one: `task_runs.db` is not `runs.db`.
fn says_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let is_name = word.starts_with(char::is_alphanumeric);
        let is_inside = line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        !(is_name && is_inside)
    })
}

/// Finds printing outside the output module.
pub(super) fn printing(files: &[Source]) -> Vec<String> {
    let macros = ["print", "println", "eprint", "eprintln", "dbg"];
    let says = |window: &[Token<'_>]| {
        let [before, word, after] = window else {
            return None;
        };
        let is_macro = macros.contains(&word.text) && after.text == "!";
        let is_stream =
            ["stdout", "stderr"].contains(&word.text) && after.text == "(" && before.text != ".";
        (is_macro || is_stream).then(|| format!("prints by {}", word.text))
    };
    product(files, OUTPUT)
        .flat_map(|file| windows(file, says))
        .collect()
}

/// Finds ends of the process outside `main.rs` and the planted crashes.
pub(super) fn exits(files: &[Source]) -> Vec<String> {
    let says = |segments: &[&str]| {
        let is_end =
            |pair: &[&str]| pair[0] == "process" && ["abort", "exit", "*"].contains(&pair[1]);
        segments
            .windows(2)
            .any(is_end)
            .then(|| "ends the process".to_owned())
    };
    product(files, &["src/main.rs", "src/fs/fault.rs"])
        .flat_map(|file| path_faults(file, says))
        .collect()
}

/// Finds the crates of SQL outside the rooms of SQL, and SQL text built at run time outside db and store.
pub(super) fn sql_crates(files: &[Source]) -> Vec<String> {
    let crates = [
        ("sqlx", SQL_ROOMS),
        ("sqlx_sqlite", SQL_ROOMS),
        ("libsqlite3_sys", SQLITE_ROOMS),
    ];
    let mut violations = Vec::new();
    for (name, places) in crates {
        let says = move |segments: &[&str]| (segments[0] == name).then(|| format!("names {name}"));
        violations.extend(product(files, places).flat_map(|file| path_faults(file, says)));
    }
    let says = |segments: &[&str]| {
        let word = "AssertSqlSafe";
        segments.contains(&word).then(|| format!("names {word}"))
    };
    violations.extend(product(files, BUILT_SQL_ROOMS).flat_map(|file| path_faults(file, says)));
    violations
}

/// Finds unsafe code, tests included.
pub(super) fn unsafe_code(files: &[Source]) -> Vec<String> {
    let rust = files.iter().filter(|file| file.is_rust());
    let says = |segments: &[&str]| (segments == ["unsafe"]).then(|| "is unsafe".to_owned());
    rust.flat_map(|file| path_faults(file, says)).collect()
}

/// The product's Rust files outside of these places.
fn product<'a>(files: &'a [Source], except: &'a [&str]) -> impl Iterator<Item = &'a Source> {
    let rooms = files
        .iter()
        .filter(|file| file.is_rust() && (file.is_in("src") || file.is_in("doctor")));
    rooms.filter(|file| !except.iter().any(|place| file.is_in(place)))
}

fn path_faults(file: &Source, says: impl Fn(&[&str]) -> Option<String>) -> Vec<String> {
    let tokens = tokens(&file.text);
    let found = paths(&tokens).into_iter();
    let mut faults: Vec<_> = found
        .filter_map(|path| Some(file.says(path.line, &says(&path.segments)?)))
        .collect();
    // A group of names behind one faulty beginning is one fault.
    faults.dedup();
    faults
}

fn windows(file: &Source, says: impl Fn(&[Token<'_>]) -> Option<String>) -> Vec<String> {
    let mut tokens = tokens(&file.text);
    // So that the first and the last word of a file stand in a window of three as well.
    tokens.insert(0, Token { text: "", line: 1 });
    tokens.push(Token { text: "", line: 1 });
    tokens
        .windows(3)
        .filter_map(|window| Some(file.says(window[1].line, &says(window)?)))
        .collect()
}

#[cfg(test)]
mod tests;
