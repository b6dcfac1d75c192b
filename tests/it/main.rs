//! One binary for all tests from outside: they link once, and share their support.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    missing_docs,
    reason = "a test may stop and talk, and its names are its documentation"
)]

mod backup;
mod cli;
mod control;
mod cron;
mod daemon;
mod data;
mod db;
mod doctor;
mod fixtures;
mod guard;
mod life;
mod memory;
mod schema;
mod store;
mod support;
mod vfs;
