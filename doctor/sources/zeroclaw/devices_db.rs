//! `devices.db`: what is known of paired devices.
//!
//! Written by: the gateway's pairing API, since 0.5.0; `capabilities` since 0.8.0. A row:
//! `('9f86d081…', '5b0e…', 'Kitchen tablet', 'tablet', '2026-11-20T08:00:00+00:00',
//! '2026-11-20T09:00:00+00:00', '192.0.2.10', '["screen"]')`, known by the SHA-256 of its token. It only
//! describes: whether a device is still paired, `gateway.paired_tokens` says.
//!
//! Known faults: rows of devices that were revoked long ago, a log that the 0.8 upgrade left elsewhere.

use zeroclaw::model::{PairedDevice, Tier, TokenHash, TokenStatus};

use super::super::lenient::Lenient;
use super::super::rows::{Found, Table, each_row};
use super::super::sqlite::{LegacyDb, Values};
use super::super::{Batcher, ReadError, Sink};
use super::paired_tokens::Pairing;
use crate::doctor::record::{Item, Refusal, kind};
use crate::doctor::units::stable_uuid;

const DEVICE: [&str; 8] = [
    "token_hash",
    "id",
    "name",
    "device_type",
    "paired_at",
    "last_seen",
    "ip_address",
    "capabilities",
];

/// Streams a store's devices, each as the configuration says that it stands.
pub(crate) async fn read<S: Sink>(
    db: &mut LegacyDb,
    pairing: &Pairing,
    sink: &mut S,
) -> Result<(), ReadError> {
    let columns = db.columns("devices").await?;
    if !columns.iter().any(|column| column == "token_hash") {
        return Err(ReadError::Format {
            reason: "it has no table devices".to_owned(),
        });
    }
    let mut out = Batcher::new(sink);
    let table = Table {
        name: "devices",
        wanted: &DEVICE,
        order: "paired_at",
    };
    let damage = each_row(db, table, async |found| match found {
        Found::Row(values) => give(&values, pairing, &mut out).await,
        Found::Lost { rowid } => {
            let lost = Refusal::lost(kind::DEVICE, table.name, rowid);
            out.push(Item::Refused(lost), 0).await
        }
    });
    if let Some(reason) = damage.await? {
        let place = "table devices".to_owned();
        out.push(Item::Damage { place, reason }, 0).await?;
    }
    let unknown: Vec<&str> = columns
        .iter()
        .map(String::as_str)
        .filter(|column| !DEVICE.contains(column))
        .collect();
    if !unknown.is_empty() {
        // Their values are not taken along: one may be a token.
        let message = format!(
            "has columns this release does not know: {}; they stay in the file alone",
            unknown.join(", ")
        );
        let place = "table devices".to_owned();
        let code = "unknown-columns";
        out.push(
            Item::Note {
                code,
                place,
                message,
            },
            0,
        )
        .await?;
    }
    out.flush().await
}

async fn give<S: Sink>(
    values: &Values,
    pairing: &Pairing,
    out: &mut Batcher<'_, S>,
) -> Result<(), ReadError> {
    let place = format!("table devices, row {}", values.rowid);
    let token = values.hint(0).as_deref().and_then(TokenHash::parse);
    let Some(token) = token else {
        let refusal = Refusal {
            kind: kind::DEVICE,
            place,
            reason: "its token hash is missing or not 64 hex digits".to_owned(),
            // Whatever stands in place of a digest may be a token.
            raw: values.json(&DEVICE, &[DEVICE[0]]).into_bytes(),
        };
        return out.push(Item::Refused(refusal), 256).await;
    };
    let (device, odd) = device(values, token, pairing);
    let standing = match device.status {
        TokenStatus::Active => None,
        TokenStatus::Revoked => Some("revoked-device"),
        TokenStatus::Unverified => Some("unverified-device"),
    };
    let standing = standing.map(|code| {
        let reason = device.status_reason.as_deref().unwrap_or_default();
        (code, format!("{reason}; comes in as {}", device.status))
    });
    let record = Item::Record {
        tier: Tier::Global,
        record: device.into(),
    };
    out.push(record, 256).await?;
    let odd = odd.into_iter().map(|message| ("odd-value", message));
    for (code, message) in odd.chain(standing) {
        let place = place.clone();
        let note = Item::Note {
            code,
            place,
            message,
        };
        out.push(note, 0).await?;
    }
    Ok(())
}

fn device(values: &Values, token: TokenHash, pairing: &Pairing) -> (PairedDevice, Vec<String>) {
    let mut row = Lenient::of(values, &DEVICE);
    let (status, status_reason) = pairing.standing(&token);
    let device = PairedDevice {
        device_id: row
            .text(1)
            .unwrap_or_else(|| stable_uuid(&[b"device", token.to_hex().as_bytes()])),
        display_name: row.text(2),
        device_type: row.text(3),
        paired_at_ms: row.time(4),
        last_seen_at_ms: row.time(5),
        remote_ip: row.text(6),
        capabilities_json: row.text(7),
        token,
        status,
        status_reason,
        revoked_at_ms: None,
    };
    (device, row.odd)
}
