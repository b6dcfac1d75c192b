//! `zeroclaw db`.

use clap::{Args, Subcommand};
use zeroclaw::model::{AgentId, CheckOutcome, TierCheck};
use zeroclaw::service::{Request, Response};

use super::output::{Column, Table, or_dash, size};
use super::{CliError, Context, Exit, ask};

mod cache;
mod compact;
mod query;
mod stats;

/// Check and measure databases, make them smaller, ask them, clear caches
#[derive(Debug, Subcommand)]
pub(crate) enum DbCommand {
    /// Check what can be proved about each database
    ///
    /// Proves pages and indexes (`PRAGMA integrity_check`), references between rows
    /// (`PRAGMA foreign_key_check`), that full-text indexes say what the rows say, and that a
    /// database is whose it says it is. Reads every page of every database. Nothing is repaired,
    /// created or checkpointed. Ends with 6 when a check fails.
    #[command(after_long_help = Exit::help_of_named())]
    Check(CheckArgs),
    /// Show where the disk went
    ///
    /// Databases by table and kind, the pages in them that hold nothing, write-ahead logs, workspaces, archives, and what
    /// imports, restores and deletions left behind. Looks at every page of every database; changes nothing. Ends with 1
    /// when a database cannot be read.
    #[command(after_long_help = Exit::help_of(&[Exit::Findings, Exit::NotInitialised, Exit::NewerSchema, Exit::Damaged, Exit::NotFound]))]
    Stats(stats::StatsArgs),
    /// Write databases anew without gaps, and give the rest back to the disk
    ///
    /// Looks first whether there is room, and proves before and after that nothing is damaged or lost. A killed run
    /// leaves everything as it was. Nobody else may use the root meanwhile: stop the daemon first. Ends with 6 when a
    /// database is damaged and with 8 when there is no room for one; those are left as they are, the others are done.
    #[command(after_long_help = Exit::help_of(&[Exit::Findings, Exit::NotInitialised, Exit::Busy, Exit::NewerSchema, Exit::Damaged, Exit::NoSpace, Exit::NotFound]))]
    Compact(compact::CompactArgs),
    /// Ask a database with SQL that only reads
    ///
    /// One statement: SELECT, WITH, VALUES, EXPLAIN QUERY PLAN, or a PRAGMA that reads. Whatever would write, attach or
    /// set something is refused, and so are columns that may hold credentials. The views `v_*` are made for this and
    /// stay as they are, columns are only added; docs/views.md describes them. Other tables may change with a release.
    ///
    /// At most 1000 rows in 10 seconds unless told otherwise, 64 MiB in all, and 1 MiB of one value; SQLite may hold 256
    /// MiB. Ends with 1 when the answer was cut, with 2 when SQLite does not understand the statement, with 10 when it was
    /// refused or stopped.
    #[command(after_long_help = Exit::help_of(&[Exit::Findings, Exit::NotInitialised, Exit::NewerSchema, Exit::Damaged, Exit::NotFound, Exit::Refused]))]
    Query(query::QueryArgs),
    /// List and clear caches
    #[command(subcommand)]
    Cache(cache::CacheCommand),
}

#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    /// Only this agent's database
    #[arg(long, value_name = "ID")]
    agent: Option<AgentId>,
}

impl DbCommand {
    pub(super) async fn run(self, context: &Context) -> Result<Exit, CliError> {
        match self {
            Self::Check(args) => check(context, args).await,
            Self::Stats(args) => stats::stats(context, args).await,
            Self::Compact(args) => compact::compact(context, args).await,
            Self::Query(args) => query::query(context, args).await,
            Self::Cache(command) => command.run(context).await,
        }
    }
}

async fn check(context: &Context, args: CheckArgs) -> Result<Exit, CliError> {
    let request = Request::DbCheck { agent: args.agent };
    let Response::Checks(checks) = ask(context, request).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&checks)?;
    } else {
        show(context, &checks)?;
    }
    Ok(if checks.iter().all(TierCheck::is_ok) {
        Exit::Done
    } else {
        Exit::Damaged
    })
}

fn show(context: &Context, checks: &[TierCheck]) -> Result<(), CliError> {
    let mut table = Table::new(&[
        Column::word("tier"),
        Column::number("schema").minor(),
        Column::number("size").minor(),
        Column::number("wal").minor(),
        Column::word("integrity"),
        Column::word("foreign keys"),
        Column::word("full text"),
        Column::word("identity"),
        Column::text("path").minor(),
    ]);
    for check in checks {
        table.row([
            check.tier.clone(),
            or_dash(check.schema_version),
            size(check.size_bytes),
            size(check.wal_bytes),
            word(&check.integrity),
            word(&check.foreign_keys),
            word(&check.full_text),
            word(&check.identity),
            check.path.clone(),
        ]);
    }
    context.out.table(&table)?;
    for check in checks {
        show_findings(context, check)?;
    }
    Ok(())
}

fn word(outcome: &CheckOutcome) -> String {
    if outcome.is_ok() { "ok" } else { "FAILED" }.to_owned()
}

fn show_findings(context: &Context, check: &TierCheck) -> Result<(), CliError> {
    let outcomes = [
        ("integrity", &check.integrity),
        ("foreign keys", &check.foreign_keys),
        ("full text", &check.full_text),
        ("identity", &check.identity),
    ];
    for (name, outcome) in outcomes {
        let CheckOutcome::Failed { lines } = outcome else {
            continue;
        };
        context.out.text("\n")?;
        context.out.heading(&format!("{}: {name}", check.tier))?;
        for line in lines {
            context.out.text(&format!("  {line}\n"))?;
        }
    }
    Ok(())
}
