//! The life of agents: renamed, deleted, restored and made anew, with kills in between.

mod delete;
mod home;
mod random;
mod rename;
