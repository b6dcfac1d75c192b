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
//! # Conversations
//!
//! A runtime appends what is said, and holds a turn while it works on an answer. Nobody else's turn begins
//! meanwhile; one whose owner dies is closed as interrupted.
//!
//! ```
//! use std::time::Duration;
//! use zeroclaw::model::{
//!     AgentId, Append, AppendEvent, PageLimit, SessionStatus, SessionTarget, TranscriptCursor, TranscriptOrder,
//! };
//! # use zeroclaw::service::{Clock, HolderKind, Service};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let (service, _) = Service::init(folder.path(), Clock::system(), HolderKind::Cli).await?;
//! let atlas = AgentId::new("atlas")?;
//! service.add_agent(&atlas).await?;
//! let key = SessionTarget::Key("telegram:main:42".to_owned());
//!
//! // The session is made where there is none; once this returns, the event is on disk. The same key
//! // again, after a crash say, appends nothing and gives the same answer.
//! let question = AppendEvent::message("user", "Where does the lantern hang?");
//! let asked = service.append(&atlas, Append::new(key.clone(), vec![question]).with_key("update-7")).await?;
//!
//! let turn = service.begin_turn(&atlas, &asked.session_id, "bot", Duration::from_secs(5)).await?;
//! let answer = AppendEvent::message("assistant", "By the old shed.");
//! service.append(&atlas, Append::new(key, vec![answer])).await?;
//! turn.finish(SessionStatus::Idle).await?;
//!
//! let (order, cursor) = (TranscriptOrder::Branch, TranscriptCursor::Newest);
//! let limit = PageLimit::from(50);
//! let page = service.transcript(&atlas, &asked.session_id, order, cursor, limit).await?;
//! assert_eq!(page.events[1].parent_id.as_ref(), Some(&page.events[0].event_id));
//! # service.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! [`service::Service::rewind`], [`service::Service::branch`] and [`service::Service::truncate`] are how a
//! transcript ever forks or shrinks; [`service::Service::tail`] follows one as it grows.
//!
//! A caller that only wants to know something opens the root by [`service::Service::look`]: nothing is
//! created, migrated or checkpointed then, and writers elsewhere go on.
//!
//! # Embedding it
//!
//! One process holds a root to write, for as long as its [`service::Service`] lives; clones of its `Arc` may be used by any
//! number of tasks at once. Every call that writes returns once the rows are on disk. [`service::ServiceError::kind`] says
//! what kind of failure it was, and its `hint` what to do.
//!
//! ## Remember and recall
//!
//! A memory has a key. Storing under a key that is taken keeps the old memory as superseded. A recall joins a search by
//! words with the caller's own vectors, whichever are given: see [`model::fused_score`]. The reader sees its own memories,
//! and those of siblings that `read_memory_from` in its part of the configuration grants.
//!
//! ```
//! use zeroclaw::model::{AgentId, NewMemory, RecallQuery};
//! # use zeroclaw::model::AgentStatus;
//! # use zeroclaw::service::{Clock, HolderKind, Importer, Service};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let root = folder.path();
//! # let (service, _) = Service::init(root, Clock::system(), HolderKind::Cli).await?;
//! let atlas = AgentId::new("atlas")?;
//! # let importer = Importer::new(service);
//! # importer.ensure_agent(&atlas, AgentStatus::Active, None).await?;
//! # importer.close().await;
//! # let service = Service::open(root, Clock::system(), HolderKind::Cli).await?;
//! let note = NewMemory {
//!     key: "harbour".to_owned(),
//!     content: "the tide turns at nine".to_owned(),
//!     category: "core".to_owned(),
//!     namespace: "default".to_owned(),
//!     vector: Some(vec![0.6, 0.8]),
//!     ..NewMemory::default()
//! };
//! service.store_memory(&atlas, note).await?;
//!
//! let query = RecallQuery {
//!     text: Some("tide".to_owned()),
//!     vector: Some(vec![0.5, 0.9]),
//!     limit: 5.into(),
//!     ..RecallQuery::default()
//! };
//! let recalled = service.recall(&atlas, &query).await?;
//! assert_eq!(recalled[0].hit.memory.key, "harbour");
//! # service.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! ## Files, and workers
//!
//! An agent's files may live in its database: [`service::Vfs`] is one tree of them. A worker, in this process or another, is
//! given a [`model::WorkerSpec`] and nothing else; it opens its own connections, beside whoever holds the root. What it
//! sees as files depends on its mode: the workspace on disk, a layer over it that takes every change, or the database alone.
//! All modes answer alike.
//!
//! ```
//! use zeroclaw::model::{AgentId, FsMode, VfsNamespace, VfsPath, WorkerSpec};
//! use zeroclaw::service::{Worker, WriteMode};
//! # use zeroclaw::model::AgentStatus;
//! # use zeroclaw::service::{Clock, HolderKind, Importer, Service};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let root = folder.path();
//! # let (service, _) = Service::init(root, Clock::system(), HolderKind::Cli).await?;
//! # let atlas = AgentId::new("atlas")?;
//! # let importer = Importer::new(service);
//! # importer.ensure_agent(&atlas, AgentStatus::Active, None).await?;
//! # importer.close().await;
//! # let service = Service::open(root, Clock::system(), HolderKind::Cli).await?;
//! let spec = WorkerSpec {
//!     agent_id: atlas.clone(),
//!     run_id: "run-1".to_owned(),
//!     fs_mode: FsMode::VfsOnly,
//!     root: root.to_owned(),
//! };
//! let worker = Worker::open(spec, Clock::system()).await?;
//! let files = worker.files().await?;
//! let path = VfsPath::new("log/book.md")?;
//! files.write(&path, b"high water".to_vec(), WriteMode::default()).await?;
//! files.append(&path, b" at nine".to_vec()).await?;
//! # drop(files);
//! worker.close().await;
//!
//! // The same file, seen by who holds the root.
//! let vfs = service.vfs(&atlas, VfsNamespace::default()).await?;
//! assert_eq!(vfs.read(&path, 0, 100).await?, b"high water at nine");
//! # drop(vfs);
//! # service.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Rooms
//!
//! Data goes one way, `service → store → db`; each room names only rooms below it.
//!
//! | room | what it is |
//! |---|---|
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
pub mod db;
pub mod fs;
pub mod model;
pub mod service;
pub mod store;
