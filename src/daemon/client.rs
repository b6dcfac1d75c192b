//! The other end of the socket.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

use super::bound::MAX_ANSWER_BYTES;
use super::lines::{LineError, Lines};
use super::wire::{PROTOCOL, RpcError};
use crate::fs::Layout;
use crate::service::{AnswerError, Request, Response};

/// How long a daemon may take for its first word: one that lives has it at once.
const FIRST_ANSWER: Duration = Duration::from_secs(5);

/// Why a daemon gave no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// It answered with a failure.
    #[error(transparent)]
    Rpc(#[from] RpcError),
    /// The connection broke. What was asked for may have been done.
    #[error("the daemon went away")]
    Gone(#[source] Option<io::Error>),
    /// It does not answer as one of this release does.
    #[error("the daemon answers in a way this release does not know")]
    Strange,
    /// What it answered is not what was asked for.
    #[error(transparent)]
    Answer(#[from] AnswerError),
}

/// A connection to a living daemon. Asks one thing at a time.
#[derive(Debug)]
pub struct Client {
    lines: Lines<OwnedReadHalf>,
    write: OwnedWriteHalf,
    next_id: u64,
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(default)]
    id: Option<u64>,
    // `null` is an answer too.
    #[serde(borrow, default, deserialize_with = "given")]
    result: Option<&'a RawValue>,
    #[serde(default)]
    error: Option<RpcError>,
}

fn given<'de: 'a, 'a, D: Deserializer<'de>>(from: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

#[derive(Deserialize)]
struct Hello {
    root: PathBuf,
}

impl Client {
    /// Calls the daemon of a root; `None` when none lives.
    ///
    /// * `socket`: where it listens, if not in its usual place.
    ///
    /// # Errors
    ///
    /// [`ClientError`] when one lives and does not answer as it should.
    pub async fn find(root: &Path, socket: Option<&Path>) -> Result<Option<Self>, ClientError> {
        let path = socket.map_or_else(
            || Layout::new(root.to_owned()).daemon_socket(),
            Path::to_path_buf,
        );
        let Ok(stream) = UnixStream::connect(&path).await else {
            return Ok(None);
        };
        let (read, write) = stream.into_split();
        let mut client = Self {
            lines: Lines::new(read, MAX_ANSWER_BYTES),
            write,
            next_id: 1,
        };
        let hello = json!({
            "protocol": PROTOCOL,
            "client": {"name": "zeroclaw", "version": env!("CARGO_PKG_VERSION")},
        });
        let answer = timeout(FIRST_ANSWER, client.call("initialize", &hello)).await;
        let answer = answer.map_err(|_| ClientError::Gone(None))??;
        let hello: Hello = serde_json::from_str(&answer).map_err(|_| ClientError::Strange)?;
        // A socket of another place may be that of another root.
        let is_same = hello.root == root
            || std::fs::canonicalize(&hello.root).ok() == std::fs::canonicalize(root).ok();
        Ok(is_same.then_some(client))
    }

    /// Asks one request.
    ///
    /// # Errors
    ///
    /// [`ClientError::Rpc`] with what the service answered instead, any other when there is no answer.
    pub async fn ask(&mut self, request: &Request) -> Result<Response, ClientError> {
        #[derive(Deserialize)]
        struct Tagged {
            method: String,
            #[serde(default)]
            params: serde_json::Value,
        }

        let tagged = serde_json::to_value(request).and_then(serde_json::from_value::<Tagged>);
        let tagged = tagged.map_err(|_| ClientError::Strange)?;
        let answer = self.call(&tagged.method, &tagged.params).await?;
        Ok(Response::read(request, &answer)?)
    }

    /// Calls a method; gives what it answers, as JSON.
    ///
    /// # Errors
    ///
    /// As [`Client::ask`].
    pub async fn call(
        &mut self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<String, ClientError> {
        let id = self.next_id;
        self.next_id += 1;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let line = format!("{message}\n");
        let written = self.write.write_all(line.as_bytes()).await;
        if let Err(error) = written {
            return Err(ClientError::Gone(Some(error)));
        }
        loop {
            let line = match self.lines.next().await {
                Ok(Some(line)) => line,
                Ok(None) => return Err(ClientError::Gone(None)),
                Err(LineError::Io(error)) => return Err(ClientError::Gone(Some(error))),
                Err(LineError::TooLong { .. }) => return Err(ClientError::Strange),
            };
            let answer: Answer<'_> =
                serde_json::from_slice(&line).map_err(|_| ClientError::Strange)?;
            match answer {
                // A failure without an id is one of the connection.
                Answer {
                    error: Some(error),
                    id: found,
                    ..
                } if found.is_none() || found == Some(id) => return Err(error.into()),
                Answer {
                    result: Some(result),
                    id: Some(found),
                    ..
                } if found == id => return Ok(result.get().to_owned()),
                _ => {}
            }
        }
    }
}
