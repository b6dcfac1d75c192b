//! A worker's files answer alike in every mode, stay where they belong, and open what the configuration opens.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use zeroclaw::model::{AgentId, ErrorKind, FsMode, VfsKind, VfsNamespace, VfsPath, WorkerSpec};
use zeroclaw::service::{Clock, Files, FilesKind, HolderKind, Removal, Service, Worker, WriteMode};

use super::model::{Model, Outcome, Step, counted, expect, steps};
use super::{Home, all_below, atlas, bytes_of, path};
use crate::support::sandbox::Sandbox;
use crate::support::sqlite::block_on;
use crate::support::tree::{TreeEntry, assert_same_tree, tree_hash};

/// A root of `atlas` and `birch` that nobody holds, with a configuration.
async fn at_rest(config: &str) -> Sandbox {
    let home = Home::new().await;
    home.service.close().await;
    fs::write(home.sandbox.root().join("config.toml"), config).unwrap();
    home.sandbox
}

fn spec(sandbox: &Sandbox, fs_mode: FsMode) -> WorkerSpec {
    WorkerSpec {
        agent_id: atlas(),
        run_id: "run-1".to_owned(),
        fs_mode,
        root: sandbox.root(),
    }
}

async fn worker(sandbox: &Sandbox, fs_mode: FsMode) -> Worker {
    Worker::open(spec(sandbox, fs_mode), Clock::fixed(2_000))
        .await
        .unwrap()
}

fn workspace(sandbox: &Sandbox, agent: &str) -> PathBuf {
    sandbox.root().join("agents").join(agent).join("workspace")
}

async fn take(files: &Files, step: &Step) -> Outcome {
    let mode = WriteMode::default();
    let size = async |path: &VfsPath| {
        let entry = files.stat(path).await.unwrap().unwrap();
        counted(u64::try_from(entry.size_bytes).unwrap())
    };
    let done = match step {
        Step::Write(path, length, seed) => {
            match files.write(path, bytes_of(*seed, *length), mode).await {
                Ok(()) => Ok(size(path).await),
                Err(error) => Err(error),
            }
        }
        Step::WriteFrom(path, length, seed) => {
            let bytes = bytes_of(*seed, *length);
            match files.write_from(path, &mut &bytes[..], mode).await {
                Ok(()) => Ok(size(path).await),
                Err(error) => Err(error),
            }
        }
        Step::Append(path, length, seed) => {
            match files.append(path, bytes_of(*seed, *length)).await {
                Ok(()) => Ok(size(path).await),
                Err(error) => Err(error),
            }
        }
        Step::MakeFolder(path) => files.make_folder(path).await.map(|()| counted(0)),
        Step::Rename(from, to) => files.rename(from, to).await.map(|()| counted(0)),
        Step::Remove(path, is_recursive) => {
            let removal = if *is_recursive {
                Removal::Tree
            } else {
                Removal::Alone
            };
            files.remove(path, removal).await.map(counted)
        }
        Step::Read(path, offset, most) => files.read(path, *offset, *most).await,
    };
    done.map_err(|error| error.kind())
}

