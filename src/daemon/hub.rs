//! What all carriers share: the service, the live events, how the daemon is.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Mutex, PoisonError};

use futures_util::FutureExt;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::events::{Event, Events};
use super::wire::{Call, RpcError, json_of};
use crate::model::ErrorKind;
use crate::service::{Request, Service, ServiceError};

/// How the daemon is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// `ok`, `degraded` where something fails, `stopping`.
    pub status: String,
    /// What fails, for people.
    pub problems: Vec<String>,
    /// Its process.
    pub pid: u32,
    /// Its release.
    pub version: String,
    /// The root it serves.
    pub root: String,
    /// Since when.
    pub started_at_ms: i64,
    /// Which reading of the configuration holds.
    pub generation: u64,
    /// Clients on the socket.
    pub clients: usize,
}

/// The middle of a daemon.
#[derive(Debug)]
pub(super) struct Hub {
    pub(super) service: Service,
    pub(super) events: Events,
    /// Whether no new work is taken.
    pub(super) draining: watch::Sender<bool>,
    started_at_ms: i64,
    problems: Mutex<BTreeMap<&'static str, String>>,
    clients: Mutex<usize>,
}

/// A client that counts for as long as it is there.
#[derive(Debug)]
pub(super) struct Counted<'a>(&'a Hub);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        *lock(&self.0.clients) -= 1;
    }
}

impl Hub {
    pub(super) fn new(service: Service) -> Self {
        let started_at_ms = service.clock().now_ms();
        Self {
            events: Events::new(format!("{started_at_ms}-{}", std::process::id())),
            service,
            draining: watch::Sender::new(false),
            started_at_ms,
            problems: Mutex::default(),
            clients: Mutex::new(0),
        }
    }

    /// Counts a client; `None` when there are too many.
    pub(super) fn count_client(&self, most: usize) -> Option<Counted<'_>> {
        let mut clients = lock(&self.clients);
        (*clients < most).then(|| {
            *clients += 1;
            Counted(self)
        })
    }

    pub(super) fn is_draining(&self) -> bool {
        *self.draining.borrow()
    }

    /// How the daemon is.
    pub(super) fn health(&self) -> Health {
        let problems: Vec<_> = lock(&self.problems).values().cloned().collect();
        let status = match (self.is_draining(), problems.is_empty()) {
            (true, _) => "stopping",
            (false, true) => "ok",
            (false, false) => "degraded",
        };
        Health {
            status: status.to_owned(),
            problems,
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            root: self.service.root().display().to_string(),
            started_at_ms: self.started_at_ms,
            generation: self.service.generation(),
            clients: *lock(&self.clients),
        }
    }

    /// Remembers that something fails, or no longer does; a change is told once.
    pub(super) fn set_problem(&self, what: &'static str, problem: Option<String>) {
        let mut problems = lock(&self.problems);
        let before = problems.len();
        let old = match problem {
            Some(problem) => {
                let is_new = !problems.contains_key(what);
                if is_new {
                    tracing::warn!(what, problem, "degraded");
                }
                problems.insert(what, problem);
                !is_new
            }
            None => problems.remove(what).is_none(),
        };
        if old {
            return;
        }
        if problems.len() < before {
            tracing::warn!(what, "works again");
        }
        let told: Vec<_> = problems.values().cloned().collect();
        let status = if told.is_empty() { "ok" } else { "degraded" };
        drop(problems);
        self.events.tell(Event::Health {
            status,
            problems: told,
        });
    }

    /// Reads the configuration anew.
    pub(super) fn reload(&self) -> Result<u64, ServiceError> {
        let read = self.service.reload();
        match &read {
            Ok(generation) => {
                self.set_problem("config", None);
                tracing::info!(generation, "configuration read");
                self.events.tell(Event::Reloaded {
                    generation: *generation,
                });
            }
            Err(error) => self.set_problem("config", Some(error.to_string())),
        }
        read
    }

    /// Answers a call that needs no connection of its own; gives JSON.
    ///
    /// A defect in one call is that call's failure alone.
    pub(super) async fn call(&self, call: &Call<'_>) -> Result<String, RpcError> {
        match call.method.as_str() {
            "health" => Ok(json_of(&self.health())),
            "config.reload" => match self.reload() {
                Ok(generation) => Ok(json_of(&serde_json::json!({"generation": generation}))),
                Err(error) => Err((&error).into()),
            },
            _ => self.ask(call.request()?).await,
        }
    }

    async fn ask(&self, request: Request) -> Result<String, RpcError> {
        let answered = AssertUnwindSafe(Box::pin(self.service.dispatch(request))).catch_unwind();
        match answered.await {
            Ok(Ok(response)) => Ok(json_of(&response)),
            Ok(Err(error)) => {
                if error.kind() == ErrorKind::NoSpace {
                    self.set_problem("writes", Some(format!("writes fail: {error}")));
                }
                Err((&error).into())
            }
            Err(_) => Err(RpcError::panicked()),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
