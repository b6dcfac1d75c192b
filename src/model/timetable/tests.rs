//! Forms, bounds and refusals; the rules at the edges of zones are tested against a model from outside.

use super::*;
use crate::model::TimeZoneOrigin;

fn ms(text: &str) -> i64 {
    DateTime::parse_from_rfc3339(text)
        .unwrap()
        .timestamp_millis()
}

fn cron(expr: &str, tz: &str) -> Result<Timetable, ScheduleError> {
    let schedule = Schedule::Cron {
        expr: expr.to_owned(),
        tz: Some(tz.to_owned()),
        tz_origin: Some(TimeZoneOrigin::Job),
    };
    Timetable::new(&schedule, "UTC", 0)
}

fn next(expr: &str, tz: &str, after: &str) -> Option<i64> {
    cron(expr, tz).unwrap().next_after(ms(after))
}

#[test]
fn days_of_the_week_count_from_zero_without_seconds_and_from_one_with_them() {
    // 2026-11-29 is a Sunday.
    let from = "2026-11-28T12:00:00Z";
    for sunday in ["0", "7", "SUN", "sun"] {
        let expr = format!("0 9 * * {sunday}");
        assert_eq!(next(&expr, "UTC", from), Some(ms("2026-11-29T09:00:00Z")));
    }
    assert_eq!(
        next("0 9 * * 1", "UTC", from),
        Some(ms("2026-11-30T09:00:00Z"))
    );
    for sunday in ["1", "SUN"] {
        let expr = format!("0 0 9 * * {sunday}");
        assert_eq!(next(&expr, "UTC", from), Some(ms("2026-11-29T09:00:00Z")));
    }
    assert_eq!(
        next("5 0 9 * * 2 *", "UTC", from),
        Some(ms("2026-11-30T09:00:05Z"))
    );
    assert_eq!(
        next("0 0 9 * * 2-6 2027", "UTC", from),
        Some(ms("2027-01-01T09:00:00Z"))
    );
}

#[test]
fn either_day_field_is_enough_unless_both_are_asked_for() {
    let from = "2026-11-01T00:00:00Z";
    // The first Friday is the 6th, the 13th is a Friday too.
    assert_eq!(
        next("0 0 13 * 5", "UTC", from),
        Some(ms("2026-11-06T00:00:00Z"))
    );
    assert_eq!(
        next("0 0 13 * +5", "UTC", from),
        Some(ms("2026-11-13T00:00:00Z"))
    );
    assert_eq!(next("0 0 30 2 *", "UTC", from), None);
}

#[test]
fn distances_are_counted_from_their_anchor() {
    let every = |anchor_ms| {
        let schedule = Schedule::Every {
            every_ms: 1_000,
            anchor_ms,
        };
        Timetable::new(&schedule, "UTC", 300).unwrap()
    };
    assert_eq!(every(None).next_after(299), Some(300));
    assert_eq!(every(None).next_after(300), Some(1_300));
    assert_eq!(every(Some(5_000)).next_after(0), Some(5_000));
    assert_eq!(every(Some(5_000)).next_after(7_999), Some(8_000));
    assert_eq!(every(None).next_after(i64::MAX), None);
    assert_eq!(every(None).last_until(0, 9_999), Some(9_300));
    assert_eq!(every(None).count_until(0, 9_999, 100), 10);
    assert_eq!(every(None).count_until(0, 9_999, 4), 4);
}

#[test]
fn an_instant_is_due_once() {
    let at = Timetable::new(&Schedule::At { at_ms: 7 }, "UTC", 0).unwrap();

    assert_eq!(at.next_after(6), Some(7));
    assert_eq!(at.next_after(7), None);
    assert_eq!(at.last_until(0, 100), Some(7));
}

#[test]
fn the_last_of_a_year_of_seconds_is_found_at_once() {
    let table = cron("* * 9 * * *", "Europe/Berlin").unwrap();

    let last = table.last_until(ms("2025-01-01T00:00:00Z"), ms("2026-01-05T07:00:00Z"));

    assert_eq!(last, Some(ms("2026-01-04T08:59:59Z")));
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let told = |expr: &str, tz: &str| cron(expr, tz).unwrap_err().to_string();

    assert!(told("* * *", "UTC").contains("has 3 fields"));
    assert!(told("61 * * * *", "UTC").starts_with("the field minute of"));
    assert!(told("0 24 * * *", "UTC").starts_with("the field hour of"));
    assert!(told("0 0 1 FOO *", "UTC").starts_with("the field month of"));
    assert!(told("0 0 0 * * 0", "UTC").starts_with("the field day of week of"));
    assert!(told("0 0 * * 8", "UTC").starts_with("the field day of week of"));
    assert!(told("0 0 * * *", "Mars/Olympus").contains("Mars/Olympus"));
    assert!(told(&"0".repeat(1_000), "UTC").contains("longer"));
    let none = Schedule::Every {
        every_ms: 0,
        anchor_ms: None,
    };
    assert!(Timetable::new(&none, "UTC", 0).is_err());
}