/// The whole tree as a worker sees it.
async fn seen(files: &Files) -> Model {
    let mut model = Model::default();
    let mut folders = vec![VfsPath::top()];
    while let Some(folder) = folders.pop() {
        let mut after = None;
        loop {
            let page = files
                .list(&folder, after.as_deref(), 2.into())
                .await
                .unwrap();
            for entry in page.items {
                let bytes = match entry.kind {
                    VfsKind::File => {
                        let mut bytes = Vec::new();
                        files.copy_to(&entry.path, &mut bytes).await.unwrap();
                        Some(bytes)
                    }
                    _ => {
                        folders.push(entry.path.clone());
                        None
                    }
                };
                model.0.insert(entry.path, bytes);
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
    }
    model
}

/// Puts a tree on a disk.
fn lay_out(model: &Model, top: &Path) {
    fs::create_dir_all(top).unwrap();
    for (path, bytes) in &model.0 {
        match bytes {
            Some(bytes) => fs::write(top.join(path.as_str()), bytes).unwrap(),
            None => fs::create_dir(top.join(path.as_str())).unwrap(),
        }
    }
}

/// Times of folders change when a file in them is looked at by nobody; contents and names must not.
fn contents(tree: Vec<TreeEntry>) -> Vec<TreeEntry> {
    tree
}

fn same_in_mode(fs_mode: FsMode, before: &[Step], steps: &[Step]) {
    block_on(async {
        let sandbox = at_rest("").await;
        let disk = workspace(&sandbox, "atlas");
        let mut model = Model::default();
        for step in before {
            let kept = model.clone();
            if expect(&mut model, step).is_err() {
                model = kept;
            }
        }
        if fs_mode == FsMode::VfsOnly {
            model = Model::default();
        }
        lay_out(&model, &disk);
        let laid_out = tree_hash(&disk);
        let worker = worker(&sandbox, fs_mode).await;
        let files = worker.files().await.unwrap();
        assert_eq!(seen(&files).await, model);
        for step in steps {
            let kept = model.clone();
            let expected = expect(&mut model, step);
            if expected.is_err() {
                model = kept;
            }
            assert_eq!(take(&files, step).await, expected, "{fs_mode}: {step:?}");
        }
        assert_eq!(seen(&files).await, model, "{fs_mode}");
        if fs_mode != FsMode::Disk {
            assert_same_tree(&contents(laid_out), &contents(tree_hash(&disk)));
        }
        drop(files);
        worker.close().await;
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_disk_gives_what_memory_gives(
        before in prop::collection::vec(steps(), 0..12),
        steps in prop::collection::vec(steps(), 1..30),
    ) {
        same_in_mode(FsMode::Disk, &before, &steps);
    }

    #[test]
    fn a_layer_gives_what_memory_gives_and_leaves_the_disk_alone(
        before in prop::collection::vec(steps(), 0..20),
        steps in prop::collection::vec(steps(), 1..30),
    ) {
        same_in_mode(FsMode::VfsScratch, &before, &steps);
    }

    #[test]
    fn files_of_the_database_give_what_memory_gives(
        steps in prop::collection::vec(steps(), 1..20),
    ) {
        same_in_mode(FsMode::VfsOnly, &[], &steps);
    }
}

#[test]
fn a_layer_lives_on_for_its_run_and_is_seen_by_no_other() {
    block_on(async {
        let sandbox = at_rest("").await;
        lay_out(
            &Model([(path("notes"), Some(b"disk".to_vec()))].into()),
            &workspace(&sandbox, "atlas"),
        );
        let first = worker(&sandbox, FsMode::VfsScratch).await;
        let files = first.files().await.unwrap();
        files
            .append(&path("notes"), b" and more".to_vec())
            .await
            .unwrap();
        first.close().await;

        let again = worker(&sandbox, FsMode::VfsScratch).await;
        let other = WorkerSpec {
            run_id: "run-2".to_owned(),
            ..spec(&sandbox, FsMode::VfsScratch)
        };
        let other = Worker::open(other, Clock::fixed(2_000)).await.unwrap();

        let read = async |worker: &Worker| {
            let files = worker.files().await.unwrap();
            files.read(&path("notes"), 0, 99).await.unwrap()
        };
        assert_eq!(read(&again).await, b"disk and more");
        assert_eq!(read(&other).await, b"disk");
        let files = again.files().await.unwrap();
        let FilesKind::Scratch(layer) = files.kind() else {
            panic!("the mode is scratch");
        };
        assert_eq!(all_below(layer.upper(), &VfsPath::top(), 9).await.len(), 1);
    });
}

#[test]
fn links_and_dots_lead_out_of_no_mode() {
    block_on(async {
        let sandbox = at_rest("").await;
        let (disk, outside) = (workspace(&sandbox, "atlas"), sandbox.home().join("outside"));
        fs::create_dir_all(&disk).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("secret"), "secret").unwrap();
        symlink(&outside, disk.join("folder")).unwrap();
        symlink(outside.join("secret"), disk.join("file")).unwrap();
        symlink("../../../../outside/new", disk.join("dangling")).unwrap();

        for mode in [FsMode::Disk, FsMode::VfsScratch] {
            let worker = worker(&sandbox, mode).await;
            let files = worker.files().await.unwrap();
            for place in ["folder/secret", "file", "dangling"] {
                assert!(files.read(&path(place), 0, 9).await.is_err(), "{place}");
            }
            let listed = files.list(&VfsPath::top(), None, 9.into()).await.unwrap();
            assert_eq!(listed.items, []);
            assert!(files.list(&path("folder"), None, 9.into()).await.is_err());
            let mode = WriteMode::default();
            let _ = files.write(&path("folder/new"), b"x".to_vec(), mode).await;
            let _ = files.append(&path("dangling"), b"x".to_vec()).await;
            let _ = files.append(&path("file"), b"x".to_vec()).await;
            let _ = files.make_folder(&path("folder/deep/er")).await;
            let _ = files.rename(&path("folder/secret"), &path("got")).await;
            let _ = files.remove(&path("folder"), Removal::Tree).await;
            worker.close().await;
        }

        assert!(VfsPath::new("../outside/secret").is_err());
        assert_eq!(fs::read(outside.join("secret")).unwrap(), b"secret");
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    });
}

/// What reading and writing a file of `birch` gives to `atlas`.
async fn tried(sandbox: &Sandbox, mode: FsMode) -> (Result<(), ErrorKind>, Result<(), ErrorKind>) {
    let worker = worker(sandbox, mode).await;
    let birch = AgentId::new("birch").unwrap();
    let tried = match worker.files_of(&birch).await {
        Err(error) => (Err(error.kind()), Err(error.kind())),
        Ok(files) => {
            let read = files.read(&path("theirs"), 0, 9).await.map(drop);
            let mode = WriteMode::default();
            let write = files.write(&path("mine"), b"x".to_vec(), mode).await;
            (
                read.map_err(|error| error.kind()),
                write.map_err(|error| error.kind()),
            )
        }
    };
    worker.close().await;
    tried
}

#[test]
fn a_siblings_workspace_opens_as_far_as_the_configuration_says() {
    let no = Err(ErrorKind::Refused);
    let table = [
        ("", no, no),
        ("access = { birch = \"read\" }", Ok(()), no),
        ("access = { birch = \"write\" }", no, Ok(())),
        ("access = { birch = \"read_write\" }", Ok(()), Ok(())),
        ("access = { birch = \"all\" }", no, no),
        ("access = { cedar = \"read_write\" }", no, no),
        ("unrestricted_filesystem = true", Ok(()), Ok(())),
        // What birch may do opens nothing of birch's.
        (
            "[agents.birch.workspace]\naccess = { atlas = \"read_write\" }",
            no,
            no,
        ),
    ];
    block_on(async {
        for (line, read, write) in table {
            let sandbox = at_rest(&format!("[agents.atlas.workspace]\n{line}\n")).await;
            let theirs = workspace(&sandbox, "birch");
            fs::create_dir_all(&theirs).unwrap();
            fs::write(theirs.join("theirs"), "theirs").unwrap();

            assert_eq!(tried(&sandbox, FsMode::Disk).await, (read, write), "{line}");
            let (scratch_read, scratch_write) = tried(&sandbox, FsMode::VfsScratch).await;
            assert_eq!((scratch_read, scratch_write), (read, no), "{line}");
            assert_eq!(tried(&sandbox, FsMode::VfsOnly).await, (no, no), "{line}");
        }
    });
}

#[test]
fn the_whole_disk_is_for_the_unrestricted_alone() {
    block_on(async {
        let walled = at_rest("[agents.atlas.workspace]\naccess = { birch = \"read\" }\n").await;
        let free = at_rest("[agents.atlas.workspace]\nunrestricted_filesystem = true\n").await;

        for (sandbox, mode, opens) in [
            (&walled, FsMode::Disk, false),
            (&free, FsMode::Disk, true),
            (&free, FsMode::VfsScratch, false),
            (&free, FsMode::VfsOnly, false),
        ] {
            let worker = worker(sandbox, mode).await;
            assert_eq!(worker.whole_disk().await.is_ok(), opens, "{mode}");
            worker.close().await;
        }
    });
}

#[test]
fn a_worker_writes_beside_who_holds_the_root_and_keeps_others_out_where_nobody_does() {
    block_on(async {
        let home = Home::new().await;
        let beside = Worker::open(spec(&home.sandbox, FsMode::VfsOnly), Clock::fixed(2_000))
            .await
            .unwrap();
        let files = beside.files().await.unwrap();
        let vfs = home.vfs("default").await;
        for number in 0..20 {
            let mode = WriteMode::default();
            files
                .write(&path(&format!("w{number}")), vec![1], mode)
                .await
                .unwrap();
            vfs.write(&path(&format!("s{number}")), vec![1], mode)
                .await
                .unwrap();
        }
        assert_eq!(all_below(&vfs, &VfsPath::top(), 9).await.len(), 40);
        drop((files, vfs));
        beside.close().await;
        let sandbox = home.sandbox;
        home.service.close().await;

        let alone = worker(&sandbox, FsMode::VfsOnly).await;
        assert_eq!(sandbox.zeroclaw(&["init"]).code(), Some(4));
        alone.close().await;
        sandbox.zeroclaw(&["init"]).exits(0);
        let nobody = WorkerSpec {
            agent_id: AgentId::new("nobody").unwrap(),
            ..spec(&sandbox, FsMode::VfsOnly)
        };
        let missing = Worker::open(nobody, Clock::fixed(1)).await.unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
        let service = Service::open(&sandbox.root(), Clock::fixed(1), HolderKind::Cli).await;
        let service = service.unwrap();
        let tree = VfsNamespace::default();
        service.vfs(&atlas(), tree).await.unwrap();
        service.close().await;
    });
}
