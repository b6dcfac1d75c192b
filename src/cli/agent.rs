//! `zeroclaw agents`.

use clap::{Args, Subcommand};
use zeroclaw::model::{AgentId, AgentRecord};
use zeroclaw::service::{AgentOverview, Request, Response};

use super::carrier::change;
use super::output::{Column, Fields, Table, or_dash, size, time};
use super::{CliError, Context, Exit, ask};

mod delete;
mod export;
mod import;
mod rename;
mod restore;
mod service;

/// Show and make agents, and move one from root to root
#[derive(Debug, Subcommand)]
pub(crate) enum AgentsCommand {
    /// List all agents, retired ones too
    #[command(after_long_help = Exit::help_of_look())]
    List,
    /// Show one agent and how much it holds
    #[command(after_long_help = Exit::help_of_named())]
    Show(ShowArgs),
    /// Make an agent that holds nothing
    ///
    /// Its database and its row in the registry. The configuration stays as it is: an agent runs once `config.toml` names
    /// it. A name that is taken, by a retired agent too, is refused.
    #[command(after_long_help = Exit::help_of(&[Exit::NotInitialised, Exit::Busy, Exit::NoSpace, Exit::Refused]))]
    Create(CreateArgs),
    /// Keep an agent for its history: it is searched and never run
    ///
    /// Its jobs go off. Refused while a turn of a session, a task or a message under way needs it.
    #[command(after_long_help = Exit::help_of(&[Exit::NotInitialised, Exit::Busy, Exit::NoSpace, Exit::NotFound]))]
    Retire(service::RetireArgs),
    /// Take a retired agent into service again
    ///
    /// Its jobs stay off until `cron resume` switches each on.
    #[command(after_long_help = Exit::help_of(&[Exit::NotInitialised, Exit::Busy, Exit::NoSpace, Exit::NotFound]))]
    Activate(ShowArgs),
    /// Give an agent another name
    ///
    /// Its folder with database and workspace, the copies of its deleted sessions, and everything the
    /// control plane has of it: jobs, tasks, costs, logs. A kill at any moment leaves the old name, or
    /// the new one once the next command has run. Keys of `config.toml` that name it are told, and
    /// never changed. Refused while something under way needs it, and beside a daemon.
    #[command(after_long_help = Exit::help_of(&[
        Exit::NotInitialised,
        Exit::Busy,
        Exit::NoSpace,
        Exit::NotFound,
        Exit::Refused,
    ]))]
    Rename(rename::RenameArgs),
    /// Delete an agent; an archive has all of it
    ///
    /// First an archive is made and proved: database, workspace, copies of deleted sessions, and its
    /// rows of the control plane. Then no row and no file names the agent any more; what it has cost
    /// stays without its name. `agents restore` brings it back from the archive. Refused while something
    /// under way needs it, and beside a daemon. Without --yes nothing is deleted.
    #[command(after_long_help = Exit::help_of(&[
        Exit::NotInitialised,
        Exit::Busy,
        Exit::Damaged,
        Exit::NoSpace,
        Exit::NotFound,
        Exit::Refused,
    ]))]
    Delete(delete::DeleteArgs),
    /// Write one agent to an archive, to be moved
    ///
    /// One compressed file of the format of backups, readable by you alone, with the agent's database
    /// and its row in the registry. Keys, configuration, scheduled jobs and tasks stay. It is read back
    /// before it gets its name, never overwrites a file, and does not count as a backup.
    #[command(after_long_help = Exit::help_of(&[
        Exit::NotInitialised,
        Exit::NewerSchema,
        Exit::Damaged,
        Exit::NoSpace,
        Exit::NotFound,
        Exit::Refused,
    ]))]
    Export(export::ExportArgs),
    /// Bring a deleted agent back from its archive
    ///
    /// All of it: database, workspace, copies of deleted sessions, tasks, jobs, logs, and its name in what
    /// it has cost. Scheduled jobs come back switched off. The archive is proved first, a name that is
    /// taken is refused, and a restore that is cut off leaves nothing or the whole agent. Without --yes
    /// nothing is written.
    #[command(after_long_help = Exit::help_of(&[
        Exit::NotInitialised,
        Exit::Busy,
        Exit::NewerSchema,
        Exit::Damaged,
        Exit::NoSpace,
        Exit::NotFound,
        Exit::Refused,
    ]))]
    Restore(restore::RestoreArgs),
    /// Take one agent in from an archive
    ///
    /// From an archive of `agents export`, or with --agent from a backup. The archive is proved first.
    /// A name that is taken is refused, nothing is merged or replaced, and an import that is cut off
    /// leaves nothing or the whole agent. Without --yes nothing is written.
    #[command(after_long_help = Exit::help_of(&[
        Exit::NotInitialised,
        Exit::Busy,
        Exit::NewerSchema,
        Exit::Damaged,
        Exit::NoSpace,
        Exit::NotFound,
        Exit::Refused,
    ]))]
    Import(import::ImportArgs),
}

