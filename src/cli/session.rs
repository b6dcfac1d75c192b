//! `zeroclaw sessions`.

use clap::{Args, Subcommand};
use zeroclaw::model::{AgentId, ChatType, SessionRecord, SessionStatus};
use zeroclaw::service::{Request, Response, Service};

use super::args::{LimitArgs, instant, one_of};
use super::output::{Column, Fields, Table, or_dash, time};
use super::{CliError, Context, Exit, ask};

mod acp;
mod artifact;
mod change;
mod copy;
mod remove;
mod run_artifact;
mod search;
mod show;
mod stream;

const CHAT_TYPES: &[&str] = &["direct", "group", "channel"];
const STATUSES: &[&str] = &[
    "idle",
    "running",
    "done",
    "failed",
    "killed",
    "timeout",
    "interrupted",
];

/// List, show, search, change, export and delete sessions
#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// List sessions, newest update first
    ///
    /// Without --agent the sessions of all agents, retired ones too.
    #[command(after_long_help = Exit::help_of_named())]
    List(ListArgs),
    /// Show one session and what was said in it, oldest first
    #[command(after_long_help = Exit::help_of_named())]
    Show(show::ShowArgs),
    /// Print the text of one event, whole
    ///
    /// As it is, whatever it holds: send it to a file or a program. With --json all of the event comes instead.
    #[command(after_long_help = Exit::help_of_named())]
    Event(show::EventArgs),
    /// Search what was said, in all agents' sessions
    ///
    /// Finds messages that hold all the words, best match first. Retired agents are searched too.
    /// Ends with 1 when an agent's database could not be searched.
    #[command(after_long_help = Exit::help_of(&[
        Exit::Findings,
        Exit::NotInitialised,
        Exit::NewerSchema,
        Exit::Damaged,
        Exit::NotFound,
    ]))]
    Search(search::SearchArgs),
    /// Give a session another title
    #[command(after_long_help = help_of_change())]
    Rename(change::RenameArgs),
    /// Archive a session: it stays, and lists pass over it
    #[command(after_long_help = help_of_change())]
    Archive(change::ArchiveArgs),
    /// Pin a session: no rule deletes it
    #[command(after_long_help = help_of_change())]
    Pin(change::PinArgs),
    /// Copy a session, or its beginning, into a new one
    #[command(after_long_help = help_of_change())]
    Fork(change::ForkArgs),
    /// Put an empty session behind the key of this one, which is archived
    #[command(after_long_help = help_of_change())]
    Reset(change::ResetArgs),
    /// Delete a session with all that was said in it
    ///
    /// A session in a turn is refused, and so is a pinned one. A copy is kept for 30 days.
    #[command(after_long_help = help_of_change())]
    Delete(remove::DeleteArgs),
    /// Delete sessions by age, number or size
    ///
    /// No rule is on by itself. Pinned sessions and those in a turn stay; copies are kept for 30 days.
    #[command(after_long_help = help_of_change())]
    Prune(remove::PruneArgs),
    /// Write a session to a file
    #[command(after_long_help = help_of_change())]
    Export(copy::ExportArgs),
    /// Take in a session that was exported as jsonl
    #[command(after_long_help = help_of_change())]
    Import(copy::ImportArgs),
    /// List sessions of editors and other ACP clients, newest activity first
    ///
    /// Open ones may go on; ended ones never do.
    #[command(after_long_help = Exit::help_of_named())]
    Acp(acp::AcpArgs),
    /// List what tools were given and gave, where it is too large for the session itself
    #[command(after_long_help = Exit::help_of_named())]
    Artifacts(artifact::ArtifactsArgs),
    /// Print the bytes of one artifact of a session
    ///
    /// They come as they are, whatever they hold: send them to a file or a program. With --json its
    /// description comes instead.
    #[command(after_long_help = Exit::help_of_named())]
    Artifact(artifact::ArtifactArgs),
    /// List what an agent's runs gave, by run and name
    #[command(after_long_help = Exit::help_of_named())]
    RunArtifacts(run_artifact::RunArtifactsArgs),
    /// Print the bytes of one output of a run
    ///
    /// They come as they are, and only if they are those that were stored: a damaged output ends with 6.
    /// With --json its description comes instead.
    #[command(after_long_help = Exit::help_of_named())]
    RunArtifact(run_artifact::RunArtifactArgs),
    /// List what a runtime did in a session, step by step
    #[command(after_long_help = Exit::help_of_named())]
    Trajectory(stream::StreamArgs),
    /// List what ACP children told a session while they ran
    #[command(after_long_help = Exit::help_of_named())]
    ParentStream(stream::StreamArgs),
}

fn help_of_change() -> String {
    Exit::help_of(&[
        Exit::NotInitialised,
        Exit::Busy,
        Exit::NewerSchema,
        Exit::Damaged,
        Exit::NoSpace,
        Exit::NotFound,
        Exit::Refused,
    ])
}

/// Names one session.
#[derive(Args, Debug)]
struct TargetArgs {
    /// Its id, its key, or the start of its id
    session: String,

    /// Its agent, where the name fits sessions of several
    #[arg(long, value_name = "ID")]
    agent: Option<AgentId>,
}

