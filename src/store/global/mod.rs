//! Rows of the control plane.

pub mod acp;
pub mod agent;
pub mod audit;
pub mod backup;
pub mod commitment;
pub mod continuation;
pub mod cost;
pub mod cron;
pub mod delivery;
pub mod delivery_import;
pub mod delivery_queue;
pub mod device;
pub mod diagnostic;
pub mod flow;
pub mod flow_claim;
pub mod goal;
pub mod knowledge;
pub mod lease;
pub mod migration;
pub mod plugin;
pub mod plugin_blob;
pub mod plugin_index;
pub mod plugin_room;
pub mod settlement;
pub mod task;
