//! How fast the state is, beside SQLite itself in the same run: `cargo bench --bench state [-- --smoke]`, with `--large`
//! only what huge payloads cost those who do not ask for them, with `--ready` only how soon a daemon of 200 agents answers.
//!
//! Each work is done by the store and by plain prepared statements over the C API, on files of the same
//! schema and pragmas, in turns. A machine that is busy slows both: trust the ratio, not the time.
//! `docs/performance.md` says how to read the table.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark talks, and stops when it cannot go on"
)]

use std::path::Path;

use crate::measure::Table;

mod append;
mod data;
mod large;
mod measure;
mod raw;
mod ready;
mod recall;
mod search;
mod transcript;

/// How much is done.
#[derive(Clone, Copy)]
struct Scale {
    /// Turns of each work.
    rounds: usize,
    /// Single appends of one turn.
    appends: usize,
    /// Appends of each of 64 clients.
    appends_each: usize,
    /// Events of a bulk insert, and messages searched.
    events: usize,
    /// Events of the transcript that is read.
    transcript: usize,
    /// Sessions listed.
    sessions: usize,
    /// Memories recalled from.
    memories: usize,
    /// Agents of a daemon.
    agents: usize,
}

const FULL: Scale = Scale {
    rounds: 7,
    appends: 300,
    appends_each: 60,
    events: 100_000,
    transcript: 10_000,
    sessions: 2_000,
    memories: 20_000,
    agents: 200,
};

/// Proves that every work still runs; its figures mean little.
const SMOKE: Scale = Scale {
    rounds: 3,
    appends: 20,
    appends_each: 5,
    events: 5_000,
    transcript: 2_000,
    sessions: 300,
    memories: 1_000,
    agents: 10,
};

fn main() {
    let is_smoke = std::env::args().any(|argument| argument == "--smoke");
    let scale = if is_smoke { SMOKE } else { FULL };
    let dir = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(all(dir.path(), scale));
}

async fn all(dir: &Path, scale: Scale) {
    data::make_template(dir).await;
    let mut table = Table::new();
    if std::env::args().any(|argument| argument == "--ready") {
        return ready::ready(dir, scale, &mut table).await;
    }
    if std::env::args().any(|argument| argument == "--large") {
        return large::pass_by(dir, scale, &mut table).await;
    }
    let alone = append::one_client(dir, scale, &mut table).await;
    append::many_clients(dir, scale, alone, &mut table).await;
    transcript::bulk_insert(dir, scale, &mut table).await;
    transcript::read(dir, scale, &mut table).await;
    transcript::list_sessions(dir, scale, &mut table).await;
    large::through_the_service(dir, scale, &mut table).await;
    large::pass_by(dir, scale, &mut table).await;
    search::build_and_search(dir, scale, &mut table).await;
    search::snapshot(dir, scale, &mut table).await;
    recall::recall(dir, scale, &mut table).await;
    ready::ready(dir, scale, &mut table).await;
}
