//! What an import of a whole install costs: `cargo bench --bench import [-- --smoke]`.
//!
//! Installs of several sizes are generated as the old program left them, without any program of it or of ours, and the
//! release binary imports each as a process of its own: bytes it wrote, its peak memory, its time, whether these grow as
//! the input does. `--size 200m` does one size, `--only 'session files'` one kind of store; both may be repeated.
//! `docs/performance.md` says how to read the table.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark talks, and stops when it cannot go on"
)]

use std::process::ExitCode;

use crate::install::{STORES, Store};
use crate::process::Took;

mod install;
mod process;
mod words;

const MIB: u64 = 1 << 20;

/// Sizes of a full run; each but the last a tenth of the next.
const SIZES: [u64; 3] = [10 * MIB, 100 * MIB, 1_024 * MIB];
/// Proves that everything still runs; the parts that do not grow weigh too much for a judgement.
const SMOKE: [u64; 1] = [2 * MIB];

/// Most bytes written for each byte of input.
const MAX_WRITTEN: f64 = 5.0;
/// Most memory, bytes.
const MAX_PEAK: u64 = 512 * MIB;
/// Most growth of the time of a byte over all sizes of a run: ten times the input may take fifteen times the time.
const MAX_GROWTH: f64 = 1.5;

/// What is asked for.
struct Asked {
    sizes: Vec<u64>,
    stores: Vec<&'static Store>,
    is_judged: bool,
}

/// One size, imported.
struct Line {
    input: u64,
    took: Took,
}

impl Line {
    fn ratio(&self) -> f64 {
        self.took.written as f64 / self.input as f64
    }

    fn seconds_a_byte(&self) -> f64 {
        self.took.seconds / self.input as f64
    }
}

fn main() -> ExitCode {
    let asked = asked();
    println!(
        "{:>9} {:>9} {:>9} {:>8} {:>9} {:>8} {:>9} {:>10}",
        "input", "records", "written", "× input", "peak", "time", "MB/s", "records/s"
    );
    let lines: Vec<Line> = asked
        .sizes
        .iter()
        .map(|size| measure(*size, &asked.stores))
        .collect();
    if !asked.is_judged {
        return ExitCode::SUCCESS;
    }
    let verdicts = [
        judge_written(&lines),
        judge_peak(&lines),
        judge_growth(&lines),
    ];
    match verdicts.contains(&false) {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    }
}

/// Generates an install, imports it and prints what that took.
fn measure(size: u64, stores: &[&Store]) -> Line {
    // Beside the build, on a disk: bytes written to a file system in memory are not counted.
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let records = install::generate(home.path(), size, stores);
    let input = install::bytes(home.path());
    let took = process::import(home.path());
    assert_eq!(took.imported, records, "records that came in");
    let line = Line { input, took };
    println!(
        "{:>6} MB {:>9} {:>6} MB {:>8.2} {:>6} MB {:>6.1} s {:>9.1} {:>10.0}",
        input / 1_000_000,
        records,
        line.took.written / 1_000_000,
        line.ratio(),
        line.took.peak_bytes / 1_000_000,
        line.took.seconds,
        input as f64 / 1e6 / line.took.seconds,
        records as f64 / line.took.seconds,
    );
    line
}

fn judge_written(lines: &[Line]) -> bool {
    let worst = lines.iter().map(Line::ratio).fold(0.0, f64::max);
    let said = format!("bytes written: {worst:.2} × input at most, budget {MAX_WRITTEN} ×");
    verdict(worst > 0.0 && worst <= MAX_WRITTEN, &said)
}

fn judge_peak(lines: &[Line]) -> bool {
    let peaks = lines.iter().map(|line| line.took.peak_bytes);
    let worst = peaks.max().unwrap_or_default();
    let said = format!(
        "peak memory: {} MiB at most, budget {} MiB",
        worst / MIB,
        MAX_PEAK / MIB
    );
    verdict(worst > 0 && worst < MAX_PEAK, &said)
}

fn judge_growth(lines: &[Line]) -> bool {
    let [.., small, large] = lines else {
        return true;
    };
    let growth = large.seconds_a_byte() / small.seconds_a_byte();
    let said = format!(
        "time of a byte: {growth:.2} × from {} MB to {} MB, budget {MAX_GROWTH} ×",
        small.input / 1_000_000,
        large.input / 1_000_000
    );
    verdict(growth <= MAX_GROWTH, &said)
}

fn verdict(is_kept: bool, said: &str) -> bool {
    println!("{} {said}", if is_kept { "kept  " } else { "MISSED" });
    is_kept
}

fn asked() -> Asked {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let values = |name: &str| -> Vec<&String> {
        let pairs = arguments.windows(2).filter(|pair| pair[0] == name);
        pairs.map(|pair| &pair[1]).collect()
    };
    let is_smoke = arguments.iter().any(|argument| argument == "--smoke");
    let only = values("--only");
    for name in &only {
        let names: Vec<_> = STORES.iter().map(|store| store.name).collect();
        assert!(names.contains(&name.as_str()), "--only takes {names:?}");
    }
    let is_wanted = |store: &&Store| only.is_empty() || only.iter().any(|name| *name == store.name);
    let mut sizes: Vec<u64> = values("--size")
        .into_iter()
        .map(|text| size(text))
        .collect();
    if sizes.is_empty() {
        sizes = match is_smoke {
            true => SMOKE.to_vec(),
            false => SIZES.to_vec(),
        };
    }
    Asked {
        sizes,
        stores: STORES.iter().filter(is_wanted).collect(),
        is_judged: !is_smoke,
    }
}

/// `10m` or `2g`, in bytes.
fn size(text: &str) -> u64 {
    let unit = match text.chars().last() {
        Some('m') => MIB,
        Some('g') => 1_024 * MIB,
        _ => panic!("--size takes a number with m or g, not {text:?}"),
    };
    let number: u64 = text[..text.len() - 1].parse().unwrap();
    number * unit
}
