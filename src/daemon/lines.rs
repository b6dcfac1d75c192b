//! Lines from a stream, each within a bound.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// Why there is no next line.
#[derive(Debug, thiserror::Error)]
pub(super) enum LineError {
    /// It is longer than is taken.
    #[error("a message is longer than {limit} bytes")]
    TooLong { limit: usize },
    /// The stream failed.
    #[error("the connection failed")]
    Io(#[from] io::Error),
}

/// Reads lines. A call that is dropped while it waits loses nothing.
#[derive(Debug)]
pub(super) struct Lines<R> {
    stream: BufReader<R>,
    begun: Vec<u8>,
    limit: usize,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(stream: R, limit: usize) -> Self {
        Self {
            stream: BufReader::new(stream),
            begun: Vec::new(),
            limit,
        }
    }

    /// The next line without its end; `None` when there is none. A last line without an end counts.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<u8>>, LineError> {
        loop {
            let read = self.stream.fill_buf().await?;
            if read.is_empty() {
                let last = std::mem::take(&mut self.begun);
                return Ok(Some(last).filter(|line| !line.is_empty()));
            }
            let end = read.iter().position(|byte| *byte == b'\n');
            let taken = end.unwrap_or(read.len());
            if self.begun.len() + taken > self.limit {
                return Err(LineError::TooLong { limit: self.limit });
            }
            self.begun.extend_from_slice(&read[..taken]);
            self.stream.consume(taken + usize::from(end.is_some()));
            if end.is_some() {
                return Ok(Some(std::mem::take(&mut self.begun)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_come_whole_and_a_long_one_is_refused() {
        let mut lines = Lines::new(&b"one\n\ntwo"[..], 3);
        assert_eq!(lines.next().await.unwrap().unwrap(), b"one");
        assert_eq!(lines.next().await.unwrap().unwrap(), b"");
        assert_eq!(lines.next().await.unwrap().unwrap(), b"two");
        assert!(lines.next().await.unwrap().is_none());

        let mut long = Lines::new(&b"four\n"[..], 3);
        assert!(matches!(
            long.next().await,
            Err(LineError::TooLong { limit: 3 })
        ));
    }
}
