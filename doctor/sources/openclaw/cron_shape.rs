//! A scheduled job in any shape it ever had, brought into the one of today.
//!
//! Fields moved: what a job does and where its result goes once stood beside its name. Words changed: `deliver` is
//! `announce`, `agentturn` is `agentTurn`. Kinds were left out and follow from what is there. Nothing is switched on
//! that says it is off, in whatever type it says so.

use serde_json::{Map, Value, json};

use super::index::{ms, text, word};
use crate::doctor::units::{LegacyTime, hex};
use sha2::{Digest, Sha256};

/// A job in today's shape.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shape {
    /// Its id, or one made from what it says.
    pub(crate) id: String,
    /// All of it.
    pub(crate) fields: Map<String, Value>,
    /// Its schedule, of kind `at`, `every` or `cron`.
    pub(crate) schedule: Map<String, Value>,
    /// What it does, of kind `agentTurn`, `systemEvent` or one that is not known.
    pub(crate) payload: Map<String, Value>,
    /// Where its result goes.
    pub(crate) delivery: Map<String, Value>,
    /// Whether it runs.
    pub(crate) is_enabled: bool,
}

/// The jobs of a store: a list, or an object that holds one; `None` for anything else.
pub(crate) fn jobs(store: &Value) -> Option<Vec<&Value>> {
    let list = match store {
        Value::Array(list) => list,
        Value::Object(fields) => fields.get("jobs")?.as_array()?,
        _ => return None,
    };
    let is_empty = |job: &&Value| matches!(job, Value::Null | Value::Bool(false));
    Some(list.iter().filter(|job| !is_empty(job)).collect())
}

/// Brings a job into today's shape.
///
/// * `index`: its place, part of an id that has to be made.
///
/// # Errors
///
/// Why it can be none.
pub(crate) fn shape(job: &Value, index: usize) -> Result<Shape, &'static str> {
    let mut fields = job.as_object().ok_or("it is no object")?;
    for wrapper in ["data", "job"] {
        if let Some(inner) = fields.get(wrapper).and_then(Value::as_object) {
            fields = inner;
        }
    }
    let fields = fields.clone();
    let id = ["id", "jobId"].iter().find_map(|name| word(&fields, name));
    let id = id.unwrap_or_else(|| {
        let digest = Sha256::digest(job.to_string());
        format!("cron-migrated-{index}-{}", &hex(&digest)[..16])
    });
    let schedule = schedule(&fields)?;
    let payload = payload(&fields)?;
    let delivery = delivery(&fields, &payload);
    Ok(Shape {
        id,
        is_enabled: is_on(fields.get("enabled"), true),
        schedule,
        payload,
        delivery,
        fields,
    })
}

/// A switch in whatever type: only what says so is on; what says nothing is `unsaid`.
pub(crate) fn is_on(value: Option<&Value>, unsaid: bool) -> bool {
    match value {
        None | Some(Value::Null) => unsaid,
        Some(Value::Bool(is_on)) => *is_on,
        Some(Value::String(text)) => matches!(
            text.trim().to_lowercase().as_str(),
            "true" | "1" | "yes" | "on"
        ),
        Some(Value::Number(number)) => number.as_f64().is_some_and(|number| number != 0.0),
        Some(_) => false,
    }
}

fn object(fields: &Map<String, Value>, name: &str) -> Map<String, Value> {
    fields
        .get(name)
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default()
}

