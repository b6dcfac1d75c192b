//! One client of the socket, from its first word to its last.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep_until, timeout};

use super::bound::{
    FIRST_WORD, LAST_WORD, LAST_WORDS, MAX_CALLS, MAX_CLIENTS, MAX_FRAME_BYTES, MAX_SUBSCRIPTIONS,
    MAX_WAITING, WRITE_WAIT,
};
use super::events::{Event, Place};
use super::hub::Hub;
use super::lines::{LineError, Lines};
use super::wire::{self, Call, PROTOCOL, RpcError, methods};

/// Events a subscription takes from the ring at once.
const AT_ONCE: usize = 256;

/// Calls under way that can be cancelled, by id as written.
type Running = Arc<Mutex<HashMap<String, oneshot::Sender<()>>>>;

/// Serves one client.
pub(super) async fn serve(stream: UnixStream, hub: Arc<Hub>) {
    let (read, write) = stream.into_split();
    let (out, waiting) = mpsc::channel(MAX_WAITING);
    let writer = tokio::spawn(write_out(write, waiting));
    let Some(_counted) = hub.count_client(MAX_CLIENTS) else {
        let error = RpcError::busy(format!("there are {MAX_CLIENTS} clients already"));
        let _ = out.send(wire::failure(None, &error)).await;
        drop(out);
        let _ = writer.await;
        return;
    };
    let mut client = Connection {
        draining: hub.draining.subscribe(),
        hub: Arc::clone(&hub),
        out,
        calls: JoinSet::new(),
        running: Running::default(),
        permits: Arc::new(Semaphore::new(MAX_CALLS)),
        subscriptions: HashMap::new(),
        next_subscription: 1,
        is_introduced: false,
    };
    client.run(Lines::new(read, MAX_FRAME_BYTES)).await;
    client.end().await;
    // All who write are gone: what waits is written, and no more comes.
    let _ = writer.await;
}

struct Connection {
    hub: Arc<Hub>,
    draining: watch::Receiver<bool>,
    out: mpsc::Sender<String>,
    calls: JoinSet<()>,
    running: Running,
    permits: Arc<Semaphore>,
    subscriptions: HashMap<String, AbortHandle>,
    next_subscription: u64,
    is_introduced: bool,
}

/// Whether a connection goes on.
#[derive(PartialEq, Eq)]
enum Next {
    Go,
    End,
}

impl Connection {
    async fn run(&mut self, mut lines: Lines<OwnedReadHalf>) {
        let first_word = Instant::now() + FIRST_WORD;
        let mut last_words = None;
        loop {
            if last_words.is_none() && *self.draining.borrow_and_update() {
                last_words = Some(Instant::now() + LAST_WORDS);
            }
            let until = match last_words {
                Some(end) if Instant::now() >= end => return,
                Some(_) => Some(Instant::now() + LAST_WORD),
                None if !self.is_introduced => Some(first_word),
                None => None,
            };
            let line = tokio::select! {
                () = self.out.closed() => return,
                line = lines.next() => line,
                _ = self.draining.changed(), if last_words.is_none() => continue,
                () = sleep_until(until.unwrap_or(first_word)), if until.is_some() => {
                    if last_words.is_none() {
                        let error = RpcError::invalid("there was no initialize");
                        self.say(wire::failure(None, &error)).await;
                    }
                    return;
                }
            };
            let next = match line {
                Ok(Some(line)) if line.trim_ascii().is_empty() => Next::Go,
                Ok(Some(line)) => self.take(&line).await,
                Ok(None) | Err(LineError::Io(_)) => Next::End,
                Err(error @ LineError::TooLong { .. }) => {
                    let error = RpcError::invalid(error.to_string());
                    self.say(wire::failure(None, &error)).await;
                    Next::End
                }
            };
            if next == Next::End {
                return;
            }
        }
    }

    /// Lets calls under way end and answers them; subscriptions just end.
    async fn end(mut self) {
        for (_, subscription) in self.subscriptions.drain() {
            subscription.abort();
        }
        while self.calls.join_next().await.is_some() {}
    }

