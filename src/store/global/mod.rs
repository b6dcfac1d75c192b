//! Rows of the control plane.

pub mod acp;
pub mod agent;
pub mod backup;
pub mod continuation;
pub mod cost;
pub mod cron;
pub mod delivery;
pub mod device;
pub mod diagnostic;
pub mod goal;
pub mod lease;
pub mod migration;
pub mod settlement;
pub mod task;
