//! C63: local times that a zone skips or repeats, against a model that steps through time.
//!
//! The model reads the clock on the wall at every minute (or second) round a change of a zone and writes down when a job
//! runs. It knows nothing of how the product finds the next time.

use std::collections::BTreeSet;

use chrono::{DateTime, Datelike, NaiveDateTime, Offset, TimeZone, Timelike, Utc};
use chrono_tz::Tz;
use zeroclaw::model::{Schedule, Timetable};

use crate::support::rng::Rng;

/// Zones that change, at all sorts of hours and by all sorts of steps.
const ZONES: [&str; 14] = [
    "America/New_York",
    "America/Santiago",
    "America/Havana",
    "America/Nuuk",
    "America/St_Johns",
    "Africa/Cairo",
    "Africa/Casablanca",
    "Asia/Beirut",
    "Asia/Jerusalem",
    "Atlantic/Azores",
    "Australia/Lord_Howe",
    "Europe/London",
    "Europe/Chisinau",
    "Pacific/Chatham",
];

const HOUR_S: i64 = 3_600;

/// A list of numbers, or all.
struct Field(Option<Vec<u32>>);

impl Field {
    fn fits(&self, value: u32) -> bool {
        self.0.as_ref().is_none_or(|list| list.contains(&value))
    }
}

/// A job as the model understands it: the text is for the product alone.
struct Job {
    text: String,
    second: Field,
    minute: Field,
    hour: Field,
    day: Field,
    weekday: Field,
    is_fixed: bool,
}

impl Job {
    fn fits(&self, local: NaiveDateTime) -> bool {
        let weekday = local.weekday().num_days_from_sunday();
        let day = match (&self.day.0, &self.weekday.0) {
            (Some(_), Some(_)) => self.day.fits(local.day()) || self.weekday.fits(weekday),
            _ => self.day.fits(local.day()) && self.weekday.fits(weekday),
        };
        day && self.second.fits(local.second())
            && self.minute.fits(local.minute())
            && self.hour.fits(local.hour())
    }
}

fn list(values: &[u32]) -> Field {
    Field(Some(values.to_vec()))
}

fn job(text: &str, minute: Field, hour: Field, is_fixed: bool) -> Job {
    Job {
        text: text.to_owned(),
        second: list(&[0]),
        minute,
        hour,
        day: Field(None),
        weekday: Field(None),
        is_fixed,
    }
}

fn jobs() -> Vec<Job> {
    let all = || Field(None);
    let mut jobs = vec![
        job("*/15 * * * *", list(&[0, 15, 30, 45]), all(), false),
        job("7 * * * *", list(&[7]), all(), false),
        job(
            "0 */2 * * *",
            list(&[0]),
            Field(Some((0..24).step_by(2).collect())),
            false,
        ),
        job(
            "*/20 1-3 * * *",
            list(&[0, 20, 40]),
            list(&[1, 2, 3]),
            false,
        ),
        job("0 0 * * *", list(&[0]), list(&[0]), true),
        job("30 0 * * *", list(&[30]), list(&[0]), true),
        job("30 1 * * *", list(&[30]), list(&[1]), true),
        job("45 1,2,3 * * *", list(&[45]), list(&[1, 2, 3]), true),
        job(
            "15,45 0-3 * * *",
            list(&[15, 45]),
            list(&[0, 1, 2, 3]),
            true,
        ),
        job("30 2 * * *", list(&[30]), list(&[2]), true),
        job("59 23 * * *", list(&[59]), list(&[23]), true),
    ];
    let mut sundays = job("10 2 * * 0", list(&[10]), list(&[2]), true);
    sundays.weekday = list(&[0]);
    let mut either = job("30 1 8 * 0", list(&[30]), list(&[1]), true);
    either.day = list(&[8]);
    either.weekday = list(&[0]);
    jobs.extend([sundays, either]);
    jobs
}

fn local(zone: Tz, at_s: i64) -> NaiveDateTime {
    let at = DateTime::<Utc>::from_timestamp(at_s, 0).unwrap();
    at.with_timezone(&zone).naive_local()
}

fn offset_s(zone: Tz, at_s: i64) -> i32 {
    let at = DateTime::<Utc>::from_timestamp(at_s, 0).unwrap();
    let offset = zone.offset_from_utc_datetime(&at.naive_utc()).fix();
    offset.local_minus_utc()
}

