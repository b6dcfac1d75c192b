//! How a root is beside what is in it: who may read it, what it lies on, what was left behind.
//!
//! A look reports; a run with `--fix` mends what is ours to mend: modes only get tighter, temporary files of killed
//! processes go, a large log is folded in. What it cannot mend says why it needs a person.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use zeroclaw::fs::Layout;
use zeroclaw::model::AgentId;
use zeroclaw::service::StatusReport;

use super::finding::Finding;

mod leftovers;
mod modes;
mod place;

/// What a look at a root's surroundings gave.
#[derive(Debug, Default)]
pub(crate) struct Health {
    /// What there is to say.
    pub(crate) findings: Vec<Finding>,
    /// Files that others can read or write, and that this process may tighten.
    loose: Vec<PathBuf>,
    /// Files that root left in another user's root, where this process may give them back.
    strange: Vec<PathBuf>,
    /// Temporary files and folders of processes that are gone.
    leftovers: Vec<PathBuf>,
    /// Some log is large, or a lock names a process that was killed: opening the databases to write mends both.
    has_rest: bool,
    /// Agents whose log is large.
    large_logs: Vec<AgentId>,
}

impl Health {
    /// Looks at a root; changes nothing.
    ///
    /// * `status`: what its databases say, where there are any.
    pub(crate) fn of(root: &Path, status: Option<&StatusReport>) -> Self {
        let layout = Layout::new(root.to_owned());
        let mut health = Self::default();
        if !root.is_dir() {
            return health;
        }
        modes::look(&layout, &mut health);
        place::look(&layout, status, &mut health.findings);
        leftovers::look(&layout, status, SystemTime::now(), &mut health);
        health
    }

    /// Whether a run has something to mend.
    pub(crate) fn has_work(&self) -> bool {
        self.has_rest
            || !(self.loose.is_empty() && self.strange.is_empty() && self.leftovers.is_empty())
    }

    /// Whether the databases must be opened to write for it.
    pub(crate) fn needs_writer(&self) -> bool {
        self.has_rest
    }

    /// Agents whose log is to be folded in.
    pub(crate) fn agents_with_large_logs(&self) -> &[AgentId] {
        &self.large_logs
    }

    /// Mends what needs no database. What fails stays a finding of the next look.
    pub(crate) fn mend(&self) {
        for path in &self.strange {
            modes::give_back(path);
        }
        for path in &self.loose {
            modes::tighten(path);
        }
        for path in &self.leftovers {
            leftovers::sweep(path);
        }
    }
}
