//! `zeroclaw db stats`.

use clap::Args;
use zeroclaw::model::{AgentId, RootStats, TierStats};

use crate::cli::carrier::looking;
use crate::cli::output::{Column, Fields, Table, size};
use crate::cli::{CliError, Context, Exit};

/// Tables of a database shown, unless all are asked for.
const SHOWN_TABLES: usize = 5;

#[derive(Args, Debug)]
pub(crate) struct StatsArgs {
    /// Only this agent's database
    #[arg(long, value_name = "ID")]
    agent: Option<AgentId>,

    /// Show all tables, also small ones
    #[arg(long)]
    all: bool,
}

pub(super) async fn stats(context: &Context, args: StatsArgs) -> Result<Exit, CliError> {
    let stats = looking(context, async |service| {
        Ok(service.stats(args.agent.as_ref()).await?)
    });
    let stats = stats.await?;
    if context.json() {
        context.out.json(&stats)?;
    } else {
        tell(context, &stats, args.all)?;
    }
    Ok(match stats.tiers.iter().any(|tier| tier.error.is_some()) {
        true => Exit::Findings,
        false => Exit::Done,
    })
}

fn tell(context: &Context, stats: &RootStats, is_all: bool) -> Result<(), CliError> {
    let fields = Fields::new()
        .add("root", &stats.root)
        .add("size", size(stats.total_bytes))
        .add("left on the disk", size(stats.available_bytes));
    context.out.fields(&fields)?;
    context.out.text("\n")?;
    context.out.table(&tiers(stats))?;
    for tier in &stats.tiers {
        if let Some(error) = &tier.error {
            context.out.warn(&format!("{}: {error}", tier.tier));
        }
    }
    if !stats.folders.is_empty() {
        context.out.text("\n")?;
        context.out.table(&folders(stats))?;
    }
    context.out.text("\n")?;
    context.out.table(&kinds(stats))?;
    for tier in &stats.tiers {
        if !tier.tables.is_empty() {
            context.out.text("\n")?;
            context.out.heading(&tier.tier)?;
            context.out.table(&tables(tier, is_all))?;
        }
    }
    let free: u64 = stats.tiers.iter().map(|tier| tier.free_bytes).sum();
    if free > 0 {
        let free = size(free);
        context.out.note(&format!(
            "`zeroclaw db compact` gives back {free} of free pages"
        ));
    }
    Ok(())
}

fn tiers(stats: &RootStats) -> Table {
    let mut table = Table::new(&[
        Column::word("tier"),
        Column::number("file"),
        Column::number("free pages"),
        Column::number("wal"),
        Column::number("workspace"),
        Column::text("path").minor(),
    ]);
    for tier in &stats.tiers {
        table.row([
            tier.tier.clone(),
            size(tier.file_bytes),
            size(tier.free_bytes),
            size(tier.wal_bytes),
            size(tier.workspace_bytes),
            tier.path.clone(),
        ]);
    }
    table
}

fn folders(stats: &RootStats) -> Table {
    let mut table = Table::new(&[
        Column::text("beside"),
        Column::number("files"),
        Column::number("size"),
        Column::text("path"),
    ]);
    for folder in &stats.folders {
        table.row([
            folder.what.clone(),
            folder.files.to_string(),
            size(folder.bytes),
            folder.path.clone(),
        ]);
    }
    table
}

fn kinds(stats: &RootStats) -> Table {
    let mut table = Table::new(&[Column::text("kind"), Column::number("size")]);
    for kind in &stats.kinds {
        table.row([kind.kind.clone(), size(kind.bytes)]);
    }
    table
}

fn tables(tier: &TierStats, is_all: bool) -> Table {
    let mut table = Table::new(&[
        Column::word("table"),
        Column::number("size"),
        Column::number("indexes"),
        Column::number("unused"),
        Column::text("kind").minor(),
    ]);
    let shown = if is_all { usize::MAX } else { SHOWN_TABLES };
    for one in tier.tables.iter().take(shown) {
        table.row([
            one.table.clone(),
            size(one.bytes),
            size(one.index_bytes),
            size(one.unused_bytes),
            one.kind.clone(),
        ]);
    }
    table
}
