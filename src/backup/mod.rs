//! Both tiers to one archive, and back.

mod error;
mod restore;

pub use error::BackupError;
pub use restore::recover;
