//! `state/costs.jsonl`: what calls of models cost, 0.1.2 to now; in the oldest releases `.zeroclaw/costs.db`,
//! which is lines all the same.
//!
//! ```json
//! {"id":"<uuid>","usage":{"model":"m","input_tokens":1000,"output_tokens":100,"cached_input_tokens":200,
//!  "total_tokens":1100,"cost_usd":0.00396,"pricing_available":true,"timestamp":"2026-08-22T21:44:00.1Z"},
//!  "session_id":"<uuid>","agent_alias":"atlas","goal_task_id":"<uuid>"}
//! ```
//!
//! `session_id` is the life of the tracker, no chat session. `cached_input_tokens` (absent: 0), `pricing_available`
//! (absent: true), `agent_alias` and `goal_task_id` (`task_id` before) came later. Prices are taken as they stand.
//!
//! Known faults: several objects on one line after a lost line end, a last line cut off by a crash.

use std::path::Path;

use serde_json::value::RawValue;
use zeroclaw::model::{Tier, UsageCost};

use super::super::lines::Lines;
use super::super::objects::{ObjectFields, Piece, pieces};
use super::super::sqlite::is_sqlite;
use super::super::{Batcher, ReadError, Sink};
use crate::doctor::owner::Owners;
use crate::doctor::record::{Item, Refusal, kind};
use crate::doctor::units::{LegacyTime, stable_id};

/// Streams the costs of a file.
pub(crate) async fn read<S: Sink>(
    path: &Path,
    owners: &Owners,
    sink: &mut S,
) -> Result<(), ReadError> {
    if is_sqlite(path) {
        return Err(ReadError::Format {
            reason: "it is a SQLite database; costs were always lines of text".to_owned(),
        });
    }
    let is_cost = |json: &RawValue| cost(json, owners).is_ok();
    let mut out = Batcher::new(sink);
    let mut lines = Lines::open(path)?;
    while let Some(line) = lines.next()? {
        for piece in pieces(&line, is_cost) {
            match piece {
                Piece::Whole { place, json } => take(place, json, owners, &mut out).await?,
                Piece::Broken {
                    place,
                    raw,
                    is_tail: true,
                    ..
                } => {
                    let raw = raw.to_vec();
                    out.push(Item::PartialTail { place, raw }, line.bytes.len())
                        .await?;
                }
                Piece::Broken {
                    place, raw, reason, ..
                } => {
                    let refusal = refused(place, reason, raw);
                    out.push(Item::Refused(refusal), raw.len()).await?;
                }
            }
        }
    }
    out.flush().await
}

async fn take<S: Sink>(
    place: String,
    json: &RawValue,
    owners: &Owners,
    out: &mut Batcher<'_, S>,
) -> Result<(), ReadError> {
    let bytes = json.get().len();
    match cost(json, owners) {
        Ok((cost, unknown)) => {
            if let Some(message) = unknown {
                let code = "agent-name-kept";
                let note = Item::Note {
                    code,
                    place,
                    message,
                };
                out.push(note, 0).await?;
            }
            let record = cost.into();
            let tier = Tier::Global;
            out.push(Item::Record { tier, record }, bytes).await
        }
        Err(reason) => {
            let refusal = refused(place, reason, json.get().as_bytes());
            out.push(Item::Refused(refusal), bytes).await
        }
    }
}

fn refused(place: String, reason: &str, raw: &[u8]) -> Refusal {
    Refusal {
        kind: kind::COST,
        place,
        reason: reason.to_owned(),
        raw: raw.to_vec(),
    }
}

/// The cost of a record, and what there is to say of its agent.
fn cost(json: &RawValue, owners: &Owners) -> Result<(UsageCost, Option<String>), &'static str> {
    let mut fields = ObjectFields::of(json).ok_or("no object")?;
    let usage = fields.take("usage").ok_or("it has no usage")?;
    let mut usage = ObjectFields::of(usage).ok_or("its usage is no object")?;
    let model = usage.text("model").ok_or("its usage names no model")?;
    let recorded_at = usage.text("timestamp").ok_or("its usage has no time")?;
    let recorded_at_ms = LegacyTime::parse(&recorded_at)
        .ok_or("its time cannot be read")?
        .ms();
    let (cost_usd, cost_usd_text) = price(usage.take("cost_usd").ok_or("it has no cost")?)?;
    let input_tokens = count(usage.take("input_tokens"))?.unwrap_or(0);
    let output_tokens = count(usage.take("output_tokens"))?.unwrap_or(0);
    let total_tokens = count(usage.take("total_tokens"))?;
    let has_price = match usage.take("pricing_available").map(RawValue::get) {
        None | Some("true") => true,
        Some("false") => false,
        Some(_) => return Err("its pricing_available is neither true nor false"),
    };
    let cached_input_tokens = count(usage.take("cached_input_tokens"))?.unwrap_or(0);
    // Without a name of its own, a record is known by what it says.
    let cost_id = fields
        .text("id")
        .unwrap_or_else(|| stable_id(&[b"cost", json.get().as_bytes()]));
    let process_id = fields.text("session_id");
    let goal_task_id = fields
        .text("goal_task_id")
        .or_else(|| fields.text("task_id"));
    let alias_json = fields.take("agent_alias");
    let alias = alias_json
        .and_then(|json| serde_json::from_str::<String>(json.get()).ok())
        .filter(|alias| !alias.is_empty());
    let named = alias.as_deref().map(|alias| owners.named(alias));
    let (agent_id, unknown) = match named.transpose() {
        Ok(agent_id) => (agent_id, None),
        Err(reason) => {
            if let Some(json) = alias_json {
                fields.keep("agent_alias", json);
            }
            (None, Some(format!("counted for no agent: {reason}")))
        }
    };
    let usage_rest = usage
        .rest()
        .and_then(|rest| RawValue::from_string(rest).ok());
    if let Some(rest) = &usage_rest {
        fields.keep("usage", rest);
    }
    let cost = UsageCost {
        cost_id,
        agent_id,
        model,
        input_tokens,
        output_tokens,
        cached_input_tokens,
        total_tokens: total_tokens.unwrap_or(input_tokens.saturating_add(output_tokens)),
        cost_usd,
        cost_usd_text,
        has_price,
        recorded_at_ms,
        recorded_at_text: Some(recorded_at),
        process_id,
        goal_task_id,
        detail_json: fields.rest(),
    };
    Ok((cost, unknown))
}

