//! What a client can make grow, and how far.

use std::time::Duration;

/// Longest message taken: an append may hold 16 MiB of text, which JSON makes longer.
pub(super) const MAX_FRAME_BYTES: usize = 64 * 1024 * 1024;
/// Longest answer a client of ours takes.
pub(super) const MAX_ANSWER_BYTES: usize = 512 * 1024 * 1024;
/// Clients at once; the next is told and let go.
pub(super) const MAX_CLIENTS: usize = 256;
/// Requests of one client that are worked on at once; the next is read when one of them is done.
pub(super) const MAX_CALLS: usize = 64;
/// Messages that wait for one client to read them.
pub(super) const MAX_WAITING: usize = 64;
/// Subscriptions of one client.
pub(super) const MAX_SUBSCRIPTIONS: usize = 16;
/// Events kept for who is behind; one that is further behind is told how many it missed.
pub(super) const MAX_EVENTS: usize = 4_096;

/// A client that does not introduce itself is let go.
pub(super) const FIRST_WORD: Duration = Duration::from_secs(10);
/// A client that does not read is let go.
pub(super) const WRITE_WAIT: Duration = Duration::from_secs(30);
/// While draining, silence as long as this ends a connection: what was on its way has come by then.
pub(super) const LAST_WORD: Duration = Duration::from_millis(100);
/// While draining, messages are refused for as long at most; then the connection ends in mid-stream.
pub(super) const LAST_WORDS: Duration = Duration::from_secs(1);
