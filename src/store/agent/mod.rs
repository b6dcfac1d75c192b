//! Rows of one agent's tier.

pub mod append;
pub mod artifact;
pub mod branch;
pub mod cache;
pub mod conversation;
pub mod lease;
pub mod memory;
pub mod memory_index;
pub mod parent_stream;
pub mod receipt;
pub mod route;
pub mod search;
pub mod session;
pub mod session_change;
pub mod session_copy;
pub mod snapshot;
pub mod tool_artifact;
pub mod trajectory;
pub mod transcript;
pub mod vfs;
