//! When a schedule is due: pure arithmetic, no clock.
//!
//! Rules for local times that a zone skips or repeats, in the manner of Vixie cron:
//!
//! - A **fixed** time (no `*`, `?` or step in seconds, minutes and hours: `30 2 * * *`, `0 9,18 * * 1`) runs once a day it
//!   names. Skipped, it runs at the first instant after the gap; several times of one gap are one run. Repeated, it
//!   runs the first time only.
//! - An **interval** (`*/15 * * * *`, `0 * * * *`) follows real time: it runs in both passes of a repeated hour, and what a
//!   gap skips is skipped.
//! - Distances (`every`) and instants (`at`) know no zone.
//!
//! Expressions of 5 fields number the days of the week from Sunday 0, with 7 for Sunday too. Those of 6 and 7 fields,
//! seconds first and the year last, number them from Sunday 1, as the runtime that they were written for did. Names (`MON`)
//! mean the same in both. Where day of month and day of week are both given, either is enough; a `+` before the day of the
//! week asks for both.

use std::str::FromStr;

use chrono::offset::LocalResult;
use chrono::{DateTime, NaiveDateTime, Offset, TimeDelta, TimeZone, Timelike, Utc};
use chrono_tz::Tz;
use croner::Cron;
use croner::parser::CronParser;

use super::Schedule;

/// Fields by their place in an expression of 7.
const FIELDS: [&str; 7] = [
    "second",
    "minute",
    "hour",
    "day of month",
    "month",
    "day of week",
    "year",
];

/// Shorthands and what they stand for.
const NICKNAMES: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// Longest expression that is looked at, bytes.
const MAX_EXPR_BYTES: usize = 512;

/// More than any zone is away from UTC, seconds.
const FARTHEST_OFFSET_S: i64 = 16 * 60 * 60;

/// Why a schedule cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// The expression has the wrong number of fields.
    #[error("{expr:?} has {found} fields, a cron expression has 5, 6 or 7")]
    Fields {
        /// The expression.
        expr: String,
        /// Fields it has.
        found: usize,
    },
    /// A field of the expression cannot be read.
    #[error("the field {field} of {expr:?} cannot be {text:?}: {reason}")]
    Field {
        /// The expression.
        expr: String,
        /// Which field.
        field: &'static str,
        /// The field as written.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The expression cannot be read.
    #[error("{expr:?} is no cron expression: {reason}")]
    Expression {
        /// The expression, its beginning.
        expr: String,
        /// What is wrong with it.
        reason: String,
    },
    /// No such zone.
    #[error("{name:?} is no time zone of the IANA database, such as Europe/Berlin")]
    Zone {
        /// The name.
        name: String,
    },
    /// The distance is not positive.
    #[error("a distance of {every_ms} ms is not positive")]
    Distance {
        /// The distance.
        every_ms: i64,
    },
}

/// A schedule that can tell when it is due.
#[derive(Clone, Debug)]
pub struct Timetable(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Cron(Box<Local>),
    Every { every_ms: i64, anchor_ms: i64 },
    At { at_ms: i64 },
}

/// An expression in a zone.
#[derive(Clone, Debug)]
struct Local {
    cron: Cron,
    zone: Tz,
    is_fixed: bool,
}

/// The name as the IANA database writes it; `None` where it has no such zone.
#[must_use]
pub fn zone_name(name: &str) -> Option<&'static str> {
    Tz::from_str(name).ok().map(Tz::name)
}

impl Timetable {
    /// Reads a schedule.
    ///
    /// * `zone`: IANA name for expressions that name none.
    /// * `anchor_ms`: where distances without an anchor are counted from.
    ///
    /// # Errors
    ///
    /// [`ScheduleError`], which says what is wrong and where.
    pub fn new(schedule: &Schedule, zone: &str, anchor_ms: i64) -> Result<Self, ScheduleError> {
        Ok(Self(match schedule {
            Schedule::Cron { expr, tz, .. } => {
                let name = tz.as_deref().unwrap_or(zone);
                let zone = Tz::from_str(name).map_err(|_| ScheduleError::Zone {
                    name: name.to_owned(),
                })?;
                Kind::Cron(Box::new(Local::new(expr, zone)?))
            }
            Schedule::Every {
                every_ms,
                anchor_ms: own,
            } => {
                let every_ms = *every_ms;
                if every_ms <= 0 {
                    return Err(ScheduleError::Distance { every_ms });
                }
                Kind::Every {
                    every_ms,
                    anchor_ms: own.unwrap_or(anchor_ms),
                }
            }
            Schedule::At { at_ms } => Kind::At { at_ms: *at_ms },
        }))
    }

