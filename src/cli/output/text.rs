//! Values as people read them, and stored text made harmless.
//!
//! What other people wrote may hold terminal escapes: one line of a chat could clear the screen,
//! rename the window or hide itself. So control characters are shown, never sent.

use std::fmt::{Display, Write as _};

use chrono::DateTime;

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;

/// Whether a terminal may obey a character, or a reader be misled by it.
pub(super) fn is_hazard(c: char) -> bool {
    // Controls of both sets, line and paragraph separators, and marks that turn the direction of
    // writing. All lie in the basic plane.
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Makes every control character visible, line breaks and tabs too.
pub(crate) fn one_line(text: &str) -> String {
    visible(text, |_| false)
}

/// Makes control characters visible, but for line breaks and tabs.
pub(super) fn lines(text: &str) -> String {
    visible(text, |c| matches!(c, '\n' | '\t'))
}

fn visible(text: &str, is_kept: impl Fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hazard(c) && !is_kept(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Unix milliseconds as `2026-11-30T16:42:28Z`; times beyond the calendar as the bare number.
pub(crate) fn time(ms: i64) -> String {
    DateTime::from_timestamp_millis(ms).map_or_else(
        || format!("{ms} ms"),
        |time| time.format("%Y-%m-%dT%H:%M:%SZ").to_string(),
    )
}

/// A value, or a dash where there is none.
pub(crate) fn or_dash<T: Display>(value: Option<T>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// Bytes to three digits or so: `17 B`, `4.0 KiB`, `1.2 GiB`.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    #[expect(
        clippy::cast_precision_loss,
        reason = "two digits are shown, 53 bits are kept"
    )]
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    // 1023.95 would be printed as 1024.0.
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// A length of time in its largest units: `320 ms`, `4.2 s`, `3 m 5 s`, `2 h`, `1 d 6 h`.
pub(crate) fn span(ms: i64) -> String {
    let two = |large: i64, unit: &str, small: i64, small_unit: &str| {
        if small == 0 {
            format!("{large} {unit}")
        } else {
            format!("{large} {unit} {small} {small_unit}")
        }
    };
    match ms {
        ..1_000 => format!("{ms} ms"),
        1_000..MINUTE_MS => {
            let (seconds, tenths) = (ms / 1_000, ms % 1_000 / 100);
            if tenths == 0 {
                format!("{seconds} s")
            } else {
                format!("{seconds}.{tenths} s")
            }
        }
        MINUTE_MS..HOUR_MS => two(ms / MINUTE_MS, "m", ms % MINUTE_MS / 1_000, "s"),
        HOUR_MS..DAY_MS => two(ms / HOUR_MS, "h", ms % HOUR_MS / MINUTE_MS, "m"),
        _ => two(ms / DAY_MS, "d", ms % DAY_MS / HOUR_MS, "h"),
    }
}

/// A word as a shell takes it back, quoted where that is needed.
pub(crate) fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    if !word.chars().any(is_hazard) {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    // The only quotes of a shell that can say a control character without sending it.
    let mut quoted = "$'".to_owned();
    for c in word.chars() {
        match c {
            '\'' | '\\' => {
                quoted.push('\\');
                quoted.push(c);
            }
            c if is_hazard(c) => {
                let mut bytes = [0; 4];
                for byte in c.encode_utf8(&mut bytes).bytes() {
                    // A text is written to a String: that cannot fail.
                    let _ = write!(quoted, "\\x{byte:02x}");
                }
            }
            c => quoted.push(c),
        }
    }
    quoted.push('\'');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_escapes_are_shown_and_not_sent() {
        let text = "red \x1b[31m, title \x1b]0;x\x07, c1 \u{9b}2J, turned \u{202e}x, cr\r, nul\0";

        let shown = one_line(text);

        assert!(!shown.chars().any(is_hazard), "{shown:?}");
        assert!(shown.contains(r"\u{1b}[31m") && shown.contains(r"\u{9b}2J"));
        assert!(shown.contains(r"\u{202e}") && shown.contains(r"\r"));
    }

    #[test]
    fn line_breaks_stay_where_lines_are_wanted() {
        assert_eq!(lines("a\n\tb\r"), "a\n\tb\\r");
        assert_eq!(one_line("a\n\tb"), r"a\n\tb");
        assert_eq!(one_line("Grüße, 世界 👩‍👩‍👧"), "Grüße, 世界 👩‍👩‍👧");
    }

    #[test]
    fn times_are_seconds_in_utc() {
        assert_eq!(time(1_796_056_948_123), "2026-11-30T16:42:28Z");
        assert_eq!(time(-1), "1969-12-31T23:59:59Z");
        assert_eq!(time(i64::MAX), "9223372036854775807 ms");
    }

    #[test]
    fn sizes_keep_to_few_digits() {
        let shown = [0, 1023, 1024, 1536, 1_048_575, 5 << 30, u64::MAX].map(size);

        assert_eq!(
            shown,
            [
                "0 B",
                "1023 B",
                "1.0 KiB",
                "1.5 KiB",
                "1.0 MiB",
                "5.0 GiB",
                "16384.0 PiB"
            ]
        );
    }

    #[test]
    fn spans_name_their_largest_units() {
        let shown = [0, 999, 4_200, 61_000, 7_200_000, 108_000_000].map(span);

        assert_eq!(
            shown,
            ["0 ms", "999 ms", "4.2 s", "1 m 1 s", "2 h", "1 d 6 h"]
        );
    }

    #[test]
    fn shell_words_are_taken_back_as_they_were() {
        assert_eq!(shell_word("17:abc-d"), "17:abc-d");
        assert_eq!(shell_word(""), "''");
        assert_eq!(shell_word("it's"), r"'it'\''s'");
        assert_eq!(shell_word("a\x1b'b"), r"$'a\x1b\'b'");
    }
}
