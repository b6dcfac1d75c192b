//! `zeroclaw agents retire` and `activate`.

use clap::Args;
use zeroclaw::model::AgentId;
use zeroclaw::service::{AgentChanged, Request, Response};

use crate::cli::carrier::change;
use crate::cli::{CliError, Context, Exit};

#[derive(Args, Debug)]
pub(crate) struct RetireArgs {
    /// The agent's id
    #[arg(value_name = "ID")]
    agent: AgentId,

    /// Why, for people
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

pub(super) async fn retire(context: &Context, args: RetireArgs) -> Result<Exit, CliError> {
    let request = Request::AgentsRetire {
        agent: args.agent,
        reason: args.reason,
    };
    let changed = ask(context, request).await?;
    if !context.json() {
        let id = &changed.agent.agent_id;
        context.out.text(&format!("retired {id}\n"))?;
        if !changed.jobs_off.is_empty() {
            let jobs = changed.jobs_off.join(", ");
            context.out.note(&format!("jobs that are off now: {jobs}"));
        }
    }
    Ok(Exit::Done)
}

pub(super) async fn activate(context: &Context, agent: AgentId) -> Result<Exit, CliError> {
    let changed = ask(context, Request::AgentsActivate { agent }).await?;
    if !context.json() {
        let id = &changed.agent.agent_id;
        context.out.text(&format!("activated {id}\n"))?;
        for job in &changed.jobs_off {
            context.out.note(&format!(
                "its job {job} is off: `zeroclaw cron resume {job}`"
            ));
        }
    }
    Ok(Exit::Done)
}

async fn ask(context: &Context, request: Request) -> Result<AgentChanged, CliError> {
    let Response::AgentChanged(changed) = change(context, request).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&changed)?;
    }
    Ok(changed)
}
