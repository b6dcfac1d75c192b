//! `zeroclaw doctor history`.

use clap::Args;
use serde::Serialize;
use serde_json::Value;
use zeroclaw::fs::Layout;
use zeroclaw::model::{MigrationRun, PageLimit, SourceReceipt};
use zeroclaw::service::{Request, Response, RunHistory};

use crate::cli::output::{Column, Fields, Table, or_dash, size, time};
use crate::cli::{CliError, Context, Exit, ask};
use crate::doctor::before;

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
    let layout = Layout::new(context.root.clone());
    let name = args.run.clone();
    let request = Request::History {
        run: args.run,
        limit: PageLimit::from(args.limit),
    };
    let answer = match ask(context, request).await {
        // A first import that was undone took its control plane with it; its record stays.
        Err(error) => match name.and_then(|name| undone_run(&layout, &name)) {
            Some(run) => Response::Run(RunHistory {
                run,
                sources: Vec::new(),
            }),
            None => return Err(error),
        },
        Ok(answer) => answer,
    };
    match answer {
        Response::Runs(runs) if context.json() => context.out.json(&runs)?,
        Response::Run(run) if context.json() => context.out.json(&RunView::of(&layout, &run))?,
        Response::Runs(runs) if runs.is_empty() => context.out.note("no import runs yet"),
        Response::Runs(runs) => context.out.table(&run_table(&runs))?,
        Response::Run(history) => show_run(context, &RunView::of(&layout, &history))?,
        _ => return Err(CliError::wrong_answer()),
    }
    Ok(Exit::Done)
}

/// One run, and what its receipts say together.
#[derive(Serialize)]
struct RunView<'h> {
    #[serde(flatten)]
    history: &'h RunHistory,
    /// When it was undone.
    undone_at_ms: Option<i64>,
    /// Whether its old files are still kept, so that it could be undone.
    is_kept: bool,
    /// Where the bytes are that could not be read, below the root.
    quarantine: Option<String>,
    /// Records that were not taken.
    refused: Vec<Said>,
    /// What else was said of sources.
    findings: Vec<Said>,
}

/// Something said of a source.
#[derive(Serialize)]
struct Said {
    code: String,
    source: String,
    place: String,
    reason: String,
}

impl<'h> RunView<'h> {
    fn of(layout: &Layout, history: &'h RunHistory) -> Self {
        let run = &history.run;
        let quarantine = layout.quarantine_dir(&run.id);
        let (mut refused, mut findings) = (Vec::new(), Vec::new());
        for receipt in &history.sources {
            let report: Value = serde_json::from_str(&receipt.report_json).unwrap_or_default();
            refused.extend(said("refused-record", receipt, &report["refused"]));
            findings.extend(said("damaged-source", receipt, &report["damage"]));
            findings.extend(said("partial-tail", receipt, &report["partial_tails"]));
            findings.extend(said("", receipt, &report["notes"]));
            if let Some(error) = report["error"].as_str() {
                findings.push(Said {
                    code: "failed-source".to_owned(),
                    source: receipt.source_path.clone(),
                    place: receipt.source_path.clone(),
                    reason: error.to_owned(),
                });
            }
        }
        let quarantine = quarantine
            .is_dir()
            .then(|| layout.stored(&quarantine).to_owned());
        Self {
            history,
            undone_at_ms: before::undone_at(&run.report_json),
            is_kept: layout.migrated_run_dir(&run.id).is_dir(),
            quarantine: quarantine.map(|path| path.display().to_string()),
            refused,
            findings,
        }
    }
}

/// What a receipt's report lists: places alone, places with reasons, or findings.
fn said(code: &str, receipt: &SourceReceipt, listed: &Value) -> Vec<Said> {
    let text = |item: &Value, field: &str| item[field].as_str().unwrap_or_default().to_owned();
    let one = |item: &Value| Said {
        code: item["code"].as_str().unwrap_or(code).to_owned(),
        source: receipt.source_path.clone(),
        place: item
            .as_str()
            .map_or_else(|| text(item, "place"), str::to_owned),
        reason: match text(item, "reason") {
            none if none.is_empty() => text(item, "message"),
            reason => reason,
        },
    };
    listed.as_array().into_iter().flatten().map(one).collect()
}

/// The run that the record of an undone one holds.
fn undone_run(layout: &Layout, name: &str) -> Option<MigrationRun> {
    let is_name = !name.is_empty() && !name.contains(['/', '.']);
    let folder = is_name.then(|| layout.undone_run_dir(name))?;
    let bytes = std::fs::read(folder.join("undo.json")).ok()?;
    let record: Value = serde_json::from_slice(&bytes).ok()?;
    let mut run: MigrationRun = serde_json::from_value(record["run"].clone()).ok()?;
    let undone_at_ms = record["undone_at_ms"].as_i64()?;
    run.report_json = before::with_undone(undone_at_ms, &run.report_json);
    Some(run)
}

/// How a run stands, for people.
fn standing(run: &MigrationRun) -> String {
    match before::undone_at(&run.report_json) {
        Some(_) => "undone".to_owned(),
        None => run.status.to_string(),
    }
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
            standing(run),
            run.phase.to_string(),
            time(run.started_at_ms),
            or_dash(run.finished_at_ms.map(time)),
            or_dash(run.from_path.as_deref()),
        ]);
    }
    table
}

/// Things said of sources, named one by one; JSON names all.
const SHOWN: usize = 20;

fn show_run(context: &Context, view: &RunView<'_>) -> Result<(), CliError> {
    let history = view.history;
    let run = &history.run;
    let fields = Fields::new()
        .add("run", &run.id)
        .add("status", standing(run))
        .add("phase", run.phase)
        .add("started", time(run.started_at_ms))
        .add("finished", or_dash(run.finished_at_ms.map(time)))
        .add(
            "from",
            run.from_path.as_deref().unwrap_or("the root itself"),
        )
        .add("undone", or_dash(view.undone_at_ms.map(time)))
        .add("backup", or_dash(run.backup_path.as_deref()))
        .add("quarantine", or_dash(view.quarantine.as_deref()))
        .add("release", &run.app_version);
    context.out.fields(&fields)?;
    if !history.sources.is_empty() {
        context.out.text("\n")?;
        context.out.table(&receipt_table(&history.sources))?;
    }
    for (what, said) in [("refused", &view.refused), ("findings", &view.findings)] {
        if !said.is_empty() {
            context.out.text(&format!("\n{what}\n"))?;
        }
        for said in said.iter().take(SHOWN) {
            let source = &said.source;
            let place = match said.place.starts_with(source.as_str()) {
                true => said.place.clone(),
                false => format!("{source}: {}", said.place),
            };
            let line = format!("  [{}] {place}: {}\n", said.code, said.reason);
            context.out.text(&line)?;
        }
        if said.len() > SHOWN {
            let rest = said.len() - SHOWN;
            let line = format!("    and {rest} more; --json names all\n");
            context.out.text(&line)?;
        }
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
