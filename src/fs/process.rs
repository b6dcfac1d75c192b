//! Which process is which: a process id alone is reused, so it goes with a start time and a boot id.

use std::fs;

use serde::{Deserialize, Serialize};

/// Where the start time stands in `/proc/<pid>/stat`, counted after the name in brackets: field 22 of proc(5).
const START_TIME_AFTER_NAME: usize = 22 - 3;

/// A process, written down so that another one can tell later whether it lives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessMark {
    pid: u32,
    start_ticks: Option<u64>,
    boot_id: Option<String>,
}

impl ProcessMark {
    /// This process.
    #[must_use]
    pub fn own() -> Self {
        let pid = std::process::id();
        Self {
            pid,
            start_ticks: start_ticks(pid),
            boot_id: boot_id(),
        }
    }

    /// Whether it has ended; `None` where the system does not tell.
    #[must_use]
    pub fn is_gone(&self) -> Option<bool> {
        self.start_ticks?;
        // The id alone is not enough: it is reused.
        Some(self.boot_id != boot_id() || self.start_ticks != start_ticks(self.pid))
    }
}

/// Gives the id of this boot of the machine; `None` where the system does not tell.
#[must_use]
pub fn boot_id() -> Option<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned()).filter(|id| !id.is_empty())
}

/// Gives the start of a process in clock ticks since boot; `None` if it is gone or the system does not tell.
#[must_use]
pub fn start_ticks(pid: u32) -> Option<u64> {
    start_ticks_from_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Lets this process have `needed` files open, as far as the system allows without asking anybody; gives how many it
/// may have now, `None` where there is no limit.
///
/// Goes up only, and at once to what the system allows: 1,024 are what shells give, the limit behind them is rarely
/// below 4,096.
pub fn raise_open_files_limit(needed: u64) -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let limit = getrlimit(Resource::Nofile);
    let is_enough = limit.current.is_none_or(|current| current >= needed);
    let highest = limit.maximum.unwrap_or(needed);
    if is_enough || limit.current.is_some_and(|current| current >= highest) {
        return limit.current;
    }
    let raised = Rlimit {
        current: Some(highest),
        maximum: limit.maximum,
    };
    // Some systems refuse more than they say they allow: then the old limit is what there is.
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => Some(highest),
        Err(error) => {
            tracing::debug!(%error, highest, "the limit of open files stays");
            limit.current
        }
    }
}

/// The name may hold blanks and brackets, so counting starts at the last bracket.
fn start_ticks_from_stat(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields
        .split_ascii_whitespace()
        .nth(START_TIME_AFTER_NAME)?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_time_is_found_behind_a_name_with_brackets() {
        let stat = "7 (a) b (c)) S 1 7 7 0 -1 4194560 1 0 0 0 1 2 0 0 20 0 1 0 4242 1000 10";

        assert_eq!(start_ticks_from_stat(stat), Some(4242));
        assert_eq!(start_ticks_from_stat("7 (a) S 1"), None);
        assert_eq!(start_ticks_from_stat(""), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_living_process_has_a_start_time_and_a_dead_one_has_none() {
        assert!(start_ticks(std::process::id()).is_some());
        assert_eq!(start_ticks(u32::MAX), None);
        assert!(boot_id().is_some());
        assert_eq!(ProcessMark::own().is_gone(), Some(false));
        let other_start = ProcessMark {
            start_ticks: Some(1),
            ..ProcessMark::own()
        };
        let unknown = ProcessMark {
            start_ticks: None,
            ..ProcessMark::own()
        };
        assert_eq!(other_start.is_gone(), Some(true));
        assert_eq!(unknown.is_gone(), None);
    }
}
