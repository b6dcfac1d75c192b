//! `zeroclaw tasks`.

use clap::{Args, Subcommand};
use zeroclaw::model::{AgentId, TaskOwnerKind, TaskRun, TaskSettlement, TaskStatus};
use zeroclaw::service::{GoalOverview, Request, Response, TaskOverview};

use super::args::{LimitArgs, one_of};
use super::output::{Column, Fields, Table, or_dash, span, time};
use super::{CliError, Context, Exit, ask};

mod change;

const KINDS: &[&str] = &["task", "cron", "delegate", "subagent", "heartbeat"];
const STATUSES: &[&str] = &[
    "pending",
    "running",
    "waiting",
    "succeeded",
    "failed",
    "cancelled",
    "lost",
    "timed_out",
];

/// Show, cancel and settle background work, goals and what it gave
#[derive(Debug, Subcommand)]
pub(crate) enum TasksCommand {
    /// List background work, newest start first
    ///
    /// Runs of scheduled jobs are under `cron runs`, and here with --kind cron.
    #[command(after_long_help = Exit::help_of_look())]
    List(ListArgs),
    /// Show one task and all that belongs to it
    #[command(after_long_help = Exit::help_of_named())]
    Show(ShowArgs),
    /// Print what a task gave
    ///
    /// Byte for byte in a pipe; on a terminal control characters are made visible.
    #[command(after_long_help = Exit::help_of_named())]
    Output(OutputArgs),
    /// List goals and why they wait
    #[command(after_long_help = Exit::help_of_look())]
    Goals(PageArgs),
    /// List ends that were decided and are not settled
    #[command(after_long_help = Exit::help_of_look())]
    Settlements(PageArgs),
    /// Cancel a task: end it, or ask its worker to stop
    ///
    /// A task that nobody works on ends at once. Works beside a daemon and workers.
    #[command(after_long_help = Exit::help_of(&[Exit::NotInitialised, Exit::NotFound, Exit::Refused]))]
    Cancel(change::CancelArgs),
    /// Wait until a task has ended
    ///
    /// Measured by time that passes, however the clock is set.
    #[command(after_long_help = Exit::help_of(&[Exit::NotInitialised, Exit::Busy, Exit::NotFound]))]
    Wait(change::WaitArgs),
    /// Settle what workers left that are gone
    ///
    /// Ends that were decided are applied where their output proves them; what else ran under a process proven gone is
    /// lost, and what beats and has been silent for too long has timed out. A worker that lives keeps its task.
    #[command(after_long_help = Exit::help_of(&[Exit::NotInitialised, Exit::Busy]))]
    Sweep,
    /// List leases: who holds what, and whether that counts
    #[command(after_long_help = Exit::help_of_look())]
    Leases,
}

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// Only this agent's
    #[arg(long, value_name = "ID")]
    agent: Option<AgentId>,

    /// Only of this kind
    #[arg(long, value_parser = one_of(KINDS, TaskOwnerKind::parse))]
    kind: Option<TaskOwnerKind>,

    /// Only in this state
    #[arg(long, value_parser = one_of(STATUSES, TaskStatus::parse))]
    status: Option<TaskStatus>,

    #[command(flatten)]
    limit: LimitArgs,

    /// Go on behind this cursor of an earlier page
    #[arg(long, value_name = "CURSOR")]
    before: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct ShowArgs {
    /// Its id, or the start of it
    task: String,
}

#[derive(Args, Debug)]
pub(crate) struct OutputArgs {
    /// Its id, or the start of it
    task: String,

