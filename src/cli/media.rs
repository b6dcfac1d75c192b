//! `zeroclaw media`.

use clap::{Args, Subcommand};
use zeroclaw::model::MediaRules;
use zeroclaw::service::{Request, Response};

use super::args::LimitArgs;
use super::carrier::{change, looking};
use super::output::{Column, Table, or_dash, size, time};
use super::{CliError, Context, Exit, ask};

/// Show media that channels brought or agents sent, and skills on their way in
#[derive(Debug, Subcommand)]
pub(crate) enum MediaCommand {
    /// List media, newest first
    #[command(after_long_help = Exit::help_of_look())]
    List(ListArgs),
    /// List images that agents sent, newest first
    #[command(after_long_help = Exit::help_of_look())]
    Images(ImagesArgs),
    /// List skills on their way in, newest first
    ///
    /// An upload stays for a day, whether it was finished or not.
    #[command(after_long_help = Exit::help_of_look())]
    Uploads(UploadsArgs),
    /// Delete media that the rules do not keep, oldest first
    ///
    /// Rules are those of `[state.media]` in config.toml unless given here; none is on by itself. What an image to be sent
    /// still needs is kept. Without --yes it is counted, nothing is deleted, and the exit code is 10.
    #[command(after_long_help = Exit::help_of(&[Exit::NotInitialised, Exit::Busy, Exit::Refused]))]
    Prune(PruneArgs),
}

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// Only this part, for example `inbound`
    #[arg(long, value_name = "NAME")]
    part: Option<String>,

    #[command(flatten)]
    limit: LimitArgs,

    /// Go on behind this cursor of an earlier page
    #[arg(long, value_name = "CURSOR")]
    before: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct ImagesArgs {
    /// Only of this conversation
    #[arg(long, value_name = "KEY")]
    session: Option<String>,

    #[command(flatten)]
    limit: LimitArgs,

    /// Go on behind this cursor of an earlier page
    #[arg(long, value_name = "CURSOR")]
    before: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct UploadsArgs {
    #[command(flatten)]
    limit: LimitArgs,

    /// Go on behind this cursor of an earlier page
    #[arg(long, value_name = "CURSOR")]
    before: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct PruneArgs {
    /// Delete what is older than this, 0 for no such rule
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(i64).range(0..=36_500))]
    max_age_days: Option<i64>,

    /// Delete the oldest above this many bytes in all, 0 for no such rule
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(i64).range(0..))]
    max_bytes: Option<i64>,

    /// Count what would be deleted, and delete nothing
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,

    /// Delete
    #[arg(long)]
    yes: bool,
}

impl MediaCommand {
    pub(super) async fn run(self, context: &Context) -> Result<Exit, CliError> {
        match self {
            Self::List(args) => list(context, args).await,
            Self::Images(args) => images(context, args).await,
            Self::Uploads(args) => uploads(context, args).await,
            Self::Prune(args) => prune(context, args).await,
        }
    }
}

async fn list(context: &Context, args: ListArgs) -> Result<Exit, CliError> {
    let request = Request::MediaList {
        part: args.part,
        before: args.before,
        limit: args.limit.page(),
    };
    let Response::Media(page) = ask(context, request).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&page)?;
    } else if page.items.is_empty() {
        context.out.note("no media");
    } else {
        let mut table = Table::new(&[
            Column::word("part"),
            Column::text("name"),
            Column::text("content"),
            Column::number("size"),
            Column::word("came"),
        ]);
        for info in &page.items {
            table.row([
                info.subdir.clone(),
                info.id.clone(),
                or_dash(info.content_type.as_deref()),
                size(info.size_bytes.unsigned_abs()),
                time(info.created_at_ms),
            ]);
        }
        context.out.table(&table)?;
    }
    offer(context, page.next.as_deref())
}

async fn images(context: &Context, args: ImagesArgs) -> Result<Exit, CliError> {
    let request = Request::MediaImages {
        session: args.session,
        before: args.before,
        limit: args.limit.page(),
    };
    let Response::OutgoingImages(page) = ask(context, request).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&page)?;
    } else if page.items.is_empty() {
        context.out.note("no images");
    } else {
        let mut table = Table::new(&[
            Column::word("image"),
            Column::text("session"),
            Column::word("agent").minor(),
            Column::text("shows"),
            Column::text("content").minor(),
            Column::word("sent"),
            Column::word("needed"),
        ]);
        for image in &page.items {
            table.row([
                image.attachment_id.clone(),
                image.session_key.clone(),
                or_dash(image.agent_id.as_deref()),
                image.alt.clone(),
                image.original_content_type.clone(),
                time(image.created_at_ms),
                if image.cleanup_pending { "no" } else { "yes" }.to_owned(),
            ]);
        }
        context.out.table(&table)?;
    }
    offer(context, page.next.as_deref())
}

async fn uploads(context: &Context, args: UploadsArgs) -> Result<Exit, CliError> {
    let request = Request::SkillUploads {
        before: args.before,
        limit: args.limit.page(),
    };
    let Response::SkillUploads(page) = ask(context, request).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&page)?;
    } else if page.items.is_empty() {
        context.out.note("no uploads");
    } else {
        let mut table = Table::new(&[
            Column::word("upload"),
            Column::text("skill"),
            Column::word("kind").minor(),
            Column::number("received"),
            Column::number("of"),
            Column::word("whole"),
            Column::word("expires"),
        ]);
        for upload in &page.items {
            table.row([
                upload.upload_id.clone(),
                upload.slug.clone(),
                upload.kind.clone(),
                size(upload.received_bytes.unsigned_abs()),
                size(upload.size_bytes.unsigned_abs()),
                if upload.committed { "yes" } else { "no" }.to_owned(),
                time(upload.expires_at_ms),
            ]);
        }
        context.out.table(&table)?;
    }
    offer(context, page.next.as_deref())
}

fn offer(context: &Context, next: Option<&str>) -> Result<Exit, CliError> {
    if let Some(cursor) = next {
        context.offer_next("--before", cursor);
    }
    Ok(Exit::Done)
}

async fn prune(context: &Context, args: PruneArgs) -> Result<Exit, CliError> {
    let rules = match (args.max_age_days, args.max_bytes) {
        (None, None) => looking(context, async |service| Ok(service.config().media)).await?,
        (max_age_days, max_bytes) => MediaRules {
            max_age_days: max_age_days.unwrap_or(0),
            max_bytes: max_bytes.unwrap_or(0),
        },
    };
    if rules == MediaRules::default() {
        let message = "no rule is on: nothing is deleted";
        return Err(CliError::new(Exit::Usage, message).hint(
            "`[state.media]` in config.toml, --max-age-days or --max-bytes switches one on",
        ));
    }
    let request = Request::MediaPrune {
        rules,
        dry_run: !args.yes,
    };
    let answer = match args.yes {
        true => change(context, request).await?,
        false => ask(context, request).await?,
    };
    let Response::MediaPruned(done) = answer else {
        return Err(CliError::wrong_answer());
    };
    let verb = if args.yes { "deleted" } else { "to delete" };
    if context.json() {
        context.out.json(&done)?;
    } else {
        let bytes = size(done.bytes);
        context
            .out
            .text(&format!("{verb}: {} media, {bytes}\n", done.blobs))?;
    }
    if !args.yes && !args.dry_run && done.blobs > 0 {
        let refused = CliError::new(Exit::Refused, "deleting media needs consent");
        return Err(refused.hint("the same command with --yes does it"));
    }
    Ok(Exit::Done)
}
