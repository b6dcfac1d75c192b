//! The time zone of this machine.

use crate::model::zone_name;

/// The host's IANA zone: `TZ`, else what `/etc/localtime` or `/etc/timezone` name, else UTC.
#[must_use]
pub fn host_zone() -> String {
    let known = |name: String| zone_name(&name).map(str::to_owned);
    let from_env = || {
        let tz = std::env::var("TZ").ok()?;
        Some(tz.trim_start_matches(':').to_owned())
    };
    let from_link = || {
        let target = std::fs::canonicalize("/etc/localtime").ok()?;
        let (_, zone) = target.to_str()?.split_once("/zoneinfo/")?;
        Some(zone.to_owned())
    };
    let from_file = || {
        let text = std::fs::read_to_string("/etc/timezone").ok()?;
        Some(text.trim().to_owned())
    };
    from_env()
        .and_then(known)
        .or_else(|| from_link().and_then(known))
        .or_else(|| from_file().and_then(known))
        .unwrap_or_else(|| "UTC".to_owned())
}
