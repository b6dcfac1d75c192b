//! What tools of a runtime keep in memory between their calls, and who sees which of it.
//!
//! A [`ToolState`] is one tool's, named when the tool is made. What is in it belongs to a client, an agent or a session,
//! and nobody sees what is another's. Clients are told apart by a [`ClientIdentity`], which only the service makes:
//! never by an address, a header or what somebody says of themselves.
//!
//! It has four phases. It is *named*: nothing is kept yet. A first call *fills* what belongs to a caller. With the next
//! reading of the configuration it is *stale*, because keys, grants and policies may be others, and is made anew at the
//! next call, unless it is for display alone. It *ends* with its client, with the handle, or with the service.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::append::check_name;
use super::{Service, ServiceError};
use crate::model::AgentId;

/// Who a client is: told apart from all others, for as long as it is connected.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClientIdentity(u64);

/// Whose a tool's state is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// One client's, whatever it talks about.
    Client,
    /// One client's for one agent.
    Agent,
    /// One client's for one session of an agent.
    Session,
}

/// How long it is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// Until the configuration is read anew: whatever keys, grants or policies have a part in.
    Generation,
    /// Beyond that: what is shown and decides nothing.
    Display,
}

/// On whose behalf a tool is called.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ToolCaller {
    /// The client.
    pub client: ClientIdentity,
    /// The agent it talks with.
    pub agent: AgentId,
    /// The session it talks in.
    pub session_id: String,
}

/// Names in use, the generation, and the number of the next client.
#[derive(Clone, Debug)]
pub(super) struct ToolStates(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    generation: AtomicU64,
    next_client: AtomicU64,
    names: Mutex<HashSet<String>>,
}

impl ToolStates {
    pub(super) fn new() -> Self {
        Self(Arc::new(Shared {
            generation: AtomicU64::new(1),
            next_client: AtomicU64::new(1),
            names: Mutex::default(),
        }))
    }

    pub(super) fn generation(&self) -> u64 {
        self.0.generation.load(Ordering::SeqCst)
    }

    /// Makes everything stale; gives the new generation.
    pub(super) fn next_generation(&self) -> u64 {
        self.0.generation.fetch_add(1, Ordering::SeqCst) + 1
    }
}

type Key = (ClientIdentity, Option<AgentId>, Option<String>);

/// A tool's state, apart for each whose it is. Clones are one.
pub struct ToolState<T> {
    inner: Arc<Inner<T>>,
}

struct Inner<T> {
    name: String,
    isolation: Isolation,
    lifetime: Lifetime,
    kept: Mutex<HashMap<Key, (u64, Arc<T>)>>,
    all: ToolStates,
}

impl<T> Clone for ToolState<T> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
        }
    }
}

impl<T> fmt::Debug for ToolState<T> {
    // What is kept may be a key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolState")
            .field("name", &self.inner.name)
            .field("isolation", &self.inner.isolation)
            .finish_non_exhaustive()
    }
}

impl<T> Drop for Inner<T> {
    fn drop(&mut self) {
        lock(&self.all.0.names).remove(&self.name);
    }
}

impl Service {
    /// A new client's identity; whoever carries its connection asks once, and tells no one else.
    #[must_use]
    pub fn admit_client(&self) -> ClientIdentity {
        let number = self
            .tool_states()
            .0
            .next_client
            .fetch_add(1, Ordering::Relaxed);
        ClientIdentity(number)
    }

    /// Names a tool's state; the name is taken until the last clone of the handle is gone.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Conflict`] when another handle has the name, [`ServiceError::Invalid`] for no name.
    pub fn tool_state<T: Send + Sync>(
        &self,
        name: &str,
        isolation: Isolation,
        lifetime: Lifetime,
    ) -> Result<ToolState<T>, ServiceError> {
        check_name("name of a tool's state", name)?;
        let all = self.tool_states().clone();
        if !lock(&all.0.names).insert(name.to_owned()) {
            return Err(ServiceError::Conflict {
                what: "tool state",
                name: name.to_owned(),
                expected: "to be free".to_owned(),
                found: "taken".to_owned(),
            });
        }
        Ok(ToolState {
            inner: Arc::new(Inner {
                name: name.to_owned(),
                isolation,
                lifetime,
                kept: Mutex::default(),
                all,
            }),
        })
    }
}

impl<T> ToolState<T> {
    fn key(&self, caller: &ToolCaller) -> Key {
        let (client, agent) = (caller.client.clone(), || Some(caller.agent.clone()));
        match self.inner.isolation {
            Isolation::Client => (client, None, None),
            Isolation::Agent => (client, agent(), None),
            Isolation::Session => (client, agent(), Some(caller.session_id.clone())),
        }
    }

    fn is_good(&self, made_in: u64) -> bool {
        self.inner.lifetime == Lifetime::Display || made_in == self.inner.all.generation()
    }

    /// What is the caller's, made now where there is nothing, or nothing that is still good.
    ///
    /// Who holds what this gives keeps it, stale or not: long work asks again between its steps.
    pub fn of(&self, caller: &ToolCaller, make: impl FnOnce() -> T) -> Arc<T> {
        // Before it is made: what a reload in the meantime changes makes it stale at once.
        let generation = self.inner.all.generation();
        let mut kept = lock(&self.inner.kept);
        let key = self.key(caller);
        if let Some((made_in, value)) = kept.get(&key)
            && self.is_good(*made_in)
        {
            return Arc::clone(value);
        }
        let value = Arc::new(make());
        kept.insert(key, (generation, Arc::clone(&value)));
        value
    }

    /// What is the caller's, if there is something that is still good.
    #[must_use]
    pub fn get(&self, caller: &ToolCaller) -> Option<Arc<T>> {
        let kept = lock(&self.inner.kept);
        let (made_in, value) = kept.get(&self.key(caller))?;
        self.is_good(*made_in).then(|| Arc::clone(value))
    }

    /// Ends all that is a client's: it is gone.
    pub fn end_client(&self, client: &ClientIdentity) {
        lock(&self.inner.kept).retain(|(of, _, _), _| of != client);
    }

    /// Ends what is stale; gives how much. Memory only: what is stale is given to nobody anyway.
    pub fn sweep(&self) -> usize {
        let mut kept = lock(&self.inner.kept);
        let before = kept.len();
        kept.retain(|_, (made_in, _)| self.is_good(*made_in));
        before - kept.len()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
