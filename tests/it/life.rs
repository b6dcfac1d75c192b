//! The life of agents: renamed, deleted, restored and made anew, with kills in between.

mod home;
mod rename;