fn schedule(fields: &Map<String, Value>) -> Result<Map<String, Value>, &'static str> {
    let mut schedule = match fields.get("schedule") {
        Some(Value::String(expr)) => Map::from_iter([("expr".to_owned(), json!(expr))]),
        Some(Value::Object(schedule)) => schedule.clone(),
        _ => return Err("it has no schedule"),
    };
    if text(&schedule, "expr").is_none()
        && let Some(expr) = text(&schedule, "cron")
    {
        schedule.insert("expr".to_owned(), json!(expr));
    }
    let at = ms(&schedule, "atMs").or_else(|| {
        let written = word(&schedule, "at")?;
        written
            .parse::<i64>()
            .ok()
            .or_else(|| LegacyTime::parse(&written).map(LegacyTime::ms))
    });
    if let Some(at) = at {
        schedule.insert("atMs".to_owned(), json!(at));
    }
    let every = ms(&schedule, "everyMs").filter(|every| *every > 0);
    let expr = text(&schedule, "expr");
    let written = text(&schedule, "kind").map(|kind| kind.to_lowercase());
    let kind = match written.as_deref() {
        Some(kind @ ("at" | "every" | "cron")) => kind,
        Some("on-exit" | "stream") => {
            return Err("its schedule is of a kind that this release has not");
        }
        _ if at.is_some() => "at",
        _ if every.is_some() => "every",
        _ if expr.is_some() => "cron",
        _ => return Err("its schedule says no time"),
    };
    match kind {
        "at" => {
            at.ok_or("its schedule has no readable time")?;
        }
        "every" => {
            let every = every.ok_or("its schedule has no positive distance")?;
            let anchor = ["anchorMs"].iter().find_map(|name| ms(&schedule, name));
            let anchor = anchor
                .or_else(|| ms(fields, "createdAtMs"))
                .or_else(|| ms(fields, "updatedAtMs"));
            schedule.insert("everyMs".to_owned(), json!(every));
            schedule.insert("anchorMs".to_owned(), json!(anchor));
        }
        _ => {
            expr.ok_or("its schedule has no expression")?;
        }
    }
    let kind = kind.to_owned();
    schedule.insert("kind".to_owned(), json!(kind));
    Ok(schedule)
}

/// Fields of a payload that once stood beside it.
const OF_PAYLOAD: [&str; 6] = [
    "message",
    "text",
    "model",
    "thinking",
    "timeoutSeconds",
    "allowUnsafeExternalContent",
];

fn payload(fields: &Map<String, Value>) -> Result<Map<String, Value>, &'static str> {
    let mut payload = object(fields, "payload");
    for name in OF_PAYLOAD {
        if let Some(value) = fields.get(name)
            && !payload.contains_key(name)
        {
            payload.insert(name.to_owned(), value.clone());
        }
    }
    let kind = match text(&payload, "kind") {
        Some(kind) if kind.eq_ignore_ascii_case("agentturn") => "agentTurn".to_owned(),
        Some(kind) if kind.eq_ignore_ascii_case("systemevent") => "systemEvent".to_owned(),
        Some(kind) => kind,
        None if text(&payload, "message").is_some() => "agentTurn".to_owned(),
        None if text(&payload, "text").is_some() => "systemEvent".to_owned(),
        None => return Err("it does not say what it does"),
    };
    let says = match kind.as_str() {
        "agentTurn" => text(&payload, "message").or_else(|| text(&payload, "text")),
        "systemEvent" => text(&payload, "text").or_else(|| text(&payload, "message")),
        _ => return Err("it does something that this release cannot"),
    };
    let says = says.ok_or("it does not say what to tell")?;
    payload.insert("says".to_owned(), json!(says));
    payload.insert("kind".to_owned(), json!(kind));
    Ok(payload)
}

