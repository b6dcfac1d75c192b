//! `zeroclaw backup prune`.

use std::path::PathBuf;

use clap::Args;
use zeroclaw::service::backup::{self, PruneOptions, PruneReport, Rules};

use super::report::age;
use crate::cli::output::{Column, Fields, Table, or_dash, size, time};
use crate::cli::{CliError, Context, Exit};

#[derive(Args, Debug)]
pub(crate) struct PruneArgs {
    /// Folder of the archives
    ///
    /// Default: the folder backups of the root.
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,

    #[command(flatten)]
    keep: KeepArgs,

    /// Count archives made before an import like the others
    ///
    /// Without it they stay, whatever the rules say.
    #[arg(long)]
    with_before_import: bool,

    /// Show what would be deleted, and delete nothing
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,

    /// Delete
    #[arg(long)]
    yes: bool,
}

/// The rules. Numbers below zero are taken as values, so that clap can say what is wrong with them.
#[derive(Args, Debug)]
#[command(next_help_heading = "Rules, 0 switches one off")]
struct KeepArgs {
    /// Keep this many of the newest archives
    #[arg(
        long = "keep-last",
        value_name = "N",
        default_value_t = 0,
        hide_default_value = true
    )]
    #[arg(allow_negative_numbers = true)]
    last: u32,

    /// Keep the newest archive of each of this many days
    #[arg(
        long = "keep-daily",
        value_name = "N",
        default_value_t = 0,
        hide_default_value = true
    )]
    #[arg(allow_negative_numbers = true)]
    daily: u32,

    /// Keep the newest archive of each of this many weeks
    #[arg(
        long = "keep-weekly",
        value_name = "N",
        default_value_t = 0,
        hide_default_value = true
    )]
    #[arg(allow_negative_numbers = true)]
    weekly: u32,

    /// Keep the newest archive of each of this many months
    #[arg(
        long = "keep-monthly",
        value_name = "N",
        default_value_t = 0,
        hide_default_value = true
    )]
    #[arg(allow_negative_numbers = true)]
    monthly: u32,
}

impl KeepArgs {
    fn rules(&self) -> Rules {
        Rules {
            last: self.last,
            daily: self.daily,
            weekly: self.weekly,
            monthly: self.monthly,
        }
    }
}

pub(super) async fn run(context: &Context, args: PruneArgs) -> Result<Exit, CliError> {
    let dry_run = args.dry_run;
    let options = PruneOptions {
        folder: args.folder,
        rules: args.keep.rules(),
        with_before_import: args.with_before_import,
        dry_run,
        yes: args.yes,
    };
    let report = backup::prune(&context.root, context.clock.clone(), options).await?;
    if context.json() {
        context.out.json(&report)?;
    } else {
        show(context, &report)?;
    }
    let count = report.to_delete().count();
    if !report.written && !dry_run && count > 0 {
        let refused = CliError::new(
            Exit::Refused,
            format!("deleting {count} archives needs consent"),
        );
        return Err(refused.hint("the same command with --yes deletes them"));
    }
    let is_left = report.to_delete().any(|item| item.error.is_some());
    Ok(if is_left { Exit::Findings } else { Exit::Done })
}

fn show(context: &Context, report: &PruneReport) -> Result<(), CliError> {
    let out = &context.out;
    if report.archives.is_empty() {
        out.note(&format!("no archives in {}", report.folder.display()));
    } else {
        out.table(&table(context, report))?;
        out.text("\n")?;
        out.fields(&summary(report))?;
    }
    for file in &report.untouched {
        out.warn(&format!("left alone: {}", file.reason));
    }
    for warning in &report.warnings {
        out.warn(warning);
    }
    for item in report.to_delete() {
        if let Some(error) = &item.error {
            out.warn(error);
        }
    }
    if !report.written {
        out.note("nothing was deleted");
    }
    Ok(())
}

fn table(context: &Context, report: &PruneReport) -> Table {
    let mut table = Table::new(&[
        Column::word("action"),
        Column::word("created"),
        Column::number("age").minor(),
        Column::number("size"),
        Column::word("secrets").minor(),
        Column::word("because"),
        Column::text("path"),
    ]);
    for item in &report.archives {
        let reasons: Vec<_> = item.reasons.iter().map(|it| it.as_str()).collect();
        let because = Some(reasons.join(", ")).filter(|text| !text.is_empty());
        table.row([
            item.action.to_string(),
            time(item.created_at_ms),
            age(context.clock.now_ms(), item.created_at_ms),
            size(item.bytes),
            if item.has_secrets { "inside" } else { "no" }.to_owned(),
            or_dash(because),
            item.path.display().to_string(),
        ]);
    }
    table
}

fn summary(report: &PruneReport) -> Fields {
    let goes: Vec<_> = report
        .to_delete()
        .filter(|item| item.deleted || !report.written)
        .collect();
    let bytes = goes.iter().map(|item| item.bytes).sum();
    let name = if report.written {
        "deleted"
    } else {
        "to delete"
    };
    Fields::new()
        .add("folder", report.folder.display())
        .add("kept", report.archives.len() - goes.len())
        .add(name, format!("{}, {}", goes.len(), size(bytes)))
}
