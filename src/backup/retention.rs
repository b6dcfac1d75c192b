//! Which archives retention keeps. It computes only: dates and rules in, decisions out.
//!
//! Rules count archives, never ages: `daily: 7` keeps the newest archive of each of the last seven days *that have
//! one*, as restic does. So a clock that jumps ahead deletes nothing, however far. Days, weeks (ISO, Monday to Sunday)
//! and months are those of UTC.

use std::path::{Path, PathBuf};

use chrono::{DateTime, Datelike, Utc};
use serde::Serialize;

use crate::fs::layout::{ARCHIVE_PREFIX, ARCHIVE_SUFFIX, BEFORE_IMPORT_SUFFIX, SEALED_SUFFIX};
use crate::model::KeepReason;

/// Characters of the time in an archive's name.
const STAMP: usize = "20261130T164228Z".len();
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
/// A newest archive older than this, days, makes a large deletion doubtful: the clock may be wrong.
const DOUBTFUL_AFTER_DAYS: i64 = 60;

/// How many archives of each kind stay; 0 switches a rule off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rules {
    /// The newest ones.
    pub last: u32,
    /// The newest of a day, on so many days.
    pub daily: u32,
    /// The newest of a week, in so many weeks.
    pub weekly: u32,
    /// The newest of a month, in so many months.
    pub monthly: u32,
}

impl Rules {
    /// Whether no rule is given.
    #[must_use]
    pub fn is_off(&self) -> bool {
        *self == Self::default()
    }
}

/// An archive, as far as retention is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dated {
    /// The file.
    pub path: PathBuf,
    /// When its backup began.
    pub created_at_ms: i64,
    /// Why it stays whatever the rules say; it then takes no place of others.
    pub pinned: Option<KeepReason>,
}

/// What becomes of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The file.
    pub path: PathBuf,
    /// Whether it stays.
    pub keep: bool,
    /// Why it stays; empty if it does not.
    pub reasons: Vec<KeepReason>,
}

/// Decides about archives; newest first, and by path where two are of one moment.
///
/// Without any rule everything stays. The newest archive that is neither pinned nor dated in the future stays under
/// any rule; those that are, stay too, and are not counted.
#[must_use]
pub fn keep(archives: &[Dated], rules: &Rules, now_ms: i64) -> Vec<Decision> {
    let mut archives: Vec<&Dated> = archives.iter().collect();
    archives.sort_by(|a, b| (b.created_at_ms, &b.path).cmp(&(a.created_at_ms, &a.path)));
    let mut counters = [
        Counter::new(KeepReason::Last, rules.last),
        Counter::new(KeepReason::Daily, rules.daily),
        Counter::new(KeepReason::Weekly, rules.weekly),
        Counter::new(KeepReason::Monthly, rules.monthly),
    ];
    let mut is_newest = true;
    let decide = |archive: &Dated| {
        let mut reasons: Vec<KeepReason> = archive.pinned.into_iter().collect();
        if archive.created_at_ms > now_ms {
            reasons.push(KeepReason::Future);
        }
        if reasons.is_empty() {
            let counted = counters.iter_mut();
            reasons.extend(counted.filter_map(|counter| counter.count(archive.created_at_ms)));
            if std::mem::take(&mut is_newest) {
                reasons.push(KeepReason::Newest);
            }
            if rules.is_off() {
                reasons.push(KeepReason::NoRule);
            }
        }
        Decision {
            path: archive.path.clone(),
            keep: !reasons.is_empty(),
            reasons,
        }
    };
    archives.into_iter().map(decide).collect()
}

/// Whether a plan deletes more than half while nothing was backed up for long: perhaps the clock jumped.
#[must_use]
pub fn is_doubtful(archives: &[Dated], decisions: &[Decision], now_ms: i64) -> bool {
    let dates = archives.iter().map(|archive| archive.created_at_ms);
    let newest = dates.filter(|created| *created <= now_ms).max();
    let is_old =
        newest.is_some_and(|newest| now_ms.saturating_sub(newest) > DOUBTFUL_AFTER_DAYS * DAY_MS);
    let deleted = decisions.iter().filter(|decision| !decision.keep).count();
    is_old && deleted * 2 > decisions.len()
}

/// Whether a file has a name that a backup or an import gives; one with another name was named by a person.
#[must_use]
pub fn is_given_name(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let Some(middle) = name.and_then(|name| name.strip_prefix(ARCHIVE_PREFIX)) else {
        return false;
    };
    let middle = middle
        .strip_suffix(BEFORE_IMPORT_SUFFIX)
        .or_else(|| middle.strip_suffix(ARCHIVE_SUFFIX))
        .or_else(|| middle.strip_suffix(SEALED_SUFFIX));
    let Some((stamp, id)) = middle.and_then(|middle| middle.split_once('-')) else {
        return false;
    };
    stamp.len() == STAMP
        && stamp.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && !id.is_empty()
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Counts one rule down. It is shown archives from the newest to the oldest.
struct Counter {
    rule: KeepReason,
    left: u32,
    period: Option<(i64, u32)>,
}

impl Counter {
    fn new(rule: KeepReason, left: u32) -> Self {
        Self {
            rule,
            left,
            period: None,
        }
    }

    /// The rule, if it keeps an archive of this time.
    fn count(&mut self, created_at_ms: i64) -> Option<KeepReason> {
        let period = period(self.rule, created_at_ms);
        if self.left == 0 || (period.is_some() && period == self.period) {
            return None;
        }
        self.left -= 1;
        self.period = period;
        Some(self.rule)
    }
}

/// The day, week or month of a time; `None` for a rule that has no periods.
fn period(rule: KeepReason, ms: i64) -> Option<(i64, u32)> {
    let date = date(ms);
    match rule {
        KeepReason::Daily => Some((i64::from(date.year()), date.ordinal())),
        KeepReason::Weekly => {
            let week = date.iso_week();
            Some((i64::from(week.year()), week.week()))
        }
        KeepReason::Monthly => Some((i64::from(date.year()), date.month())),
        _ => None,
    }
}

/// A time beyond the calendar is on its first or last day: manifests may say anything.
fn date(ms: i64) -> DateTime<Utc> {
    let end = if ms < 0 {
        DateTime::<Utc>::MIN_UTC
    } else {
        DateTime::<Utc>::MAX_UTC
    };
    DateTime::from_timestamp_millis(ms).unwrap_or(end)
}

#[cfg(test)]
mod tests;
