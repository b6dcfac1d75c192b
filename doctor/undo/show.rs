//! How undoing a run reads for people.

use super::UndoReport;
use crate::cli::output::{Column, Fields, Table, size};
use crate::cli::{CliError, Context};

/// Sources named one by one; JSON names all.
const SHOWN: usize = 20;

/// Prints what is done, or was.
pub(crate) fn show(context: &Context, report: &UndoReport) -> Result<(), CliError> {
    let out = &context.out;
    if report.was_undone {
        let previous = report.previous.as_deref().unwrap_or_default();
        return out.heading(&format!(
            "run {} was undone before; what it had made is in {previous}; nothing was changed",
            report.run
        ));
    }
    if !report.sources.is_empty() {
        let mut table = Table::new(&[
            Column::text("back to"),
            Column::number("size"),
            Column::text("kept at"),
        ]);
        for source in report.sources.iter().take(SHOWN) {
            table.row([
                source.path.clone(),
                size(source.bytes),
                source.kept_at.clone(),
            ]);
        }
        out.table(&table)?;
        if report.sources.len() > SHOWN {
            let rest = report.sources.len() - SHOWN;
            out.text(&format!("and {rest} more; --json names all\n"))?;
        }
        out.text("\n")?;
    }
    let mut table = Table::new(&[
        Column::word("action"),
        Column::number("size"),
        Column::text("path"),
    ]);
    for step in &report.databases {
        table.row([step.action.to_string(), size(step.bytes), step.path.clone()]);
    }
    for path in &report.set_aside {
        table.row(["set_aside".to_owned(), String::new(), path.clone()]);
    }
    out.table(&table)?;
    out.text("\n")?;
    if !report.lost.is_empty() {
        let mut table = Table::new(&[
            Column::word("lost in"),
            Column::word("table"),
            Column::number("written since"),
            Column::number("deleted since"),
        ]);
        for rows in &report.lost {
            table.row([
                rows.tier.clone(),
                rows.table.clone(),
                rows.written.to_string(),
                rows.deleted.to_string(),
            ]);
        }
        out.table(&table)?;
        out.text("\n")?;
    }
    let mut fields = Fields::new()
        .add("run", &report.run)
        .add("sources", report.sources.len())
        .add(
            "databases of before",
            if report.had_state {
                "from the run's archive"
            } else {
                "none: it was the first import"
            },
        );
    if let Some(previous) = &report.previous {
        fields = fields.add("set aside in", previous);
    }
    out.fields(&fields)?;
    for note in &report.notes {
        out.note(note);
    }
    if !report.written {
        for line in losses(report) {
            out.note(&line);
        }
        out.note("nothing was changed");
    }
    Ok(())
}

/// What would be lost, one line a table.
pub(super) fn losses(report: &UndoReport) -> Vec<String> {
    let lines = report.lost.iter().map(|rows| {
        let deleted = match rows.deleted {
            0 => String::new(),
            deleted => format!(", {deleted} deleted ones come back"),
        };
        format!(
            "lost from {}: {} rows of {} written since the run{deleted}",
            rows.tier, rows.written, rows.table
        )
    });
    let mut lines: Vec<String> = lines.collect();
    if lines.is_empty() {
        lines.push("nothing was written since the run".to_owned());
    }
    lines
}
