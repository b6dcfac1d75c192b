//! Rows of one agent's tier.

pub mod artifact;
pub mod conversation;
pub mod memory;
pub mod memory_index;
pub mod receipt;
pub mod search;
pub mod session;
pub mod tool_artifact;
pub mod transcript;
pub mod vfs;
