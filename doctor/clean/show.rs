//! How deleting what is proven reads for people.

use super::CleanReport;
use crate::cli::output::{Column, Table, or_dash, size, time};
use crate::cli::{CliError, Context};

/// Files that stay, named one by one; JSON names all.
const SHOWN: usize = 12;

/// Prints what goes, or went.
pub(crate) fn show(context: &Context, report: &CleanReport) -> Result<(), CliError> {
    let out = &context.out;
    if report.runs.is_empty() {
        return out.heading("no run keeps anything that could be deleted");
    }
    let mut table = Table::new(&[
        Column::word("run"),
        Column::word("what"),
        Column::word("ended"),
        Column::number("files"),
        Column::number("size"),
        Column::number("stay"),
    ]);
    for run in &report.runs {
        table.row([
            run.run.clone(),
            run.what.to_owned(),
            or_dash(run.ended_at_ms.map(time)),
            run.files.to_string(),
            size(run.bytes),
            run.kept.len().to_string(),
        ]);
    }
    out.table(&table)?;
    out.text("\n")?;
    let kept: Vec<_> = report.runs.iter().flat_map(|run| &run.kept).collect();
    for file in kept.iter().take(SHOWN) {
        out.text(&format!("stays: {}: {}\n", file.path, file.reason))?;
    }
    if kept.len() > SHOWN {
        let rest = kept.len() - SHOWN;
        out.text(&format!("    and {rest} more; --json names all\n"))?;
    }
    for note in &report.notes {
        out.note(note);
    }
    let (files, bytes) = (report.files, size(report.bytes));
    out.heading(&match report.written {
        true => format!("{files} files deleted, {bytes}"),
        false => format!("{files} files would be deleted, {bytes}; nothing was changed"),
    })
}
