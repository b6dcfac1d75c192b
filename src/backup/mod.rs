//! Both tiers to one archive, and back.
//!
//! An archive is a plain `.tar.gz`, or one in the age format; `docs/backup-format.md` describes it. [`create()`]
//! captures every database of a root at one instant, [`verify()`] proves an archive by opening what is in it,
//! [`restore()`] swaps it in under a journal, and [`recover`] finishes a restore that was cut off. [`adopt()`] takes one
//! agent out of an archive into a root that does not know it. Nothing here knows the rows of a database beyond what
//! [`crate::db::DbCopy`] tells.

mod adopt;
mod archive;
mod capture;
mod create;
mod error;
mod gather;
mod gzip;
mod inventory;
mod journal;
mod life;
mod manifest;
mod names;
mod pack;
mod restore;
mod retention;
mod scrub;
mod seal;
mod staging;
mod stream;
mod undo;
mod verify;
mod walk;
mod watch;

pub use adopt::{AdoptJob, Jobs, adopt, plan_adopt, unfinished_adoption};
pub use create::{BackupDone, BackupJob, Proof, create, plan};
pub use error::BackupError;
pub use inventory::{Archive, Contents, inventory, read_through};
pub use life::{forget, odd_place, rename};
pub use manifest::{
    DIGEST_NAME, FORMAT_VERSION, LeftOut, MANIFEST_NAME, Manifest, Member, MemberKind, Role, Scope,
};
pub use restore::{PlanAction, PlanStep, RestoreJob, plan_restore, recover, restore};
pub use retention::{Dated, Decision, Rules, is_doubtful, is_given_name, keep};
pub use scrub::sealed;
pub use seal::{Encryption, Key, Seal, lines_of};
pub use undo::{Place, UndoJob, plan_undo, undo, unfinished_undo};
pub use verify::{Verified, rehearse, verify};
