//! The one table of exit codes.

use std::process::ExitCode;

use zeroclaw::service::ErrorKind;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// Done.
    Done,
    /// Something was found, or records were refused.
    Findings,
    /// The command line is wrong.
    Usage,
    /// There is no root.
    NotInitialised,
    /// Another process holds the root.
    Busy,
    /// A schema is newer than this release.
    NewerSchema,
    /// A file is damaged.
    Damaged,
    /// State of an older install waits for its import, or a schema for its migration.
    LegacyPending,
    /// No space, or a medium that cannot be written.
    NoSpace,
    /// What was asked for is not there.
    NotFound,
    /// Refused, because it could lose something.
    Refused,
    /// A defect, or a failure nobody foresaw.
    Internal,
    /// A signal asked it to stop, and it did so in good order.
    Interrupted,
}

/// Exit, code, name in JSON, meaning.
const TABLE: [(Exit, u8, &str, &str); 13] = [
    (Exit::Done, 0, "done", "done"),
    (
        Exit::Findings,
        1,
        "findings",
        "findings or refused records remain",
    ),
    (Exit::Usage, 2, "usage", "the command line is wrong"),
    (
        Exit::NotInitialised,
        3,
        "not_initialised",
        "there is no state in this root yet",
    ),
    (Exit::Busy, 4, "busy", "busy, or owned by another process"),
    (
        Exit::NewerSchema,
        5,
        "newer_schema",
        "a schema is newer than this release",
    ),
    (Exit::Damaged, 6, "damaged", "a file is damaged"),
    (
        Exit::LegacyPending,
        7,
        "legacy_pending",
        "state of an older install or release waits to be brought in",
    ),
    (
        Exit::NoSpace,
        8,
        "no_space",
        "no space left, or the medium cannot be written",
    ),
    (
        Exit::NotFound,
        9,
        "not_found",
        "what was asked for is not there",
    ),
    (
        Exit::Refused,
        10,
        "refused",
        "refused, because it could lose something",
    ),
    (Exit::Internal, 70, "internal", "internal error"),
    // What a shell says of a command that the interrupt key ended.
    (
        Exit::Interrupted,
        130,
        "interrupted",
        "stopped by a signal, in good order; run it again",
    ),
];

impl Exit {
    fn row(self) -> &'static (Self, u8, &'static str, &'static str) {
        &TABLE[self as usize]
    }

    /// The code the process ends with.
    pub(crate) fn code(self) -> u8 {
        self.row().1
    }

    /// The word for it in JSON.
    pub(crate) fn name(self) -> &'static str {
        self.row().2
    }

    /// All codes, for the long help.
    pub(crate) fn help() -> String {
        let mut text = "Exit codes:\n".to_owned();
        for (_, code, _, meaning) in &TABLE {
            text.push_str(&format!("  {code:>3}  {meaning}\n"));
        }
        text
    }

    /// The codes one command can end with besides 0 and 2, for its long help; lowest first.
    pub(crate) fn help_of(exits: &[Self]) -> String {
        let mut exits = [&[Self::Done, Self::Usage], exits].concat();
        exits.sort_unstable();
        let codes: Vec<_> = exits
            .iter()
            .map(|exit| format!("{} {}", exit.code(), exit.row().3))
            .collect();
        format!("Exit codes: {}", codes.join(", "))
    }

    /// The same for looking commands without anything special.
    pub(crate) fn help_of_look() -> String {
        Self::help_of(&[
            Self::NotInitialised,
            Self::NewerSchema,
            Self::Damaged,
            Self::LegacyPending,
        ])
    }

    /// The same for looking commands that are given a name.
    pub(crate) fn help_of_named() -> String {
        Self::help_of(&[
            Self::NotInitialised,
            Self::NewerSchema,
            Self::Damaged,
            Self::LegacyPending,
            Self::NotFound,
        ])
    }
}

impl From<ErrorKind> for Exit {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Usage => Self::Usage,
            ErrorKind::NotInitialised => Self::NotInitialised,
            ErrorKind::Busy => Self::Busy,
            ErrorKind::NewerSchema => Self::NewerSchema,
            ErrorKind::OlderSchema => Self::LegacyPending,
            ErrorKind::Damaged => Self::Damaged,
            ErrorKind::NoSpace => Self::NoSpace,
            ErrorKind::NotFound => Self::NotFound,
            ErrorKind::Refused => Self::Refused,
            _ => Self::Internal,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_stands_where_its_exit_looks_for_it() {
        for (exit, code, ..) in TABLE {
            assert_eq!(exit.row().0, exit);
            assert_eq!(exit.code(), code);
        }
    }

    #[test]
    fn codes_and_names_are_distinct() {
        let codes: std::collections::BTreeSet<_> = TABLE.iter().map(|row| row.1).collect();
        let names: std::collections::BTreeSet<_> = TABLE.iter().map(|row| row.2).collect();

        assert_eq!((codes.len(), names.len()), (TABLE.len(), TABLE.len()));
    }
}
