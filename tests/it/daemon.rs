//! The daemon from outside: who owns a root, what the socket says, how it ends.

mod alone;
mod beside;
mod cron;
mod described;
pub(crate) mod host;
mod http;
mod load;
mod owner;
mod pairing;
mod refusal;
mod same;
mod wire;
mod writes;