    /// The first instant it is due after `after_ms`, always later; `None` when it never is again.
    #[must_use]
    pub fn next_after(&self, after_ms: i64) -> Option<i64> {
        match &self.0 {
            Kind::Cron(local) => local.next_after(after_ms),
            Kind::Every {
                every_ms,
                anchor_ms,
            } => {
                if after_ms < *anchor_ms {
                    return Some(*anchor_ms);
                }
                let passed = after_ms.checked_sub(*anchor_ms)? / every_ms;
                anchor_ms.checked_add(passed.checked_add(1)?.checked_mul(*every_ms)?)
            }
            Kind::At { at_ms } => Some(*at_ms).filter(|at_ms| *at_ms > after_ms),
        }
    }

    /// The last instant it is due after `after_ms`, up to and with `until_ms`; `None` when there is none.
    #[must_use]
    pub fn last_until(&self, after_ms: i64, until_ms: i64) -> Option<i64> {
        let first = self.next_after(after_ms).filter(|at| *at <= until_ms)?;
        // From any instant before the last one the next is not after the end; from it on, it is.
        let (mut before, mut behind) = (first.saturating_sub(1), until_ms);
        while behind - before > 1 {
            let middle = before + (behind - before) / 2;
            match self.next_after(middle) {
                Some(next) if next <= until_ms => before = middle,
                _ => behind = middle,
            }
        }
        self.next_after(before)
    }

    /// How often it is due after `after_ms`, up to and with `until_ms`, counted no further than `most`.
    #[must_use]
    pub fn count_until(&self, after_ms: i64, until_ms: i64, most: u32) -> u32 {
        let mut count = 0;
        let mut at = after_ms;
        while count < most {
            match self.next_after(at) {
                Some(next) if next <= until_ms => at = next,
                _ => break,
            }
            count += 1;
        }
        count
    }
}

