//! Runs the import as a process and looks at it from outside.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(5);

/// What an import took.
pub(crate) struct Took {
    /// Seconds.
    pub(crate) seconds: f64,
    /// Bytes that it made the kernel write to disk.
    pub(crate) written: u64,
    /// Most memory it had at once, bytes.
    pub(crate) peak_bytes: u64,
    /// Records that came in.
    pub(crate) imported: u64,
}

/// Imports the install below `root` with the binary built beside this benchmark.
pub(crate) fn import(root: &Path) -> Took {
    let report = root.join("report.json");
    let started = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_zeroclaw"))
        .args(["doctor", "--fix", "--json", "--config-dir"])
        .arg(root)
        .env("HOME", root)
        .stdin(Stdio::null())
        .stdout(File::create(&report).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let process = Path::new("/proc").join(child.id().to_string());
    let (mut peak_kib, mut written) = (0, 0);
    loop {
        // The state first: what is read after it is read for the last time is final.
        let status = fs::read_to_string(process.join("status")).unwrap();
        let io = fs::read_to_string(process.join("io")).unwrap();
        written = number(&io, "write_bytes:").unwrap_or(written);
        // A dead process has no memory, but what it wrote is known until it is waited for.
        peak_kib = number(&status, "VmHWM:").unwrap_or(peak_kib);
        if line(&status, "State:").is_some_and(|state| state.starts_with('Z')) {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    let seconds = started.elapsed().as_secs_f64();
    let status = child.wait().unwrap();
    let report = fs::read_to_string(report).unwrap();
    assert!(status.success(), "{status}: {report}");
    Took {
        seconds,
        written,
        peak_bytes: peak_kib * 1_024,
        imported: imported(&report),
    }
}

fn line<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let mut lines = text.lines();
    lines.find_map(|line| line.strip_prefix(name).map(str::trim))
}

fn number(text: &str, name: &str) -> Option<u64> {
    line(text, name)?.split_whitespace().next()?.parse().ok()
}

/// The records that a report says came in; other values may stand before it.
fn imported(said: &str) -> u64 {
    let mut values = serde_json::Deserializer::from_str(said).into_iter::<Value>();
    let is_report = |value: &Value| value["sources"].is_array();
    let report = values.find_map(|value| value.ok().filter(is_report));
    let report = report.unwrap();
    let sources = report["sources"].as_array().unwrap().iter();
    let counts = sources.flat_map(|source| source["counts"].as_object().unwrap().values());
    counts
        .map(|count| count["imported"].as_u64().unwrap())
        .sum()
}
