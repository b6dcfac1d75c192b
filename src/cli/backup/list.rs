//! `zeroclaw backup list`.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use zeroclaw::model::BackupRun;
use zeroclaw::service::backup::{self, ArchiveInfo};
use zeroclaw::service::{Request, Response};

use super::report::age;
use crate::cli::args::LimitArgs;
use crate::cli::output::{Column, Table, or_dash, size, span, time};
use crate::cli::{CliError, Context, Exit, ask};

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    limit: LimitArgs,

    /// List the archives in this folder too
    ///
    /// Without DIR: the folder backups of the root.
    #[arg(long, value_name = "DIR", num_args = 0..=1)]
    archives: Option<Option<PathBuf>>,
}

pub(super) async fn run(context: &Context, args: ListArgs) -> Result<Exit, CliError> {
    let limit = args.limit.page();
    let Response::Backups(runs) = ask(context, Request::BackupList { limit }).await? else {
        return Err(CliError::wrong_answer());
    };
    let Some(folder) = args.archives else {
        if context.json() {
            context.out.json(&runs)?;
        } else {
            show_runs(context, &runs)?;
        }
        return Ok(Exit::Done);
    };
    let clock = context.clock.clone();
    let archives = backup::inventory(&context.root, clock, folder.as_deref()).await?;
    if context.json() {
        let both = json!({ "runs": runs, "archives": archives });
        context.out.json(&both)?;
    } else {
        show_runs(context, &runs)?;
        show_archives(context, &archives)?;
    }
    Ok(Exit::Done)
}

fn show_runs(context: &Context, runs: &[BackupRun]) -> Result<(), CliError> {
    if runs.is_empty() {
        context
            .out
            .note("no backups; `zeroclaw backup create` writes one");
        return Ok(());
    }
    context.out.table(&run_table(runs))
}

fn show_archives(context: &Context, archives: &[ArchiveInfo]) -> Result<(), CliError> {
    let out = &context.out;
    if archives.is_empty() {
        out.note("no archives there");
        return Ok(());
    }
    out.text("\n")?;
    out.table(&archive_table(context, archives))?;
    for error in archives.iter().filter_map(|it| it.error.as_deref()) {
        out.warn(error);
    }
    Ok(())
}

fn archive_table(context: &Context, archives: &[ArchiveInfo]) -> Table {
    let mut table = Table::new(&[
        Column::word("created"),
        Column::number("age"),
        Column::number("size"),
        Column::word("secrets"),
        Column::number("databases").minor(),
        Column::word("recorded").minor(),
        Column::text("path"),
    ]);
    for archive in archives {
        let created = archive.created_at_ms;
        let secrets = archive
            .has_secrets
            .map(|has| if has { "inside" } else { "no" });
        table.row([
            created.map_or_else(|| "unreadable".to_owned(), time),
            or_dash(created.map(|created| age(context.clock.now_ms(), created))),
            size(archive.bytes),
            or_dash(secrets),
            or_dash(archive.databases),
            if archive.is_recorded { "yes" } else { "no" }.to_owned(),
            archive.path.display().to_string(),
        ]);
    }
    table
}

fn run_table(runs: &[BackupRun]) -> Table {
    let mut table = Table::new(&[
        Column::word("began"),
        Column::word("kind"),
        Column::word("status"),
        Column::number("took").minor(),
        Column::number("size"),
        Column::text("archive"),
        Column::text("error"),
    ]);
    for run in runs {
        let bytes = run
            .archive_bytes
            .and_then(|bytes| u64::try_from(bytes).ok());
        let took = run
            .finished_at_ms
            .map(|end| end.saturating_sub(run.created_at_ms));
        table.row([
            time(run.created_at_ms),
            run.kind.to_string(),
            run.status.to_string(),
            or_dash(took.map(span)),
            or_dash(bytes.map(size)),
            run.archive_path.clone(),
            or_dash(run.error.as_deref()),
        ]);
    }
    table
}
