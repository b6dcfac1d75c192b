//! Statements that somebody wrote: read, bounded in rows, bytes and time, and never written.
//!
//! SQLite's authorizer would be the hook for this, and can only be set through its C interface, which needs `unsafe`.
//! What stands in its place, each enough alone against a write:
//!
//! 1. The file is open read only, or `immutable`, with `query_only`: SQLite refuses whatever would change it.
//! 2. [`words`]: one statement that begins with `SELECT`, `WITH`, `VALUES`, `EXPLAIN QUERY PLAN` or a `PRAGMA` of a list that
//!    reads. Such a pragma is turned into the table it is known as, which takes no new values.
//! 3. The statement is put between the parentheses of `WITH … AS ( … )`, where SQLite's grammar takes nothing but a query.
//! 4. [`program`]: what SQLite made of it, as `EXPLAIN` shows it, may hold instructions of a list alone. None of them opens a
//!    table for writing, attaches a file, makes one or changes a setting. One that a later SQLite brings is not in the
//!    list, and is refused. Here also columns with credentials are kept closed, whichever view, index or alias leads there.
//!
//! The check and the run share one transaction: the program that runs is the one that was looked at.

mod error;
mod program;
mod run;
mod words;

pub use error::QueryError;
pub use program::Sealed;
