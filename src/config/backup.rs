//! `[state.backup]`: backups that a daemon makes by itself.
//!
//! ```toml
//! [state.backup]
//! schedule = "30 3 * * *"       # Or "@daily"; minutes, hours, days, months, days of the week.
//! timezone = "Europe/Lisbon"    # An IANA name; UTC without it.
//! folder = "/mnt/backups"       # The folder `backups` of the root without it.
//! include_workspace = true
//! with_secrets = true           # As `backup create` does unless told otherwise.
//! encrypt_to = ["age1…"]        # Or `passphrase_file`.
//! keep_daily = 7                # And `keep_last`, `keep_weekly`, `keep_monthly`; without any, all stay.
//! ```
//!
//! Strict where the rest of the file is read leniently: a schedule that cannot be read must not become no backups.

use std::path::PathBuf;

use serde::Deserialize;

use super::section::{Section, Warnings};
use crate::model::{Schedule, Timetable};

/// What the file says of backups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BackupSchedule {
    /// Nothing: none is made unasked.
    #[default]
    Off,
    /// How and when.
    On(Box<ScheduledBackup>),
    /// Something that cannot be read: key and reason.
    Fault(String),
}

/// Backups that are made by themselves.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct ScheduledBackup {
    /// Cron expression of 5 to 7 fields, or a word as `@daily`.
    pub schedule: String,
    /// IANA name of the zone it is meant in.
    #[serde(default = "utc")]
    pub timezone: String,
    /// Where archives go; `None` for the folder `backups` of the root.
    #[serde(default)]
    pub folder: Option<PathBuf>,
    /// The agents' own files too.
    #[serde(default)]
    pub include_workspace: bool,
    /// Keys and credentials too.
    #[serde(default = "yes")]
    pub with_secrets: bool,
    /// Recipients of the age format.
    #[serde(default)]
    pub encrypt_to: Vec<String>,
    /// A file whose first line is a passphrase.
    #[serde(default)]
    pub passphrase_file: Option<PathBuf>,
    /// Newest archives that stay.
    #[serde(default)]
    pub keep_last: u32,
    /// Days of which the newest archive stays.
    #[serde(default)]
    pub keep_daily: u32,
    /// Weeks of which it does.
    #[serde(default)]
    pub keep_weekly: u32,
    /// Months of which it does.
    #[serde(default)]
    pub keep_monthly: u32,
}

fn utc() -> String {
    "UTC".to_owned()
}

fn yes() -> bool {
    true
}

impl ScheduledBackup {
    /// When it is due. It was read before, so that there is an answer; `None` would be a schedule that is never due.
    #[must_use]
    pub fn timetable(&self) -> Option<Timetable> {
        timetable(self).ok()
    }
}

fn timetable(backup: &ScheduledBackup) -> Result<Timetable, String> {
    let schedule = Schedule::Cron {
        expr: backup.schedule.clone(),
        tz: Some(backup.timezone.clone()),
        tz_origin: None,
    };
    Timetable::new(&schedule, "UTC", 0).map_err(|error| error.to_string())
}

impl BackupSchedule {
    /// Reads the part, if there is one.
    pub(super) fn read(state: &Section<'_>, warnings: &mut Warnings) -> Self {
        let Some(value) = state.table.get("backup") else {
            return Self::Off;
        };
        match take(value) {
            Ok(backup) => Self::On(Box::new(backup)),
            Err(reason) => {
                let fault = format!("state.backup: {reason}");
                warnings.0.push(fault.clone());
                Self::Fault(fault)
            }
        }
    }
}

fn take(value: &toml::Value) -> Result<ScheduledBackup, String> {
    // The message of a type names keys and types, never a value that might be a secret.
    let backup =
        ScheduledBackup::deserialize(value.clone()).map_err(|error| error.message().to_owned())?;
    if !backup.encrypt_to.is_empty() && backup.passphrase_file.is_some() {
        return Err("either encrypt_to or passphrase_file".to_owned());
    }
    for path in [&backup.folder, &backup.passphrase_file]
        .into_iter()
        .flatten()
    {
        if !path.is_absolute() {
            return Err(format!("{} is no absolute path", path.display()));
        }
    }
    timetable(&backup)?;
    Ok(backup)
}

#[cfg(test)]
mod tests {
    use super::BackupSchedule;
    use crate::config::Config;

    fn read(text: &str) -> BackupSchedule {
        Config::parse(text).unwrap().backup
    }

    #[test]
    fn no_backup_is_made_unasked_and_one_that_is_asked_for_is_read() {
        assert_eq!(read(""), BackupSchedule::Off);
        let text = "[state.backup]\nschedule = \"@daily\"\nkeep_daily = 7\n";
        let BackupSchedule::On(backup) = read(text) else {
            panic!("it is on");
        };
        assert_eq!((backup.keep_daily, backup.with_secrets), (7, true));
        let at = backup.timetable().unwrap().next_after(0);
        assert_eq!(at, Some(24 * 60 * 60 * 1_000));
    }

    #[test]
    fn what_cannot_be_read_is_named_and_is_not_off() {
        for (text, named) in [
            ("[state]\nbackup = true", "state.backup:"),
            ("[state.backup]\nkeep_last = 3", "schedule"),
            ("[state.backup]\nschedule = \"soon\"", "soon"),
            (
                "[state.backup]\nschedule = \"@daily\"\ntimezone = \"Moon/Sea\"",
                "Moon/Sea",
            ),
            (
                "[state.backup]\nschedule = \"@daily\"\nkeep_dialy = 1",
                "keep_dialy",
            ),
            (
                "[state.backup]\nschedule = \"@daily\"\nfolder = \"here\"",
                "absolute",
            ),
        ] {
            let config = Config::parse(text).unwrap();
            let BackupSchedule::Fault(fault) = &config.backup else {
                panic!("{text}");
            };
            assert!(fault.contains(named), "{fault}");
            assert!(config.warnings.contains(fault));
        }
    }
}
