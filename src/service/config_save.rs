//! Writing the configuration, for who edits it on a person's behalf.

use serde::{Deserialize, Serialize};

use super::{Service, ServiceError};
use crate::config::{Config, ConfigError};
use crate::fs::atomic;

/// A configuration that was saved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigSaved {
    /// Its generation: this service goes by it from here on.
    pub generation: u64,
    /// Whether one was there before; it lies beside the new one as `config.toml.bak`.
    pub has_backup: bool,
    /// What of it is not understood and counts as absent, by key and reason.
    pub warnings: Vec<String>,
}

impl Service {
    /// Puts a text in the place of the configuration, and reads it.
    ///
    /// `Ok` means: the text is on the disk under the configuration's name, as a whole and synced; what was there before
    /// is on the disk as `config.toml.bak`, to the byte; and this service has read the new one. It does not mean that
    /// every key is understood ([`ConfigSaved::warnings`]), nor that what was opened under the old one is as the new one
    /// says: durability holds for tiers opened from now on.
    ///
    /// After an error, or a kill at any moment, the file is the old one or the new one as a whole.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Config`] for a text that is no TOML, and then nothing is written; [`ServiceError::Invalid`] where
    /// the root is only looked at; [`ServiceError::Fs`] when the disk fails.
    pub fn save_config(&self, text: &str) -> Result<ConfigSaved, ServiceError> {
        let path = self.layout().config_file();
        if !self.is_writer() {
            return Err(ServiceError::Invalid {
                what: "configuration",
                reason: "is saved by who holds the root".to_owned(),
            });
        }
        let parsed = Config::parse(text).map_err(|source| ConfigError::Syntax {
            path: path.clone(),
            source,
        })?;
        let old = match std::fs::read(&path) {
            Ok(old) => Some(old),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(source) => {
                let path = path.clone();
                return Err(ConfigError::Read { path, source }.into());
            }
        };
        if let Some(old) = &old {
            atomic::write_private(&path.with_extension("toml.bak"), old)?;
        }
        atomic::write_private(&path, text.as_bytes())?;
        Ok(ConfigSaved {
            generation: self.reload()?,
            has_backup: old.is_some(),
            warnings: parsed.warnings,
        })
    }
}
