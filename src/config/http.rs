//! Where the daemon answers over HTTP: nowhere, unless the configuration says so.
//!
//! The `[gateway]` of the runtime is the runtime's own: its port is taken by whoever serves chats, so that the state
//! service never takes it from there.

use std::net::SocketAddr;

use toml::Value;

use super::section::{Section, Warnings};

/// What `[state.http]` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpConfig {
    /// Address and port to listen on.
    pub listen: SocketAddr,
    /// Whether that may be an address that others reach.
    pub allow_remote: bool,
}

impl HttpConfig {
    /// Whether only this machine reaches it.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.listen.ip().is_loopback()
    }
}

pub(super) fn http(state: &Section<'_>, warnings: &mut Warnings) -> Option<HttpConfig> {
    let http = state.section("http", warnings)?;
    let address = |value: &Value| value.as_str()?.trim().parse().ok();
    let listen = http.get(
        "listen",
        "an address and a port, as \"127.0.0.1:42680\"",
        address,
        warnings,
    )?;
    let allow_remote = http.get("allow_remote", "true or false", Value::as_bool, warnings);
    Some(HttpConfig {
        listen,
        allow_remote: allow_remote.unwrap_or(false),
    })
}
