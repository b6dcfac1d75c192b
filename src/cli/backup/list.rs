//! `zeroclaw backup list`.

use clap::Args;
use zeroclaw::model::BackupRun;
use zeroclaw::service::{Request, Response};

use crate::cli::args::LimitArgs;
use crate::cli::output::{Column, Table, or_dash, size, span, time};
use crate::cli::{CliError, Context, Exit, ask};

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    limit: LimitArgs,
}

pub(super) async fn run(context: &Context, args: ListArgs) -> Result<Exit, CliError> {
    let limit = args.limit.page();
    let Response::Backups(runs) = ask(context, Request::BackupList { limit }).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&runs)?;
    } else if runs.is_empty() {
        context
            .out
            .note("no backups; `zeroclaw backup create` writes one");
    } else {
        context.out.table(&run_table(&runs))?;
    }
    Ok(Exit::Done)
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
