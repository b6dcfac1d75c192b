//! One binary for all tests from outside: they link once, and share their support.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on stops")]

mod guard;
