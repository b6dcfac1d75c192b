//! `zeroclaw sessions`.

use clap::{Args, Subcommand};
use zeroclaw::model::{
    AgentId, ChatType, Event, MAX_PAGE, PageLimit, SessionRecord, SessionStatus, TranscriptCursor,
    TranscriptOrder,
};
use zeroclaw::service::{Request, Response, Service, SessionTranscript};

use super::args::{LimitArgs, instant, one_of};
use super::carrier::Carrier;
use super::output::{Column, Fields, Table, or_dash, time};
use super::{CliError, Context, Exit, ask};

mod acp;
mod artifact;
mod change;
mod copy;
mod remove;
mod run_artifact;
mod search;
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
    Show(ShowArgs),
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

#[derive(Args, Debug)]
pub(crate) struct ShowArgs {
    /// Its id, its key, or the start of its id
    session: String,

    /// Its agent, where the name fits sessions of several
    #[arg(long, value_name = "ID")]
    agent: Option<AgentId>,

    /// Begin behind this place in the session
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    after: i64,

    /// Show what came last before this place
    #[arg(long, value_name = "SEQ", conflicts_with_all = ["after", "newest", "all"])]
    before: Option<i64>,

    /// Show what came last
    #[arg(long, conflicts_with_all = ["after", "all"])]
    newest: bool,

    /// Show all events in the order they came, also those the conversation was taken back from
    #[arg(long)]
    every_branch: bool,

    #[command(flatten)]
    limit: LimitArgs,

    /// Show everything, page after page
    #[arg(long, conflicts_with = "limit")]
    all: bool,
}

impl SessionsCommand {
    pub(super) async fn run(self, context: &Context) -> Result<Exit, CliError> {
        match self {
            Self::List(args) => list(context, args).await,
            Self::Show(args) => show(context, args).await,
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

async fn show(context: &Context, args: ShowArgs) -> Result<Exit, CliError> {
    let carrier = Carrier::open(context).await?;
    let shown = show_pages(context, &carrier, args).await;
    carrier.close().await;
    shown.map(|()| Exit::Done)
}

async fn show_pages(
    context: &Context,
    carrier: &Carrier<'_>,
    args: ShowArgs,
) -> Result<(), CliError> {
    let limit = if args.all {
        PageLimit::from(MAX_PAGE)
    } else {
        args.limit.page()
    };
    let order = if args.every_branch {
        TranscriptOrder::Accepted
    } else {
        TranscriptOrder::Branch
    };
    let cursor = match args.before {
        Some(before) => TranscriptCursor::Before(before),
        None if args.newest => TranscriptCursor::Newest,
        None => TranscriptCursor::After(args.after),
    };
    let wanted = Wanted {
        order,
        cursor,
        limit,
    };
    let mut page = transcript(carrier, args.agent, args.session, wanted).await?;
    if !args.all {
        return show_page(context, &page);
    }
    begin(context, &page)?;
    let mut is_first = true;
    loop {
        add(context, &page.events, is_first)?;
        is_first &= page.events.is_empty();
        let Some(after) = page.next_after.filter(|_| !context.out.is_closed()) else {
            return end(context);
        };
        // By its id from now on: a key may come to mean another session meanwhile.
        let session = page.session;
        let agent = Some(session.agent_id);
        let wanted = Wanted {
            cursor: TranscriptCursor::After(after),
            ..wanted
        };
        page = transcript(carrier, agent, session.session_id, wanted).await?;
    }
}

/// Which page of a transcript.
#[derive(Clone, Copy)]
struct Wanted {
    order: TranscriptOrder,
    cursor: TranscriptCursor,
    limit: PageLimit,
}

async fn transcript(
    carrier: &Carrier<'_>,
    agent: Option<AgentId>,
    session: String,
    wanted: Wanted,
) -> Result<SessionTranscript, CliError> {
    let request = Request::SessionsShow {
        agent,
        session,
        order: wanted.order,
        cursor: wanted.cursor,
        limit: wanted.limit,
    };
    match carrier.ask(request).await? {
        Response::Transcript(page) => Ok(page),
        _ => Err(CliError::wrong_answer()),
    }
}

fn show_page(context: &Context, page: &SessionTranscript) -> Result<(), CliError> {
    if context.json() {
        return context.out.json(page);
    }
    begin(context, page)?;
    add(context, &page.events, true)?;
    if let Some(after) = page.next_after {
        context.offer_next("--after", &after.to_string());
    }
    Ok(())
}

/// Shows the session before its events; a long transcript is never held as a whole.
fn begin(context: &Context, page: &SessionTranscript) -> Result<(), CliError> {
    if context.json() {
        let session = &page.session;
        return context
            .out
            .json_part("{\"session\":", session, ",\"events\":[");
    }
    context.out.fields(&session_fields(&page.session))?;
    if page.events.is_empty() {
        context.out.note("no events from here on");
    }
    Ok(())
}

fn add(context: &Context, events: &[Event], is_first: bool) -> Result<(), CliError> {
    for (index, event) in events.iter().enumerate() {
        if context.json() {
            let comma = if is_first && index == 0 { "" } else { "," };
            context.out.json_part(comma, event, "")?;
        } else {
            show_event(context, event)?;
        }
    }
    Ok(())
}

fn end(context: &Context) -> Result<(), CliError> {
    if context.json() {
        context
            .out
            .text("],\"next_before\":null,\"next_after\":null}\n")?;
    }
    Ok(())
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

fn show_event(context: &Context, event: &Event) -> Result<(), CliError> {
    let who = who(event);
    let when = time(event.created_at_ms);
    context.out.text("\n")?;
    context
        .out
        .heading(&format!("#{}  {when}  {who}", event.seq))?;
    let body = match (&event.event_json, event.text.is_empty()) {
        (Some(json), true) => json,
        _ => &event.text,
    };
    context
        .out
        .text(&format!("{}\n", body.trim_end_matches('\n')))
}

/// Who spoke, or what it is: of a tool's event with the tool's name.
fn who(event: &Event) -> String {
    if let Some(role) = &event.role {
        return role.clone();
    }
    let more = event.event_json.as_deref().map(serde_json::from_str);
    let more: serde_json::Value = more.and_then(Result::ok).unwrap_or_default();
    match more["tool_name"].as_str() {
        Some(tool) => format!("{} {tool}", event.event_type),
        None => event.event_type.clone(),
    }
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
