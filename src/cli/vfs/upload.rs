//! A file that goes to a daemon: in parts, beside its place, and into its place at the end.

use tokio::io::{AsyncRead, AsyncReadExt};
use zeroclaw::model::{Content, VfsEntry, VfsPath};
use zeroclaw::service::{MAX_CALL_BYTES, Request, Response, WriteMode};

use super::TreeArgs;
use crate::cli::carrier::change;
use crate::cli::{CliError, Context, Exit};

/// Stores a file; it appears whole or not at all, unless the daemon goes away in the middle: then a `.part` stays.
pub(super) async fn upload(
    context: &Context,
    tree: &TreeArgs,
    path: &VfsPath,
    source: &mut (impl AsyncRead + Unpin),
    mode: WriteMode,
) -> Result<VfsEntry, CliError> {
    let mut part = next(source).await?;
    if part.len() < MAX_CALL_BYTES {
        return write(context, tree, path, part, mode).await;
    }
    let staged = format!("{path}.{}.part", std::process::id());
    let staged = VfsPath::new(&staged)
        .map_err(|error| CliError::new(Exit::Refused, "the name is too long").because(&error))?;
    let stored = async {
        let mut entry = write(context, tree, &staged, part, mode).await?;
        loop {
            part = next(source).await?;
            if part.is_empty() {
                break;
            }
            entry = append(context, tree, &staged, part).await?;
        }
        rename(context, tree, &staged, path).await?;
        Ok(VfsEntry {
            path: path.clone(),
            ..entry
        })
    };
    let stored = stored.await;
    if stored.is_err() {
        let (agent, namespace) = (tree.agent.clone(), tree.namespace.clone());
        let request = Request::VfsRemove {
            agent,
            namespace,
            path: staged,
            recursive: false,
        };
        // The first error is the one to tell.
        if let Err(error) = change(context, request).await {
            tracing::debug!(?error, "a part is left");
        }
    }
    stored
}

async fn next(source: &mut (impl AsyncRead + Unpin)) -> Result<Vec<u8>, CliError> {
    let mut part = Vec::new();
    let mut limited = source.take(MAX_CALL_BYTES as u64);
    let read = limited.read_to_end(&mut part).await;
    read.map_err(|error| {
        CliError::new(Exit::Refused, "the source cannot be read").because(&error)
    })?;
    Ok(part)
}

async fn write(
    context: &Context,
    tree: &TreeArgs,
    path: &VfsPath,
    part: Vec<u8>,
    mode: WriteMode,
) -> Result<VfsEntry, CliError> {
    let request = Request::VfsWrite {
        agent: tree.agent.clone(),
        namespace: tree.namespace.clone(),
        path: path.clone(),
        content: Content::from(part),
        is_executable: mode.is_executable,
    };
    written(change(context, request).await?)
}

async fn append(
    context: &Context,
    tree: &TreeArgs,
    path: &VfsPath,
    part: Vec<u8>,
) -> Result<VfsEntry, CliError> {
    let request = Request::VfsAppend {
        agent: tree.agent.clone(),
        namespace: tree.namespace.clone(),
        path: path.clone(),
        content: Content::from(part),
    };
    written(change(context, request).await?)
}

async fn rename(
    context: &Context,
    tree: &TreeArgs,
    from: &VfsPath,
    to: &VfsPath,
) -> Result<(), CliError> {
    let request = Request::VfsRename {
        agent: tree.agent.clone(),
        namespace: tree.namespace.clone(),
        path: from.clone(),
        to: to.clone(),
    };
    match change(context, request).await? {
        Response::Done(()) => Ok(()),
        _ => Err(CliError::wrong_answer()),
    }
}

fn written(answer: Response) -> Result<VfsEntry, CliError> {
    match answer {
        Response::VfsWritten(entry) => Ok(*entry),
        _ => Err(CliError::wrong_answer()),
    }
}