    /// The name of the output, where there are several
    #[arg(long)]
    path: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct PageArgs {
    #[command(flatten)]
    limit: LimitArgs,

    /// Go on behind this cursor of an earlier page
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
}

impl TasksCommand {
    pub(super) async fn run(self, context: &Context) -> Result<Exit, CliError> {
        match self {
            Self::List(args) => list(context, args).await,
            Self::Show(args) => show(context, args).await,
            Self::Output(args) => output(context, args).await,
            Self::Goals(args) => goals(context, args).await,
            Self::Settlements(args) => settlements(context, args).await,
            Self::Cancel(args) => change::cancel(context, args).await,
            Self::Wait(args) => change::wait(context, args).await,
            Self::Sweep => change::sweep(context).await,
            Self::Leases => change::leases(context).await,
        }
    }
}

async fn list(context: &Context, args: ListArgs) -> Result<Exit, CliError> {
    let request = Request::TasksList {
        agent: args.agent,
        kind: args.kind,
        status: args.status,
        before: args.before,
        limit: args.limit.page(),
    };
    let Response::Tasks(page) = ask(context, request).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&page)?;
    } else if page.items.is_empty() {
        context
            .out
            .note("no tasks; `zeroclaw cron runs` shows runs of scheduled jobs");
    } else {
        context.out.table(&task_table(&page.items))?;
    }
    if let Some(cursor) = &page.next {
        context.offer_next("--before", cursor);
    }
    Ok(Exit::Done)
}

fn task_table(tasks: &[TaskRun]) -> Table {
    let mut table = Table::new(&[
        Column::text("task"),
        Column::word("kind"),
        Column::word("agent"),
        Column::word("asked by").minor(),
        Column::word("status"),
        Column::word("started"),
        Column::number("took").minor(),
        Column::text("output or error"),
    ]);
    for task in tasks {
        let told = task.error.as_deref().or(task.output.as_deref());
        table.row([
            task.task_id.clone(),
            kind(task),
            or_dash(task.agent_id.as_ref()),
            or_dash(task.origin.originator_route.as_deref()),
            status(task),
            time(task.started_at_ms.unwrap_or(task.created_at_ms)),
            or_dash(task.duration_ms.map(span)),
            or_dash(told.map(str::trim)),
        ]);
    }
    table
}

/// The producer's own word where it says more.
fn kind(task: &TaskRun) -> String {
    match task.origin.task_kind.as_deref() {
        Some(word) if task.owner_kind == TaskOwnerKind::Task => word.to_owned(),
        _ => task.owner_kind.to_string(),
    }
}

/// The producer's own word where it says more.
pub(super) fn status(run: &TaskRun) -> String {
    match run.status_detail.as_deref() {
        Some(detail) if detail != run.status.as_str() => format!("{} ({detail})", run.status),
        _ => run.status.to_string(),
    }
}

async fn show(context: &Context, args: ShowArgs) -> Result<Exit, CliError> {
    let request = Request::TasksShow { task: args.task };
    let Response::Task(shown) = ask(context, request).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&shown)?;
        return Ok(Exit::Done);
    }
    context.out.fields(&fields(&shown))?;
    if !shown.artifacts.is_empty() {
        context.out.text("\n")?;
        context.out.table(&artifact_table(&shown))?;
        let id = &shown.task.task_id;
        context
            .out
            .note(&format!("`zeroclaw tasks output {id}` prints it"));
    }
    Ok(Exit::Done)
}

fn fields(shown: &TaskOverview) -> Fields {
    let task = &shown.task;
    let origin = &task.origin;
    let chain = origin.caller_chain.as_ref().map(|chain| chain.join(", "));
    let process = origin.execution_owner_pid.map(|pid| {
        let boot = or_dash(origin.execution_owner_boot_id.as_deref());
        format!("{pid}, of {boot}")
    });
    let mut fields = Fields::new()
        .add("task", &task.task_id)
        .add("kind", kind(task))
        .add("agent", or_dash(task.agent_id.as_ref()))
        .add("asked by", or_dash(origin.originator_route.as_deref()))
        .add("callers", or_dash(chain))
        .add("parent", or_dash(origin.parent_task_id.as_deref()))
        .add("status", status(task))
        .add("started", or_dash(task.started_at_ms.map(time)))
        .add("ended", or_dash(task.ended_at_ms.map(time)))
        .add("process", or_dash(process))
        .add("cancel", origin.cancel_state)
        .add("output", or_dash(task.output.as_deref()))
        .add("error", or_dash(task.error.as_deref()));
    if let Some(delivery) = &shown.delivery {
        let told = if delivery.is_delivered {
            "told"
        } else {
            "not told"
        };
        let whom = or_dash(delivery.requester_origin_json.as_deref());
        fields = fields.add("delivery", format!("{told}: {whom}"));
    }
    if let Some(goal) = &shown.goal {
        fields = fields
            .add("goal", &goal.objective)
            .add("waits for", or_dash(goal.pause_reason.as_deref()));
    }
    if let Some(budget) = &shown.budget {
        fields = fields
            .add("tokens left", or_dash(budget.tokens_left))
            .add("usd left", or_dash(budget.usd_left));
    }
    if let Some(said) = task.origin.progress.last() {
        fields = fields.add("last said", &said.text);
    }
    if let Some(continuation) = &shown.continuation {
        fields = fields.add("goes on", &continuation.context_json);
    }
    if let Some(settlement) = &shown.settlement {
        fields = fields.add("to become", &settlement.desired_status);
    }
    if !shown.children.is_empty() {
        fields = fields.add("started", shown.children.join(", "));
    }
    fields
}

