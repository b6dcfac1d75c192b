//! A daemon's life: claim the root, bind, serve, drain, let go.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::broadcast::error::RecvError;
use tokio::task::{JoinError, JoinHandle, JoinSet};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::DaemonError;
use super::connection;
use super::events::Event;
use super::http::Http;
use super::hub::{Health, Hub};
use super::notify;
use super::socket::Socket;
use super::upkeep::keep_up;
use crate::clock::Clock;
use crate::fs::process::raise_open_files_limit;
use crate::service::{ControlWatch, HeldLease, Service};

/// Open files a daemon wants to be allowed: clients, and agents with their logs.
const OPEN_FILES: u64 = 4_096;
/// How often the socket's name is looked after.
const LOOK_AFTER: Duration = Duration::from_secs(1);

/// How often is looked whether tasks, runs of jobs or messages have changed.
const LOOK_AT_WORK: Duration = Duration::from_millis(250);
/// An ephemeral daemon ends so long after its last client went, or when nobody came.
const LINGER: Duration = Duration::from_secs(2);
const NOBODY_CAME: Duration = Duration::from_secs(30);

/// How a daemon runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where it listens, if not in the usual place.
    pub socket: Option<PathBuf>,
    /// How long work under way may take once it is told to stop.
    pub drain: Duration,
    /// Whether it ends by itself once its last client on the socket has gone.
    pub ephemeral: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            socket: None,
            drain: Duration::from_secs(10),
            ephemeral: false,
        }
    }
}

/// A daemon that has claimed its root and listens.
#[derive(Debug)]
pub struct Daemon {
    hub: Arc<Hub>,
    socket: Socket,
    lease: Option<HeldLease>,
    signals: Signals,
    options: Options,
}

#[derive(Debug)]
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

/// What a signal says.
#[derive(PartialEq, Eq)]
enum Heard {
    Stop,
    Reload,
}

impl Signals {
    fn listen() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> Heard {
        tokio::select! {
            _ = self.terminate.recv() => Heard::Stop,
            _ = self.interrupt.recv() => Heard::Stop,
            _ = self.hang_up.recv() => Heard::Reload,
        }
    }

    async fn stop(&mut self) {
        while self.next().await == Heard::Reload {}
    }
}

