//! Typed rows of one tier.
//!
//! Each file owns one concept's tables. Functions that write take a [`WriteTx`](crate::db::WriteTx)
//! and never begin or commit; functions that read take any connection. Not found is `Ok(None)`.

pub mod agent;
mod error;
pub mod global;
mod row;

pub use error::StoreError;
