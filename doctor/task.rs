//! What doctor is asked to look at, and why it may not be able to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use zeroclaw::clock::Clock;
use zeroclaw::config::{Config, ConfigError};
use zeroclaw::fs::{FsError, Layout};
use zeroclaw::model::ErrorKind;
use zeroclaw::service::ServiceError;

use super::owner::Owners;
use super::plan::{self, Earlier, Plan};
use super::preflight::PreflightError;
use super::progress::Progress;
use super::scan::{root_tag, scan};
use super::settings::Settings;
use super::sources::openclaw;
use super::sources::openclaw::home::{Home, is_home};
use super::stop::{Stop, Stopped};

/// What to look at, and how.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    /// The root that is imported into.
    pub(crate) root: PathBuf,
    /// A foreign root that is imported from.
    pub(crate) from: Option<PathBuf>,
    /// Only these surfaces; empty for all.
    pub(crate) only: Vec<String>,
    /// Old alias to new name.
    pub(crate) agent_map: BTreeMap<String, String>,
    /// The time.
    pub(crate) clock: Clock,
    /// Hears how far it is.
    pub(crate) progress: Progress,
    /// Says when to stop.
    pub(crate) stop: Stop,
}

/// Why a look or a run could not be carried out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DoctorError {
    /// The service failed.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// The configuration of the sources cannot be read, so their owners are unknown.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The file system failed.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// A run must not begin.
    #[error(transparent)]
    Preflight(#[from] PreflightError),
    /// A tier comes from a newer release: nothing may be changed round it.
    #[error("{what}")]
    NewerTier {
        /// Which, and its version.
        what: String,
    },
    /// It was asked to stop.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// The foreign root is no folder.
    #[error("{} is no folder", .path.display())]
    NoSuchRoot {
        /// The path given.
        path: PathBuf,
    },
}

impl Task {
    pub(crate) fn source_root(&self) -> &Path {
        self.from.as_deref().unwrap_or(&self.root)
    }

    /// Name of the sources' root in receipts.
    pub(crate) fn tag(&self) -> String {
        root_tag(self.from.as_deref())
    }

    /// Whether there is something to look at.
    pub(crate) fn check(&self) -> Result<(), DoctorError> {
        match &self.from {
            Some(path) if !path.is_dir() => Err(DoctorError::NoSuchRoot { path: path.clone() }),
            _ => Ok(()),
        }
    }

    /// Where files are, by the configuration and, for the process's own root, the environment.
    pub(crate) fn settings(&self) -> Settings {
        let own = self.from.is_none().then(std::env::vars_os);
        let texts = own.into_iter().flatten().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Settings::load(self.source_root(), texts)
    }

    /// The home that is imported from, where it is another program's.
    pub(crate) fn home(&self) -> Result<Option<Home>, DoctorError> {
        let foreign = self.from.as_deref().filter(|from| is_home(from));
        Ok(foreign.map(Home::load).transpose()?)
    }

    /// Whose records are, by the configurations.
    pub(crate) fn owners(&self, home: Option<&Home>) -> Result<Owners, DoctorError> {
        let layout = Layout::new(self.source_root().to_owned());
        let config = match home {
            Some(home) => home.config(),
            None => Config::load(&layout.config_file())?.unwrap_or_default(),
        };
        // A foreign root says whose its sessions are; who takes part here, the own configuration says.
        let own = match self.from {
            Some(_) => Config::load(&Layout::new(self.root.clone()).config_file())?,
            None => None,
        };
        Ok(Owners::new(config, own, self.agent_map.clone()))
    }

    /// What is to happen.
    pub(crate) async fn plan(
        &self,
        earlier: &Earlier,
        scratch: &Path,
    ) -> Result<Plan, DoctorError> {
        let home = self.home()?;
        let owners = self.owners(home.as_ref())?;
        let root = self.source_root();
        let mut found = match &home {
            Some(home) => openclaw::scan::scan(home)?,
            None => {
                let settings = self.settings();
                let trace = settings.trace(root);
                let mut found = scan(root, &owners, scratch, trace.as_deref()).await?;
                found.findings.extend(settings.findings());
                found
            }
        };
        if !self.only.is_empty() {
            found
                .sources
                .retain(|source| self.only.iter().any(|only| only == source.format.surface()));
        }
        let install = plan::Install {
            root: self.source_root(),
            owners: &owners,
            home: home.as_ref(),
            scratch,
            progress: &self.progress,
        };
        Ok(plan::plan(found, install, earlier, &self.tag(), self.from.is_some()).await)
    }
}

impl DoctorError {
    /// What kind of failure it is.
    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            Self::Service(error) => error.kind(),
            Self::Config(_) => ErrorKind::Refused,
            Self::Fs(error) => error.kind().into(),
            Self::Preflight(PreflightError::OldDaemon { .. }) => ErrorKind::Busy,
            Self::Preflight(_) => ErrorKind::NoSpace,
            Self::NewerTier { .. } => ErrorKind::NewerSchema,
            Self::NoSuchRoot { .. } => ErrorKind::NotFound,
            Self::Stopped(_) => ErrorKind::Internal,
        }
    }
}