fn artifact_table(shown: &TaskOverview) -> Table {
    let mut table = Table::new(&[
        Column::text("output"),
        Column::word("agent"),
        Column::word("kind"),
        Column::number("bytes"),
        Column::word("sha256").minor(),
    ]);
    for kept in &shown.artifacts {
        table.row([
            kept.about.path.clone(),
            kept.agent_id.to_string(),
            kept.about.kind.clone(),
            kept.about.size_bytes.to_string(),
            kept.about.sha256.clone(),
        ]);
    }
    table
}

async fn output(context: &Context, args: OutputArgs) -> Result<Exit, CliError> {
    let request = Request::TasksOutput {
        task: args.task,
        path: args.path,
    };
    let Response::TaskOutput(output) = ask(context, request).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&output)?;
    } else {
        context.out.stored(&output.bytes)?;
    }
    Ok(Exit::Done)
}

async fn goals(context: &Context, args: PageArgs) -> Result<Exit, CliError> {
    let request = Request::TasksGoals {
        after: args.after,
        limit: args.limit.page(),
    };
    let Response::Goals(page) = ask(context, request).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&page)?;
    } else if page.items.is_empty() {
        context.out.note("no goals");
    } else {
        context.out.table(&goal_table(&page.items))?;
    }
    if let Some(cursor) = &page.next {
        context.offer_next("--after", cursor);
    }
    Ok(Exit::Done)
}

fn goal_table(goals: &[GoalOverview]) -> Table {
    let mut table = Table::new(&[
        Column::text("task"),
        Column::word("agent"),
        Column::word("status"),
        Column::text("waits for").minor(),
        Column::number("tokens").minor(),
        Column::number("usd").minor(),
        Column::text("goal"),
    ]);
    for found in goals {
        let goal = &found.goal;
        table.row([
            goal.task_id.clone(),
            or_dash(found.agent_id.as_ref()),
            or_dash(found.status),
            or_dash(goal.pause_reason.as_deref()),
            or_dash(goal.effective_token_limit),
            or_dash(goal.effective_cost_limit_usd),
            goal.objective.clone(),
        ]);
    }
    table
}

async fn settlements(context: &Context, args: PageArgs) -> Result<Exit, CliError> {
    let request = Request::TasksSettlements {
        after: args.after,
        limit: args.limit.page(),
    };
    let Response::Settlements(page) = ask(context, request).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&page)?;
    } else if page.items.is_empty() {
        context.out.note("every decided end is settled");
    } else {
        context.out.table(&settlement_table(&page.items))?;
    }
    if let Some(cursor) = &page.next {
        context.offer_next("--after", cursor);
    }
    Ok(Exit::Done)
}

fn settlement_table(settlements: &[TaskSettlement]) -> Table {
    let mut table = Table::new(&[
        Column::text("task"),
        Column::word("to become"),
        Column::number("process"),
        Column::text("output"),
        Column::text("error"),
    ]);
    for settlement in settlements {
        table.row([
            settlement.task_id.clone(),
            settlement.desired_status.clone(),
            settlement.owner_pid.to_string(),
            settlement.artifact_path.clone(),
            or_dash(settlement.terminal_error.as_deref()),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_offered_is_known_to_the_library() {
        assert!(
            KINDS
                .iter()
                .all(|word| TaskOwnerKind::parse(word).is_some())
        );
        assert!(
            STATUSES
                .iter()
                .all(|word| TaskStatus::parse(word).is_some())
        );
    }
}
