//! `zeroclaw vfs put` and `rm`.

use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use zeroclaw::model::{VfsEntry, VfsPath};
use zeroclaw::service::{Request, Response, Service, VfsRemoved, WriteMode};

use super::TreeArgs;
use super::upload::upload;
use crate::cli::carrier::{change, is_served, looking, writing};
use crate::cli::output::{Fields, size};
use crate::cli::{CliError, Context, Exit};

/// What changing commands can end with.
pub(super) const EXITS: [Exit; 7] = [
    Exit::NotInitialised,
    Exit::Busy,
    Exit::NewerSchema,
    Exit::Damaged,
    Exit::NoSpace,
    Exit::NotFound,
    Exit::Refused,
];

#[derive(Args, Debug)]
pub(crate) struct PutArgs {
    #[command(flatten)]
    tree: TreeArgs,

    /// The file of the disk; `-` for stdin
    source: PathBuf,

    /// Where to store it
    path: VfsPath,
}

#[derive(Args, Debug)]
pub(crate) struct RmArgs {
    #[command(flatten)]
    tree: TreeArgs,

    /// The file or folder; `/` for the whole tree
    path: VfsPath,

    /// Remove a folder with all that is in it; wants --yes
    #[arg(short, long)]
    recursive: bool,

    /// Say how much would go, and remove nothing
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,

    /// Remove a folder that is not empty
    #[arg(long)]
    yes: bool,
}

pub(super) async fn put(context: &Context, args: PutArgs) -> Result<Exit, CliError> {
    let (mut source, mode) = open(&args.source).await?;
    let stored = if is_served(context).await {
        upload(context, &args.tree, &args.path, &mut source, mode).await?
    } else {
        writing(context, async |service: &Service| {
            let vfs = service.vfs(&args.tree.agent, args.tree.namespace).await?;
            Ok(vfs.write_from(&args.path, &mut source, mode).await?)
        })
        .await?
    };
    told(context, &stored)
}

async fn open(path: &PathBuf) -> Result<(tokio::fs::File, WriteMode), CliError> {
    let failed = |error: std::io::Error| {
        let exit = match error.kind() {
            std::io::ErrorKind::NotFound => Exit::NotFound,
            _ => Exit::Refused,
        };
        CliError::new(exit, format!("cannot read {}", path.display())).because(&error)
    };
    if path.as_os_str() == "-" {
        let stdin = std::io::stdin().as_fd().try_clone_to_owned();
        let file = std::fs::File::from(stdin.map_err(failed)?);
        return Ok((tokio::fs::File::from_std(file), WriteMode::default()));
    }
    let file = tokio::fs::File::open(path).await.map_err(failed)?;
    let meta = file.metadata().await.map_err(failed)?;
    if meta.is_dir() {
        return Err(failed(std::io::ErrorKind::IsADirectory.into()));
    }
    let mode = WriteMode {
        is_executable: meta.permissions().mode() & 0o100 != 0,
    };
    Ok((file, mode))
}

fn told(context: &Context, entry: &VfsEntry) -> Result<Exit, CliError> {
    if context.json() {
        context.out.json(entry)?;
        return Ok(Exit::Done);
    }
    let fields = Fields::new()
        .add("stored", &entry.path)
        .add("namespace", &entry.namespace)
        .add("size", size(super::bytes(entry.size_bytes)));
    context.out.fields(&fields)?;
    Ok(Exit::Done)
}

pub(super) async fn remove(context: &Context, args: RmArgs) -> Result<Exit, CliError> {
    let removed = removed(context, &args).await?;
    if context.json() {
        context.out.json(&json!({
            "namespace": args.tree.namespace,
            "path": args.path,
            "entries": removed,
            "dry_run": args.dry_run,
        }))?;
    } else {
        let fields = Fields::new().add("path", &args.path).add(
            if args.dry_run {
                "would be removed"
            } else {
                "removed"
            },
            removed,
        );
        context.out.fields(&fields)?;
    }
    Ok(Exit::Done)
}

/// Files and folders that went, or would go.
async fn removed(context: &Context, args: &RmArgs) -> Result<u64, CliError> {
    if args.dry_run {
        return measure(context, args).await;
    }
    if args.recursive && !args.yes {
        let count = measure(context, args).await?;
        let message = format!("{count} files and folders would be removed for good");
        return Err(CliError::new(Exit::Refused, message)
            .hint("see what is there with `vfs ls --recursive`, then say --yes"));
    }
    let request = Request::VfsRemove {
        agent: args.tree.agent.clone(),
        namespace: args.tree.namespace.clone(),
        path: args.path.clone(),
        recursive: args.recursive,
    };
    match change(context, request).await? {
        Response::VfsRemoved(VfsRemoved { entries }) => Ok(entries),
        _ => Err(CliError::wrong_answer()),
    }
}

async fn measure(context: &Context, args: &RmArgs) -> Result<u64, CliError> {
    looking(context, async |service: &Service| {
        let namespace = args.tree.namespace.clone();
        let vfs = service.vfs(&args.tree.agent, namespace).await?;
        Ok(vfs.measure(&args.path).await?)
    })
    .await
}
