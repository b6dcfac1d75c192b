//! `zeroclaw sessions artifacts`, `zeroclaw sessions artifact`.

use std::path::PathBuf;

use clap::Args;
use zeroclaw::model::{AgentId, ToolArtifact};
use zeroclaw::service::{Request, Response};

use super::copy::write_file;
use crate::cli::output::{Column, Table, time};
use crate::cli::{CliError, Context, Exit, ask};

#[derive(Args, Debug)]
pub(crate) struct ArtifactsArgs {
    /// The session's id, its key, or the start of its id
    session: String,

    /// Its agent, where the name fits sessions of several
    #[arg(long, value_name = "ID")]
    agent: Option<AgentId>,
}

#[derive(Args, Debug)]
pub(crate) struct ArtifactArgs {
    /// The session's id, its key, or the start of its id
    session: String,

    /// Its id, as `sessions artifacts` shows it
    artifact: String,

    /// Its agent, where the name fits sessions of several
    #[arg(long, value_name = "ID")]
    agent: Option<AgentId>,

    /// Write to this file, which must not exist
    ///
    /// Default: stdout.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(super) async fn list(context: &Context, args: ArtifactsArgs) -> Result<Exit, CliError> {
    let request = Request::SessionsArtifacts {
        agent: args.agent,
        session: args.session,
    };
    let Response::Artifacts(artifacts) = ask(context, request).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&artifacts)?;
    } else if artifacts.is_empty() {
        context
            .out
            .note("no artifacts; what tools gave is in the session itself");
    } else {
        context.out.table(&table(&artifacts))?;
    }
    Ok(Exit::Done)
}

/// Bytes as they are: stdout is for another program or a file.
pub(super) async fn show(context: &Context, args: ArtifactArgs) -> Result<Exit, CliError> {
    let request = Request::SessionsArtifact {
        agent: args.agent,
        session: args.session,
        artifact: args.artifact,
    };
    let Response::Artifact(artifact) = ask(context, request).await? else {
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

fn table(artifacts: &[ToolArtifact]) -> Table {
    let mut table = Table::new(&[
        Column::text("artifact"),
        Column::word("kind"),
        Column::number("bytes"),
        Column::word("created"),
        Column::text("of"),
    ]);
    for artifact in artifacts {
        table.row([
            artifact.artifact_id.clone(),
            artifact.kind.to_string(),
            artifact.size_bytes.to_string(),
            time(artifact.created_at_ms),
            artifact.metadata_json.clone(),
        ]);
    }
    table
}
