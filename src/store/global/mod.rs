//! Rows of the control plane.

pub mod acp;
pub mod agent;
pub mod backup;
pub mod cron;
pub mod lease;
pub mod migration;
pub mod task;
