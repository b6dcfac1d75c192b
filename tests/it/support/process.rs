//! Processes of our own: this test binary again, to play one part.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Names the file a part plays on.
const PLAYED: &str = "ZEROCLAW_TEST_PLAYED";
/// Longest wait for another process.
const PATIENCE: Duration = Duration::from_secs(60);

/// The command that runs the ignored test `part` of this binary on `path`.
pub(crate) fn part(part: &str, path: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", part, "--ignored", "--nocapture"])
        .env(PLAYED, path)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// The file to play on; `None` for who runs all ignored tests by hand.
pub(crate) fn played_on() -> Option<std::path::PathBuf> {
    std::env::var_os(PLAYED).map(Into::into)
}

/// Waits until `is_so`, or fails.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < PATIENCE, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
