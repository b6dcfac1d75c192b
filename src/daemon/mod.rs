//! The always-on owner of a root: one process that holds it, and answers everybody else.
//!
//! It hosts one [`Service`](crate::service::Service) and adds no use case of its own: a
//! [`Request`](crate::service::Request) that comes over the socket or over HTTP is answered as in this process.
//!
//! - [`Daemon`] claims the root, serves, and drains.
//! - The socket speaks JSON-RPC 2.0, one message a line, after an `initialize`; only the root's own user is heard.
//! - [`Client`] is the other end, for commands and for whoever embeds the crate.
//!
//! Everything that a client can make grow has a bound: frames, requests at once, answers that wait to be read,
//! subscriptions, clients. What is over it waits or is told so; nobody else notices.

mod bound;
mod client;
mod connection;
mod error;
mod events;
mod hub;
mod lifecycle;
mod lines;
mod socket;
mod wire;

pub use client::{Client, ClientError};
pub use error::DaemonError;
pub use hub::Health;
pub use lifecycle::{Daemon, Options};
pub use wire::{PROTOCOL, RpcError, methods};
