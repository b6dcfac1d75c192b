//! Kinds of failure, the same for every carrier.

use super::text_enum;

/// What kind of failure it is; decides the exit code and the status of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request itself is wrong.
    Usage,
    /// There is no root yet.
    NotInitialised,
    /// Somebody else holds it.
    Busy,
    /// A schema is newer than this release.
    NewerSchema,
    /// A schema is older than what was asked for needs, and was only to be looked at.
    OlderSchema,
    /// A file is damaged or not what it should be.
    Damaged,
    /// No space left, or the medium cannot be written.
    NoSpace,
    /// What was asked for is not there.
    NotFound,
    /// Refused, because it could lose something.
    Refused,
    /// Anything else.
    Internal,
}

text_enum!(ErrorKind {
    Usage => "usage",
    NotInitialised => "not_initialised",
    Busy => "busy",
    NewerSchema => "newer_schema",
    OlderSchema => "older_schema",
    Damaged => "damaged",
    NoSpace => "no_space",
    NotFound => "not_found",
    Refused => "refused",
    Internal => "internal",
});
