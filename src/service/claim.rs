//! Claims: what one process has taken, and how others can tell that it is gone.
//!
//! A claim names a process and itself. It is void once either is gone: the process by proof, the claim because whoever
//! held it in this process has let go of it, by a panic or an aborted task too. One whose process cannot be proven gone
//! stays: nobody waits for a time to lapse.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::append::new_id;
use crate::fs::process;
use crate::model::ProcessIdentity;

/// Claims that somebody in this process holds. Of the process and no service, since it is the process that rows name.
static LIVE: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Who holds a claim, as a program reads it.
#[derive(Debug, Serialize, Deserialize)]
struct Owner {
    token: String,
    process: ProcessIdentity,
}

/// A claim of this process; void once this is dropped.
#[derive(Debug)]
pub(super) struct HeldClaim {
    token: String,
}

impl HeldClaim {
    /// A new one. Known as living before any row says so, or a look in between would take it for void.
    pub(super) fn new() -> Self {
        let token = new_id();
        let mut live = LIVE.lock().unwrap_or_else(PoisonError::into_inner);
        live.insert(token.clone());
        Self { token }
    }

    /// Identity.
    pub(super) fn token(&self) -> &str {
        &self.token
    }

    /// What rows say of its holder.
    pub(super) fn owner_json(&self) -> String {
        let owner = Owner {
            token: self.token.clone(),
            process: process::own(),
        };
        serde_json::to_string(&owner).unwrap_or_default()
    }
}

impl Drop for HeldClaim {
    fn drop(&mut self) {
        let mut live = LIVE.lock().unwrap_or_else(PoisonError::into_inner);
        live.remove(&self.token);
    }
}

/// Whether the holder of a claim is proven gone.
pub(super) fn is_void(owner_json: &str) -> bool {
    let Ok(owner) = serde_json::from_str::<Owner>(owner_json) else {
        // Nobody can be asked whether they live who did not say who they are.
        return true;
    };
    if owner.process == process::own() {
        let live = LIVE.lock().unwrap_or_else(PoisonError::into_inner);
        return !live.contains(&owner.token);
    }
    process::liveness(&owner.process).is_gone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_void_once_it_is_let_go_or_its_process_is_gone() {
        let claim = HeldClaim::new();
        let owner = claim.owner_json();

        assert!(!is_void(&owner));
        drop(claim);
        assert!(is_void(&owner));
        assert!(is_void("{}"));
    }
}
