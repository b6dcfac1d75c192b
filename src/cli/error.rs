//! A failed command: what it says, and the code it ends with.

use std::error::Error;

use serde_json::{Value, json};
use zeroclaw::daemon::RpcError;
use zeroclaw::service::{RootError, ServiceError};

use super::Exit;

/// A failure, ready to be told.
#[derive(Debug)]
pub(crate) struct CliError(Box<Report>);

#[derive(Debug)]
struct Report {
    exit: Exit,
    message: String,
    causes: Vec<String>,
    hint: Option<String>,
}

impl CliError {
    /// A failure in one lowercase phrase.
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self(Box::new(Report {
            exit,
            message: message.into(),
            causes: Vec::new(),
            hint: None,
        }))
    }

    /// Adds an error, and what lies behind it, as the cause.
    pub(crate) fn because(mut self, error: &dyn Error) -> Self {
        self.add_cause(error.to_string());
        self.add_causes(error);
        self
    }

    /// Adds what lies behind an error that is told already.
    pub(crate) fn caused_by(mut self, error: &dyn Error) -> Self {
        self.add_causes(error);
        self
    }

    /// Adds what the operator can do about it.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// How the process is to end.
    pub(crate) fn exit(&self) -> Exit {
        self.0.exit
    }

    fn add_causes(&mut self, error: &dyn Error) {
        let mut next = error.source();
        while let Some(source) = next {
            self.add_cause(source.to_string());
            next = source.source();
        }
    }

    /// Wrappers that say only what they wrap would say everything twice.
    fn add_cause(&mut self, text: String) {
        let last = self.0.causes.last().unwrap_or(&self.0.message);
        if *last != text {
            self.0.causes.push(text);
        }
    }

    /// Lines for people: a word and what follows it.
    pub(super) fn lines(&self) -> Vec<(&'static str, &str)> {
        let mut lines = vec![("error", self.0.message.as_str())];
        lines.extend(
            self.0
                .causes
                .iter()
                .map(|cause| ("caused by", cause.as_str())),
        );
        lines.extend(self.0.hint.iter().map(|hint| ("hint", hint.as_str())));
        lines
    }

    /// The object for programs.
    pub(super) fn to_json(&self) -> Value {
        json!({
            "error": {
                "kind": self.0.exit.name(),
                "exit_code": self.0.exit.code(),
                "message": self.0.message,
                "causes": self.0.causes,
                "hint": self.0.hint,
            }
        })
    }
}

impl From<ServiceError> for CliError {
    fn from(error: ServiceError) -> Self {
        let mut told = Self::new(error.kind().into(), error.to_string());
        told.add_causes(&error);
        told.0.hint = error.hint();
        told
    }
}

impl From<RpcError> for CliError {
    /// Told as if it had happened in this process.
    fn from(error: RpcError) -> Self {
        let exit = error.kind().map_or(Exit::Internal, Exit::from);
        let mut told = Self::new(exit, error.message);
        let data = *error.data;
        for cause in data.causes {
            told.add_cause(cause);
        }
        told.0.hint = data.hint;
        told
    }
}

impl From<RootError> for CliError {
    fn from(error: RootError) -> Self {
        let mut told = Self::new(Exit::Usage, error.to_string());
        told.add_causes(&error);
        told.hint("name the root with --config-dir DIR")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_root_names_itself_and_the_next_command() {
        let error = CliError::from(ServiceError::NotInitialised {
            root: "/nowhere".into(),
        });

        assert_eq!(error.exit(), Exit::NotInitialised);
        let lines = error.lines();
        assert_eq!(lines[0], ("error", "no state in /nowhere"));
        assert!(matches!(lines[1], ("hint", hint) if hint.contains("zeroclaw init")));
    }

    #[test]
    fn causes_are_told_once_each() {
        #[derive(Debug, thiserror::Error)]
        #[error("{0}")]
        struct Layer(&'static str, #[source] Option<Box<Layer>>);

        let inner = Layer("disk on fire", None);
        let same = Layer("cannot read", Some(Box::new(inner)));
        let error = CliError::new(Exit::Internal, "cannot read").because(&same);

        assert_eq!(
            error.lines(),
            [("error", "cannot read"), ("caused by", "disk on fire")]
        );
    }
}
