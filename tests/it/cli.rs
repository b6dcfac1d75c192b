//! The compiled program from outside: exit codes, what it prints, what it leaves alone.

pub(crate) mod agent_life;
mod agents;
mod backup;
mod disk;
mod exits;
pub(crate) mod json;
pub(crate) mod looking;
mod moving;
mod query;
mod retention;
mod sessions;
mod shown;
