//! `zeroclaw memory indexed`.

use clap::Args;
use zeroclaw::model::{AgentId, IndexedHit};
use zeroclaw::service::{Request, Response};

use crate::cli::args::LimitArgs;
use crate::cli::output::{Column, Table, or_dash};
use crate::cli::{CliError, Context, Exit, ask};

#[derive(Args, Debug)]
pub(crate) struct IndexedArgs {
    /// What to look for; an entry must hold every word. All entries without any
    words: Vec<String>,

    /// Only this agent's
    #[arg(long, value_name = "ID")]
    agent: Option<AgentId>,

    #[command(flatten)]
    limit: LimitArgs,
}

pub(super) async fn run(context: &Context, args: IndexedArgs) -> Result<Exit, CliError> {
    let request = Request::MemoryIndexed {
        text: args.words.join(" "),
        agent: args.agent,
        limit: args.limit.page(),
    };
    let Response::Indexed(hits) = ask(context, request).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&hits)?;
    } else if hits.is_empty() {
        context.out.note("no indexed entries");
    } else {
        context.out.table(&table(&hits))?;
    }
    Ok(Exit::Done)
}

fn table(hits: &[IndexedHit]) -> Table {
    let mut table = Table::new(&[
        Column::word("agent"),
        Column::text("file").minor(),
        Column::number("line"),
        Column::word("category").minor(),
        Column::text("key"),
        Column::text("text"),
    ]);
    for hit in hits {
        table.row([
            hit.agent_id.to_string(),
            hit.path.clone(),
            hit.entry.start_line.to_string(),
            hit.entry.category.clone(),
            or_dash(hit.entry.key.as_deref()),
            hit.entry.text.clone(),
        ]);
    }
    table
}
