//! Instants on the command line.

use chrono::{DateTime, NaiveDate, NaiveTime};

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// The start of a day, or an instant: `2026-11-30`, `2026-11-30T08:00:00Z`.
pub(crate) fn start(text: &str) -> Result<i64, String> {
    moment(text).map(|(at_ms, _)| at_ms)
}

/// The first instant that no longer counts: an instant itself, but of a day the end.
pub(crate) fn end(text: &str) -> Result<i64, String> {
    moment(text).map(|(at_ms, length_ms)| at_ms + length_ms)
}

/// A start, as an instant or as a while before now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Since {
    /// This instant, Unix milliseconds.
    At(i64),
    /// So long ago, milliseconds.
    Ago(i64),
}

impl Since {
    /// The instant, Unix milliseconds.
    pub(crate) fn at_ms(self, now_ms: i64) -> i64 {
        match self {
            Self::At(at_ms) => at_ms,
            Self::Ago(while_ms) => now_ms.saturating_sub(while_ms),
        }
    }
}

/// As [`start`], or a while: `90m`, `12h`, `7d`.
pub(crate) fn since(text: &str) -> Result<Since, String> {
    ago(text).map_or_else(|| start(text).map(Since::At), |ms| Ok(Since::Ago(ms)))
}

fn ago(text: &str) -> Option<i64> {
    let unit = text.chars().last()?;
    let unit_ms = match unit {
        's' => 1_000,
        'm' => 60_000,
        'h' => 3_600_000,
        'd' => DAY_MS,
        'w' => 7 * DAY_MS,
        _ => return None,
    };
    let count: u32 = text[..text.len() - 1].parse().ok()?;
    i64::from(count).checked_mul(unit_ms)
}

/// When it begins, and how long it lasts.
fn moment(text: &str) -> Result<(i64, i64), String> {
    if let Ok(day) = text.parse::<NaiveDate>() {
        return Ok((
            day.and_time(NaiveTime::MIN).and_utc().timestamp_millis(),
            DAY_MS,
        ));
    }
    DateTime::parse_from_rfc3339(text)
        .map(|at| (at.timestamp_millis(), 0))
        .map_err(|_| "neither a day (2026-11-30) nor an instant (2026-11-30T08:00:00Z)".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_while_ends_now() {
        assert_eq!(
            since("90m").map(|since| since.at_ms(6_000_000)),
            Ok(600_000)
        );
        assert_eq!(since("1970-01-02"), Ok(Since::At(DAY_MS)));
        assert!(since("m").is_err() && since("-1d").is_err() && since("4é").is_err());
    }

    #[test]
    fn a_day_counts_whole_and_an_instant_as_it_is() {
        assert_eq!(start("1970-01-02"), Ok(DAY_MS));
        assert_eq!(end("1970-01-02"), Ok(2 * DAY_MS));
        assert_eq!(start("1970-01-01T02:00:01+02:00"), Ok(1_000));
        assert_eq!(end("1970-01-01T00:00:01Z"), Ok(1_000));
        assert!(start("yesterday").is_err());
        assert!(end("2026-13-01").is_err());
    }
}
