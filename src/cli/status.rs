//! `zeroclaw status`.

use clap::Args;
use zeroclaw::service::{Request, Response, StatusReport, TierStatus};

use super::output::{Column, Fields, Table, or_dash, size, span, time};
use super::{CliError, Context, Exit, ask};

/// Show the root, its databases and what was last done
///
/// Looks only: nothing is created, migrated or checkpointed. Ends with 5 when an agent's database
/// is newer than this release, and with 1 when one cannot be opened for another reason.
#[derive(Args, Debug)]
#[command(after_long_help = Exit::help_of(&[
    Exit::Findings,
    Exit::NotInitialised,
    Exit::NewerSchema,
    Exit::Damaged,
]))]
pub(crate) struct StatusArgs {}

impl StatusArgs {
    pub(super) async fn run(self, context: &Context) -> Result<Exit, CliError> {
        let Response::Status(status) = ask(context, Request::Status).await? else {
            return Err(CliError::wrong_answer());
        };
        if context.json() {
            context.out.json(&status)?;
        } else {
            show(context, &status)?;
        }
        Ok(worst(&status))
    }
}

/// A newer schema outranks any other trouble: it has another remedy.
fn worst(status: &StatusReport) -> Exit {
    let broken = || status.tiers.iter().filter(|tier| tier.error.is_some());
    let is_newer = |tier: &TierStatus| {
        tier.schema_version
            .is_some_and(|found| found > tier.known_schema_version)
    };
    if broken().any(is_newer) {
        Exit::NewerSchema
    } else if broken().next().is_some() {
        Exit::Findings
    } else {
        Exit::Done
    }
}

fn show(context: &Context, status: &StatusReport) -> Result<(), CliError> {
    let out = &context.out;
    out.fields(&summary(status))?;
    out.text("\n")?;
    out.table(&tiers(&status.tiers))?;
    for tier in &status.tiers {
        if let Some(error) = &tier.error {
            out.warn(&format!("{}: {error}", tier.tier));
        }
    }
    for warning in &status.warnings {
        out.warn(warning);
    }
    for warning in &status.config_warnings {
        out.warn(&format!("config: {warning}"));
    }
    Ok(())
}

fn summary(status: &StatusReport) -> Fields {
    let backup = status.last_backup.as_ref().map(|run| {
        let bytes = run
            .archive_bytes
            .and_then(|bytes| u64::try_from(bytes).ok());
        format!(
            "{}  {} ago  {}  {}",
            time(run.created_at_ms),
            or_dash(status.backup_age_ms.map(span)),
            or_dash(bytes.map(size)),
            run.archive_path
        )
    });
    let import = status
        .last_import
        .as_ref()
        .map(|run| format!("{}  {}  {}", time(run.started_at_ms), run.status, run.id));
    Fields::new()
        .add("root", &status.root)
        .add("release", &status.app_version)
        .add("durability", &status.durability)
        .add("writer", status.writer.as_deref().unwrap_or("nobody"))
        .add(
            "cron jobs",
            format!("{}, {} enabled", status.cron_jobs, status.cron_enabled),
        )
        .add("task runs", status.tasks)
        .add("last backup", backup.as_deref().unwrap_or("none"))
        .add("last import", import.as_deref().unwrap_or("none"))
}

fn tiers(tiers: &[TierStatus]) -> Table {
    let mut table = Table::new(&[
        Column::word("tier"),
        Column::word("status"),
        Column::number("schema").minor(),
        Column::number("size"),
        Column::number("wal").minor(),
        Column::number("sessions"),
        Column::number("messages"),
        Column::number("memories"),
        Column::number("unindexed").minor(),
        Column::text("path").minor(),
    ]);
    for tier in tiers {
        table.row([
            tier.tier.clone(),
            or_dash(tier.status),
            or_dash(tier.schema_version),
            size(tier.size_bytes),
            size(tier.wal_bytes),
            or_dash(tier.sessions),
            or_dash(tier.messages),
            or_dash(tier.memories),
            or_dash(tier.unindexed),
            tier.path.clone(),
        ]);
    }
    table
}
