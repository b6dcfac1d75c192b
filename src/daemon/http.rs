//! The same vocabulary over HTTP/1: for `curl`, and for what cannot open a Unix socket.
//!
//! Every request carries the token of a paired device, but those by which a device comes to have one, and `GET /health`,
//! which says whether the daemon is well and nothing else. Browsers send no such header by themselves, so that a page elsewhere cannot use the state of whoever
//! opens it.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Query, Request as HttpRequest, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::sse::{Event as SseEvent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures_util::stream::{Stream, unfold};
use serde::Deserialize;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::bound::{MAX_FRAME_BYTES, MAX_HTTP_CALLS, MAX_HTTP_STREAMS};
use super::events::{Event, Place};
use super::hub::Hub;
use super::wire::{self, Call, RpcError, json_of};
use crate::config::HttpConfig;
use crate::model::{ErrorKind, TokenStatus};
use crate::service::Request;

mod pairing;

/// Events a stream takes from the ring at once.
const AT_ONCE: usize = 256;
/// How often a silent stream says that it lives.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How long a listener that is to end waits for its last requests.
const LAST_REQUESTS: Duration = Duration::from_secs(2);

/// What answers, and how much of it at once.
#[derive(Clone)]
struct Site {
    hub: Arc<Hub>,
    calls: Arc<Semaphore>,
    streams: Arc<Semaphore>,
}

/// A listener that serves, as the configuration wants it.
#[derive(Debug)]
pub(super) struct Http {
    config: HttpConfig,
    task: JoinHandle<()>,
    stop: tokio::sync::watch::Sender<bool>,
}

impl Http {
    /// Brings the listener to what the configuration says now: none, the one there is, or another.
    ///
    /// What cannot be listened on is a problem in health, and no reason to end: the socket serves.
    pub(super) async fn settle(now: Option<Self>, hub: &Arc<Hub>) -> Option<Self> {
        let wanted = hub.service.config().http;
        if let Some(now) = now {
            if Some(now.config) == wanted && !now.task.is_finished() {
                return Some(now);
            }
            now.end().await;
        }
        let Some(config) = wanted else {
            hub.set_problem("http", None);
            return None;
        };
        match Self::open(config, hub).await {
            Ok(http) => {
                hub.set_problem("http", None);
                tracing::info!(listen = %config.listen, "serving HTTP");
                Some(http)
            }
            Err(reason) => {
                let problem = format!("no HTTP on {}: {reason}", config.listen);
                hub.set_problem("http", Some(problem));
                None
            }
        }
    }

    async fn open(config: HttpConfig, hub: &Arc<Hub>) -> Result<Self, String> {
        if !config.is_local() {
            if !config.allow_remote {
                return Err("others reach it, and `allow_remote = true` is not set".to_owned());
            }
            if !is_any_paired(hub).await {
                return Err("others reach it, and no device is paired yet".to_owned());
            }
        }
        let listener = TcpListener::bind(config.listen).await;
        let listener = listener.map_err(|error| error.to_string())?;
        let (stop, mut stopped) = tokio::sync::watch::channel(false);
        let app = app(Arc::clone(hub));
        let mut draining = hub.draining.subscribe();
        let task = tokio::spawn(async move {
            let end = async move {
                tokio::select! {
                    _ = draining.wait_for(|is_draining| *is_draining) => {}
                    _ = stopped.wait_for(|is_stopped| *is_stopped) => {}
                }
            };
            let app = app.into_make_service_with_connect_info::<SocketAddr>();
            let served = axum::serve(listener, app).with_graceful_shutdown(end);
            if let Err(error) = served.await {
                tracing::warn!(%error, "HTTP ended");
            }
        });
        Ok(Self { config, task, stop })
    }

    /// Takes no more, lets what runs end, and lets the address go.
    pub(super) async fn end(mut self) {
        self.stop.send_replace(true);
        if tokio::time::timeout(LAST_REQUESTS, &mut self.task)
            .await
            .is_err()
        {
            self.task.abort();
            let _ = self.task.await;
        }
    }
}

async fn is_any_paired(hub: &Arc<Hub>) -> bool {
    match hub.service.dispatch(Request::DevicesList).await {
        Ok(crate::service::Response::Devices(devices)) => devices
            .iter()
            .any(|device| device.status == TokenStatus::Active),
        _ => false,
    }
}

fn app(hub: Arc<Hub>) -> Router {
    let site = Site {
        hub,
        calls: Arc::new(Semaphore::new(MAX_HTTP_CALLS)),
        streams: Arc::new(Semaphore::new(MAX_HTTP_STREAMS)),
    };
    Router::new()
        .route("/rpc", post(rpc))
        .route("/api/status", get(status))
        .route("/api/events", get(events))
        .route("/admin/reload", post(reload))
        .layer(from_fn_with_state(site.clone(), paired_only))
        .route("/pair", post(pairing::pair))
        .route("/pair/request", post(pairing::ask_to_pair))
        .route("/pair/collect", post(pairing::collect))
        .route("/health", get(health))
        .layer(DefaultBodyLimit::max(MAX_FRAME_BYTES))
        .with_state(site)
}