    async fn say(&self, line: String) {
        // A client that is gone hears nothing.
        let _ = self.out.send(line).await;
    }

    async fn take(&mut self, line: &[u8]) -> Next {
        let call = match Call::read(line) {
            Ok(call) => call,
            Err(no) => {
                self.say(wire::failure(no.id.as_deref(), &no.error)).await;
                return if no.is_garbage { Next::End } else { Next::Go };
            }
        };
        let id = call.id.map(|id| id.get().to_owned());
        if !self.is_introduced {
            return self.introduce(&call, id).await;
        }
        if self.hub.is_draining() {
            if let Some(id) = id {
                self.say(wire::failure(Some(&id), &RpcError::stopping()))
                    .await;
            }
            return Next::Go;
        }
        let answer = match call.method.as_str() {
            "initialize" => Err(RpcError::invalid("this connection is initialized already")),
            "initialized" => Ok("null".to_owned()),
            "$/cancel" => self.cancel(&call),
            "events.subscribe" => self.subscribe(&call),
            "events.unsubscribe" => self.unsubscribe(&call),
            _ => {
                self.begin(line.to_vec(), id).await;
                return Next::Go;
            }
        };
        if let Some(id) = id {
            self.say(wire::answer(&id, answer)).await;
        }
        Next::Go
    }

    /// The first word of a client: who it is, and which protocol it speaks.
    async fn introduce(&mut self, call: &Call<'_>, id: Option<String>) -> Next {
        #[derive(Deserialize)]
        struct Hello {
            #[serde(default)]
            protocol: Option<u32>,
        }

        let hello = match call.method.as_str() {
            "initialize" => call.params::<Hello>(),
            _ => Err(RpcError::invalid("initialize comes first")),
        };
        let answer = hello.and_then(|hello| match hello.protocol {
            Some(other) if other != PROTOCOL => Err(RpcError::invalid(format!(
                "protocol {other} is not spoken here; {PROTOCOL} is"
            ))),
            _ => Ok(wire::json_of(&json!({
                "protocol": PROTOCOL,
                "server": {"name": "zeroclaw", "version": env!("CARGO_PKG_VERSION")},
                "pid": std::process::id(),
                "root": self.hub.service.root().display().to_string(),
                "generation": self.hub.service.generation(),
                "cursor": self.hub.events.cursor(self.hub.events.newest()),
                "limits": {
                    "frame_bytes": MAX_FRAME_BYTES,
                    "calls": MAX_CALLS,
                    "subscriptions": MAX_SUBSCRIPTIONS,
                },
                "methods": methods(),
            }))),
        });
        self.is_introduced = answer.is_ok();
        let id = id.unwrap_or_else(|| "null".to_owned());
        self.say(wire::answer(&id, answer)).await;
        if self.is_introduced {
            Next::Go
        } else {
            Next::End
        }
    }

    /// Works on a call beside the others, once there is room.
    async fn begin(&mut self, line: Vec<u8>, id: Option<String>) {
        // Those that are done are forgotten, or a long connection would keep them all.
        while self.calls.try_join_next().is_some() {}
        let Ok(permit) = Arc::clone(&self.permits).acquire_owned().await else {
            return;
        };
        let (cancel, cancelled) = oneshot::channel();
        if let Some(id) = &id {
            table(&self.running).insert(id.clone(), cancel);
        }
        let (hub, out, running) = (
            Arc::clone(&self.hub),
            self.out.clone(),
            Arc::clone(&self.running),
        );
        self.calls.spawn(async move {
            let Ok(call) = Call::read(&line) else { return };
            let answer = match &id {
                None => hub.call(&call).await,
                Some(id) => {
                    let answer = tokio::select! {
                        answer = hub.call(&call) => answer,
                        Ok(()) = cancelled => Err(RpcError::cancelled()),
                    };
                    table(&running).remove(id);
                    answer
                }
            };
            if let Some(id) = id {
                let _ = out.send(wire::answer(&id, answer)).await;
            }
            drop(permit);
        });
    }

