//! `zeroclaw sessions show`, `zeroclaw sessions event`.

use clap::Args;
use zeroclaw::model::{
    AgentId, CutEvent, Event, MAX_PAGE, PageLimit, Payloads, TranscriptCursor, TranscriptOrder,
};
use zeroclaw::service::{Request, Response, SessionTranscript};

use super::session_fields;
use crate::cli::args::LimitArgs;
use crate::cli::carrier::Carrier;
use crate::cli::output::{size, time};
use crate::cli::{CliError, Context, Exit, ask};

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

    /// Show large events whole too
    ///
    /// Without it of a text above 64 KiB the beginning is shown, and of one above 1 MiB, or of JSON above 64 KiB, the
    /// size: it is not even read. `sessions event` shows one whole.
    #[arg(long)]
    whole: bool,

    /// Show everything, page after page
    #[arg(long, conflicts_with = "limit")]
    all: bool,
}

#[derive(Args, Debug)]
pub(crate) struct EventArgs {
    /// The session's id, its key, or the start of its id
    session: String,

    /// The event's place, as `sessions show` has it behind #, or its id
    event: String,

    /// Its agent, where the name fits sessions of several
    #[arg(long, value_name = "ID")]
    agent: Option<AgentId>,

    /// Print what stands beside the text instead: the event as JSON
    #[arg(long)]
    data: bool,
}

pub(super) async fn show(context: &Context, args: ShowArgs) -> Result<Exit, CliError> {
    let carrier = Carrier::open(context).await?;
    let shown = show_pages(context, &carrier, args).await;
    carrier.close().await;
    shown.map(|()| Exit::Done)
}

async fn show_pages(context: &Context, carrier: &Carrier, args: ShowArgs) -> Result<(), CliError> {
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
    let payloads = if args.whole {
        Payloads::Whole
    } else {
        Payloads::Bounded
    };
    let wanted = Wanted {
        order,
        cursor,
        payloads,
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
    payloads: Payloads,
    limit: PageLimit,
}

async fn transcript(
    carrier: &Carrier,
    agent: Option<AgentId>,
    session: String,
    wanted: Wanted,
) -> Result<SessionTranscript, CliError> {
    let request = Request::SessionsShow {
        agent,
        session,
        order: wanted.order,
        cursor: wanted.cursor,
        payloads: wanted.payloads,
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

/// Its text as it is: stdout is for another program or a file.
pub(super) async fn event(context: &Context, args: EventArgs) -> Result<Exit, CliError> {
    let request = Request::SessionsEvent {
        agent: args.agent,
        session: args.session,
        event: args.event,
    };
    let Response::Event(event) = ask(context, request).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&event)?;
    } else if args.data {
        match &event.event_json {
            Some(json) => context.out.stored(json.as_bytes())?,
            None => context.out.note("nothing stands beside the text"),
        }
    } else {
        context.out.stored(event.text.as_bytes())?;
    }
    Ok(Exit::Done)
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
    if !body.is_empty() || event.cut.is_none() {
        let body = format!("{}\n", body.trim_end_matches('\n'));
        context.out.text(&body)?;
    }
    match &event.cut {
        Some(cut) => context.out.text(&left_out(event, cut)),
        None => Ok(()),
    }
}

/// What of an event is not shown.
fn left_out(event: &Event, cut: &CutEvent) -> String {
    let bytes = |bytes: i64| size(u64::try_from(bytes).unwrap_or(0));
    let mut parts = Vec::new();
    if i64::try_from(event.text.len()) != Ok(cut.text_bytes) {
        parts.push(format!("text of {}", bytes(cut.text_bytes)));
    }
    if let Some(json) = cut.json_bytes.filter(|_| event.event_json.is_none()) {
        parts.push(format!("data of {}", bytes(json)));
    }
    format!("[{}; `sessions event` shows it whole]\n", parts.join(", "))
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
