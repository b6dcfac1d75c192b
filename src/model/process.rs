//! Which process did something, written down so that another one can tell later whether it lives.

use serde::{Deserialize, Serialize};

/// A process: its number is reused, so it goes with its start and the boot it belongs to.
///
/// Made and judged by `fs::process`; here it is a value that rows and files carry. All processes of one root must share
/// one numbering: in containers, one PID namespace.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProcessIdentity {
    /// Its number.
    pub pid: u32,
    /// When it started: clock ticks since boot on Linux, Unix seconds elsewhere; `None` where the system does not tell.
    #[serde(default)]
    pub start_ticks: Option<u64>,
    /// The boot of the machine; `None` where the system does not tell.
    #[serde(default)]
    pub boot_id: Option<String>,
}

impl ProcessIdentity {
    /// Its number, as a column holds it.
    #[must_use]
    pub fn pid_column(&self) -> i64 {
        i64::from(self.pid)
    }

    /// Its start, as a column holds it.
    #[must_use]
    pub fn start_column(&self) -> Option<String> {
        self.start_ticks.map(|ticks| ticks.to_string())
    }

    /// The process of three columns; `None` for a number that no process can have.
    ///
    /// A start in a form that is not ours is no start: then the boot and the number have to do.
    #[must_use]
    pub fn from_columns(pid: i64, start: Option<&str>, boot_id: Option<&str>) -> Option<Self> {
        let pid = u32::try_from(pid).ok().filter(|pid| *pid > 0)?;
        Some(Self {
            pid,
            start_ticks: start.and_then(|text| text.parse().ok()),
            boot_id: boot_id.filter(|id| !id.is_empty()).map(str::to_owned),
        })
    }
}

/// What can be said of a process from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// It lives, be it stopped or stuck.
    Alive,
    /// It has ended, and that is proven.
    Gone,
    /// Nobody can tell.
    Unknown,
}

impl Liveness {
    /// Whether it has ended, for sure.
    #[must_use]
    pub fn is_gone(self) -> bool {
        self == Self::Gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_survives_its_columns() {
        let process = ProcessIdentity {
            pid: 7,
            start_ticks: Some(4242),
            boot_id: Some("b".to_owned()),
        };
        let start = process.start_column();

        let read = ProcessIdentity::from_columns(process.pid_column(), start.as_deref(), Some("b"));

        assert_eq!(read, Some(process));
        for pid in [0, -1, i64::from(u32::MAX) + 1] {
            assert_eq!(ProcessIdentity::from_columns(pid, None, None), None);
        }
        let foreign = ProcessIdentity::from_columns(7, Some("yesterday"), Some("")).unwrap();
        assert_eq!((foreign.start_ticks, foreign.boot_id), (None, None));
    }
}