/// The number, and its text where the number does not print as that.
fn price(json: &RawValue) -> Result<(f64, Option<String>), &'static str> {
    // The parser of the standard library rounds right; a JSON parser may be off by the last digit.
    let value: f64 = json.get().parse().map_err(|_| "its cost is no number")?;
    if !value.is_finite() {
        return Err("its cost is out of range");
    }
    let text = Some(json.get()).filter(|text| format!("{value:?}") != *text);
    Ok((value, text.map(str::to_owned)))
}

fn count(json: Option<&RawValue>) -> Result<Option<i64>, &'static str> {
    json.map(|json| json.get().parse())
        .transpose()
        .map_err(|_| "a number of tokens is none, or out of range")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use zeroclaw::config::Config;

    fn taken(text: &str) -> Result<(UsageCost, Option<String>), &'static str> {
        let owners = Owners::new(Config::default(), None, BTreeMap::new());
        let json: &RawValue = serde_json::from_str(text).unwrap();
        cost(json, &owners)
    }

    fn with_usage(usage: &str) -> String {
        format!(
            r#"{{"id":"a","usage":{{"model":"m","timestamp":"2026-01-05T10:00:00.123456789Z",{usage}}}}}"#
        )
    }

    #[test]
    fn a_price_is_kept_to_the_last_digit() {
        for (text, kept) in [
            ("0.0045179999999999994", None),
            ("0.0", None),
            ("1e-7", None),
            ("0", Some("0")),
            ("3.960E-3", Some("3.960E-3")),
            (
                "0.1000000000000000055511151231257827",
                Some("0.1000000000000000055511151231257827"),
            ),
        ] {
            let (cost, _) = taken(&with_usage(&format!(r#""cost_usd":{text}"#))).unwrap();
            assert_eq!(cost.cost_usd, text.parse::<f64>().unwrap());
            assert_eq!(cost.cost_usd_text.as_deref(), kept, "{text}");
        }
        assert!(taken(&with_usage(r#""cost_usd":1e999"#)).is_err());
        assert!(taken(&with_usage(r#""cost_usd":"1""#)).is_err());
    }

    #[test]
    fn what_came_later_may_be_absent_and_what_is_unknown_is_kept() {
        let (cost, _) = taken(&with_usage(
            r#""cost_usd":1.5,"input_tokens":2,"output_tokens":3,"tier":"batch""#,
        ))
        .unwrap();

        assert!(cost.has_price);
        assert_eq!((cost.cached_input_tokens, cost.total_tokens), (0, 5));
        assert_eq!(
            cost.detail_json.as_deref(),
            Some(r#"{"usage":{"tier":"batch"}}"#)
        );
        assert_eq!(
            cost.recorded_at_text.as_deref(),
            Some("2026-01-05T10:00:00.123456789Z")
        );
    }

    #[test]
    fn the_old_name_of_the_goal_and_an_impossible_agent_are_kept() {
        let text = r#"{"usage":{"model":"m","timestamp":"2026-01-05T10:00:00Z","cost_usd":1.5},"task_id":"t","agent_alias":"агент"}"#;

        let (cost, unknown) = taken(text).unwrap();

        assert_eq!(cost.goal_task_id.as_deref(), Some("t"));
        assert_eq!(cost.agent_id, None);
        assert_eq!(
            cost.detail_json.as_deref(),
            Some(r#"{"agent_alias":"агент"}"#)
        );
        assert!(unknown.is_some_and(|said| said.contains("--agent-map")));
        assert_eq!(cost.cost_id, taken(text).unwrap().0.cost_id);
    }
}
