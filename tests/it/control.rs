//! The control plane: who lives, who holds what, how background work ends, and how messages leave.

use std::path::Path;

use tempfile::TempDir;
use zeroclaw::service::{Clock, HolderKind, Service};

mod commitments;
mod delivery;
mod flows;
mod lease;

const NOW: i64 = 1_788_000_000_000;

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// The service of a root, made where there is none.
async fn service(root: &Path, clock: Clock) -> Service {
    let made = Service::init(root, clock, HolderKind::Cli).await;
    made.unwrap().0
}
