//! Both tiers to one archive, and back.
//!
//! An archive is a plain `.tar.gz`; `docs/backup-format.md` describes it. [`create()`] captures every database of a
//! root at one instant, [`verify()`] proves an archive by opening what is in it, [`restore()`] swaps it in under a
//! journal, and [`recover`] finishes a restore that was cut off. Nothing here knows the rows of a database beyond
//! what [`crate::db::DbCopy`] tells.

mod archive;
mod capture;
mod create;
mod error;
mod gather;
mod gzip;
mod journal;
mod manifest;
mod names;
mod pack;
mod restore;
mod scrub;
mod staging;
mod stream;
mod verify;
mod walk;

pub use create::{BackupDone, BackupJob, create, plan};
pub use error::BackupError;
pub use manifest::{
    DIGEST_NAME, FORMAT_VERSION, LeftOut, MANIFEST_NAME, Manifest, Member, MemberKind, Role,
};
pub use restore::{PlanAction, PlanStep, RestoreJob, plan_restore, recover, restore};
pub use verify::{Verified, rehearse, verify};
