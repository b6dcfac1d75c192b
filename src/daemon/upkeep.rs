//! What a daemon does by itself, off the request path: each step bounded, one after the other.
//!
//! A step that fails is told and comes again with its turn; it stops no other. Nothing here decides anything: what is to
//! be swept, ended or sent is for the use cases to say.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::hub::Hub;
use crate::config::{BackupSchedule, Config};
use crate::model::AgentId;
use crate::service::{HeldLease, Request, Response, RetentionOptions, Scheduler, ServiceError};

/// How often the loop looks what is due.
const TICK: Duration = Duration::from_secs(5);
/// What dead processes left: tasks, messages.
const SWEEP: Duration = Duration::from_secs(30);
/// What has expired in the agents' databases.
const EXPIRE: Duration = Duration::from_secs(60 * 60);
/// Logs folded in, free pages given back, statistics for the planner.
const TIDY: Duration = Duration::from_secs(10 * 60);
/// The control plane is told that this daemon lives.
const BEAT: Duration = Duration::from_secs(60);
/// How often is asked whether a backup is due.
const BACKUP: Duration = Duration::from_secs(30);
/// Sessions and log events that rules let go.
const RETAIN: Duration = Duration::from_secs(60 * 60);
/// Ticks of the scheduler whose commands still run; they share the bound on commands.
const MAX_TICKS: usize = 16;
/// Goes that one agent's expired rows may take at a time; the rest comes next time.
const MAX_GOES: usize = 100;

/// When something is due.
struct Due {
    every: Duration,
    next: Instant,
}

impl Due {
    fn at_once(every: Duration) -> Self {
        Self {
            every,
            next: Instant::now(),
        }
    }

    fn later(every: Duration) -> Self {
        Self {
            every,
            next: Instant::now() + every,
        }
    }

    fn is_now(&mut self) -> bool {
        let is_due = self.next <= Instant::now();
        if is_due {
            self.next = Instant::now() + self.every;
        }
        is_due
    }
}

/// Works until the daemon drains, and gives the lease back to who ends it.
pub(super) async fn keep_up(hub: Arc<Hub>, lease: HeldLease) -> HeldLease {
    let work = async {
        tokio::select! {
            () = work(&hub, &lease) => {}
            () = drained(&hub) => {}
        }
    };
    tokio::join!(work, schedule(&hub), housekeeping(&hub));
    lease
}

/// Comes when the daemon drains.
async fn drained(hub: &Hub) {
    let mut draining = hub.draining.subscribe();
    // The hub holds the other end.
    let _ = draining.wait_for(|is_draining| *is_draining).await;
}

/// Runs scheduled jobs until the daemon drains; what runs then is ended and recorded as cancelled.
///
/// A tick ends with the last command it began, so the next does not wait for it: claims are single, whoever ticks.
async fn schedule(hub: &Arc<Hub>) {
    let mut ticks = JoinSet::new();
    let mut scheduler: Option<(Arc<Config>, Arc<Scheduler>)> = None;
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = tick.tick() => {}
            () = drained(hub) => break,
        }
        while ticks.try_join_next().is_some() {}
        let config = hub.service.config();
        let is_current = |(of, _): &&(Arc<Config>, _)| Arc::ptr_eq(of, &config);
        let jobs = match scheduler.as_ref().filter(is_current) {
            Some((_, jobs)) => Arc::clone(jobs),
            None => match Scheduler::open(hub.service.root(), hub.service.clock().clone()).await {
                Ok(jobs) => {
                    let jobs = Arc::new(jobs);
                    scheduler = Some((config, Arc::clone(&jobs)));
                    jobs
                }
                Err(error) => {
                    told::<()>(hub, "cron", Err(error));
                    continue;
                }
            },
        };
        if ticks.len() < MAX_TICKS {
            let hub = Arc::clone(hub);
            ticks.spawn(async move {
                let done = jobs.tick_until(drained(&hub)).await;
                told(&hub, "cron", done);
            });
        }
    }
    while ticks.join_next().await.is_some() {}
    if let Some((_, jobs)) = scheduler
        && let Some(jobs) = Arc::into_inner(jobs)
    {
        jobs.close().await;
    }
}

/// Backups that are due, and what rules of the configuration let go: work of minutes, beside all other.
async fn housekeeping(hub: &Hub) {
    let work = async {
        let mut tick = interval(BACKUP);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut retain = Due::later(RETAIN);
        loop {
            tick.tick().await;
            back_up(hub).await;
            if retain.is_now() {
                let_go(hub).await;
            }
        }
    };
    tokio::select! {
        () = work => {}
        // A backup under way ends with it: no archive has its name yet, and its record tells of it.
        () = drained(hub) => {}
    }
}

