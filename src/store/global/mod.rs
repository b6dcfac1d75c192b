//! Rows of the control plane.

pub mod agent;
pub mod backup;
pub mod cost;
pub mod cron;
pub mod lease;
pub mod migration;
pub mod task;
