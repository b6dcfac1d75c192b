//! `zeroclaw vfs cat` and `export`.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use zeroclaw::model::{VfsEntry, VfsPath};
use zeroclaw::service::{MAX_CALL_BYTES, Service, ServiceError, VfsError};

use super::TreeArgs;
use crate::cli::output::{Fields, size};
use crate::cli::{CliError, Context, Exit};

#[derive(Args, Debug)]
pub(crate) struct CatArgs {
    #[command(flatten)]
    tree: TreeArgs,

    /// The file
    path: VfsPath,
}

#[derive(Args, Debug)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    tree: TreeArgs,

    /// The folder or file; `/` for the whole tree
    path: VfsPath,

    /// A folder that is empty or not there yet
    #[arg(value_name = "DIR")]
    target: PathBuf,
}

/// A file and, where it is text, what it says.
#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    entry: VfsEntry,
    text: Option<String>,
}

pub(super) async fn cat(context: &Context, args: CatArgs) -> Result<Exit, CliError> {
    let service = Service::look(&context.root, context.clock.clone()).await?;
    let done = print(context, &service, args).await;
    service.close().await;
    done
}

async fn print(context: &Context, service: &Service, args: CatArgs) -> Result<Exit, CliError> {
    let vfs = service.vfs(&args.tree.agent, args.tree.namespace).await?;
    if !context.json() {
        return match vfs.copy_to(&args.path, &mut context.out.sink()).await {
            // Whoever read has gone: that ends the command as it would have ended.
            Err(_) if context.out.is_closed() => Ok(Exit::Done),
            done => Ok(done.map(|_| Exit::Done)?),
        };
    }
    let missing = || {
        ServiceError::from(VfsError::NotFound {
            path: args.path.clone(),
        })
    };
    let bytes = vfs.read(&args.path, 0, MAX_CALL_BYTES).await?;
    let entry = vfs.stat(&args.path).await?.ok_or_else(missing)?;
    let is_whole = u64::try_from(entry.size_bytes).is_ok_and(|size| size == bytes.len() as u64);
    let text = String::from_utf8(bytes).ok().filter(|_| is_whole);
    context.out.json(&Shown { entry, text })?;
    Ok(Exit::Done)
}

pub(super) async fn export(context: &Context, args: ExportArgs) -> Result<Exit, CliError> {
    let service = Service::look(&context.root, context.clock.clone()).await?;
    let report = async {
        let vfs = service.vfs(&args.tree.agent, args.tree.namespace).await?;
        vfs.export(&args.path, &args.target).await
    };
    let report = report.await;
    service.close().await;
    let report = report?;
    if context.json() {
        context.out.json(&report)?;
        return Ok(Exit::Done);
    }
    let fields = Fields::new()
        .add("target", report.target.display())
        .add("files", report.files)
        .add("folders", report.folders)
        .add("size", size(report.bytes));
    context.out.fields(&fields)?;
    Ok(Exit::Done)
}