impl TargetArgs {
    /// The session that is meant.
    async fn find(&self, service: &Service) -> Result<SessionRecord, CliError> {
        let agent = self.agent.as_ref();
        Ok(service.find_session(agent, &self.session).await?)
    }
}

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// Only this agent's
    #[arg(long, value_name = "ID")]
    agent: Option<AgentId>,

    /// Only through this channel, for example telegram
    #[arg(long)]
    channel: Option<String>,

    /// Only of this kind of chat
    #[arg(long, value_name = "KIND", value_parser = one_of(CHAT_TYPES, ChatType::parse))]
    chat_type: Option<ChatType>,

    /// Only in this state
    #[arg(long, value_parser = one_of(STATUSES, SessionStatus::parse))]
    status: Option<SessionStatus>,

    /// Only whose key or title contains this
    #[arg(long)]
    text: Option<String>,

    /// Only changed at this time or later: 2026-11-30, 2026-11-30T16:42:00Z or Unix milliseconds
    #[arg(long, value_name = "TIME", value_parser = instant)]
    since: Option<i64>,

    /// Only changed before this time
    #[arg(long, value_name = "TIME", value_parser = instant)]
    until: Option<i64>,

    /// Show archived sessions too
    #[arg(long)]
    archived: bool,

    #[command(flatten)]
    limit: LimitArgs,

    /// Go on behind this cursor of an earlier page
    #[arg(long, value_name = "CURSOR")]
    before: Option<String>,
}

impl SessionsCommand {
    pub(super) async fn run(self, context: &Context) -> Result<Exit, CliError> {
        match self {
            Self::List(args) => list(context, args).await,
            Self::Show(args) => show::show(context, args).await,
            Self::Event(args) => show::event(context, args).await,
            Self::Search(args) => search::run(context, args).await,
            Self::Rename(args) => change::rename(context, args).await,
            Self::Archive(args) => change::archive(context, args).await,
            Self::Pin(args) => change::pin(context, args).await,
            Self::Fork(args) => change::fork(context, args).await,
            Self::Reset(args) => change::reset(context, args).await,
            Self::Delete(args) => remove::delete(context, args).await,
            Self::Prune(args) => remove::prune(context, args).await,
            Self::Export(args) => copy::export(context, args).await,
            Self::Import(args) => copy::import(context, args).await,
            Self::Acp(args) => acp::run(context, args).await,
            Self::Artifacts(args) => artifact::list(context, args).await,
            Self::Artifact(args) => artifact::show(context, args).await,
            Self::RunArtifacts(args) => run_artifact::list(context, args).await,
            Self::RunArtifact(args) => run_artifact::show(context, args).await,
            Self::Trajectory(args) => stream::trajectory(context, args).await,
            Self::ParentStream(args) => stream::parent_stream(context, args).await,
        }
    }
}

async fn list(context: &Context, args: ListArgs) -> Result<Exit, CliError> {
    let request = Request::SessionsList {
        agent: args.agent,
        channel: args.channel,
        chat_type: args.chat_type,
        status: args.status,
        text: args.text,
        with_archived: args.archived,
        since_ms: args.since,
        until_ms: args.until,
        before: args.before,
        limit: args.limit.page(),
    };
    let Response::Sessions(page) = ask(context, request).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&page)?;
    } else if page.items.is_empty() {
        let archived = if args.archived {
            ""
        } else {
            "; --archived shows archived ones too"
        };
        context.out.note(&format!("no sessions{archived}"));
    } else {
        context.out.table(&session_table(&page.items))?;
    }
    if let Some(cursor) = &page.next {
        context.offer_next("--before", cursor);
    }
    Ok(Exit::Done)
}

fn session_table(sessions: &[SessionRecord]) -> Table {
    let mut table = Table::new(&[
        Column::text("session"),
        Column::word("agent"),
        Column::word("status"),
        Column::word("channel").minor(),
        Column::word("chat").minor(),
        Column::number("messages").minor(),
        Column::word("updated"),
        Column::text("title or key"),
    ]);
    for session in sessions {
        let title = session.display_name.as_deref();
        table.row([
            session.session_id.clone(),
            session.agent_id.to_string(),
            state(session),
            or_dash(session.channel.as_deref()),
            or_dash(session.chat_type),
            session.message_count.to_string(),
            time(session.updated_at_ms),
            title.unwrap_or(&session.session_key).to_owned(),
        ]);
    }
    table
}

fn state(session: &SessionRecord) -> String {
    match session.archived_at_ms {
        Some(_) => format!("{}, archived", session.status),
        None => session.status.to_string(),
    }
}

fn session_fields(session: &SessionRecord) -> Fields {
    let model = match (&session.model_provider, &session.model) {
        (Some(provider), Some(model)) => format!("{provider}/{model}"),
        (_, model) => or_dash(model.as_deref()),
    };
    let mut fields = Fields::new()
        .add("session", &session.session_id)
        .add("agent", &session.agent_id)
        .add("key", &session.session_key)
        .add("title", or_dash(session.display_name.as_deref()))
        .add("status", session.status)
        .add("scope", session.session_scope)
        .add("channel", or_dash(session.channel.as_deref()))
        .add("account", or_dash(session.account_id.as_deref()))
        .add("chat", or_dash(session.chat_type))
        .add("model", model)
        .add(
            "events",
            format!(
                "{}, {} of them messages",
                session.event_count, session.message_count
            ),
        )
        .add("created", time(session.created_at_ms))
        .add("updated", time(session.updated_at_ms));
    if let Some(pinned) = session.pinned_at_ms {
        fields = fields.add("pinned", time(pinned));
    }
    if let Some(origin) = &session.forked_from {
        fields = fields.add("forked from", origin);
    }
    if let Some(archived) = session.archived_at_ms {
        fields = fields.add("archived", time(archived));
    }
    if session.has_synthetic_times {
        fields = fields.add("times", "stand in for times its source did not have");
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_offered_is_known_to_the_library() {
        assert!(
            CHAT_TYPES
                .iter()
                .all(|word| ChatType::parse(word).is_some())
        );
        assert!(
            STATUSES
                .iter()
                .all(|word| SessionStatus::parse(word).is_some())
        );
    }
}
