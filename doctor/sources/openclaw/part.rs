//! A line of a transcript, parted into records: what is half a character or no UTF-8 is replaced and told.

use serde_json::Value;
use serde_json::value::RawValue;

use super::super::lines::Line;
use super::super::objects::{Piece, pieces};
use super::event::{Parsed, parse};
use super::tolerant::without_half_characters;

/// A part of a line.
pub(super) enum Part {
    Whole {
        place: String,
        parsed: Box<Parsed>,
        json: String,
        is_repaired: bool,
    },
    Broken {
        place: String,
        reason: &'static str,
        raw: Vec<u8>,
        is_tail: bool,
    },
}

/// Parts a line.
pub(super) fn parts(line: &Line) -> Vec<Part> {
    if line.is_blank() {
        return Vec::new();
    }
    let is_record = |json: &RawValue| json.get().contains("\"type\"");
    let is_text = std::str::from_utf8(&line.bytes).is_ok();
    if !is_text && !line.is_too_long {
        let replaced = Line {
            number: line.number,
            offset: line.offset,
            bytes: String::from_utf8_lossy(&line.bytes)
                .into_owned()
                .into_bytes(),
            is_ended: line.is_ended,
            is_too_long: false,
        };
        let found: Vec<Part> = pieces(&replaced, is_record)
            .into_iter()
            .map(|piece| part(piece, true))
            .collect();
        if found.iter().all(|part| matches!(part, Part::Whole { .. })) {
            return found;
        }
    }
    pieces(line, is_record)
        .into_iter()
        .map(|piece| part(piece, false))
        .collect()
}

fn part(piece: Piece<'_>, is_repaired: bool) -> Part {
    let (place, json) = match piece {
        Piece::Whole { place, json } => (place, json.get()),
        Piece::Broken {
            place,
            raw,
            reason,
            is_tail,
        } => {
            let raw = raw.to_vec();
            return Part::Broken {
                place,
                reason,
                raw,
                is_tail,
            };
        }
    };
    record(place, json, is_repaired)
}

/// A record by its JSON text.
pub(super) fn record(place: String, json: &str, is_repaired: bool) -> Part {
    let broken = |place, reason| Part::Broken {
        place,
        reason,
        raw: json.as_bytes().to_vec(),
        is_tail: false,
    };
    let (value, text) = match serde_json::from_str::<Value>(json) {
        Ok(value) => (value, None),
        Err(_) => {
            let text = without_half_characters(json);
            match serde_json::from_str(&text) {
                Ok(value) => (value, Some(text)),
                Err(_) => return broken(place, "not JSON that can be taken apart"),
            }
        }
    };
    match parse(&value) {
        Ok(parsed) => Part::Whole {
            place,
            parsed: Box::new(parsed),
            is_repaired: is_repaired || text.is_some(),
            json: text.unwrap_or_else(|| json.to_owned()),
        },
        Err(reason) => broken(place, reason),
    }
}
