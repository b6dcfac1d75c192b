//! `zeroclaw db compact`.

use clap::Args;
use zeroclaw::model::{AgentId, CompactRefusal, TierCompacted};

use crate::cli::carrier::{looking, writing};
use crate::cli::output::{Column, Table, or_dash, size};
use crate::cli::{CliError, Context, Exit};

#[derive(Args, Debug)]
pub(crate) struct CompactArgs {
    /// Only this agent's database
    #[arg(long, value_name = "ID")]
    agent: Option<AgentId>,

    /// Show what can be expected, and change nothing
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn compact(context: &Context, args: CompactArgs) -> Result<Exit, CliError> {
    let agent = args.agent.as_ref();
    let done = match args.dry_run {
        true => {
            let done = looking(context, async |service| {
                Ok(service.compact_databases(agent, true).await?)
            });
            done.await?
        }
        false => {
            let done = writing(context, async |service| {
                Ok(service.compact_databases(agent, false).await?)
            });
            done.await?
        }
    };
    if context.json() {
        context.out.json(&done)?;
    } else {
        let mut table = Table::new(&[
            Column::word("tier"),
            Column::number("before"),
            Column::number(if done.is_dry_run { "expected" } else { "after" }),
            Column::number("room needed").minor(),
            Column::text("left as it is"),
        ]);
        for tier in &done.tiers {
            table.row([
                tier.tier.clone(),
                size(tier.before_bytes),
                size(tier.after_bytes),
                size(tier.needed_bytes),
                or_dash(tier.reason.as_deref()),
            ]);
        }
        context.out.table(&table)?;
        let verb = match done.is_dry_run {
            true => "would be freed",
            false => "freed",
        };
        context
            .out
            .text(&format!("{verb}: {}\n", size(done.freed_bytes)))?;
    }
    Ok(exit(&done.tiers))
}

/// The worst of all.
fn exit(tiers: &[TierCompacted]) -> Exit {
    let has = |why| tiers.iter().any(|tier| tier.refused == Some(why));
    match () {
        () if has(CompactRefusal::Damaged) => Exit::Damaged,
        () if has(CompactRefusal::NoSpace) => Exit::NoSpace,
        () if has(CompactRefusal::Unreadable) => Exit::Findings,
        () => Exit::Done,
    }
}
