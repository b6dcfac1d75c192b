//! The root folder on disk: where everything lies, how files come to be, who may write, how much room there is.
//!
//! Every path of the product is computed in [`layout`]. Files and folders get their private mode at birth, in
//! [`atomic`]. The operating system's lock on a root is taken in [`lock`]. Nothing here reads what a file holds.

pub mod atomic;
mod beneath;
mod error;
mod fault;
mod holder;
pub mod layout;
pub mod lock;
pub mod measure;
pub mod process;
pub mod space;
mod zone;

pub use beneath::{Beneath, Found, Taken};
pub use error::{FsError, FsErrorKind};
pub use fault::fault;
pub use holder::database_writer;
pub use layout::{Layout, RootError, resolve_root, sidecars};
pub use lock::{FileLock, Holder, HolderKind, LockError, LockText, RootLock, SharedLock};
pub use space::FilesystemKind;
pub use zone::host_zone;
