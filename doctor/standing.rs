//! Whether a root may be served: what waits for its import keeps a daemon out, what is left over does not.
//!
//! The daemon knows no old file; it is the shell that asks here before it starts one.

use zeroclaw::service::{Service, ServiceError};

use crate::cli::{CliError, Context, Exit};

use super::command::failure;
use super::names::escaped;
use super::plan::{Action, Earlier, PlannedSource};
use super::preflight;
use super::progress::Progress;
use super::scratch::Scratch;
use super::stop::Stop;
use super::task::{DoctorError, Task};

/// Sources that a refusal names; the others are counted.
const MAX_NAMED: usize = 5;

/// Refuses a root that an old program is at work on, or with records that were never brought in.
///
/// Files that were brought in and are there all the same are told of in one line.
///
/// # Errors
///
/// [`CliError`] that names what waits and the command that brings it in.
pub(crate) async fn admit(context: &Context) -> Result<(), CliError> {
    let task = Task {
        root: context.root.clone(),
        from: None,
        only: Vec::new(),
        agent_map: std::collections::BTreeMap::new(),
        clock: context.clock.clone(),
        progress: Progress::to(&context.out),
        stop: Stop::never(),
    };
    let found = look(&task).await;
    task.progress.end();
    let found = found.map_err(|error| failure(&error, false))?;
    if !found.waiting.is_empty() {
        return Err(refusal(&found.waiting));
    }
    if found.left_over > 0 {
        context.out.warn(&format!(
            "{} old files are still there; they are not read, `zeroclaw doctor` says what they are",
            found.left_over
        ));
    }
    Ok(())
}

#[derive(Default)]
struct Found {
    waiting: Vec<String>,
    left_over: usize,
}

async fn look(task: &Task) -> Result<Found, DoctorError> {
    preflight::old_daemon(&task.root)?;
    let earlier = earlier(task).await?;
    let scratch = Scratch::make()?;
    let plan = task.plan(&earlier, scratch.path()).await?;
    let mut found = Found::default();
    for planned in &plan.sources {
        // What stays a file by its nature is nobody's leftover.
        if planned.source.stays() || planned.survey.records() == 0 {
            continue;
        }
        if planned.action == Action::Import && !is_known(planned, &earlier) {
            found.waiting.push(escaped(&planned.source.relative));
        } else {
            found.left_over += 1;
        }
    }
    Ok(found)
}

/// Receipts, where there are any yet.
async fn earlier(task: &Task) -> Result<Earlier, DoctorError> {
    let service = match Service::look(&task.root, task.clock.clone()).await {
        Ok(service) => service,
        Err(ServiceError::NotInitialised { .. }) => return Ok(Earlier::new()),
        Err(error) => return Err(error.into()),
    };
    let receipts = service.receipt_states().await;
    service.close().await;
    // An older control plane is migrated by who serves it; nothing is told of it before.
    Ok(receipts.unwrap_or_default())
}

/// Whether something of this place was brought in before, whatever it holds now.
fn is_known(planned: &PlannedSource, earlier: &Earlier) -> bool {
    let Some((place, _content)) = planned.source_key.rsplit_once(':') else {
        return false;
    };
    earlier.iter().any(|(key, state)| {
        key.rsplit_once(':')
            .is_some_and(|(known, _)| known == place)
            && state.status != zeroclaw::model::SourceStatus::Failed
    })
}

fn refusal(waiting: &[String]) -> CliError {
    let named = waiting.iter().take(MAX_NAMED).cloned();
    let mut named: Vec<_> = named.collect();
    if waiting.len() > named.len() {
        named.push(format!("and {} more", waiting.len() - named.len()));
    }
    let message = format!(
        "old state waits for its import, so nothing is served: {}",
        named.join(", ")
    );
    CliError::new(Exit::LegacyPending, message)
        .hint("run `zeroclaw doctor` to see what it is, `zeroclaw doctor --fix` to bring it in")
}
