//! `zeroclaw sessions export` and `import`.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::Args;
use zeroclaw::model::AgentId;
use zeroclaw::service::{ExportFormat, Exported, Imported, Request, Response, Service};

use super::TargetArgs;
use crate::cli::args::one_of;
use crate::cli::carrier::{change, is_served, writing};
use crate::cli::output::{Fields, size};
use crate::cli::{CliError, Context, Exit, Out};

/// Most bytes of an exported session that fit into one request, quoted as JSON wants it.
const MAX_SENT_BYTES: u64 = 30 * 1024 * 1024;

const FORMATS: &[&str] = &["jsonl", "markdown", "html"];

#[derive(Args, Debug)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    target: TargetArgs,

    /// Form: `jsonl` holds everything and is the way back, the others are for reading
    #[arg(long, value_name = "FORM", default_value = "jsonl")]
    #[arg(value_parser = one_of(FORMATS, ExportFormat::parse))]
    format: ExportFormat,

    /// Write to this file, which must not exist
    ///
    /// Default: stdout.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct ImportArgs {
    /// What `sessions export` wrote as jsonl
    file: PathBuf,

    /// Give it to this agent
    ///
    /// Default: the agent it was exported from.
    #[arg(long, value_name = "ID")]
    agent: Option<AgentId>,
}

pub(super) async fn export(context: &Context, args: ExportArgs) -> Result<Exit, CliError> {
    let service = Service::look(&context.root, context.clock.clone()).await?;
    let done = export_from(&service, context, args).await;
    service.close().await;
    done.map(|()| Exit::Done)
}

async fn export_from(
    service: &Service,
    context: &Context,
    args: ExportArgs,
) -> Result<(), CliError> {
    let found = args.target.find(service).await?;
    let (agent, id) = (&found.agent_id, found.session_id.as_str());
    let Some(path) = &args.output else {
        let mut out = Stdout(context.out.clone());
        let place = Path::new("stdout");
        service
            .export_session(agent, id, args.format, &mut out, place)
            .await?;
        return Ok(());
    };
    let file = new_file(path)?;
    let mut out = BufWriter::new(file);
    let exported = service
        .export_session(agent, id, args.format, &mut out, path)
        .await;
    let exported = match (exported, out.get_ref().sync_all()) {
        (Ok(exported), Ok(())) => exported,
        (exported, synced) => {
            // Half a file would be taken for a whole one.
            let _ = std::fs::remove_file(path);
            exported?;
            synced.map_err(|error| cannot_write(path, &error))?;
            return Err(CliError::wrong_answer());
        }
    };
    show(context, path, &exported)
}

/// What people said is nobody else's: the file is private from its first moment.
fn new_file(path: &Path) -> Result<File, CliError> {
    File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(|error| cannot_write(path, &error))
}

/// Writes bytes to a new private file, all of them or none.
pub(super) fn write_file(path: &Path, bytes: &[u8]) -> Result<(), CliError> {
    let mut file = new_file(path)?;
    file.write_all(bytes)
        .and_then(|()| file.sync_all())
        .map_err(|error| {
            // Half a file would be taken for a whole one.
            let _ = std::fs::remove_file(path);
            cannot_write(path, &error)
        })
}

fn cannot_write(path: &Path, error: &std::io::Error) -> CliError {
    let exit = match error.kind() {
        std::io::ErrorKind::AlreadyExists => Exit::Refused,
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::ReadOnlyFilesystem => Exit::NoSpace,
        _ => Exit::Usage,
    };
    CliError::new(exit, format!("cannot write {}", path.display())).because(error)
}

fn show(context: &Context, path: &Path, exported: &Exported) -> Result<(), CliError> {
    if context.json() {
        return context.out.json(exported);
    }
    let fields = Fields::new()
        .add("file", path.display())
        .add("session", &exported.session_id)
        .add("events", exported.events)
        .add("size", size(exported.bytes));
    context.out.fields(&fields)
}

/// stdout, through the one place that prints.
struct Stdout(Out);

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let printed = self.0.bytes(bytes);
        printed.map_err(|_| std::io::Error::other("stdout cannot be written"))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

pub(super) async fn import(context: &Context, args: ImportArgs) -> Result<Exit, CliError> {
    let file = File::open(&args.file).map_err(|error| {
        let message = format!("cannot read {}", args.file.display());
        CliError::new(Exit::NotFound, message).because(&error)
    })?;
    let imported = if is_served(context).await {
        send(context, &args, file).await?
    } else {
        writing(context, async |service: &Service| {
            let mut from = BufReader::new(file);
            let agent = args.agent.as_ref();
            Ok(service.import_session(agent, &mut from, &args.file).await?)
        })
        .await?
    };
    if context.json() {
        context.out.json(&imported)?;
        return Ok(Exit::Done);
    }
    let fields = Fields::new()
        .add("agent", &imported.agent_id)
        .add("session", &imported.session_id)
        .add("events", imported.events);
    context.out.fields(&fields)?;
    for key in &imported.lost_routes {
        context
            .out
            .warn(&format!("the key {key} leads to another session here"));
    }
    Ok(Exit::Done)
}

/// Gives an exported session to the daemon, in one request: it is in whole or not at all.
async fn send(context: &Context, args: &ImportArgs, file: File) -> Result<Imported, CliError> {
    let cannot_read = |error: std::io::Error| {
        let message = format!("cannot read {}", args.file.display());
        CliError::new(Exit::Refused, message).because(&error)
    };
    let mut lines = String::new();
    let mut limited = file.take(MAX_SENT_BYTES + 1);
    limited.read_to_string(&mut lines).map_err(cannot_read)?;
    if lines.len() as u64 > MAX_SENT_BYTES {
        let message = format!(
            "{} is larger than {}, the most that is given to a daemon at once",
            args.file.display(),
            size(MAX_SENT_BYTES)
        );
        let refused = CliError::new(Exit::Busy, message);
        return Err(refused.hint("stop the daemon, import it, and start the daemon again"));
    }
    let request = Request::SessionsImport {
        agent: args.agent.clone(),
        lines,
        name: args.file.display().to_string(),
    };
    match change(context, request).await? {
        Response::SessionImported(imported) => Ok(imported),
        _ => Err(CliError::wrong_answer()),
    }
}
