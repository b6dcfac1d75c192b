//! Who may name whom.
//!
//! A room is a folder or file of `src/`, or `doctor/`. Paths that start at a crate's root, by `crate`, by its name or by
//! enough `super`, say which room they reach. The root itself is nobody's to name: what is re-exported there is for
//! those who embed the crate, and would lead round the table.

use super::Source;
use super::syntax::{PathUse, paths, tokens};

/// A room and what it may name, each a room or a module in one. The shell's rooms stand last.
const TABLE: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("clock", &["model"]),
    ("config", &["model"]),
    ("fs", &["model"]),
    ("db", &["model", "fs"]),
    ("store", &["model", "db"]),
    ("backup", &["model", "db", "fs", "clock"]),
    (
        "service",
        &["model", "clock", "config", "fs", "db", "store", "backup"],
    ),
    ("daemon", &["service", "model", "fs", "clock", "config"]),
    ("cli", &["service", "daemon", "model", "config"]),
    // The doctor brings its own command family, so that the shell is whole without it; it shares what every family has.
    (
        "doctor",
        &[
            "service",
            "store",
            "model",
            "fs",
            "clock",
            // The configuration of the root it imports says whose the sources are.
            "config",
            "cli::CliError",
            "cli::Context",
            "cli::Exit",
            "cli::ask",
            "cli::output",
        ],
    ),
    // Documentation alone.
    ("guide", &[]),
    ("main", &["cli", "doctor", "service", "model"]),
    (
        "lib",
        &[
            "model", "clock", "config", "fs", "db", "store", "backup", "service", "daemon", "guide",
        ],
    ),
];

/// Finds paths into rooms that their file may not name, and files in rooms the table has not heard of.
pub(super) fn check(files: &[Source]) -> Vec<String> {
    let rust = files
        .iter()
        .filter(|file| file.is_rust() && (file.is_in("src") || file.is_in("doctor")));
    rust.flat_map(check_file).collect()
}

fn check_file(file: &Source) -> Vec<String> {
    let module = module_of(&file.path);
    let room = module
        .first()
        .copied()
        .unwrap_or(if file.path == "src/main.rs" {
            "main"
        } else {
            "lib"
        });
    let Some((_, allowed)) = TABLE.iter().find(|(name, _)| *name == room) else {
        return vec![file.says(1, &format!("the table has no room {room}"))];
    };
    let tokens = tokens(&file.text);
    paths(&tokens)
        .iter()
        .filter_map(|path| fault(path, room, module.len(), allowed, file))
        .collect()
}

/// `src/fs/lock.rs` is `fs::lock`, `doctor/mod.rs` is `doctor`, `src/lib.rs` is the root.
fn module_of(path: &str) -> Vec<&str> {
    let inside = path.strip_prefix("src/").unwrap_or(path);
    let mut module: Vec<_> = inside.trim_end_matches(".rs").split('/').collect();
    if module.last() == Some(&"mod") || ["src/lib.rs", "src/main.rs"].contains(&path) {
        module.pop();
    }
    module
}

fn fault(
    path: &PathUse<'_>,
    room: &str,
    depth: usize,
    allowed: &[&str],
    file: &Source,
) -> Option<String> {
    let reached = from_root(path, depth + path.inline_mods)?;
    let Some(target) = reached
        .first()
        .filter(|name| TABLE.iter().any(|(room, _)| room == *name))
    else {
        let is_root_file = ["lib", "main"].contains(&room);
        let what = format!(
            "{room} names `{}`, which is no room",
            path.segments.join("::")
        );
        return (!is_root_file).then(|| file.says(path.line, &what));
    };
    let fits = |place: &&str| {
        place
            .split("::")
            .zip(reached)
            .all(|(part, segment)| part == *segment)
    };
    let is_allowed = *target == room || allowed.iter().any(fits);
    (!is_allowed).then(|| file.says(path.line, &format!("{room} names {}", reached.join("::"))))
}