fn instant(text: &str) -> i64 {
    DateTime::parse_from_rfc3339(text).unwrap().timestamp()
}

/// The seconds at which a zone changes, 2024 to 2030, found by looking at every half hour.
fn changes(zone: Tz) -> Vec<i64> {
    let (from, until) = (
        instant("2024-01-01T00:00:00Z"),
        instant("2031-01-01T00:00:00Z"),
    );
    let mut found = Vec::new();
    for start in (from..until).step_by(1_800) {
        let before = offset_s(zone, start);
        if offset_s(zone, start + 1_800) != before {
            found.push((start..).find(|at| offset_s(zone, *at) != before).unwrap());
        }
    }
    found
}

/// When a job runs in `(from, until]`, by stepping; `from` must be no local time that comes twice.
fn stepped(job: &Job, zone: Tz, from: i64, until: i64, step_s: i64) -> Vec<i64> {
    let mut runs = Vec::new();
    let mut seen = BTreeSet::from([local(zone, from)]);
    let mut previous = local(zone, from);
    for at in (from + step_s..=until).step_by(usize::try_from(step_s).unwrap()) {
        let now = local(zone, at);
        let step = chrono::TimeDelta::seconds(step_s);
        let mut is_due = job.fits(now);
        if job.is_fixed {
            is_due &= !seen.contains(&now);
            let mut skipped = previous + step;
            while skipped < now {
                is_due |= job.fits(skipped);
                skipped += step;
            }
        }
        if is_due {
            runs.push(at);
        }
        seen.insert(now);
        previous = now;
    }
    runs
}

fn table(job: &Job, zone: Tz) -> Timetable {
    let schedule = Schedule::Cron {
        expr: job.text.clone(),
        tz: Some(zone.name().to_owned()),
        tz_origin: None,
    };
    Timetable::new(&schedule, "UTC", 0).unwrap()
}

/// What the product says for the same stretch, each time asked from the last.
fn chained(table: &Timetable, from: i64, until: i64) -> Vec<i64> {
    let mut runs = Vec::new();
    let mut at_ms = from * 1_000;
    while let Some(next) = table.next_after(at_ms) {
        assert!(next > at_ms, "{next} is not later than {at_ms}");
        assert_eq!(next % 1_000, 0);
        if next > until * 1_000 {
            break;
        }
        runs.push(next / 1_000);
        at_ms = next;
    }
    runs
}

/// Compares both round one change, from the start and from places in between.
fn agree(job: &Job, zone: Tz, change: i64, reach_s: i64, step_s: i64, rng: &mut Rng) {
    let (from, until) = (change - reach_s, change + reach_s);
    let table = table(job, zone);
    let expected = stepped(job, zone, from, until, step_s);
    let place = || format!("{} in {} round {change}", job.text, zone.name());

    assert_eq!(chained(&table, from, until), expected, "{}", place());
    for _ in 0..12 {
        // Within the hours round the change, at a whole second or not.
        let near = u64::try_from(5 * HOUR_S * 1_000).unwrap();
        let at_ms = (change * 1_000 - 5 * HOUR_S * 500) + i64::try_from(rng.below(near)).unwrap();
        let next = expected.iter().find(|run| **run * 1_000 > at_ms);
        if let Some(next) = next {
            assert_eq!(
                table.next_after(at_ms),
                Some(next * 1_000),
                "{} from {at_ms}",
                place()
            );
        }
    }
}

#[test]
fn c63_every_change_of_2024_to_2030_agrees_with_the_model() {
    let mut rng = Rng::new(63);
    for name in ZONES {
        let zone: Tz = name.parse().unwrap();
        let changes = changes(zone);
        assert!(changes.len() >= 13, "{name} has {} changes", changes.len());
        for change in changes {
            for job in &jobs() {
                agree(job, zone, change, 14 * HOUR_S, 60, &mut rng);
            }
        }
    }
}

