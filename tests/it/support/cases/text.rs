//! Session files with lines that cannot be read.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::{CONFIG, Case, install};
use crate::support::expect::{Expected, Place, Refused, Why};
use crate::support::rows::{json_line, jsonl, turns};

/// One file whose last line was cut short, one with a malformed line 10 of 20.
///
/// A torn tail is what a crash leaves and no message; a malformed line in the middle was one.
pub(crate) fn c15_torn_and_malformed(dir: &Path) -> Case {
    let install = install(dir, CONFIG);
    let torn = "data/sessions/telegram_main_1_torn.jsonl";
    let middle = "data/sessions/telegram_main_2_middle.jsonl";
    let tail = br#"{"role":"assistant","content":"half a li"#;
    let bad = br#"{"role":"assistant","content":"no closing quote}"#;

    let mut bytes = jsonl(&turns("torn", 20));
    let tail_offset = bytes.len();
    bytes.extend_from_slice(tail);
    install.jsonl(torn, &bytes);

    let good = turns("middle", 20);
    let mut bytes = jsonl(&good[..9]);
    let bad_offset = bytes.len();
    bytes.extend_from_slice(bad);
    bytes.push(b'\n');
    bytes.extend(jsonl(&good[10..]));
    install.jsonl(middle, &bytes);

    let expected = Expected::default()
        .session("atlas", "telegram_main_1_torn", 20)
        .session("atlas", "telegram_main_2_middle", 19)
        .refuse(line(torn, 21, tail_offset, Why::TornTail, tail))
        .refuse(line(middle, 10, bad_offset, Why::NotJson, bad));
    (install, expected)
}

/// A file of one byte that is no text, a file with such a byte in its third line of four, and (where the system takes
/// one) a file whose name is not UTF-8.
///
/// No name here says whose it is, so all fall to `atlas`, the smallest enabled agent.
pub(crate) fn c17_non_utf8(dir: &Path) -> Case {
    let install = install(dir, CONFIG);
    let one = "data/sessions/u1.jsonl";
    let two = "data/sessions/u2.jsonl";
    install.jsonl(one, b"\xFF\n");

    let good = turns("u2", 4);
    let mut bytes = jsonl(&good[..2]);
    let bad_offset = bytes.len();
    let mut bad = json_line(&good[2]).into_bytes();
    let inside = bad.len() - 3;
    bad[inside] = 0xFF;
    bytes.extend_from_slice(&bad);
    bytes.push(b'\n');
    bytes.extend(jsonl(&good[3..]));
    install.jsonl(two, &bytes);

    let mut expected = Expected::default()
        .session("atlas", "u2", 3)
        .refuse(line(one, 1, 0, Why::NotUtf8, b"\xFF"))
        .refuse(line(two, 3, bad_offset, Why::NotUtf8, &bad));
    expected.stays.push(PathBuf::from(one));
    if let Some(name) = name_that_is_not_utf8() {
        install.jsonl(
            Path::new("data/sessions").join(name),
            &jsonl(&turns("odd name", 2)),
        );
        expected = expected.session_of_any_key("atlas", 2);
    }
    (install, expected)
}

#[cfg(all(unix, not(target_vendor = "apple")))]
fn name_that_is_not_utf8() -> Option<OsString> {
    use std::os::unix::ffi::OsStringExt as _;
    Some(OsString::from_vec(b"u3_\xFF.jsonl".to_vec()))
}

#[cfg(not(all(unix, not(target_vendor = "apple"))))]
fn name_that_is_not_utf8() -> Option<OsString> {
    None
}

fn line(path: &str, number: usize, offset: usize, why: Why, raw: &[u8]) -> Refused {
    Refused {
        path: PathBuf::from(path),
        place: Place::Line { number, offset },
        why,
        raw: raw.to_vec(),
    }
}