impl Local {
    fn new(expr: &str, zone: Tz) -> Result<Self, ScheduleError> {
        let expr = expr.trim();
        if expr.len() > MAX_EXPR_BYTES {
            let start: String = expr.chars().take(40).collect();
            return Err(ScheduleError::Expression {
                expr: start,
                reason: format!("it is longer than {MAX_EXPR_BYTES} bytes"),
            });
        }
        let text = NICKNAMES
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(expr))
            .map_or(expr, |(_, text)| text);
        let fields: Vec<&str> = text.split_ascii_whitespace().collect();
        if !(5..=7).contains(&fields.len()) {
            return Err(ScheduleError::Fields {
                expr: expr.to_owned(),
                found: fields.len(),
            });
        }
        let cron = parse(&fields).map_err(|reason| place(expr, &fields, reason))?;
        let times = if fields.len() == 5 { 0..2 } else { 0..3 };
        let is_fixed = !fields[times]
            .iter()
            .any(|field| field.contains(['*', '?', '/']));
        Ok(Self {
            cron,
            zone,
            is_fixed,
        })
    }

    fn next_after(&self, after_ms: i64) -> Option<i64> {
        let after = DateTime::from_timestamp_millis(after_ms)?;
        let next = if self.is_fixed {
            self.fixed_after(after)?
        } else {
            self.interval_after(after)?
        };
        Some(next.timestamp_millis())
    }

    /// Each local time that matches is one instant, and these follow each other as the local times do, so the first one
    /// behind `after` is found by going on from its local time.
    fn fixed_after(&self, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let mut local = self.local(after);
        loop {
            local = self.matching_after(local)?;
            let at = match self.zone.from_local_datetime(&local) {
                LocalResult::Single(at) | LocalResult::Ambiguous(at, _) => at.to_utc(),
                LocalResult::None => self.gap_end(local)?,
            };
            if at > after {
                return Some(at);
            }
        }
    }

    /// What lies ahead of `after` in this pass of its local times, or in the second pass if that comes first.
    fn interval_after(&self, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let from = self.local(after);
        let straight = self.interval_from(from, after)?;
        let LocalResult::Ambiguous(_, later) = self.zone.from_local_datetime(&from) else {
            return Some(straight);
        };
        let later = later.to_utc();
        if later <= after {
            return Some(straight);
        }
        let back = self.change_between(after, later);
        let again = self.local(back) - TimeDelta::seconds(1);
        let again = self.interval_from(again, back - TimeDelta::seconds(1))?;
        Some(straight.min(again))
    }

    /// The first instant after `after` whose local time matches and is behind `local`.
    fn interval_from(
        &self,
        mut local: NaiveDateTime,
        after: DateTime<Utc>,
    ) -> Option<DateTime<Utc>> {
        loop {
            local = self.matching_after(local)?;
            match self.zone.from_local_datetime(&local) {
                LocalResult::Single(at) => return Some(at.to_utc()),
                LocalResult::Ambiguous(first, second) => {
                    let first = first.to_utc();
                    return Some(if first > after {
                        first
                    } else {
                        second.to_utc()
                    });
                }
                LocalResult::None => {
                    local = self.local(self.gap_end(local)?) - TimeDelta::seconds(1);
                }
            }
        }
    }

    /// Local time of an instant, whole seconds.
    fn local(&self, at: DateTime<Utc>) -> NaiveDateTime {
        let local = at.with_timezone(&self.zone).naive_local();
        local.with_nanosecond(0).unwrap_or(local)
    }

    /// The next local time behind `local` that matches, as if no zone ever changed.
    fn matching_after(&self, local: NaiveDateTime) -> Option<NaiveDateTime> {
        let next = self.cron.find_next_occurrence(&local.and_utc(), false);
        next.ok().map(|next| next.naive_utc())
    }

    /// The first instant behind the gap that a local time is in.
    fn gap_end(&self, local: NaiveDateTime) -> Option<DateTime<Utc>> {
        let far = TimeDelta::seconds(FARTHEST_OFFSET_S);
        let (mut before, mut behind) = (local.and_utc() - far, local.and_utc() + far);
        while behind - before > TimeDelta::seconds(1) {
            let middle = before + TimeDelta::seconds((behind - before).num_seconds() / 2);
            if self.local(middle) > local {
                behind = middle;
            } else {
                before = middle;
            }
        }
        Some(behind)
    }

    /// The first instant of another offset than that of `from`, which `until` has.
    fn change_between(&self, from: DateTime<Utc>, until: DateTime<Utc>) -> DateTime<Utc> {
        let offset = |at: DateTime<Utc>| self.zone.offset_from_utc_datetime(&at.naive_utc()).fix();
        let before_change = offset(from);
        // Zones change at whole seconds.
        let (mut before, mut behind) = (from.timestamp(), until.timestamp());
        while behind - before > 1 {
            let middle = before + (behind - before) / 2;
            match DateTime::from_timestamp(middle, 0) {
                Some(at) if offset(at) == before_change => before = middle,
                _ => behind = middle,
            }
        }
        DateTime::from_timestamp(behind, 0).unwrap_or(until)
    }
}

fn parse(fields: &[&str]) -> Result<Cron, String> {
    let has_seconds = fields.len() > 5;
    let weekday = fields[if has_seconds { 5 } else { 4 }];
    let names_zero = |part: &str| part.trim_start_matches('+').starts_with('0');
    if has_seconds && weekday.split(',').any(names_zero) {
        return Err("with seconds, Sunday is 1 and Saturday 7; there is no 0".to_owned());
    }
    let parser = CronParser::builder()
        .alternative_weekdays(has_seconds)
        // `0/15` was accepted where seconds were.
        .sloppy_ranges(has_seconds)
        .build();
    parser.parse(&fields.join(" ")).map_err(|error| {
        let text = error.to_string();
        let text = text.split_once(": ").map_or(&*text, |(_, reason)| reason);
        text.trim_end_matches('.').to_owned()
    })
}

/// Finds the field that cannot be read, by reading each beside stars.
fn place(expr: &str, fields: &[&str], reason: String) -> ScheduleError {
    for (index, text) in fields.iter().enumerate() {
        let mut alone = vec!["*"; fields.len()];
        alone[index] = text;
        if let Err(reason) = parse(&alone) {
            let skipped = usize::from(fields.len() == 5);
            return ScheduleError::Field {
                expr: expr.to_owned(),
                field: FIELDS[index + skipped],
                text: (*text).to_owned(),
                reason,
            };
        }
    }
    ScheduleError::Expression {
        expr: expr.to_owned(),
        reason,
    }
}

#[cfg(test)]
mod tests;
