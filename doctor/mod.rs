//! The way in for state of older installs. To the library this folder does not exist.

mod command;

pub(crate) use command::{DoctorArgs, run};
