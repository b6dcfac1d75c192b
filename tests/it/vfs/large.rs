//! Files larger than memory should hold at once.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::Notify;
use zeroclaw::model::{ErrorKind, VfsPath};
use zeroclaw::service::{MAX_CALL_BYTES, Removal, WriteMode};

use super::{Home, all_below, bytes_of, path};
use crate::support::sqlite::{block_on, number};

/// What comes behind the last byte.
enum End {
    Plain,
    Fails,
    /// Nothing ever, and this hears of it.
    Hangs(Arc<Notify>),
}

/// Bytes in odd pieces.
struct Source {
    bytes: Vec<u8>,
    at: usize,
    end: End,
}

impl Source {
    fn new(bytes: Vec<u8>, end: End) -> Self {
        Self { bytes, at: 0, end }
    }
}

impl AsyncRead for Source {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let rest = &self.bytes[self.at..];
        match &self.end {
            End::Fails if rest.is_empty() => {
                return Poll::Ready(Err(io::Error::other("unplugged")));
            }
            End::Hangs(heard) if rest.is_empty() => {
                heard.notify_one();
                return Poll::Pending;
            }
            _ => {}
        }
        let take = rest.len().min(buffer.remaining()).min(9_973);
        buffer.put_slice(&rest[..take]);
        self.at += take;
        Poll::Ready(Ok(()))
    }
}

#[test]
fn a_large_file_goes_in_and_out_in_pieces() {
    block_on(async {
        let home = Home::new().await;
        let vfs = home.vfs("default").await;
        let bytes = bytes_of(7, 9_000_001);
        let mut source = Source::new(bytes.clone(), End::Plain);
        let old = vfs
            .write(&path("a/large"), vec![1], WriteMode::default())
            .await
            .unwrap();

        let mode = WriteMode {
            is_executable: true,
        };
        let entry = vfs
            .write_from(&path("a/large"), &mut source, mode)
            .await
            .unwrap();

        assert_eq!(entry.size_bytes, 9_000_001);
        assert!(entry.is_executable);
        assert_eq!(entry.created_at_ms, old.created_at_ms);
        let mut copied = Vec::new();
        vfs.copy_to(&path("a/large"), &mut copied).await.unwrap();
        assert!(copied == bytes);
        for (offset, most) in [(0, 1), (65_535, 2), (4_194_303, 70_000), (9_000_000, 9)] {
            let part = vfs.read(&path("a/large"), offset, most).await.unwrap();
            let start = usize::try_from(offset).unwrap();
            assert!(part == bytes[start..(start + most).min(bytes.len())]);
        }
        vfs.append(&path("a/large"), b"tail".to_vec())
            .await
            .unwrap();
        let tail = vfs.read(&path("a/large"), 9_000_000, 99).await.unwrap();
        assert_eq!(tail, [&bytes[9_000_000..], b"tail"].concat());
    });
}

#[test]
fn an_upload_that_fails_leaves_the_old_file_and_nothing_else() {
    block_on(async {
        let home = Home::new().await;
        let vfs = home.vfs("default").await;
        vfs.write(&path("file"), b"old".to_vec(), WriteMode::default())
            .await
            .unwrap();
        let mut source = Source::new(bytes_of(7, 5_000_000), End::Fails);

        let failed = vfs
            .write_from(&path("file"), &mut source, WriteMode::default())
            .await;

        assert_eq!(failed.unwrap_err().kind(), ErrorKind::Internal);
        assert_eq!(vfs.read(&path("file"), 0, 9).await.unwrap(), b"old");
        assert_eq!(all_below(&vfs, &VfsPath::top(), 9).await.len(), 1);
        let database = home.database();
        drop(vfs);
        home.service.close().await;
        assert_eq!(number(&database, "SELECT count(*) FROM vfs_chunks"), 0);
    });
}

#[test]
fn an_upload_that_was_cut_off_is_swept_a_day_later() {
    block_on(async {
        let home = Home::new().await;
        let vfs = home.vfs("default").await;
        let hangs = Arc::new(Notify::new());
        let mut stuck = Source::new(bytes_of(7, 5_000_000), End::Hangs(hangs.clone()));
        let upload = path("cut off");
        // Dropped half way, as when its caller is cancelled.
        tokio::select! {
            done = vfs.write_from(&upload, &mut stuck, WriteMode::default()) => {
                panic!("it cannot end: {done:?}");
            }
            () = hangs.notified() => {}
        }
        assert_eq!(vfs.stat(&upload).await.unwrap(), None);

        let later = home.later(2 * 24 * 60 * 60 * 1_000).await;
        let vfs = later.vfs("default").await;
        let mut whole = Source::new(bytes_of(7, 100_000), End::Plain);
        vfs.write_from(&path("whole"), &mut whole, WriteMode::default())
            .await
            .unwrap();

        let database = later.database();
        drop(vfs);
        later.service.close().await;
        assert_eq!(number(&database, "SELECT count(*) FROM vfs_chunks"), 2);
        assert_eq!(
            number(
                &database,
                "SELECT count(*) FROM vfs_entries WHERE namespace = ''"
            ),
            0
        );
    });
}

#[test]
fn more_than_one_call_takes_is_refused_with_the_way_to_do_it() {
    block_on(async {
        let home = Home::new().await;
        let vfs = home.vfs("default").await;

        let refused = vfs
            .append(&path("a"), vec![0; MAX_CALL_BYTES + 1])
            .await
            .unwrap_err();

        assert_eq!(refused.kind(), ErrorKind::Refused);
        assert_eq!(refused.hint().as_deref(), Some("stream it instead"));
        let missing = vfs.remove(&path("a"), Removal::Alone).await.unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
    });
}