#[test]
fn c63_seconds_agree_with_the_model_too() {
    let mut rng = Rng::new(7);
    let second = |text: &str, second: Field, minute, hour, is_fixed| Job {
        second,
        ..job(text, minute, hour, is_fixed)
    };
    let jobs = [
        second(
            "*/20 59 * * * *",
            list(&[0, 20, 40]),
            list(&[59]),
            Field(None),
            false,
        ),
        second(
            "15 30 1,2 * * *",
            list(&[15]),
            list(&[30]),
            list(&[1, 2]),
            true,
        ),
        second("5 0 0 * * * *", list(&[5]), list(&[0]), list(&[0]), true),
    ];
    for name in ["Australia/Lord_Howe", "America/Santiago", "Europe/London"] {
        let zone: Tz = name.parse().unwrap();
        for change in changes(zone).into_iter().take(4) {
            for job in &jobs {
                agree(job, zone, change, 3 * HOUR_S, 1, &mut rng);
            }
        }
    }
}

fn runs(text: &str, zone: &str, from: &str, until: &str) -> Vec<String> {
    let job = job(text, Field(None), Field(None), false);
    let found = chained(
        &table(&job, zone.parse().unwrap()),
        instant(from) - 1,
        instant(until),
    );
    let shown = found
        .iter()
        .map(|at| DateTime::<Utc>::from_timestamp(*at, 0).unwrap());
    shown
        .map(|at| at.format("%m-%dT%H:%M").to_string())
        .collect()
}

#[test]
fn c63_a_skipped_time_runs_once_at_the_end_of_the_gap() {
    // New York, 2026-03-08: 01:59 EST, then 03:00 EDT (07:00 UTC).
    let day = ("2026-03-07T12:00:00Z", "2026-03-09T12:00:00Z");

    let skipped = runs("30 2 * * *", "America/New_York", day.0, day.1);

    assert_eq!(skipped, ["03-08T07:00", "03-09T06:30"]);
    // Both times of the gap are one run, with the one that is due there anyway.
    let several = runs("0,30 2,3 * * *", "America/New_York", day.0, day.1);
    assert_eq!(
        several,
        [
            "03-08T07:00",
            "03-08T07:30",
            "03-09T06:00",
            "03-09T06:30",
            "03-09T07:00",
            "03-09T07:30"
        ]
    );
}

#[test]
fn c63_a_repeated_time_runs_once_and_intervals_run_through() {
    // New York, 2026-11-01: 01:00 to 01:59 come as EDT (05:00 UTC) and again as EST (06:00 UTC).
    let night = ("2026-11-01T05:00:00Z", "2026-11-01T07:00:00Z");

    assert_eq!(
        runs("30 1 * * *", "America/New_York", night.0, night.1),
        ["11-01T05:30"]
    );
    assert_eq!(
        runs("*/30 * * * *", "America/New_York", night.0, night.1),
        [
            "11-01T05:00",
            "11-01T05:30",
            "11-01T06:00",
            "11-01T06:30",
            "11-01T07:00"
        ]
    );
    assert_eq!(
        runs(
            "30 1 * * *",
            "UTC",
            "2026-11-01T00:00:00Z",
            "2026-11-02T00:00:00Z"
        ),
        ["11-01T01:30"]
    );
    // A restart inside the repeated hour finds the next day, not the second pass.
    assert_eq!(
        runs(
            "30 1 * * *",
            "America/New_York",
            "2026-11-01T06:05:00Z",
            "2026-11-02T12:00:00Z"
        ),
        ["11-02T06:30"]
    );
}

#[test]
fn c63_a_midnight_that_does_not_exist_runs_when_the_day_begins() {
    // Santiago, 2026-09-06: 23:59, then 01:00 (04:00 UTC).
    assert_eq!(
        runs(
            "0 0 * * *",
            "America/Santiago",
            "2026-09-05T12:00:00Z",
            "2026-09-07T12:00:00Z"
        ),
        ["09-06T04:00", "09-07T03:00"]
    );
    // Half an hour is skipped on Lord Howe: 02:00 to 02:29 on 2026-10-04, which ends at 15:30 UTC.
    assert_eq!(
        runs(
            "15 2 * * *",
            "Australia/Lord_Howe",
            "2026-10-03T12:00:00Z",
            "2026-10-04T20:00:00Z"
        ),
        ["10-03T15:30", "10-04T15:15"]
    );
}

#[test]
fn intervals_in_utc_know_no_change() {
    let found = runs(
        "*/15 * * * *",
        "UTC",
        "2026-03-08T00:00:00Z",
        "2026-03-09T00:00:00Z",
    );

    assert_eq!(found.len(), 97);
}
