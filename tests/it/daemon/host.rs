//! A daemon of the compiled program, and a client that knows nothing of the crate.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::sandbox::Sandbox;

/// Longest wait for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A running daemon; killed when dropped.
pub(crate) struct Host {
    child: Child,
    socket: PathBuf,
}

impl Host {
    /// Starts one and waits until it serves.
    #[track_caller]
    pub(crate) fn start(sandbox: &Sandbox) -> Self {
        let host = Self::begin(sandbox);
        host.wait_ready();
        host
    }

    /// Starts one.
    pub(crate) fn begin(sandbox: &Sandbox) -> Self {
        let log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(sandbox.home().join("daemon.log"))
            .unwrap();
        let child = sandbox
            .command(&["daemon"])
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        Self {
            child,
            socket: sandbox.root().join("state/daemon.sock"),
        }
    }

    #[track_caller]
    pub(crate) fn wait_ready(&self) {
        let since = Instant::now();
        while Caller::try_connect(&self.socket).is_none() {
            assert!(since.elapsed() < PATIENCE, "the daemon does not serve");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn socket(&self) -> &std::path::Path {
        &self.socket
    }

    /// A client that has said `initialize`.
    #[track_caller]
    pub(crate) fn caller(&self) -> Caller {
        let mut caller = Caller::try_connect(&self.socket).expect("the daemon serves");
        caller.call("initialize", json!({"protocol": 1})).unwrap();
        caller
    }

    /// A connection that has said nothing.
    pub(crate) fn stranger(&self) -> Caller {
        Caller::try_connect(&self.socket).expect("the daemon serves")
    }

    pub(crate) fn signal(&self, signal: &str) {
        let pid = self.pid().to_string();
        let sent = std::process::Command::new("kill")
            .args([signal, &pid])
            .status()
            .unwrap();
        assert!(sent.success());
    }

    /// What it ended with, if it has.
    pub(crate) fn ended(&mut self) -> Option<i32> {
        self.child
            .try_wait()
            .unwrap()
            .and_then(|status| status.code())
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let since = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(since.elapsed() < PATIENCE, "the daemon does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Asks it to stop and waits for a good end.
    #[track_caller]
    pub(crate) fn stop(mut self) {
        self.signal("-TERM");
        assert_eq!(self.wait().code(), Some(0));
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client on the socket.
pub(crate) struct Caller {
    stream: UnixStream,
    lines: BufReader<UnixStream>,
    next_id: u64,
    /// What came and nobody had asked for.
    pub(crate) told: Vec<Value>,
}

impl Caller {
    pub(crate) fn try_connect(socket: &std::path::Path) -> Option<Self> {
        let stream = UnixStream::connect(socket).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Some(Self {
            lines: BufReader::new(stream.try_clone().unwrap()),
            stream,
            next_id: 1,
            told: Vec::new(),
        })
    }

    /// Sends bytes as they are; says whether they went.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }

    /// Sends a call, and does not wait for its answer.
    pub(crate) fn begin(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        let call = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(format!("{call}\n").as_bytes());
        id
    }

    /// The next message; `None` when the connection is closed.
    pub(crate) fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        match self.lines.read_line(&mut line) {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(serde_json::from_str(&line).unwrap()),
        }
    }

    /// Calls a method; `None` when the connection is closed before its answer.
    pub(crate) fn try_call(&mut self, method: &str, params: Value) -> Option<Result<Value, Value>> {
        let id = self.begin(method, params);
        loop {
            let mut message = self.next()?;
            if message["id"] == id {
                return Some(match message.get_mut("error") {
                    Some(error) => Err(error.take()),
                    None => Ok(message["result"].take()),
                });
            }
            self.told.push(message);
        }
    }

    /// Calls a method.
    #[track_caller]
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        self.try_call(method, params).expect("an answer")
    }

    /// Says that nothing more will be sent.
    pub(crate) fn no_more(&mut self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Write);
    }

    /// Reads to the end of the connection.
    pub(crate) fn rest(&mut self) -> String {
        let mut rest = String::new();
        let _ = self.lines.read_to_string(&mut rest);
        rest
    }
}

/// A sandbox with an empty root.
pub(crate) fn fresh() -> Sandbox {
    let sandbox = Sandbox::in_memory();
    sandbox.zeroclaw(&["init"]).exits(0);
    sandbox
}
