//! Formats of ZeroClaw installs, from 0.1 to 0.8.

pub(crate) mod acp_db;
pub(crate) mod audit_db;
pub(crate) mod brain_db;
pub(crate) mod control_db;
pub(crate) mod costs;
pub(crate) mod cron_db;
pub(crate) mod deleted_agent;
pub(crate) mod devices_db;
pub(crate) mod elsewhere;
pub(crate) mod estop;
pub(crate) mod heartbeat_db;
pub(crate) mod knowledge_db;
pub(crate) mod markdown;
pub(crate) mod paired_tokens;
pub(crate) mod remains;
pub(crate) mod result_file;
mod secrets;
pub(crate) mod session_lines;
pub(crate) mod sessions_db;
pub(crate) mod sop_db;
pub(crate) mod surfaces;
pub(crate) mod trace;
