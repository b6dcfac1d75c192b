//! `sessions.json`: which key leads to which session, and what was known of it.
//!
//! One object, key to entry, pretty JSON as its program wrote it and JSON5 as it read it. Fields were renamed over
//! time; the old names are taken for the new ones where those say nothing. Entries are read one by one, and what can
//! be made anew (the prompt of all skills, the report on the system prompt) is dropped at once: it is most of the file.
//!
//! Known faults: no object at all, a file cut in the middle, entries without an id, two keys for one session, keys in
//! forms that no longer hold, times that are no numbers.

use std::fmt;
use std::io::BufReader;
use std::path::Path;

use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::{Map, Value};

use super::file_name::is_safe_id;
use super::tolerant;
use crate::doctor::record::{Refusal, kind};

/// Fields that say where things were, or that can be made anew.
const DROPPED: [&str; 14] = [
    "sessionFile",
    "transcriptLocator",
    "origin",
    "deliveryContext",
    "lastChannel",
    "lastTo",
    "lastAccountId",
    "lastThreadId",
    "lastProvider",
    "skillsSnapshot",
    "systemPromptReport",
    "provider",
    "room",
    "route",
];

/// Whom a session last answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) channel: Option<String>,
    pub(crate) to: Option<String>,
    pub(crate) account: Option<String>,
    pub(crate) thread: Option<String>,
}

/// One entry, its fields by the names of today.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The key as it was written.
    pub(crate) raw_key: String,
    /// Its session.
    pub(crate) session_id: String,
    /// When it last changed; `None` where it does not say.
    pub(crate) updated_at_ms: Option<i64>,
    /// When its session began, where it says.
    pub(crate) started_at_ms: Option<i64>,
    /// File of its transcript, as it was written.
    pub(crate) file: Option<String>,
    /// Whom it last answered.
    pub(crate) target: Target,
    /// Title.
    pub(crate) name: Option<String>,
    /// Kind of chat, in its own word.
    pub(crate) chat_type: Option<String>,
    /// Provider of the model that last spoke.
    pub(crate) provider: Option<String>,
    /// Model that last spoke.
    pub(crate) model: Option<String>,
    /// Where it stood, in its own word.
    pub(crate) status: Option<String>,
    /// When it was archived.
    pub(crate) archived_at_ms: Option<i64>,
    /// What else there is to keep, as JSON text.
    pub(crate) json: String,
}

/// Gives the entries of an index one by one; refused ones as well.
///
/// # Errors
///
/// Why it is no index; what was given before counts for nothing then.
pub(crate) fn read(
    path: &Path,
    mut give: impl FnMut(Result<Entry, Refusal>),
) -> Result<(), String> {
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let mut taken = Vec::new();
    let mut reader = serde_json::Deserializer::from_reader(BufReader::with_capacity(1 << 18, file));
    let strict = reader
        .deserialize_map(Entries(&mut taken))
        .and_then(|()| reader.end());
    if strict.is_err() {
        taken.clear();
        match tolerant::file(path)? {
            Value::Object(all) => {
                taken.extend(all.into_iter().map(|(key, value)| entry(&key, value)))
            }
            _ => return Err("it is no object of sessions by key".to_owned()),
        }
    }
    taken.into_iter().for_each(&mut give);
    Ok(())
}

struct Entries<'t>(&'t mut Vec<Result<Entry, Refusal>>);

impl<'de> Visitor<'de> for Entries<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object of sessions by key")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some((key, value)) = map.next_entry::<String, Value>()? {
            self.0.push(entry(&key, value));
        }
        Ok(())
    }
}

/// Takes an entry apart.
pub(super) fn entry(key: &str, value: Value) -> Result<Entry, Refusal> {
    let refusal = |reason: &str, value: &Value| Refusal {
        kind: kind::SESSION_ROUTE,
        place: format!("key {key}"),
        reason: reason.to_owned(),
        raw: value.to_string().into_bytes(),
    };
    let Value::Object(mut fields) = value else {
        return Err(refusal("it is no object", &value));
    };
    let id = text(&fields, "sessionId");
    let Some(session_id) = id.filter(|id| is_safe_id(id) && id != key) else {
        let reason = "it names no session: sessionId is missing or no id";
        return Err(refusal(reason, &Value::Object(fields)));
    };
    if key.trim().is_empty() {
        return Err(refusal("its key is empty", &Value::Object(fields)));
    }
    for (old, new) in [
        ("provider", "channel"),
        ("surface", "channel"),
        ("lastProvider", "lastChannel"),
        ("room", "groupChannel"),
    ] {
        let is_said = fields.get(new).is_some_and(Value::is_string);
        match fields.remove(old) {
            Some(value) if !is_said => {
                fields.insert(new.to_owned(), value);
            }
            _ => {}
        }
    }
    let mut found = Entry {
        raw_key: key.to_owned(),
        session_id,
        updated_at_ms: ms(&fields, "updatedAt"),
        started_at_ms: ms(&fields, "sessionStartedAt").or(ms(&fields, "startedAt")),
        file: text(&fields, "sessionFile"),
        target: target(&fields),
        name: text(&fields, "label").or_else(|| text(&fields, "displayName")),
        chat_type: text(&fields, "chatType"),
        provider: text(&fields, "modelProvider"),
        model: text(&fields, "model"),
        status: text(&fields, "status"),
        archived_at_ms: ms(&fields, "archivedAt"),
        json: String::new(),
    };
    for dropped in DROPPED {
        fields.remove(dropped);
    }
    found.json = Value::Object(fields).to_string();
    Ok(found)
}

