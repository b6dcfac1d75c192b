//! `zeroclaw sessions run-artifacts`, `zeroclaw sessions run-artifact`.

use std::path::PathBuf;

use clap::Args;
use zeroclaw::model::{AgentId, KeptArtifact};
use zeroclaw::service::{Request, Response};

use super::copy::write_file;
use crate::cli::args::LimitArgs;
use crate::cli::output::{Column, Table, time};
use crate::cli::{CliError, Context, Exit, ask};

#[derive(Args, Debug)]
pub(crate) struct RunArtifactsArgs {
    /// Only of this run
    run: Option<String>,

    /// The agent that keeps them
    #[arg(long, value_name = "ID")]
    agent: AgentId,

    #[command(flatten)]
    limit: LimitArgs,

    /// Go on behind this cursor of an earlier page
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct RunArtifactArgs {
    /// Its run, as `sessions run-artifacts` shows it
    run: String,

    /// Its name in its run
    path: String,

    /// The agent that keeps it
    #[arg(long, value_name = "ID")]
    agent: AgentId,

    /// Write to this file, which must not exist
    ///
    /// Default: stdout.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(super) async fn list(context: &Context, args: RunArtifactsArgs) -> Result<Exit, CliError> {
    let request = Request::SessionsRunArtifacts {
        agent: args.agent,
        run: args.run,
        after: args.after,
        limit: args.limit.page(),
    };
    let Response::RunArtifacts(page) = ask(context, request).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&page)?;
    } else if page.items.is_empty() {
        context.out.note("no outputs of runs are kept");
    } else {
        context.out.table(&table(&page.items))?;
    }
    if let Some(cursor) = &page.next {
        context.offer_next("--after", cursor);
    }
    Ok(Exit::Done)
}

/// Bytes as they are: stdout is for another program or a file.
pub(super) async fn show(context: &Context, args: RunArtifactArgs) -> Result<Exit, CliError> {
    let request = Request::SessionsRunArtifact {
        agent: args.agent,
        run: args.run,
        path: args.path,
    };
    let Response::RunArtifact(artifact) = ask(context, request).await? else {
        return Err(CliError::wrong_answer());
    };
    if let Some(file) = &args.output {
        write_file(file, &artifact.blob)?;
    }
    if context.json() {
        context.out.json(&artifact)?;
    } else if args.output.is_none() {
        context.out.stored(&artifact.blob)?;
    }
    Ok(Exit::Done)
}

fn table(artifacts: &[KeptArtifact]) -> Table {
    let mut table = Table::new(&[
        Column::text("run"),
        Column::text("path"),
        Column::word("kind"),
        Column::number("bytes"),
        Column::word("created"),
    ]);
    for KeptArtifact { about, .. } in artifacts {
        table.row([
            about.run_id.clone(),
            about.path.clone(),
            about.kind.clone(),
            about.size_bytes.to_string(),
            time(about.created_at_ms),
        ]);
    }
    table
}