/// What follows the crate's root in a path that reaches it; `None` for a path that stays below or leads elsewhere.
fn from_root<'a, 'b>(path: &'b PathUse<'a>, depth: usize) -> Option<&'b [&'a str]> {
    let segments = match path.segments.split_first()? {
        (&"self", rest) => rest,
        _ => &path.segments,
    };
    match *segments.first()? {
        "crate" | "zeroclaw" if segments.len() > 1 || path.is_renamed => Some(&segments[1..]),
        "super" => {
            let ups = segments
                .iter()
                .take_while(|segment| **segment == "super")
                .count();
            (ups >= depth).then(|| &segments[ups..])
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violations(path: &str, text: &str) -> Vec<String> {
        check(&[Source::new(path, text)])
    }

    #[test]
    fn a_name_from_above_is_caught_however_it_is_written() {
        for (path, text) in [
            ("src/model/session.rs", "use crate::db::Db;"),
            (
                "src/store/agent/session.rs",
                "use crate::{model::Id, service::Open};",
            ),
            (
                "src/store/agent/session.rs",
                "use crate::{model::Id, db::{self}, fs};",
            ),
            ("src/db/open.rs", "fn f() { crate::store::page::f() }"),
            ("src/db/open.rs", "use super::super::store;"),
            ("src/db/mod.rs", "use super::store::x;"),
            ("src/db/mod.rs", "use self::super::store::x;"),
            ("src/db/mod.rs", "mod tests { use super::super::store::x; }"),
            ("src/clock.rs", "use super::db;"),
            ("src/clock.rs", "use super::*;"),
            ("src/fs/lock.rs", "use crate::*;"),
            ("src/fs/lock.rs", "use crate as root;"),
            ("src/fs/lock.rs", "use super::super as root;"),
            ("src/fs/lock.rs", "use super::super::{self as root};"),
            ("src/fs/lock.rs", "use crate::Service;"),
            ("src/service/open.rs", "use crate::daemon::wire;"),
            ("src/cli/session.rs", "use zeroclaw::store::page;"),
            ("src/cli/session.rs", "use zeroclaw as z;"),
            ("src/cli/session.rs", "extern crate zeroclaw as z;"),
            ("src/cli/session.rs", "fn f() { ::zeroclaw::db::open() }"),
            ("doctor/scan.rs", "use zeroclaw::{fs, db};"),
            ("doctor/scan.rs", "use crate::cli::context;"),
            ("src/cli/session.rs", "use crate::doctor::plan;"),
            ("doctor/scan.rs", "use super::super::cli::context;"),
            ("src/helpers/x.rs", ""),
        ] {
            assert_eq!(
                violations(path, text).len(),
                1,
                "{path}: {text}: {:?}",
                violations(path, text)
            );
        }
    }

    #[test]
    fn names_from_below_from_inside_and_in_words_are_accepted() {
        for (path, text) in [
            (
                "src/store/agent/session.rs",
                "use crate::{model::Id, db::{self, Tx}};\nuse crate::store::page;",
            ),
            (
                "src/store/agent/session.rs",
                "use super::super::page;\nuse super::row;",
            ),
            (
                "src/db/open.rs",
                "// crate::store is above.\nconst X: &str = \"crate::store::x\";",
            ),
            (
                "src/db/open.rs",
                "pub(crate) fn f() {}\npub(in crate::db) fn g() {}\nmod tests { use super::*; }",
            ),
            (
                "src/db/open.rs",
                "use std::fs; use other::crate_store; let db = store::x;",
            ),
            (
                "src/db/open.rs",
                "/// [`store`](crate::store)\nfn f(crate_: store::x) {}",
            ),
            ("src/fs/lock.rs", "use super::{FsError, atomic};"),
            ("src/clock.rs", "mod tests { use super::*; }"),
            ("src/lib.rs", "pub use crate::service::Service; pub mod db;"),
            (
                "src/service/open.rs",
                "use crate::{backup, clock, config, db, fs, model, store};",
            ),
            (
                "src/cli/session.rs",
                "use zeroclaw::service::Request;\nuse crate::cli::output;\nuse super::output;",
            ),
            (
                "doctor/scan.rs",
                "use zeroclaw::{fs::Layout, store};\nuse crate::cli::{Context, output::table};\nuse super::plan;",
            ),
            (
                "doctor/sources/zeroclaw/x.rs",
                "use super::super::super::plan;\nlet zeroclaw = 1;",
            ),
            ("tests/it/x.rs", "use zeroclaw::db;"),
        ] {
            assert_eq!(
                violations(path, text),
                Vec::<String>::new(),
                "{path}: {text}"
            );
        }
    }
}