#[derive(Args, Debug)]
pub(crate) struct ShowArgs {
    /// The agent's id
    #[arg(value_name = "ID")]
    agent: AgentId,
}

#[derive(Args, Debug)]
pub(crate) struct CreateArgs {
    /// Its id: 1 to 64 of a-z, 0-9, '_' and '-', the first and last a letter or digit
    #[arg(value_name = "ID")]
    agent: AgentId,
}

impl AgentsCommand {
    pub(super) async fn run(self, context: &Context) -> Result<Exit, CliError> {
        match self {
            Self::List => list(context).await,
            Self::Show(args) => show(context, args.agent).await,
            Self::Create(args) => create(context, args.agent).await,
            Self::Retire(args) => service::retire(context, args).await,
            Self::Activate(args) => service::activate(context, args.agent).await,
            Self::Rename(args) => rename::run(context, args).await,
            Self::Delete(args) => delete::run(context, args).await,
            Self::Export(args) => export::run(context, args).await,
            Self::Restore(args) => restore::run(context, args).await,
            Self::Import(args) => import::run(context, args).await,
        }
    }
}

async fn list(context: &Context) -> Result<Exit, CliError> {
    let Response::Agents(agents) = ask(context, Request::AgentsList).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&agents)?;
    } else if agents.is_empty() {
        context
            .out
            .note("no agents; `zeroclaw agents create ID` makes one, `zeroclaw doctor` shows what could be imported");
    } else {
        context.out.table(&table(&agents))?;
    }
    Ok(Exit::Done)
}

fn table(agents: &[AgentRecord]) -> Table {
    let mut table = Table::new(&[
        Column::word("agent"),
        Column::word("status"),
        Column::number("schema").minor(),
        Column::word("created").minor(),
        Column::word("last seen"),
        Column::text("path").minor(),
        Column::text("reason"),
    ]);
    for agent in agents {
        table.row([
            agent.agent_id.to_string(),
            agent.status.to_string(),
            agent.schema_version.to_string(),
            time(agent.created_at_ms),
            time(agent.last_seen_at_ms),
            agent.path.clone(),
            or_dash(agent.status_reason.as_deref()),
        ]);
    }
    table
}

async fn show(context: &Context, agent: AgentId) -> Result<Exit, CliError> {
    let Response::Agent(overview) = ask(context, Request::AgentsShow { agent }).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&overview)?;
    } else {
        context.out.fields(&fields(&overview))?;
    }
    Ok(Exit::Done)
}

async fn create(context: &Context, agent: AgentId) -> Result<Exit, CliError> {
    let request = Request::AgentsCreate { agent };
    let Response::AgentCreated(made) = change(context, request).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&made)?;
    } else {
        context.out.text(&format!("created {}\n", made.agent_id))?;
    }
    Ok(Exit::Done)
}

fn fields(overview: &AgentOverview) -> Fields {
    let agent = &overview.agent;
    let in_config = match overview.enabled_in_config {
        Some(true) => "enabled",
        Some(false) => "disabled",
        None => "not named",
    };
    let bytes = agent.size_bytes.and_then(|bytes| u64::try_from(bytes).ok());
    Fields::new()
        .add("agent", &agent.agent_id)
        .add("status", agent.status)
        .add("reason", or_dash(agent.status_reason.as_deref()))
        .add("in config", in_config)
        .add("path", &agent.path)
        .add("schema", agent.schema_version)
        .add("size when last seen", or_dash(bytes.map(size)))
        .add("created", time(agent.created_at_ms))
        .add("last seen", time(agent.last_seen_at_ms))
        .add("sessions", overview.sessions)
        .add("messages", overview.messages)
        .add("conversations", overview.conversations)
        .add("memories", overview.memories)
}
