//! Streams what an index says: sessions, and the keys that lead to them.

use std::collections::BTreeSet;

use zeroclaw::model::{AgentId, SessionRoute, Tier};

use super::super::{Batcher, ReadError, Sink};
use super::home::{Agent, Home};
use super::session::{Times, of_entry};
use super::transcript;
use crate::doctor::owner::Owners;
use crate::doctor::record::{Item, Record, kind};
use crate::doctor::scan::Source;

/// Streams the sessions and routes of an index.
pub(crate) async fn read<S: Sink>(
    source: &Source,
    home: &Home,
    owners: &Owners,
    sink: &mut S,
) -> Result<(), ReadError> {
    let format = |reason: String| ReadError::Format { reason };
    let found = home
        .indexes
        .iter()
        .find(|(path, _)| *path == source.relative);
    let (_, index) = found.ok_or_else(|| format("it is no index of this home".to_owned()))?;
    if let Some(error) = &index.error {
        return Err(format(error.clone()));
    }
    let mut out = Batcher::new(sink);
    let mut given: BTreeSet<(&str, &str)> = BTreeSet::new();
    for (name, key) in &index.keys {
        let agent = &home.agents[name];
        let id = owners.named(name).map_err(format)?;
        let entry = &agent.entries[key];
        if given.insert((name, &entry.session_id)) {
            session(home, agent, &id, &entry.session_id, &mut out).await?;
        }
        let route = SessionRoute {
            session_key: key.clone(),
            session_id: entry.session_id.clone(),
            updated_at_ms: entry.updated_at_ms.unwrap_or(0),
            entry_json: Some(entry.json.clone()),
        };
        push_route(route, &id, &mut out).await?;
    }
    if source.relative.starts_with("sessions") {
        alias(home, owners, &mut out).await?;
    }
    for refusal in &index.refused {
        out.push(Item::Refused(refusal.clone()), refusal.raw.len())
            .await?;
    }
    for (key, message) in &index.merged {
        let (kind, place) = (kind::SESSION_ROUTE, format!("key {key}"));
        let message = message.clone();
        out.push(Item::Merged { kind, count: 1 }, 0).await?;
        out.push(
            Item::Note {
                code: "two-keys",
                place,
                message,
            },
            0,
        )
        .await?;
    }
    for (code, place, message) in &index.notes {
        let (place, message) = (place.clone(), message.clone());
        out.push(
            Item::Note {
                code,
                place,
                message,
            },
            0,
        )
        .await?;
    }
    out.flush().await
}

/// The shared session that the oldest layout did not have.
async fn alias<S: Sink>(
    home: &Home,
    owners: &Owners,
    out: &mut Batcher<'_, S>,
) -> Result<(), ReadError> {
    let name = &home.settings.default_agent;
    let agent = &home.agents[name];
    let Some((key, session_id)) = agent
        .main_alias
        .clone()
        .filter(|(key, _)| !agent.entries.contains_key(key))
    else {
        return Ok(());
    };
    let id = owners
        .named(name)
        .map_err(|reason| ReadError::Format { reason })?;
    let place = format!("key {key}");
    let message = "there was no shared session; the newest direct one became it".to_owned();
    let route = SessionRoute {
        session_key: key,
        session_id,
        updated_at_ms: 0,
        entry_json: None,
    };
    push_route(route, &id, out).await?;
    out.push(
        Item::Note {
            code: "main-session",
            place,
            message,
        },
        0,
    )
    .await
}

async fn push_route<S: Sink>(
    route: SessionRoute,
    agent: &AgentId,
    out: &mut Batcher<'_, S>,
) -> Result<(), ReadError> {
    let bytes = route.entry_json.as_ref().map_or(0, String::len) + 128;
    let tier = Tier::Agent(agent.clone());
    out.push(
        Item::Record {
            tier,
            record: route.into(),
        },
        bytes,
    )
    .await
}

async fn session<S: Sink>(
    home: &Home,
    agent: &Agent,
    id: &AgentId,
    session_id: &str,
    out: &mut Batcher<'_, S>,
) -> Result<(), ReadError> {
    let Some(key) = agent.owning_key(session_id) else {
        return Ok(());
    };
    let entry = &agent.entries[key];
    let file = agent.file_of(session_id);
    let times = match file {
        Some(relative) => transcript::times(&home.root.join(relative))?,
        None => Times::default(),
    };
    let record = Record::Session(Box::new(of_entry(home, id.clone(), key, entry, times)));
    let tier = Tier::Agent(id.clone());
    out.push(Item::Record { tier, record }, 512).await?;
    let told = entry
        .file
        .as_deref()
        .is_some_and(|file| !file.starts_with("sqlite:"));
    if file.is_none() && told {
        let place = format!("key {key}");
        let message = format!(
            "the transcript of session {session_id} is not there; its key comes in without it"
        );
        out.push(
            Item::Note {
                code: "transcript-missing",
                place,
                message,
            },
            0,
        )
        .await?;
    }
    Ok(())
}
