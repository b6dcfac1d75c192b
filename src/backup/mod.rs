//! Both tiers to one archive, and back.
//!
//! An archive is a plain `.tar.gz`, or one in the age format; `docs/backup-format.md` describes it. [`create()`] captures every database of a
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
mod seal;
mod staging;
mod stream;
mod verify;
mod walk;
mod watch;

pub use create::{BackupDone, BackupJob, Proof, create, plan};
pub use error::BackupError;
pub use manifest::{
    DIGEST_NAME, FORMAT_VERSION, LeftOut, MANIFEST_NAME, Manifest, Member, MemberKind, Role,
};
pub use restore::{PlanAction, PlanStep, RestoreJob, plan_restore, recover, restore};
pub use seal::{Encryption, Key, Seal, lines_of};
pub use verify::{Verified, rehearse, verify};