/// Whom a session answers: by what holds today, then by the older fields.
fn target(fields: &Map<String, Value>) -> Target {
    let empty = Map::new();
    let object = |name: &str| {
        fields
            .get(name)
            .and_then(Value::as_object)
            .unwrap_or(&empty)
    };
    let (context, origin) = (object("deliveryContext"), object("origin"));
    let of = |name: &str, last: &str, of_origin: &str| {
        word(context, name)
            .or_else(|| word(fields, last))
            .or_else(|| word(origin, of_origin))
    };
    let channel = of("channel", "lastChannel", "provider").or_else(|| word(fields, "channel"));
    Target {
        channel: channel.map(|channel| channel.to_lowercase()),
        to: of("to", "lastTo", "to").or_else(|| word(fields, "groupId")),
        account: of("accountId", "lastAccountId", "accountId"),
        thread: of("threadId", "lastThreadId", "threadId"),
    }
}

/// A text or a whole number as text; `None` where it says nothing.
pub(crate) fn word(fields: &Map<String, Value>, name: &str) -> Option<String> {
    match fields.get(name)? {
        Value::Number(number) => number
            .as_i64()
            .or_else(|| number.as_f64().map(|number| number.trunc() as i64))
            .map(|number| number.to_string()),
        Value::String(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        _ => None,
    }
}

/// A text that says something.
pub(crate) fn text(fields: &Map<String, Value>, name: &str) -> Option<String> {
    let text = fields.get(name)?.as_str()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// The largest whole number that JSON's own numbers hold exactly.
const MAX_EXACT: f64 = 9_007_199_254_740_991.0;

/// A time in Unix milliseconds: any finite number that is not negative, cut to a whole one.
pub(crate) fn ms(fields: &Map<String, Value>, name: &str) -> Option<i64> {
    let number = match fields.get(name)? {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    ((0.0..=MAX_EXACT).contains(&number)).then_some(number.trunc() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Result<Vec<Result<Entry, Refusal>>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sessions.json");
        std::fs::write(&path, text).unwrap();
        let mut found = Vec::new();
        read(&path, |entry| found.push(entry)).map(|()| found)
    }

    #[test]
    fn what_is_no_index_gives_nothing() {
        for text in ["", "null", "[]", "7", "{\"a\":{\"sessionId\":\"x\",\"upd"] {
            assert!(all(text).is_err(), "{text}");
        }
        assert!(all("{}").unwrap().is_empty());
    }

    #[test]
    fn old_names_are_taken_where_the_new_ones_say_nothing() {
        let text = "{ // by hand\n 'k': {sessionId: 'A1', updatedAt: 12.9, provider: 'Telegram', lastProvider: 'x',
            lastChannel: 'slack', lastTo: 42, lastThreadId: 1.0, skillsSnapshot: {prompt: 'long'}, label: 'L',},}";

        let found = all(text).unwrap().remove(0).unwrap();

        assert_eq!(
            (found.session_id.as_str(), found.updated_at_ms),
            ("A1", Some(12))
        );
        let target = Target {
            channel: Some("slack".to_owned()),
            to: Some("42".to_owned()),
            account: None,
            thread: Some("1".to_owned()),
        };
        assert_eq!(found.target, target);
        let kept: Value = serde_json::from_str(&found.json).unwrap();
        assert_eq!(kept["channel"], "Telegram");
        assert!(kept.get("skillsSnapshot").is_none() && kept.get("lastTo").is_none());
    }

    #[test]
    fn an_entry_without_a_session_is_refused_and_times_that_are_none_are_left_out() {
        let text = r#"{"a":null,"b":[],"c":{},"d":{"sessionId":"../x"},"e":{"sessionId":"e"},
            "f":{"sessionId":"F","updatedAt":1e300},"g":{"sessionId":"G","updatedAt":-1}}"#;

        let found = all(text).unwrap();

        let refused = found.iter().filter(|entry| entry.is_err()).count();
        assert_eq!((found.len(), refused), (7, 5));
        let taken: Vec<_> = found
            .into_iter()
            .flatten()
            .map(|entry| entry.updated_at_ms)
            .collect();
        assert_eq!(taken, [None, None]);
    }
}
