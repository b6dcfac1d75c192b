//! The integration tests: one binary, one module per subject.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    missing_docs,
    reason = "a test may panic and talk, and its names are its documentation"
)]

mod fixtures;
mod support;