fn delivery(fields: &Map<String, Value>, payload: &Map<String, Value>) -> Map<String, Value> {
    let mut delivery = object(fields, "delivery");
    let had_one = !delivery.is_empty();
    let beside = |name: &str| payload.get(name).or_else(|| fields.get(name)).cloned();
    for (old, new) in [
        ("channel", "channel"),
        ("provider", "channel"),
        ("to", "to"),
        ("threadId", "threadId"),
        ("bestEffortDeliver", "bestEffort"),
    ] {
        if let Some(value) = beside(old)
            && !delivery.contains_key(new)
        {
            delivery.insert(new.to_owned(), value);
        }
    }
    let deliver = beside("deliver");
    let is_turn = payload.get("kind").is_some_and(|kind| kind == "agentTurn");
    let is_main = text(fields, "sessionTarget").is_some_and(|target| target == "main");
    let mode = match text(&delivery, "mode").as_deref() {
        Some("deliver") => "announce".to_owned(),
        Some(mode) => mode.to_owned(),
        None if deliver.is_some() && !is_on(deliver.as_ref(), true) => "none".to_owned(),
        None if had_one || deliver.is_some() || (is_turn && !is_main) => "announce".to_owned(),
        None => "none".to_owned(),
    };
    delivery.insert("mode".to_owned(), json!(mode));
    delivery
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(job: Value) -> Shape {
        shape(&job, 3).unwrap()
    }

    #[test]
    fn every_old_schedule_is_one_of_three_kinds() {
        let kind = |schedule: Value| {
            let found = shape(
                &json!({"id": "x", "schedule": schedule, "text": "t", "createdAtMs": 5}),
                0,
            );
            found.map(|shape| {
                (
                    shape.schedule["kind"].clone(),
                    shape.schedule.get("anchorMs").cloned(),
                )
            })
        };
        assert_eq!(kind(json!("0 7 * * *")), Ok((json!("cron"), None)));
        assert_eq!(
            kind(json!({"cron": "0 7 * * *"})),
            Ok((json!("cron"), None))
        );
        assert_eq!(
            kind(json!({"kind": "Every", "everyMs": "600000.7"})),
            Ok((json!("every"), Some(json!(5))))
        );
        assert_eq!(
            kind(json!({"at": "1796053650322"})),
            Ok((json!("at"), None))
        );
        assert_eq!(kind(json!({"atMs": 7.0})), Ok((json!("at"), None)));
        for wrong in [
            json!({}),
            json!({"kind": "every", "everyMs": 0}),
            json!({"kind": "at", "at": "soon"}),
            json!(null),
            json!({"kind": "stream"}),
        ] {
            assert!(kind(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_stood_beside_is_moved_in_and_what_is_in_wins() {
        let shape = of(
            json!({"jobId": 7, "schedule": "* * * * *", "message": "old", "payload": {"kind": "AGENTTURN", "message": "new"},
            "deliver": "false", "channel": "telegram", "to": 42}),
        );
        assert_eq!(
            (
                shape.id.as_str(),
                &shape.payload["says"],
                &shape.payload["kind"]
            ),
            ("7", &json!("new"), &json!("agentTurn"))
        );
        assert_eq!(
            (&shape.delivery["mode"], &shape.delivery["channel"]),
            (&json!("none"), &json!("telegram"))
        );
        assert_eq!(
            of(json!({"schedule": "x", "text": "t", "delivery": {"mode": "deliver"}})).delivery["mode"],
            "announce"
        );
        assert_eq!(
            of(json!({"schedule": "x", "message": "t"})).delivery["mode"],
            "announce"
        );
        assert_eq!(
            of(json!({"data": {"id": "in", "schedule": "x", "text": "t"}})).id,
            "in"
        );
        assert!(
            of(json!({"schedule": "x", "text": "t"}))
                .id
                .starts_with("cron-migrated-3-")
        );
        assert!(shape_of_command().is_err());
    }

    fn shape_of_command() -> Result<Shape, &'static str> {
        shape(
            &json!({"id": "c", "schedule": "x", "payload": {"kind": "command", "command": "rm"}}),
            0,
        )
    }

    #[test]
    fn a_job_is_on_only_where_it_says_so() {
        let is_enabled = |enabled: Value| {
            of(json!({"schedule": "x", "text": "t", "enabled": enabled})).is_enabled
        };
        for on in [json!(null), json!(true), json!("true"), json!(1)] {
            assert!(is_enabled(on.clone()), "{on}");
        }
        for off in [
            json!(false),
            json!("false"),
            json!("False "),
            json!(0),
            json!("maybe"),
            json!([]),
        ] {
            assert!(!is_enabled(off.clone()), "{off}");
        }
    }

    #[test]
    fn a_store_is_a_list_or_holds_one() {
        assert_eq!(jobs(&json!([null, {"id": 1}, false])).unwrap().len(), 1);
        assert_eq!(
            jobs(&json!({"version": 1, "jobs": [{}, {}]}))
                .unwrap()
                .len(),
            2
        );
        assert!(jobs(&json!({"jobs": 7})).is_none() && jobs(&json!(7)).is_none());
    }
}