impl Daemon {
    /// Claims a root, opens it and listens; from its return on clients are heard.
    ///
    /// # Errors
    ///
    /// [`DaemonError`] at once when another daemon serves the root, when there is none, or when the control plane is
    /// newer or damaged. An agent's broken database is no reason: that agent's requests fail.
    pub async fn start(root: &Path, clock: Clock, options: Options) -> Result<Self, DaemonError> {
        // First of all: a signal that comes while tiers are opened is heard once they are.
        let signals = Signals::listen().map_err(DaemonError::Signals)?;
        raise_open_files_limit(OPEN_FILES);
        let service = Service::open_as_daemon(root, clock).await?;
        let (lease, socket) = match claim(&service, &options).await {
            Ok(claimed) => claimed,
            Err(error) => {
                service.close().await;
                return Err(error);
            }
        };
        Ok(Self {
            hub: Arc::new(Hub::new(service)),
            socket,
            lease: Some(lease),
            signals,
            options,
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn socket(&self) -> &Path {
        self.socket.path()
    }

    /// How it is.
    #[must_use]
    pub fn health(&self) -> Health {
        self.hub.health()
    }

    /// Serves until a signal says stop, then drains and lets the root go.
    ///
    /// `SIGTERM` and `SIGINT` drain; a second one does not wait for what runs. `SIGHUP` reads the configuration anew.
    /// Says whether everything that had begun was finished.
    pub async fn run(mut self) -> bool {
        let pump = tokio::spawn(pump(Arc::clone(&self.hub)));
        let watch = tokio::spawn(watch(Arc::clone(&self.hub)));
        let lease = self.lease.take();
        let upkeep = lease.map(|lease| tokio::spawn(keep_up(Arc::clone(&self.hub), lease)));
        let mut clients = JoinSet::new();
        let mut http = Http::settle(None, &self.hub).await;
        notify::ready();
        http = self.serve(&mut clients, http).await;

        tracing::info!("draining");
        notify::stopping();
        self.hub.draining.send_replace(true);
        let drained = tokio::select! {
            drained = timeout(self.options.drain, join(&mut clients)) => drained.is_ok(),
            () = self.signals.stop() => false,
        };
        clients.shutdown().await;
        if let Some(http) = http {
            http.end().await;
        }
        for task in [pump, watch] {
            task.abort();
            let _ = task.await;
        }
        // The name goes before the lock does: whoever comes next finds none or their own.
        drop(self.socket);
        if let Some(Ok(lease)) = join_one(upkeep).await
            && let Err(error) = lease.release().await
        {
            tracing::warn!(%error, "the lease stays; the next daemon sees that it is void");
        }
        match alone(self.hub).await {
            Some(hub) => hub.service.close().await,
            None => tracing::warn!("still in use at the end; the next one folds the logs in"),
        }
        drained
    }

    /// Takes clients until a signal says stop.
    async fn serve(&mut self, clients: &mut JoinSet<()>, mut http: Option<Http>) -> Option<Http> {
        // Until when an ephemeral one waits for a client.
        let mut alone_until = Instant::now() + NOBODY_CAME;
        let mut look = interval(LOOK_AFTER);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                heard = self.signals.next() => match heard {
                    Heard::Stop => return http,
                    Heard::Reload => {
                        // Told in health and in the log.
                        let _ = self.hub.reload();
                    }
                },
                accepted = self.socket.accept() => match accepted {
                    Ok(stream) if is_own_user(&stream) => {
                        clients.spawn(connection::serve(stream, Arc::clone(&self.hub)));
                    }
                    Ok(_) => tracing::warn!("a client of another user was turned away"),
                    Err(error) => {
                        // Out of descriptors, mostly: those of others come back.
                        tracing::warn!(%error, "a client could not be taken");
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                },
                _ = look.tick() => {
                    while clients.try_join_next().is_some() {}
                    if !clients.is_empty() {
                        alone_until = Instant::now() + LINGER;
                    } else if self.options.ephemeral && Instant::now() >= alone_until {
                        tracing::info!("its last client has gone");
                        return http;
                    }
                    http = Http::settle(http.take(), &self.hub).await;
                    if notify::is_watched() {
                        notify::alive();
                    }
                    match self.socket.restore() {
                        Ok(true) => tracing::warn!(path = %self.socket.path().display(), "the socket was deleted; it is there again"),
                        Ok(false) => {}
                        Err(error) => tracing::warn!(%error, "the socket was deleted"),
                    }
                }
            }
        }
    }
}

/// What makes a service a daemon's: the lease, then the socket.
async fn claim(service: &Service, options: &Options) -> Result<(HeldLease, Socket), DaemonError> {
    let lease = service.take_daemon_lease().await?;
    match Socket::bind(service.layout(), options.socket.as_deref()).await {
        Ok(socket) => Ok((lease, socket)),
        Err(error) => {
            let _ = lease.release().await;
            Err(error)
        }
    }
}

/// Waits a moment for tasks that were told to end.
async fn alone(mut hub: Arc<Hub>) -> Option<Hub> {
    for _ in 0..100 {
        match Arc::try_unwrap(hub) {
            Ok(hub) => return Some(hub),
            Err(shared) => hub = shared,
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    None
}

async fn join_one<T>(task: Option<JoinHandle<T>>) -> Option<Result<T, JoinError>> {
    match task {
        Some(task) => Some(task.await),
        None => None,
    }
}

async fn join(clients: &mut JoinSet<()>) {
    while clients.join_next().await.is_some() {}
}

/// Hands what is committed on to those who listen.
async fn pump(hub: Arc<Hub>) {
    let mut ear = hub.service.listen();
    loop {
        match ear.recv().await {
            Ok(change) => hub.events.tell(change.into()),
            Err(RecvError::Lagged(missed)) => hub.events.tell(Event::Gap {
                missed: Some(missed),
            }),
            Err(RecvError::Closed) => return,
        }
    }
}

/// Looks what becomes of tasks, runs of jobs and messages, and tells those who listen.
async fn watch(hub: Arc<Hub>) {
    let mut look = interval(LOOK_AT_WORK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut begun: Option<ControlWatch> = None;
    loop {
        look.tick().await;
        let looked = match &mut begun {
            Some(watch) => watch.look().await,
            None => match hub.service.watch_control().await {
                Ok(watch) => {
                    begun = Some(watch);
                    Ok(Vec::new())
                }
                Err(error) => Err(error),
            },
        };
        match looked {
            Ok(changes) => changes
                .into_iter()
                .for_each(|change| hub.events.tell(change.into())),
            Err(error) => tracing::debug!(%error, "looks again"),
        }
    }
}

/// Whether a client is of the user who runs the daemon. Root may do everything anyway.
fn is_own_user(stream: &UnixStream) -> bool {
    stream
        .peer_cred()
        .is_ok_and(|peer| peer.uid() == 0 || peer.uid() == rustix::process::geteuid().as_raw())
}
