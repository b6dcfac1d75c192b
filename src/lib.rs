//! Two-tier, database-first state of a personal-agent runtime.
//!
//! All durable state of a *root* folder lies in two kinds of SQLite database:
//!
//! - the **global tier**, `state/state.sqlite`: the control plane. It knows the agents, scheduled jobs
//!   and their runs, and what was imported and backed up.
//! - the **agent tier**, `agents/<id>/agent/agent.sqlite`, one for each agent: the data plane. It holds
//!   sessions, transcripts, memories and files, with their full-text indexes.
//!
//! # Using it
//!
//! ```
//! use zeroclaw::model::PageLimit;
//! use zeroclaw::service::{Clock, HolderKind, Request, Response, Service};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let root = folder.path();
//! // Makes the root on first use; holds it against every other writer until it is closed.
//! let (service, is_new) = Service::init(root, Clock::system(), HolderKind::Cli).await?;
//! assert!(is_new);
//!
//! let request = Request::BackupList { limit: PageLimit::default() };
//! let Response::Backups(runs) = service.dispatch(request).await? else { unreachable!() };
//! assert!(runs.is_empty());
//!
//! // Folds write-ahead logs into their databases.
//! service.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! [`guide`] goes on from here, to conversations, memories, files, workers and backups.
//!
//! # Rooms
//!
//! Data goes one way, `service → store → db`; each room names only rooms below it.
//!
//! | room | what it is |
//! |---|---|
//! | [`guide`] | how to embed the crate, with examples that run |
//! | [`daemon`] | owns a root for good, and answers over a socket |
//! | [`service`] | use cases: opens tiers, begins and commits, answers a [`service::Request`] |
//! | [`backup`] | both tiers to one archive, proof of an archive, and the way back |
//! | [`store`] | typed rows of one tier; never begins or commits |
//! | [`db`] | the only room that knows SQLite: pragmas, one writer a file, migrations, checks, snapshots |
//! | [`fs`] | every path, atomic private files, locks of the operating system |
//! | [`config`], [`clock`] | the configuration as far as state needs it; the time |
//! | [`model`] | plain values |
//!
//! # What is promised
//!
//! - An acknowledged write is on disk (`synchronous=FULL`), made cheap by one writer a file that commits
//!   for all who wait: see [`db::Db::write`].
//! - A database of a newer release is refused untouched; an older one is migrated in one transaction.
//! - A transaction never spans both tiers, because SQLite cannot make that atomic; use cases order their
//!   writes so that a rerun after a crash finishes them.
//! - Identity is `{agent_id, session_id}`. Session keys are opaque and lead to a session; nobody takes
//!   them apart.
//! - Files are 0600 and folders 0700 from their first moment.

pub mod backup;
pub mod clock;
pub mod config;
pub mod daemon;
pub mod db;
pub mod fs;
pub mod guide;
pub mod model;
pub mod service;
pub mod store;
