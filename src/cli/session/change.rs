//! `zeroclaw sessions rename`, `archive`, `fork`, `reset`.

use clap::Args;
use zeroclaw::model::{Place, SessionPatch, SessionRecord};
use zeroclaw::service::{PatchOutcome, Request, Response};

use super::TargetArgs;
use crate::cli::carrier::change;
use crate::cli::output::Fields;
use crate::cli::{CliError, Context, Exit};

#[derive(Args, Debug)]
pub(crate) struct RenameArgs {
    #[command(flatten)]
    target: TargetArgs,

    /// Its new title; an empty one takes the title away
    title: String,

    #[command(flatten)]
    revision: RevisionArgs,
}

#[derive(Args, Debug)]
pub(crate) struct ArchiveArgs {
    #[command(flatten)]
    target: TargetArgs,

    /// Bring it back instead
    #[arg(long)]
    undo: bool,

    #[command(flatten)]
    revision: RevisionArgs,
}

#[derive(Args, Debug)]
pub(crate) struct PinArgs {
    #[command(flatten)]
    target: TargetArgs,

    /// Let it go again
    #[arg(long)]
    undo: bool,

    #[command(flatten)]
    revision: RevisionArgs,
}

#[derive(Args, Clone, Copy, Debug)]
struct RevisionArgs {
    /// Only if nobody changed it since it had this revision
    #[arg(long, value_name = "REVISION")]
    if_revision: Option<i64>,
}

#[derive(Args, Debug)]
pub(crate) struct ForkArgs {
    #[command(flatten)]
    target: TargetArgs,

    /// Copy up to this event
    ///
    /// Default: where the conversation stands.
    #[arg(long, value_name = "EVENT")]
    at: Option<String>,

    /// Key of the copy
    ///
    /// Default: its own new id.
    #[arg(long)]
    key: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct ResetArgs {
    #[command(flatten)]
    target: TargetArgs,
}

pub(super) async fn rename(context: &Context, args: RenameArgs) -> Result<Exit, CliError> {
    let title = Some(args.title).filter(|title| !title.is_empty());
    let patch = SessionPatch {
        display_name: Some(title),
        ..SessionPatch::default()
    };
    patch_session(context, args.target, patch, args.revision).await
}

pub(super) async fn archive(context: &Context, args: ArchiveArgs) -> Result<Exit, CliError> {
    let patch = SessionPatch {
        is_archived: Some(!args.undo),
        ..SessionPatch::default()
    };
    patch_session(context, args.target, patch, args.revision).await
}

pub(super) async fn pin(context: &Context, args: PinArgs) -> Result<Exit, CliError> {
    let patch = SessionPatch {
        is_pinned: Some(!args.undo),
        ..SessionPatch::default()
    };
    patch_session(context, args.target, patch, args.revision).await
}

async fn patch_session(
    context: &Context,
    target: TargetArgs,
    patch: SessionPatch,
    revision: RevisionArgs,
) -> Result<Exit, CliError> {
    let request = Request::SessionsPatch {
        agent: target.agent,
        session: target.session,
        patch,
        expected_revision: revision.if_revision,
    };
    let Response::Patched(outcome) = change(context, request).await? else {
        return Err(CliError::wrong_answer());
    };
    match outcome {
        PatchOutcome::Applied(session) => show(context, &session),
        PatchOutcome::Conflict { current, fields } => {
            let fields: Vec<_> = fields.iter().map(|field| field.field.as_str()).collect();
            let message = format!(
                "session {:?} changed meanwhile: it is at revision {}, and {} would change",
                current.session_id,
                current.revision,
                if fields.is_empty() {
                    "nothing".to_owned()
                } else {
                    fields.join(", ")
                }
            );
            let refused = CliError::new(Exit::Refused, message);
            Err(refused.hint("look at it again, then decide again"))
        }
    }
}

fn show(context: &Context, session: &SessionRecord) -> Result<Exit, CliError> {
    if context.json() {
        context.out.json(session)?;
    } else {
        context.out.fields(&super::session_fields(session))?;
    }
    Ok(Exit::Done)
}

pub(super) async fn fork(context: &Context, args: ForkArgs) -> Result<Exit, CliError> {
    let request = Request::SessionsFork {
        agent: args.target.agent,
        session: args.target.session,
        at: args.at.map(Place::Event),
        session_key: args.key,
    };
    let Response::Forked(forked) = change(context, request).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&forked)?;
    } else {
        context
            .out
            .fields(&super::session_fields(&forked.session))?;
    }
    Ok(Exit::Done)
}

pub(super) async fn reset(context: &Context, args: ResetArgs) -> Result<Exit, CliError> {
    let request = Request::SessionsReset {
        agent: args.target.agent,
        session: args.target.session,
    };
    let Response::SessionReset(reset) = change(context, request).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&reset)?;
    } else {
        let fields = Fields::new()
            .add("key", &reset.session_key)
            .add("leads to", &reset.new_session_id)
            .add("archived", &reset.old_session_id);
        context.out.fields(&fields)?;
    }
    Ok(Exit::Done)
}
