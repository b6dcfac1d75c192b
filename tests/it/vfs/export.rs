//! A tree copied out to a disk is the tree, and nothing lands beside it.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use zeroclaw::model::{ErrorKind, VfsPath};
use zeroclaw::service::WriteMode;

use super::{Home, bytes_of, path};
use crate::support::sqlite::block_on;

#[test]
fn a_tree_lies_on_the_disk_as_it_was() {
    block_on(async {
        let home = Home::new().await;
        let vfs = home.vfs("default").await;
        let program = WriteMode {
            is_executable: true,
        };
        let plain = WriteMode::default();
        let large = bytes_of(3, 300_000);
        for (name, bytes, mode) in [
            ("work/run.sh", b"#!/bin/sh".to_vec(), program),
            ("work/deep/er/large", large.clone(), plain),
            ("work/\u{1f980} \n$(x)", b"odd".to_vec(), plain),
            ("beside", b"not wanted".to_vec(), plain),
        ] {
            vfs.write(&path(name), bytes, mode).await.unwrap();
        }
        vfs.make_folder(&path("work/empty")).await.unwrap();
        let target = home.sandbox.home().join("out/here");

        let report = vfs.export(&path("work"), &target).await.unwrap();

        assert_eq!(
            (report.files, report.folders, report.bytes),
            (3, 3, 300_012)
        );
        assert!(fs::read(target.join("deep/er/large")).unwrap() == large);
        assert_eq!(fs::read(target.join("\u{1f980} \n$(x)")).unwrap(), b"odd");
        assert!(target.join("empty").is_dir() && !target.join("beside").exists());
        for (name, mode) in [("run.sh", 0o700), ("deep", 0o700), ("deep/er/large", 0o600)] {
            let meta = fs::metadata(target.join(name)).unwrap();
            assert_eq!(meta.permissions().mode() & 0o777, mode, "{name}");
        }
        let one = home.sandbox.home().join("one");
        vfs.export(&path("work/run.sh"), &one).await.unwrap();
        assert_eq!(fs::read(one.join("run.sh")).unwrap(), b"#!/bin/sh");
    });
}

#[test]
fn what_is_there_already_is_never_overwritten() {
    block_on(async {
        let home = Home::new().await;
        let vfs = home.vfs("default").await;
        vfs.write(&path("file"), b"new".to_vec(), WriteMode::default())
            .await
            .unwrap();
        let taken = home.sandbox.home().join("taken");
        fs::create_dir(&taken).unwrap();
        fs::write(taken.join("file"), "old").unwrap();
        let outside = home.sandbox.home().join("outside");
        fs::write(&outside, "old").unwrap();
        let link = home.sandbox.home().join("link");
        symlink(&outside, &link).unwrap();

        for target in [&taken, &outside, &link] {
            let refused = vfs.export(&VfsPath::top(), target).await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Refused, "{}", target.display());
        }

        assert_eq!(fs::read(taken.join("file")).unwrap(), b"old");
        assert_eq!(fs::read(&outside).unwrap(), b"old");
        let (nothing, nowhere) = (path("nothing"), home.sandbox.home().join("x"));
        let missing = vfs.export(&nothing, &nowhere).await.unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
        assert!(!nowhere.exists());
    });
}

#[test]
fn a_link_planted_while_it_is_written_leads_nowhere() {
    block_on(async {
        let home = Home::new().await;
        let vfs = home.vfs("default").await;
        for number in 0..200 {
            let file = path(&format!("{:02}/deep/file", number % 50));
            let grown = vfs.append(&file, format!("{number}").into_bytes());
            grown.await.unwrap();
        }
        let outside = home.sandbox.home().join("outside");
        fs::create_dir(&outside).unwrap();
        let target = home.sandbox.home().join("out");
        let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let planter = {
            let (stop, target, outside) = (stop.clone(), target.clone(), outside.clone());
            std::thread::spawn(move || {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    for number in 0..50 {
                        let folder = target.join(format!("{number:02}"));
                        let _ = fs::rename(&folder, target.join(format!("moved-{number}")));
                        let _ = symlink(&outside, &folder);
                    }
                }
            })
        };

        // It may fail, since somebody takes its folders away; it may not write elsewhere.
        let _ = vfs.export(&VfsPath::top(), &target).await;

        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        planter.join().unwrap();
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    });
}