async fn back_up(hub: &Hub) {
    match hub.service.backup_if_due().await {
        Ok(None) => {
            if matches!(hub.service.config().backup, BackupSchedule::Off) {
                hub.set_problem("backup", None);
            }
        }
        Ok(Some(report)) => {
            let pruned = report.pruned.iter().flat_map(|pruned| &pruned.archives);
            let pruned = pruned.filter(|archive| archive.deleted).count();
            let archive = report.created.archive.display();
            tracing::info!(%archive, bytes = report.created.bytes, pruned, "backed up");
            hub.set_problem("backup", None);
        }
        Err(error) => {
            hub.note_failure(&error);
            hub.set_problem("backup", Some(format!("no scheduled backup: {error}")));
        }
    }
}

async fn let_go(hub: &Hub) {
    let options = RetentionOptions {
        yes: true,
        ..RetentionOptions::default()
    };
    match hub.service.apply_retention(&options).await {
        Ok(report) => {
            if report.written {
                let gone = report.items.iter().filter(|item| item.deleted).count();
                tracing::info!(sessions = gone, "let go by the rules of retention");
            }
            hub.set_problem("retention", report.clock_doubt);
        }
        Err(error) => hub.set_problem("retention", Some(error.to_string())),
    }
    told(hub, "logs", hub.service.prune_logs().await);
}

async fn work(hub: &Hub, lease: &HeldLease) {
    recover(hub).await;
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut sweep = Due::at_once(SWEEP);
    let mut expire = Due::at_once(EXPIRE);
    let mut tidy = Due::later(TIDY);
    let mut beat = Due::later(BEAT);
    loop {
        tick.tick().await;
        // Where writes fail, this is the write that shows when they work again.
        if beat.is_now() || hub.has_problem(WRITES) {
            match lease.beat().await {
                Ok(()) => hub.set_problem(WRITES, None),
                Err(error) => told::<()>(hub, "lease", Err(error)),
            }
        }
        if sweep.is_now() {
            told(hub, "tasks", hub.service.sweep_tasks().await);
            // Made anew each time: what bounds approvals may have been read again.
            told(hub, "flows", hub.service.flows().sweep().await);
            told(hub, "commitments", hub.service.commitments().expire().await);
            told(hub, "pairing", hub.service.sweep_pairing().await);
            // Last: it enqueues what the ends of tasks have to tell.
            told(hub, "delivery", hub.service.deliveries().sweep().await);
        }
        if expire.is_now() {
            expire_plugins(hub).await;
            told(hub, "media", hub.service.media().sweep().await);
            told(hub, "uploads", hub.service.skill_uploads().expire().await);
            for agent in agents(hub).await {
                expire_one(hub, &agent).await;
            }
        }
        if tidy.is_now() {
            told(hub, "tidy", hub.service.tidy().await);
        }
    }
}

/// Name of the problem that writes fail.
pub(super) const WRITES: &str = "writes";

/// Closes turns whose owner died with the daemon before. An agent that cannot be opened is named in health.
async fn recover(hub: &Hub) {
    let mut broken = Vec::new();
    for agent in agents(hub).await {
        match hub.service.close_dead_turns(&agent).await {
            Ok(closed) if closed.is_empty() => {}
            Ok(closed) => {
                tracing::info!(%agent, turns = closed.len(), "closed as interrupted");
            }
            Err(error @ ServiceError::Open(_)) => {
                broken.push(format!("agent {agent}: {error}"));
            }
            Err(error) => tracing::warn!(%agent, %error, "turns of before were not looked at"),
        }
    }
    let problem = (!broken.is_empty()).then(|| broken.join("; "));
    hub.set_problem("agents", problem);
}

async fn agents(hub: &Hub) -> Vec<AgentId> {
    match hub.service.dispatch(Request::AgentsList).await {
        Ok(Response::Agents(agents)) => agents.into_iter().map(|agent| agent.agent_id).collect(),
        Ok(_) => Vec::new(),
        Err(error) => {
            tracing::warn!(%error, "agents are not looked after");
            Vec::new()
        }
    }
}

async fn expire_plugins(hub: &Hub) {
    for _ in 0..MAX_GOES {
        match hub.service.plugins().expire().await {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) => return told::<()>(hub, "plugins", Err(error)),
        }
    }
}

async fn expire_one(hub: &Hub, agent: &AgentId) {
    for _ in 0..MAX_GOES {
        match hub.service.expire_cache(agent).await {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) => return tracing::debug!(%agent, %error, "its cache stays"),
        }
    }
    for _ in 0..MAX_GOES {
        match hub.service.expire_memories(agent).await {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) => return tracing::debug!(%agent, %error, "its memories stay"),
        }
    }
}

/// Says what failed, and notes where it was for want of room.
fn told<T>(hub: &Hub, step: &'static str, done: Result<T, ServiceError>) {
    if let Err(error) = done {
        hub.note_failure(&error);
        tracing::debug!(step, %error, "comes again");
    }
}
