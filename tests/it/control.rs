//! The control plane as an embedding runtime uses it: through [`Service`], and through handles of other processes.

use std::path::Path;

use zeroclaw::service::{Clock, HolderKind, Service};

mod delivery;

/// A folder in memory where the system has room for one: a kill of a process loses nothing that it wrote.
fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    dir.unwrap()
}

/// A root open for writing.
async fn open(root: &Path, clock: Clock) -> Service {
    let opened = Service::init(root, clock, HolderKind::Cli).await;
    opened.unwrap().0
}
