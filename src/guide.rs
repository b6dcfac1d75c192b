//! How to embed the crate, from an empty folder to a backup. Every example runs as it stands.
//!
//! 1. [A root](#a-root) · 2. [Agents](#agents) · 3. [Conversations](#conversations) · 4. [Reading back](#reading-back) ·
//!    5. [Branches](#branches) · 6. [Memories](#memories) · 7. [Files](#files) · 8. [Workers](#workers) ·
//!    9. [Background work](#background-work) · 10. [Keeping and moving](#keeping-and-moving) · 11. [Requests](#requests) ·
//!    12. [When it fails](#when-it-fails)
//!
//! # A root
//!
//! ```toml
//! [dependencies]
//! zeroclaw = "0.1"
//! tokio = { version = "1", features = ["macros", "rt-multi-thread"] }
//! ```
//!
//! All state lies below one folder, the *root*. One process holds it to write, for as long as its
//! [`Service`](crate::service::Service) lives; a second one is refused with the name of the holder. Any number may look
//! meanwhile: [`Service::look`](crate::service::Service::look) creates, migrates and checkpoints nothing.
//!
//! ```
//! use zeroclaw::service::{Clock, HolderKind, Service};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let root = folder.path();
//! // Makes what is missing, and brings an older schema up to date. `open` instead wants a root that is there.
//! let (service, is_new) = Service::init(root, Clock::system(), HolderKind::Daemon).await?;
//! assert!(is_new);
//!
//! let refused = Service::open(root, Clock::system(), HolderKind::Cli);
//! assert!(refused.await.is_err(), "the root is held");
//!
//! // Folds write-ahead logs into their databases. A process that dies without it loses nothing.
//! service.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! A service is used behind an `Arc` by as many tasks as there are. Each database has one writer, and all callers that
//! wait share its next commit: many small appends at once cost few syncs. Every call that writes returns once its rows
//! are on disk; a call whose future is dropped is done whole or not at all.
//!
//! Times are Unix milliseconds in UTC. Tests hand in [`Clock::fixed`](crate::clock::Clock::fixed) and move it.
//!
//! # Agents
//!
//! An agent has a name, a database and a workspace folder. Names are `[a-z0-9]([a-z0-9_-]{0,62}[a-z0-9])?`; anything
//! else is refused, never bent.
//!
//! ```
//! use zeroclaw::model::AgentId;
//! # use zeroclaw::service::{Clock, HolderKind, Service};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let (service, _) = Service::init(folder.path(), Clock::system(), HolderKind::Cli).await?;
//! let atlas = AgentId::new("atlas")?;
//! assert!(service.add_agent(&atlas).await?, "made now");
//! assert!(!service.add_agent(&atlas).await?, "there already: harmless at every start");
//! assert!(AgentId::new("../atlas").is_err());
//! # service.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Conversations
//!
//! A session is found by its id or by a *key* that leads to it. Keys are opaque: who talks where is told in typed fields
//! ([`ConversationAddress`](crate::model::ConversationAddress)), and the same address is always the same conversation.
//!
//! ```
//! use std::time::Duration;
//! use zeroclaw::model::{
//!     AgentId, Append, AppendEvent, ChatType, ConversationAddress, Place, SessionHeader, SessionStatus, SessionTarget,
//! };
//! # use zeroclaw::service::{Clock, HolderKind, Service};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let (service, _) = Service::init(folder.path(), Clock::system(), HolderKind::Cli).await?;
//! # let atlas = AgentId::new("atlas")?;
//! # service.add_agent(&atlas).await?;
//! let key = SessionTarget::Key("telegram:main:42".to_owned());
//! let header = SessionHeader {
//!     conversation: Some(ConversationAddress {
//!         channel: "telegram".to_owned(),
//!         account_id: "main".to_owned(),
//!         kind: ChatType::Direct,
//!         peer_id: "42".to_owned(),
//!         thread_id: None,
//!     }),
//!     ..SessionHeader::default()
//! };
//!
//! // Makes the session where there is none. The same idempotency key again, after a crash say, appends nothing and
//! // gives the same answer.
//! let question = AppendEvent::message("user", "Where does the lantern hang?");
//! let append = Append::new(key.clone(), vec![question]).with_header(header).with_key("update-7");
//! let asked = service.append(&atlas, append.clone()).await?;
//! assert!(asked.is_new_session);
//! assert!(service.append(&atlas, append).await?.is_repeat);
//!
//! // One turn at a time: a second caller waits in order, up to its own patience, or is told who holds it. A turn
//! // whose owner died is closed as interrupted.
//! let turn = service.begin_turn(&atlas, &asked.session_id, "bot", Duration::from_secs(5)).await?;
//! let tail = Place::Event(asked.events[0].event_id.clone());
//! let answer = AppendEvent::message("assistant", "By the old shed.");
//! // `after` refuses where somebody else appended meanwhile.
//! service.append(&atlas, Append::new(key, vec![answer]).after(tail)).await?;
//! turn.finish(SessionStatus::Idle).await?;
//! # service.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Reading back
//!
//! Pages have a cursor at both ends, streams pass a transcript of any length in bounded memory, and a tail waits for
//! what comes.
//!
//! ```
//! use zeroclaw::model::{PageLimit, TranscriptCursor, TranscriptOrder};
//! use zeroclaw::service::TailEvent;
//! # use zeroclaw::model::{AgentId, Append, AppendEvent, SessionTarget};
//! # use zeroclaw::service::{Clock, HolderKind, Request, Response, Service};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let (service, _) = Service::init(folder.path(), Clock::system(), HolderKind::Cli).await?;
//! # let atlas = AgentId::new("atlas")?;
//! # service.add_agent(&atlas).await?;
//! # let key = SessionTarget::Key("lantern".to_owned());
//! # let events = (0..3).map(|i| AppendEvent::message("user", format!("the lantern, {i}"))).collect();
//! # let session = service.append(&atlas, Append::new(key, events)).await?.session_id;
//! let (order, limit) = (TranscriptOrder::Branch, PageLimit::from(2));
//! let newest = service.transcript(&atlas, &session, order, TranscriptCursor::Newest, limit).await?;
//! assert_eq!(newest.events.len(), 2);
//! let before = TranscriptCursor::Before(newest.next_before.ok_or("there are older ones")?);
//! let older = service.transcript(&atlas, &session, order, before, limit).await?;
//! assert_eq!(older.events[0].text, "the lantern, 0");
//!
//! let mut stream = service.stream_transcript(&atlas, &session, order).await?;
//! let mut count = 0;
//! while let Some(events) = stream.next().await? {
//!     count += events.len();
//! }
//! assert_eq!(count, 3);
//!
//! let mut tail = service.tail(&atlas, &session, 0).await?;
//! let TailEvent::Events(events) = tail.next().await? else { unreachable!("there are three already") };
//! assert_eq!(events.len(), 3);
//! # drop(tail);
//! # service.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Branches
//!
//! A transcript never forks by accident. [`rewind`](crate::service::Service::rewind) takes the conversation back,
//! [`branch`](crate::service::Service::branch) says something else from there,
//! [`truncate`](crate::service::Service::truncate) deletes, [`compact`](crate::service::Service::compact) puts a summary
//! in front of what is left and keeps a checkpoint to go back to.
//!
//! ```
//! use zeroclaw::model::{AppendEvent, Place, TranscriptCursor, TranscriptOrder};
//! # use zeroclaw::model::{AgentId, Append, PageLimit, SessionTarget};
//! # use zeroclaw::service::{Clock, HolderKind, Service};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let (service, _) = Service::init(folder.path(), Clock::system(), HolderKind::Cli).await?;
//! # let atlas = AgentId::new("atlas")?;
//! # service.add_agent(&atlas).await?;
//! # let key = SessionTarget::Key("lantern".to_owned());
//! # let events = ["first", "second"].map(|text| AppendEvent::message("user", text)).to_vec();
//! # let said = service.append(&atlas, Append::new(key, events)).await?;
//! # let session = said.session_id;
//! let first = Place::Event(said.events[0].event_id.clone());
//! let other = AppendEvent::message("user", "something else");
//! service.branch(&atlas, &session, first, vec![other]).await?;
//!
//! # let (cursor, limit) = (TranscriptCursor::Newest, PageLimit::from(9));
//! let texts = |order| {
//!     let page = service.transcript(&atlas, &session, order, cursor, limit);
//!     async { Ok::<_, zeroclaw::service::ServiceError>(page.await?.events.into_iter().map(|e| e.text).collect::<Vec<_>>()) }
//! };
//! assert_eq!(texts(TranscriptOrder::Branch).await?, ["first", "something else"]);
//! assert_eq!(texts(TranscriptOrder::Accepted).await?, ["first", "second", "something else"]);
//! # service.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Memories
//!
//! A memory has a key. Storing under a key that is taken keeps the old memory as superseded. A recall joins a search by
//! words with the caller's own vectors, whichever are given: see [`fused_score`](crate::model::fused_score). The reader
//! sees its own memories, and those of siblings that `read_memory_from` in its part of the configuration grants, whole
//! or by exact category; a grant leads no further.
//!
//! ```
//! use zeroclaw::model::{NewMemory, RecallQuery};
//! # use zeroclaw::model::AgentId;
//! # use zeroclaw::service::{Clock, HolderKind, Service};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let (service, _) = Service::init(folder.path(), Clock::system(), HolderKind::Cli).await?;
//! # let atlas = AgentId::new("atlas")?;
//! # service.add_agent(&atlas).await?;
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
//! # Files
//!
//! An agent's files may live in its database, where backups take them along: [`Vfs`](crate::service::Vfs) is one tree of
//! them. A file of any size passes in pieces, and appears whole or not at all.
//!
//! ```
//! use zeroclaw::model::{VfsNamespace, VfsPath};
//! use zeroclaw::service::WriteMode;
//! # use zeroclaw::model::AgentId;
//! # use zeroclaw::service::{Clock, HolderKind, Service};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let (service, _) = Service::init(folder.path(), Clock::system(), HolderKind::Cli).await?;
//! # let atlas = AgentId::new("atlas")?;
//! # service.add_agent(&atlas).await?;
//! let vfs = service.vfs(&atlas, VfsNamespace::default()).await?;
//! let path = VfsPath::new("log/book.md")?;
//! vfs.write(&path, b"high water".to_vec(), WriteMode::default()).await?;
//! vfs.append(&path, b" at nine".to_vec()).await?;
//! assert_eq!(vfs.read(&path, 5, 100).await?, b"water at nine");
//! assert!(VfsPath::new("../elsewhere").is_err());
//! # drop(vfs);
//! # service.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Workers
//!
//! A worker, in this process or another, is given a [`WorkerSpec`](crate::model::WorkerSpec) and nothing else; it opens
//! its own connections, beside whoever holds the root. What it sees as files depends on its mode: the workspace on disk,
//! a layer over it that takes every change, or the database alone. All modes answer alike, and no link and no `..`
//! leads out of any.
//!
//! ```
//! use zeroclaw::model::{FsMode, WorkerSpec};
//! use zeroclaw::service::{Worker, WriteMode};
//! # use zeroclaw::model::{AgentId, VfsNamespace, VfsPath};
//! # use zeroclaw::service::{Clock, HolderKind, Service};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let root = folder.path();
//! # let (service, _) = Service::init(root, Clock::system(), HolderKind::Cli).await?;
//! # let atlas = AgentId::new("atlas")?;
//! # service.add_agent(&atlas).await?;
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
//! # drop(files);
//! worker.close().await;
//!
//! // The same file, seen by who holds the root.
//! let vfs = service.vfs(&atlas, VfsNamespace::default()).await?;
//! assert_eq!(vfs.read(&path, 0, 100).await?, b"high water");
//! # drop(vfs);
//! # service.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Background work
//!
//! A task is a row from its creation to its end, and nothing else decides what became of it. Whoever works claims it,
//! gives signs of life, and settles it once; an end is never overwritten. A worker that dies is found gone by its
//! process, and its task ends as what it left proves: see
//! [`TaskLedger`](crate::service::TaskLedger) and [`TaskHandle`](crate::service::TaskHandle).
//!
//! ```
//! use std::time::Duration;
//! use zeroclaw::model::{NewTask, TaskEnd, TaskOwnerKind, TaskStatus};
//! # use zeroclaw::model::AgentId;
//! # use zeroclaw::service::{Clock, HolderKind, Service, TaskWorker};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let root = folder.path();
//! # let (service, _) = Service::init(root, Clock::system(), HolderKind::Daemon).await?;
//! # let atlas = AgentId::new("atlas")?;
//! # service.add_agent(&atlas).await?;
//! let mut new = NewTask::new(TaskOwnerKind::Task);
//! new.agent_id = Some(atlas.clone());
//! new.idempotency_key = Some("count-2026-11-30".to_owned()); // The same key again is the same task.
//! let task = service.tasks().create(new).await?;
//!
//! // In a process of its own, or here: it opens the root beside whoever holds it.
//! let worker = TaskWorker::open(root, &atlas, Clock::system()).await?;
//! let mut mine = worker.claim_next(TaskOwnerKind::Task).await?.ok_or("it waits")?;
//! mine.progress("half of it").await?;
//! let asked_to_stop = mine.beat().await?;
//! assert!(!asked_to_stop);
//! mine.settle(TaskEnd::succeeded(Some("42 lanterns".to_owned()))).await?;
//! # drop(mine);
//! worker.close().await;
//!
//! let ended = service.tasks().wait(&task.task_id, Duration::from_secs(5)).await?.ok_or("it has ended")?;
//! assert_eq!(ended.status, TaskStatus::Succeeded);
//! # service.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! `examples/worker.rs` is such a worker as a program. Scheduled jobs become tasks when they are due:
//! [`Scheduler::tick`](crate::service::Scheduler::tick) runs their commands itself and leaves work for agents to workers.
//! What is to be said on a channel goes through [`Deliveries`](crate::service::Deliveries), which never sends blindly
//! again what may have been sent; runs of standing procedures through [`Flows`](crate::service::Flows), whose approvals
//! stay closed until somebody opens them. A daemon calls all of these by itself; who embeds the crate calls
//! [`Service::sweep_tasks`](crate::service::Service::sweep_tasks) and the like every now and then.
//!
//! # Keeping and moving
//!
//! A session leaves as lines that come back byte for byte, as Markdown, or as a page for a browser; a backup takes both
//! tiers at one instant, beside whoever writes, and is proved before it gets its name.
//!
//! ```
//! use zeroclaw::service::{ExportFormat, backup};
//! # use zeroclaw::model::{AgentId, Append, AppendEvent, SessionTarget};
//! # use zeroclaw::service::{Clock, HolderKind, Service};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let root = folder.path();
//! # let (service, _) = Service::init(root, Clock::system(), HolderKind::Cli).await?;
//! # let atlas = AgentId::new("atlas")?;
//! # service.add_agent(&atlas).await?;
//! # let key = SessionTarget::Key("lantern".to_owned());
//! # let said = Append::new(key, vec![AppendEvent::message("user", "first")]);
//! # let session = service.append(&atlas, said).await?.session_id;
//! let mut lines = Vec::new();
//! let name = std::path::Path::new("in memory"); // What messages call it.
//! service.export_session(&atlas, &session, ExportFormat::Jsonl, &mut lines, name).await?;
//!
//! let made = backup::create(root, Clock::system(), backup::CreateOptions::default()).await?;
//! assert!(made.archive.starts_with(root.join("backups")));
//! # service.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! Nothing is ever deleted by itself: [`apply_retention`](crate::service::Service::apply_retention) takes rules, shows
//! with `dry_run` exactly what would go, spares what is pinned or in a turn, and keeps a copy of each session for
//! [`COPY_KEPT`](crate::service::COPY_KEPT).
//!
//! # Requests
//!
//! What a client on the other side of a socket may ask is a [`Request`](crate::service::Request), one value for each
//! method, and its answer a [`Response`](crate::service::Response). Both are serde values; the command line asks so too.
//!
//! ```
//! use zeroclaw::service::{Request, Response};
//! # use zeroclaw::service::{Clock, HolderKind, Service};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let (service, _) = Service::init(folder.path(), Clock::system(), HolderKind::Cli).await?;
//! let request: Request = serde_json::from_str(r#"{"method": "agents.create", "params": {"agent": "atlas"}}"#)?;
//! let Response::AgentCreated(made) = service.dispatch(request).await? else { unreachable!() };
//! assert_eq!(made.agent_id.as_str(), "atlas");
//! # service.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! # When it fails
//!
//! Every failure is a [`ServiceError`](crate::service::ServiceError). Its message names the thing, the place and the
//! holder; [`kind`](crate::service::ServiceError::kind) sorts it, [`hint`](crate::service::ServiceError::hint) says what
//! a person can do.
//!
//! | kind | what to make of it |
//! |---|---|
//! | `Busy` | somebody holds the root, a turn or a lock: wait, or give up and say who |
//! | `NotFound`, `Usage` | the caller's: nothing was changed |
//! | `Refused` | it would have lost something, or is not as the caller last saw it: read again, decide again |
//! | `NoSpace` | the disk is full or read-only: nothing of this call is there; reads go on |
//! | `NewerSchema` | a newer release wrote the file: it was not touched |
//! | `Damaged` | a database or archive is damaged: see [`Service::check`](crate::service::Service::check), and restore |
//! | `NotInitialised` | there is no root: `init` makes one |