    fn cancel(&self, call: &Call<'_>) -> Result<String, RpcError> {
        #[derive(Deserialize)]
        struct Cancel {
            id: Box<serde_json::value::RawValue>,
        }

        let wanted: Cancel = call.params()?;
        let found = table(&self.running).remove(wanted.id.get());
        let was_running = found.is_some_and(|cancel| cancel.send(()).is_ok());
        Ok(was_running.to_string())
    }

    fn subscribe(&mut self, call: &Call<'_>) -> Result<String, RpcError> {
        #[derive(Deserialize)]
        struct Subscribe {
            #[serde(default)]
            agent: Option<String>,
            #[serde(default)]
            session: Option<String>,
            #[serde(default)]
            cursor: Option<String>,
        }

        let wanted: Subscribe = call.params()?;
        self.subscriptions.retain(|_, task| !task.is_finished());
        if self.subscriptions.len() >= MAX_SUBSCRIPTIONS {
            let message = format!("there are {MAX_SUBSCRIPTIONS} subscriptions already");
            return Err(RpcError::busy(message));
        }
        let events = &self.hub.events;
        let (place, is_lost) = match &wanted.cursor {
            None => (events.newest(), false),
            Some(cursor) => events
                .place(cursor)
                .ok_or_else(|| RpcError::params("the cursor is none of ours"))?,
        };
        let name = format!("s{}", self.next_subscription);
        self.next_subscription += 1;
        let listener = Listener {
            hub: Arc::clone(&self.hub),
            out: self.out.clone(),
            name: name.clone(),
            agent: wanted.agent,
            session: wanted.session,
        };
        let answer = json!({"subscription": name, "cursor": events.cursor(place)});
        let task = tokio::spawn(listener.run(place, is_lost));
        self.subscriptions.insert(name, task.abort_handle());
        Ok(wire::json_of(&answer))
    }

    fn unsubscribe(&mut self, call: &Call<'_>) -> Result<String, RpcError> {
        #[derive(Deserialize)]
        struct Unsubscribe {
            subscription: String,
        }

        let wanted: Unsubscribe = call.params()?;
        let found = self.subscriptions.remove(&wanted.subscription);
        let was_there = found.map(|task| task.abort()).is_some();
        Ok(was_there.to_string())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        for (_, subscription) in self.subscriptions.drain() {
            subscription.abort();
        }
    }
}

fn table(running: &Running) -> std::sync::MutexGuard<'_, HashMap<String, oneshot::Sender<()>>> {
    running.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A subscription at work.
struct Listener {
    hub: Arc<Hub>,
    out: mpsc::Sender<String>,
    name: String,
    agent: Option<String>,
    session: Option<String>,
}

impl Listener {
    async fn run(self, mut place: Place, is_lost: bool) {
        let mut ear = self.hub.events.ear();
        if is_lost && !self.tell(place, &Event::Gap { missed: None }).await {
            return;
        }
        loop {
            let found = self.hub.events.since(place, AT_ONCE);
            for (at, event) in found {
                place = at;
                let (agent, session) = (self.agent.as_deref(), self.session.as_deref());
                if event.concerns(agent, session) && !self.tell(at, &event).await {
                    return;
                }
            }
            if ear.wait_for(|told| *told > place).await.is_err() {
                return;
            }
        }
    }

    async fn tell(&self, at: Place, event: &Event) -> bool {
        let params = json!({
            "subscription": self.name,
            "cursor": self.hub.events.cursor(at),
            "event": event,
        });
        let line = wire::notification("event", &params);
        self.out.send(line).await.is_ok()
    }
}

/// Writes what waits, until nobody is left who could write, or the client reads no more.
async fn write_out(mut stream: OwnedWriteHalf, mut waiting: mpsc::Receiver<String>) {
    while let Some(mut line) = waiting.recv().await {
        line.push('\n');
        match timeout(WRITE_WAIT, stream.write_all(line.as_bytes())).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) | Err(_) => return,
        }
    }
    let _ = stream.shutdown().await;
}
