//! Which process is which, and whether one of before still lives: the one place that asks the system.
//!
//! A process id alone is reused, quickest in containers, where ids are small and the first process of every start has the
//! same one. So it goes with a start time and a boot id, and an answer has three values: only what is *proven* gone may be
//! taken from its owner. A stopped process is alive. A zombie is gone: it runs no more, whoever has not collected it.
//!
//! Linux is read from `/proc`; other systems through `sysinfo`, which is not compiled on Linux. There the start is a time
//! of day, which tells boots apart by itself, and there is no boot id: what they give for one moves with the clock.

use crate::model::{Liveness, ProcessIdentity};

#[cfg(target_os = "linux")]
use linux as system;
#[cfg(not(target_os = "linux"))]
use other as system;

/// This process.
#[must_use]
pub fn own() -> ProcessIdentity {
    let pid = std::process::id();
    ProcessIdentity {
        pid,
        start_ticks: match system::find(pid) {
            Seen::Running { start } => start,
            Seen::Nothing | Seen::Hidden => None,
        },
        boot_id: system::boot_id(),
    }
}

/// Whether a process lives.
///
/// * [`Liveness::Gone`]: another boot, no such process, a zombie, or one that started at another time.
/// * [`Liveness::Unknown`]: a process of that number is there, and nothing tells whether it is the same one.
#[must_use]
pub fn liveness(process: &ProcessIdentity) -> Liveness {
    let boot_id = system::boot_id();
    if process.boot_id.is_some() && boot_id.is_some() && process.boot_id != boot_id {
        return Liveness::Gone;
    }
    match (system::find(process.pid), process.start_ticks) {
        (Seen::Nothing, _) => Liveness::Gone,
        (Seen::Running { start: Some(now) }, Some(then)) if now == then => Liveness::Alive,
        (Seen::Running { start: Some(_) }, Some(_)) => Liveness::Gone,
        (Seen::Running { .. } | Seen::Hidden, _) => Liveness::Unknown,
    }
}

/// What the system says of a process id.
enum Seen {
    /// No process runs under it.
    Nothing,
    /// One does.
    Running { start: Option<u64> },
    /// One may: the system shows only our own.
    #[cfg_attr(
        not(target_os = "linux"),
        expect(dead_code, reason = "Linux alone hides processes")
    )]
    Hidden,
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;
    use std::io::ErrorKind;

    use rustix::process::{Pid, test_kill_process};

    use super::Seen;

    /// Where things stand in `/proc/<pid>/stat`, counted after the name in brackets: fields 3, 20 and 22 of proc(5).
    const STATE_AFTER_NAME: usize = 0;
    const THREADS_AFTER_NAME: usize = 20 - 3;
    const START_AFTER_NAME: usize = 22 - 3;

    pub(super) fn boot_id() -> Option<String> {
        let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        Some(text.trim().to_owned()).filter(|id| !id.is_empty())
    }

    pub(super) fn find(pid: u32) -> Seen {
        match fs::read(format!("/proc/{pid}/stat")) {
            Ok(stat) => of_stat(&String::from_utf8_lossy(&stat)),
            // Mounted with `hidepid`, others' processes look as if they were not there.
            Err(error) if error.kind() == ErrorKind::NotFound && is_free(pid) => Seen::Nothing,
            Err(_) => Seen::Hidden,
        }
    }

    /// Whether no process has this number, as sending it a signal would tell.
    fn is_free(pid: u32) -> bool {
        let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
            return true;
        };
        test_kill_process(pid) == Err(rustix::io::Errno::SRCH)
    }

    /// The name may hold blanks and brackets, so counting starts at the last bracket.
    pub(super) fn of_stat(stat: &str) -> Seen {
        let Some((_, fields)) = stat.rsplit_once(')') else {
            return Seen::Running { start: None };
        };
        let fields: Vec<_> = fields.split_ascii_whitespace().collect();
        let number = |place: usize| fields.get(place).and_then(|field| field.parse().ok());
        let has_ended = matches!(fields.get(STATE_AFTER_NAME), Some(&("Z" | "X" | "x")));
        // A process whose first thread has ended shows as a zombie while the others work on.
        if has_ended && number(THREADS_AFTER_NAME).is_none_or(|threads: u64| threads <= 1) {
            return Seen::Nothing;
        }
        Seen::Running {
            start: number(START_AFTER_NAME),
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    use sysinfo::{Pid, ProcessRefreshKind, ProcessStatus, ProcessesToUpdate, System};

    use super::Seen;

    pub(super) fn boot_id() -> Option<String> {
        None
    }

    pub(super) fn find(pid: u32) -> Seen {
        let pid = Pid::from_u32(pid);
        let mut system = System::new();
        let only = [pid];
        system.refresh_processes_specifics(
            ProcessesToUpdate::Some(&only),
            false,
            ProcessRefreshKind::nothing(),
        );
        match system.process(pid) {
            None => Seen::Nothing,
            Some(found)
                if matches!(found.status(), ProcessStatus::Zombie | ProcessStatus::Dead) =>
            {
                Seen::Nothing
            }
            Some(found) => Seen::Running {
                start: Some(found.start_time()).filter(|start| *start > 0),
            },
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn the_start_time_is_found_behind_a_name_with_brackets() {
        let start = |stat: &str| match linux::of_stat(stat) {
            Seen::Running { start } => start,
            Seen::Nothing | Seen::Hidden => None,
        };
        let stat = "7 (a) b (c)) S 1 7 7 0 -1 4194560 1 0 0 0 1 2 0 0 20 0 1 0 4242 1000 10";

        assert_eq!(start(stat), Some(4242));
        assert_eq!(start("7 (a) S 1"), None);
        assert_eq!(start(""), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_zombie_is_gone_unless_threads_of_it_work_on() {
        let zombie = "7 (a) Z 1 7 7 0 -1 4194560 1 0 0 0 1 2 0 0 20 0 1 0 4242 1000 10";
        let headless = "7 (a) Z 1 7 7 0 -1 4194560 1 0 0 0 1 2 0 0 20 0 3 0 4242 1000 10";

        assert!(matches!(linux::of_stat(zombie), Seen::Nothing));
        assert!(matches!(linux::of_stat(headless), Seen::Running { .. }));
    }

    #[test]
    fn who_lives_is_alive_and_whoever_had_its_number_before_is_gone() {
        let other_start = ProcessIdentity {
            start_ticks: Some(1),
            ..own()
        };
        let no_start = ProcessIdentity {
            start_ticks: None,
            ..own()
        };
        let nobody = ProcessIdentity {
            // Above the highest number that Linux gives.
            pid: 5_000_000,
            ..own()
        };

        assert_eq!(liveness(&own()), Liveness::Alive);
        assert_eq!(liveness(&other_start), Liveness::Gone);
        assert_eq!(liveness(&no_start), Liveness::Unknown);
        assert_eq!(liveness(&nobody), Liveness::Gone);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_of_another_boot_is_gone_whatever_its_number() {
        let before = ProcessIdentity {
            boot_id: Some("before".to_owned()),
            ..own()
        };

        assert_eq!(liveness(&before), Liveness::Gone);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_child_that_ended_is_gone_before_its_parent_collects_it() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let mark = |pid| ProcessIdentity {
            pid,
            start_ticks: None,
            boot_id: None,
        };

        // It may take a moment to end; nobody waits for it meanwhile.
        let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while liveness(&mark(child.id())) != Liveness::Gone {
            assert!(std::time::Instant::now() < until, "the child never ended");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }

        child.wait().unwrap();
    }
}
