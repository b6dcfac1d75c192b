//! Time as an argument: the system's clock, or one that a test sets, and the two text forms in use.
//!
//! Times are Unix milliseconds in UTC everywhere. Nothing here knows a time zone.
//!
//! The time of day jumps when somebody sets it. What is measured is measured by [`Clock::uptime_ms`], which all processes
//! of one boot share and nobody sets.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use chrono::{DateTime, Utc};

/// 0000-01-01T00:00:00.000Z, the first instant with a four-digit year.
const FIRST_PRINTABLE_MS: i64 = -62_167_219_200_000;
/// 9999-12-31T23:59:59.999Z, the last instant with a four-digit year.
const LAST_PRINTABLE_MS: i64 = 253_402_300_799_999;

/// Tells the time. Clones of a fixed clock share one reading.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System,
    Fixed(Arc<Hands>),
}

/// What a fixed clock shows.
#[derive(Debug)]
struct Hands {
    now_ms: AtomicI64,
    uptime_ms: AtomicI64,
}

impl Clock {
    /// Reads the operating system's clock.
    #[must_use]
    pub fn system() -> Self {
        Self(Source::System)
    }

    /// Stands at `ms` until [`set`](Self::set) or [`advance`](Self::advance) moves it.
    #[must_use]
    pub fn fixed(ms: i64) -> Self {
        Self(Source::Fixed(Arc::new(Hands {
            now_ms: AtomicI64::new(ms),
            uptime_ms: AtomicI64::new(0),
        })))
    }

    /// Gives the present as Unix milliseconds, negative before 1970.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        match &self.0 {
            Source::System => system_now_ms(),
            Source::Fixed(hands) => hands.now_ms.load(Ordering::SeqCst),
        }
    }

    /// Gives milliseconds since the machine booted, sleep included: the same for all its processes, and never set.
    #[must_use]
    pub fn uptime_ms(&self) -> i64 {
        match &self.0 {
            Source::System => system_uptime_ms(),
            Source::Fixed(hands) => hands.uptime_ms.load(Ordering::SeqCst),
        }
    }

    /// Sets a fixed clock, and all its clones, to `ms`: the time of day jumps, no time passes. The system's clock is left
    /// alone.
    pub fn set(&self, ms: i64) {
        if let Source::Fixed(hands) = &self.0 {
            hands.now_ms.store(ms, Ordering::SeqCst);
        }
    }

    /// Lets `ms` pass on a fixed clock and all its clones; negative sets the time of day back. The system's clock is left
    /// alone.
    pub fn advance(&self, ms: i64) {
        if let Source::Fixed(hands) = &self.0 {
            hands.now_ms.fetch_add(ms, Ordering::SeqCst);
            hands.uptime_ms.fetch_add(ms.max(0), Ordering::SeqCst);
        }
    }
}

/// Prints `ms` as `YYYYMMDDTHHMMSSZ`, fit for a file name.
///
/// Always 16 characters: times outside the years 0000 to 9999 print as the nearest end of that range.
#[must_use]
pub fn utc_stamp(ms: i64) -> String {
    printable(ms).format("%Y%m%dT%H%M%SZ").to_string()
}

/// Prints `ms` as `2026-11-30T16:42:28.123Z`.
///
/// Always 24 characters: times outside the years 0000 to 9999 print as the nearest end of that range.
#[must_use]
pub fn rfc3339(ms: i64) -> String {
    printable(ms).format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

fn printable(ms: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(ms.clamp(FIRST_PRINTABLE_MS, LAST_PRINTABLE_MS))
        .unwrap_or_default()
}

fn system_now_ms() -> i64 {
    let saturate = |ms: u128| i64::try_from(ms).unwrap_or(i64::MAX);
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => saturate(since.as_millis()),
        Err(before) => -saturate(before.duration().as_millis()),
    }
}

fn system_uptime_ms() -> i64 {
    use rustix::time::{ClockId, clock_gettime};

    #[cfg(target_os = "linux")]
    let since_boot = clock_gettime(ClockId::Boottime);
    #[cfg(not(target_os = "linux"))]
    let since_boot = clock_gettime(ClockId::Monotonic);
    since_boot
        .tv_sec
        .saturating_mul(1_000)
        .saturating_add(since_boot.tv_nsec / 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_clock_moves_with_its_clones() {
        let clock = Clock::fixed(1_000);
        let other = clock.clone();

        other.advance(500);
        assert_eq!(clock.now_ms(), 1_500);

        clock.set(7);
        assert_eq!(other.now_ms(), 7);
    }

    #[test]
    fn setting_the_time_of_day_lets_no_time_pass() {
        let clock = Clock::fixed(1_000);

        clock.set(86_401_000);
        clock.advance(-86_400_000);
        assert_eq!(clock.uptime_ms(), 0);

        clock.advance(500);
        assert_eq!((clock.now_ms(), clock.uptime_ms()), (1_500, 500));
        assert!(Clock::system().uptime_ms() > 0);
    }

    #[test]
    fn the_system_clock_cannot_be_moved() {
        let clock = Clock::system();
        let before = clock.now_ms();

        clock.advance(86_400_000);

        assert!(before > 1_600_000_000_000);
        assert!(clock.now_ms() < before + 86_400_000);
    }

    #[test]
    fn times_print_in_both_forms() {
        let ms = 1_796_056_948_123;

        assert_eq!(rfc3339(ms), "2026-11-30T16:42:28.123Z");
        assert_eq!(utc_stamp(ms), "20261130T164228Z");
        assert_eq!(rfc3339(-1), "1969-12-31T23:59:59.999Z");
    }

    #[test]
    fn times_outside_four_digit_years_print_as_the_nearest_end() {
        assert_eq!(rfc3339(LAST_PRINTABLE_MS), "9999-12-31T23:59:59.999Z");
        assert_eq!(rfc3339(LAST_PRINTABLE_MS + 1), "9999-12-31T23:59:59.999Z");
        assert_eq!(rfc3339(FIRST_PRINTABLE_MS), "0000-01-01T00:00:00.000Z");
        for ms in [i64::MIN, i64::MAX, FIRST_PRINTABLE_MS - 1] {
            assert_eq!(rfc3339(ms).len(), 24);
            assert_eq!(utc_stamp(ms).len(), 16);
        }
    }
}