/// Lets nobody through without the token of a paired device.
async fn paired_only(State(site): State<Site>, request: HttpRequest, next: Next) -> Response {
    let token = bearer(request.headers());
    let found = match token {
        None => Ok(None),
        Some(token) => site.hub.service.verify_device(token).await,
    };
    match found {
        Ok(Some(_)) => next.run(request).await,
        Ok(None) => {
            let error = RpcError::refused("no paired device has this token");
            let mut told = failure(StatusCode::UNAUTHORIZED, &error);
            let scheme = HeaderValue::from_static("Bearer");
            told.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
            told
        }
        Err(error) => refusal(&RpcError::from(&error)),
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let told = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = told.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

async fn rpc(State(site): State<Site>, body: Bytes) -> Response {
    let Ok(_permit) = site.calls.try_acquire() else {
        return too_many();
    };
    let call = match Call::read(&body) {
        Ok(call) => call,
        Err(no) => return json_text(wire::failure(no.id.as_deref(), &no.error)),
    };
    let answer = if site.hub.is_draining() {
        Err(RpcError::stopping())
    } else {
        site.hub.call(&call).await
    };
    match call.id {
        Some(id) => json_text(wire::answer(id.get(), answer)),
        None => StatusCode::NO_CONTENT.into_response(),
    }
}

async fn status(State(site): State<Site>) -> Response {
    let Ok(_permit) = site.calls.try_acquire() else {
        return too_many();
    };
    match site.hub.ask(Request::Status).await {
        Ok(json) => json_text(json),
        Err(error) => refusal(&error),
    }
}

async fn reload(State(site): State<Site>) -> Response {
    match site.hub.reload() {
        Ok(generation) => Json(json!({"generation": generation})).into_response(),
        Err(error) => refusal(&RpcError::from(&error)),
    }
}

/// Anybody may know whether it is well, and no more.
async fn health(State(site): State<Site>) -> Response {
    let health = site.hub.health();
    let code = match health.status.as_str() {
        "ok" => StatusCode::OK,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    };
    (code, Json(json!({"status": health.status}))).into_response()
}

#[derive(Deserialize)]
struct Wanted {
    #[serde(default)]
    agent: Option<String>,
    #[serde(default)]
    session: Option<String>,
    #[serde(default)]
    cursor: Option<String>,
}

async fn events(
    State(site): State<Site>,
    Query(wanted): Query<Wanted>,
    headers: HeaderMap,
) -> Response {
    let Ok(permit) = Arc::clone(&site.streams).try_acquire_owned() else {
        return too_many();
    };
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let events = &site.hub.events;
    let (place, is_lost) = match last.or(wanted.cursor.as_deref()) {
        None => (events.newest(), false),
        Some(cursor) => match events.place(cursor) {
            Some(place) => place,
            None => return refusal(&RpcError::params("the cursor is none of ours")),
        },
    };
    let mut ready = std::collections::VecDeque::new();
    if is_lost {
        ready.push_back((place, Event::Gap { missed: None }));
    }
    let stream = stream(Source {
        hub: Arc::clone(&site.hub),
        wanted,
        place,
        ready,
        _permit: permit,
    });
    Sse::new(stream)
        .keep_alive(KeepAlive::new().interval(KEEP_ALIVE))
        .into_response()
}

struct Source {
    hub: Arc<Hub>,
    wanted: Wanted,
    place: Place,
    ready: std::collections::VecDeque<(Place, Event)>,
    _permit: tokio::sync::OwnedSemaphorePermit,
}

/// Ends when the daemon drains.
fn stream(source: Source) -> impl Stream<Item = Result<SseEvent, Infallible>> {
    unfold(source, |mut source| async move {
        let mut ear = source.hub.events.ear();
        let mut draining = source.hub.draining.subscribe();
        loop {
            while let Some((at, event)) = source.ready.pop_front() {
                source.place = at;
                let (agent, session) = (
                    source.wanted.agent.as_deref(),
                    source.wanted.session.as_deref(),
                );
                if event.concerns(agent, session) {
                    let cursor = source.hub.events.cursor(at);
                    let told = SseEvent::default().id(cursor).data(json_of(&event));
                    return Some((Ok(told), source));
                }
            }
            source.ready = source.hub.events.since(source.place, AT_ONCE).into();
            if !source.ready.is_empty() {
                continue;
            }
            tokio::select! {
                heard = ear.wait_for(|told| *told > source.place) => heard.ok().map(|_| ())?,
                _ = draining.wait_for(|is_draining| *is_draining) => return None,
            }
        }
    })
}

fn json_text(json: String) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], json).into_response()
}

fn too_many() -> Response {
    let mut told = failure(
        StatusCode::SERVICE_UNAVAILABLE,
        &RpcError::busy("too many requests at once"),
    );
    let soon = HeaderValue::from_static("1");
    told.headers_mut().insert(header::RETRY_AFTER, soon);
    told
}

fn refusal(error: &RpcError) -> Response {
    let code = match error.kind() {
        Some(ErrorKind::Usage) => StatusCode::BAD_REQUEST,
        Some(ErrorKind::NotFound) => StatusCode::NOT_FOUND,
        Some(ErrorKind::Refused) => StatusCode::FORBIDDEN,
        Some(ErrorKind::Busy) => StatusCode::SERVICE_UNAVAILABLE,
        Some(ErrorKind::NoSpace) => StatusCode::INSUFFICIENT_STORAGE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    failure(code, error)
}

fn failure(code: StatusCode, error: &RpcError) -> Response {
    (code, Json(json!({"error": error}))).into_response()
}
