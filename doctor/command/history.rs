//! `zeroclaw doctor history`.

use clap::Args;
use zeroclaw::model::{MigrationRun, PageLimit, SourceReceipt};
use zeroclaw::service::{Request, Response, RunHistory};

use crate::cli::output::{Column, Fields, Table, or_dash, size, time};
use crate::cli::{CliError, Context, Exit, ask};

#[derive(Args, Debug)]
pub(super) struct HistoryArgs {
    /// The run to show
    run: Option<String>,

    /// List at most this many runs, 1 to 1000
    #[arg(
        long,
        value_name = "ROWS",
        default_value_t = 20,
        value_parser = clap::value_parser!(u32).range(1..=1000)
    )]
    limit: u32,
}

pub(super) async fn run(args: HistoryArgs, context: &Context) -> Result<Exit, CliError> {
    let request = Request::History {
        run: args.run,
        limit: PageLimit::from(args.limit),
    };
    match ask(context, request).await? {
        Response::Runs(runs) if context.json() => context.out.json(&runs)?,
        Response::Run(run) if context.json() => context.out.json(&run)?,
        Response::Runs(runs) if runs.is_empty() => context.out.note("no import runs yet"),
        Response::Runs(runs) => context.out.table(&run_table(&runs))?,
        Response::Run(history) => show_run(context, &history)?,
        _ => return Err(CliError::wrong_answer()),
    }
    Ok(Exit::Done)
}

fn run_table(runs: &[MigrationRun]) -> Table {
    let mut table = Table::new(&[
        Column::word("run"),
        Column::word("status"),
        Column::word("phase").minor(),
        Column::word("started"),
        Column::word("finished").minor(),
        Column::text("from"),
    ]);
    for run in runs {
        table.row([
            run.id.clone(),
            run.status.to_string(),
            run.phase.to_string(),
            time(run.started_at_ms),
            or_dash(run.finished_at_ms.map(time)),
            or_dash(run.from_path.as_deref()),
        ]);
    }
    table
}

fn show_run(context: &Context, history: &RunHistory) -> Result<(), CliError> {
    let run = &history.run;
    let fields = Fields::new()
        .add("run", &run.id)
        .add("status", run.status)
        .add("phase", run.phase)
        .add("started", time(run.started_at_ms))
        .add("finished", or_dash(run.finished_at_ms.map(time)))
        .add(
            "from",
            run.from_path.as_deref().unwrap_or("the root itself"),
        )
        .add("backup", or_dash(run.backup_path.as_deref()))
        .add("release", &run.app_version);
    context.out.fields(&fields)?;
    if !history.sources.is_empty() {
        context.out.text("\n")?;
        context.out.table(&receipt_table(&history.sources))?;
    }
    Ok(())
}

fn receipt_table(receipts: &[SourceReceipt]) -> Table {
    let mut table = Table::new(&[
        Column::text("source"),
        Column::word("kind").minor(),
        Column::word("status"),
        Column::number("size").minor(),
        Column::number("records"),
        Column::number("imported"),
        Column::number("present").minor(),
        Column::number("merged"),
        Column::number("refused"),
        Column::text("now at"),
    ]);
    for receipt in receipts {
        table.row([
            receipt.source_path.clone(),
            receipt.migration_kind.clone(),
            receipt.status.to_string(),
            size(u64::try_from(receipt.source_size_bytes).unwrap_or(0)),
            receipt.total.records.to_string(),
            receipt.total.imported.to_string(),
            receipt.total.present.to_string(),
            receipt.total.merged.to_string(),
            receipt.total.refused.to_string(),
            or_dash(receipt.retired_path.as_deref()),
        ]);
    }
    table
}
