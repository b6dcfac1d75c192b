//! `devices/paired.json`: devices that were paired, each with a token a role.
//!
//! `{"<device>":{"deviceId":"…","publicKey":"…","displayName":"…","roles":["node"],"tokens":{"node":{"token":"…"}}}}`
//!
//! They were let in by another program, to do other things: they are known here, and let in by a person alone. A token
//! that was taken back stays so. Of each only its SHA-256 is kept, and of a public key nothing.

use std::path::Path;

use serde_json::{Map, Value, json};
use zeroclaw::model::{PairedDevice, Tier, TokenHash, TokenStatus};

use super::super::{Batcher, ReadError, Sink};
use super::index::{ms, text};
use super::tolerant;
use crate::doctor::record::{Item, Refusal, kind};

/// Why a token opens nothing.
const UNASKED: &str = "paired with OpenClaw; pair it anew to let it in";

/// Streams the tokens of all devices.
pub(crate) async fn read<S: Sink>(path: &Path, sink: &mut S) -> Result<(), ReadError> {
    let all = tolerant::file(path).map_err(|reason| ReadError::Format { reason })?;
    let Value::Object(all) = all else {
        let reason = "it is no object of devices".to_owned();
        return Err(ReadError::Format { reason });
    };
    let mut out = Batcher::new(sink);
    for (name, device) in &all {
        give(name, device, &mut out).await?;
    }
    out.flush().await
}

/// Gives the tokens of one device.
pub(crate) async fn give<S: Sink>(
    name: &str,
    device: &Value,
    out: &mut Batcher<'_, S>,
) -> Result<(), ReadError> {
    let place = format!("device {}", name.trim());
    let fields = device.as_object().filter(|fields| {
        text(fields, "publicKey").is_some()
            && ms(fields, "createdAtMs").is_some()
            && ms(fields, "approvedAtMs").is_some()
    });
    let tokens = fields
        .and_then(|fields| fields.get("tokens"))
        .and_then(Value::as_object);
    let (Some(fields), Some(tokens)) = (fields, tokens.filter(|tokens| !tokens.is_empty())) else {
        let refusal = Refusal {
            kind: kind::DEVICE,
            place,
            reason: "it lacks its key, its times or its tokens".to_owned(),
            // What there is may be a token.
            raw: Vec::new(),
        };
        return out.push(Item::Refused(refusal), 0).await;
    };
    for (role, token) in tokens {
        let token = token.as_object().unwrap_or(&Map::new()).clone();
        let Some(secret) = text(&token, "token") else {
            let refusal = Refusal {
                kind: kind::DEVICE,
                place: format!("{place}, role {role}"),
                reason: "its token is missing".to_owned(),
                raw: Vec::new(),
            };
            out.push(Item::Refused(refusal), 0).await?;
            continue;
        };
        let record = paired(name, fields, tokens, TokenHash::of(&secret), &token).into();
        out.push(
            Item::Record {
                tier: Tier::Global,
                record,
            },
            256,
        )
        .await?;
    }
    let message = UNASKED.to_owned();
    out.push(
        Item::Note {
            code: "unverified-device",
            place,
            message,
        },
        0,
    )
    .await
}

fn paired(
    name: &str,
    fields: &Map<String, Value>,
    tokens: &Map<String, Value>,
    hash: TokenHash,
    token: &Map<String, Value>,
) -> PairedDevice {
    let revoked = ms(token, "revokedAtMs");
    let scopes: Map<String, Value> = tokens
        .iter()
        .map(|(role, token)| (role.clone(), token["scopes"].clone()))
        .collect();
    let (status, reason) = match revoked {
        Some(_) => (TokenStatus::Revoked, "revoked before it came in"),
        None => (TokenStatus::Unverified, UNASKED),
    };
    PairedDevice {
        device_id: text(fields, "deviceId").unwrap_or_else(|| name.trim().to_owned()),
        display_name: text(fields, "displayName"),
        device_type: text(fields, "clientMode").or_else(|| text(fields, "role")),
        remote_ip: text(fields, "remoteIp"),
        capabilities_json: Some(
            json!({ "platform": fields.get("platform"), "scopes": scopes }).to_string(),
        ),
        paired_at_ms: ms(fields, "approvedAtMs"),
        last_seen_at_ms: ms(fields, "lastSeenAtMs"),
        token: hash,
        status,
        status_reason: Some(reason.to_owned()),
        revoked_at_ms: revoked,
    }
}
