//! How a device comes to have a token: the only doors without one.

use std::net::SocketAddr;

use axum::Json;
use axum::extract::{ConnectInfo, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::{Site, failure, refusal, too_many};
use crate::daemon::wire::{RpcError, json_of};
use crate::model::DeviceIntroduction;
use crate::service::ServiceError;

/// What a device presents that has a code. Only as JSON, which no page of a browser sends elsewhere unasked.
#[derive(Deserialize)]
pub(super) struct WithCode {
    code: String,
    #[serde(flatten)]
    who: DeviceIntroduction,
}

pub(super) async fn pair(
    State(site): State<Site>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    Json(device): Json<WithCode>,
) -> Response {
    let Ok(_permit) = site.calls.try_acquire() else {
        return too_many();
    };
    let who = introduced(device.who, from);
    match site.hub.service.pair_device(&device.code, who).await {
        Ok(paired) => {
            tracing::info!(device = paired.device_id, "paired by a code");
            secret(StatusCode::OK, &paired)
        }
        Err(error) => not_paired(&site, &error),
    }
}

pub(super) async fn ask_to_pair(
    State(site): State<Site>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    Json(who): Json<DeviceIntroduction>,
) -> Response {
    let Ok(_permit) = site.calls.try_acquire() else {
        return too_many();
    };
    match site.hub.service.ask_to_pair(introduced(who, from)).await {
        Ok(asked) => {
            tracing::warn!(
                request = asked.request_id,
                "a device asks to be paired: `zeroclaw devices approve` lets it"
            );
            secret(StatusCode::ACCEPTED, &asked)
        }
        Err(error) => not_paired(&site, &error),
    }
}

#[derive(Deserialize)]
pub(super) struct WithSecret {
    request_id: String,
    secret: String,
}

pub(super) async fn collect(State(site): State<Site>, Json(device): Json<WithSecret>) -> Response {
    let Ok(_permit) = site.calls.try_acquire() else {
        return too_many();
    };
    let collected = site
        .hub
        .service
        .collect_pairing(&device.request_id, &device.secret);
    match collected.await {
        Ok(answer) => secret(StatusCode::OK, &answer),
        Err(error) => not_paired(&site, &error),
    }
}

fn introduced(who: DeviceIntroduction, from: SocketAddr) -> DeviceIntroduction {
    let remote_ip = Some(from.ip().to_string());
    DeviceIntroduction { remote_ip, ..who }
}

/// An answer that nothing on its way may keep.
fn secret(code: StatusCode, value: &impl serde::Serialize) -> Response {
    let told = [
        (header::CONTENT_TYPE, "application/json"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (code, told, json_of(value)).into_response()
}

fn not_paired(site: &Site, error: &ServiceError) -> Response {
    site.hub.note_failure(error);
    let told = RpcError::from(error);
    match error {
        ServiceError::NotPaired => failure(StatusCode::UNAUTHORIZED, &told),
        ServiceError::TooMany { .. } => failure(StatusCode::TOO_MANY_REQUESTS, &told),
        _ => refusal(&told),
    }
}
