//! Formats of OpenClaw homes, also under its earlier names.

mod agent_db;
pub(crate) mod cron;
mod cron_runs;
mod cron_shape;
mod database;
mod deliveries;
mod devices;
pub(crate) mod event;
mod events;
pub(crate) mod file_name;
pub(crate) mod home;
pub(crate) mod index;
pub(crate) mod key;
mod left;
mod part;
pub(crate) mod scan;
pub(crate) mod session;
pub(crate) mod sessions_index;
pub(crate) mod settings;
mod shelf;
mod state_db;
pub(crate) mod surfaces;
pub(crate) mod tolerant;
pub(crate) mod transcript;

use std::path::Path;

use ::zeroclaw::fs::FsError;

use super::sqlite::LegacyDb;
use super::{ReadError, Sink};
use crate::doctor::plan::Install;
use crate::doctor::scan::Source;
use home::Home;
use surfaces::Kind;

/// Reads one source of a home into `sink`.
pub(crate) async fn read<S: Sink>(
    kind: Kind,
    source: &Source,
    home: &Home,
    install: Install<'_>,
    sink: &mut S,
) -> Result<(), ReadError> {
    let owners = install.owners;
    match kind {
        Kind::SessionIndex => sessions_index::read(source, home, owners, sink).await,
        Kind::CronJobs => cron::read(&source.path, home, owners, sink).await,
        Kind::CronRuns => cron_runs::read(&source.path, owners, sink).await,
        Kind::Devices => devices::read(&source.path, sink).await,
        Kind::Deliveries => deliveries::read(&source.path, owners, sink).await,
        Kind::StateDb => {
            let mut db = LegacyDb::open(&source.path, install.scratch).await?;
            let read = state_db::read(&mut db, home, owners, sink).await;
            db.close().await;
            read
        }
        Kind::AgentDb => {
            let agent = agent_of(source).map(|name| owners.named(&name));
            let agent = agent.unwrap_or_else(|| Err("it is in no agent's folder".to_owned()));
            let agent = agent.map_err(|reason| ReadError::Format { reason })?;
            let mut db = LegacyDb::open(&source.path, install.scratch).await?;
            let read = agent_db::read(&mut db, home, agent, sink).await;
            db.close().await;
            read
        }
        Kind::Transcript | Kind::PastTranscript => {
            transcript::read(source, home, owners, sink).await
        }
    }
}

/// Name of the agent whose folder a file is in.
fn agent_of(source: &Source) -> Option<String> {
    let mut parts = source.relative.iter();
    let is_of_agent = parts.next().is_some_and(|part| part == "agents");
    let folder = parts.next().filter(|_| is_of_agent)?;
    Some(key::agent_name(folder.to_str()?))
}

/// A file's own time, Unix milliseconds.
fn modified_ms(path: &Path) -> Result<i64, FsError> {
    let modified = std::fs::metadata(path)
        .and_then(|meta| meta.modified())
        .map_err(FsError::at("stat", path))?;
    let since = modified
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    Ok(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
