//! Parts of files, for who has no stream.

use serde::{Deserialize, Serialize};

use super::{MAX_CALL_BYTES, Vfs};
use crate::model::{Content, VfsPath};
use crate::service::ServiceError;

/// A part of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VfsPart {
    /// Where it begins in the file, bytes.
    pub offset: u64,
    /// How long it is, bytes; 0 behind the end.
    pub length: u64,
    /// Its bytes.
    pub content: Content,
}

/// What a removal took.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VfsRemoved {
    /// Files and folders that went.
    pub entries: u64,
}

impl Vfs {
    pub(in crate::service) async fn part(
        &self,
        path: &VfsPath,
        offset: u64,
        length: Option<usize>,
    ) -> Result<VfsPart, ServiceError> {
        let most = length.unwrap_or(MAX_CALL_BYTES);
        let bytes = self.read(path, offset, most).await?;
        Ok(VfsPart {
            offset,
            length: bytes.len() as u64,
            content: bytes.into(),
        })
    }
}
