use std::os::unix::fs::{PermissionsExt, symlink};

use rustix::fs::CWD;

use super::rename::{move_across, rename_by_link, rename_over_placeholder};
use super::*;
use crate::fs::FsErrorKind;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

#[test]
fn folders_are_private_and_existing_ones_keep_their_mode() {
    let temp = folder();
    let open = temp.path().join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();

    create_dir_private(&open.join("a/b")).unwrap();
    create_dir_private(&open.join("a/b")).unwrap();

    assert_eq!(mode(&open), 0o755);
    assert_eq!(mode(&open.join("a")), 0o700);
    assert_eq!(mode(&open.join("a/b")), 0o700);
}

#[test]
fn a_folder_is_not_made_through_a_file_or_a_dangling_link() {
    let temp = folder();
    fs::write(temp.path().join("file"), "").unwrap();
    symlink("nowhere", temp.path().join("link")).unwrap();

    assert!(create_dir_private(&temp.path().join("file")).is_err());
    assert!(create_dir_private(&temp.path().join("file/x")).is_err());
    assert_eq!(
        create_dir_private(&temp.path().join("link"))
            .unwrap_err()
            .kind(),
        FsErrorKind::AlreadyExists
    );
}

#[test]
fn a_new_file_is_private_and_refuses_a_taken_name() {
    let temp = folder();
    let path = temp.path().join("x");

    create_file_private(&path).unwrap().write_all(b"1").unwrap();

    assert_eq!(mode(&path), 0o600);
    assert_eq!(
        create_file_private(&path).unwrap_err().kind(),
        FsErrorKind::AlreadyExists
    );
    assert_eq!(
        create_file_private(&temp.path().join("no/x"))
            .unwrap_err()
            .kind(),
        FsErrorKind::NotFound
    );
}

#[test]
fn a_precreated_file_is_private_and_an_existing_one_is_left_alone() {
    let temp = folder();
    let (new, old) = (temp.path().join("new"), temp.path().join("old"));
    fs::write(&old, "kept").unwrap();
    fs::set_permissions(&old, fs::Permissions::from_mode(0o640)).unwrap();

    precreate_private(&new).unwrap();
    precreate_private(&old).unwrap();

    assert_eq!(mode(&new), 0o600);
    assert_eq!(mode(&old), 0o640);
    assert_eq!(fs::read(&old).unwrap(), b"kept");
}

#[test]
fn a_written_file_replaces_the_old_one_and_is_private() {
    let temp = folder();
    let path = temp.path().join("x");
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();

    write_private(&path, b"new").unwrap();

    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(mode(&path), 0o600);
    assert_eq!(names(temp.path()), ["x"]);
}

#[test]
fn a_failed_write_leaves_no_temporary_file() {
    let temp = folder();
    let path = temp.path().join("x");
    fs::create_dir(&path).unwrap();

    let error = write_private(&path, b"new").unwrap_err();

    assert_eq!(error.path, path);
    assert_eq!(names(temp.path()), ["x"]);
}

#[test]
fn a_temporary_file_is_private_and_known_by_its_name() {
    let temp = folder();
    let file = private_temp_in(temp.path()).unwrap();

    assert_eq!(mode(file.path()), 0o600);
    assert!(is_temp_name(file.path().file_name().unwrap()));
    assert!(!is_temp_name(OsStr::new("state.sqlite")));
}

#[test]
fn a_new_name_is_given_once_and_never_replaces() {
    let temp = folder();
    let (first, second, dest) = (
        temp.path().join("1"),
        temp.path().join("2"),
        temp.path().join("dest"),
    );
    fs::write(&first, "first").unwrap();
    fs::write(&second, "second").unwrap();

    persist_new(&first, &dest).unwrap();
    let error = persist_new(&second, &dest).unwrap_err();

    assert_eq!(error.kind(), FsErrorKind::AlreadyExists);
    assert_eq!(fs::read(&dest).unwrap(), b"first");
    assert_eq!(names(temp.path()), ["2", "dest"]);
}

#[test]
fn the_ways_without_kernel_support_do_not_replace_either() {
    let temp = folder();
    let at = |name: &str| temp.path().join(name);
    let ways: [fn(&Path, &Path) -> io::Result<()>; 2] = [rename_by_link, rename_over_placeholder];
    fs::write(at("taken"), "kept").unwrap();

    for (index, way) in ways.into_iter().enumerate() {
        let dest = at(&format!("dest{index}"));
        fs::write(at("from"), "moved").unwrap();

        assert_eq!(
            way(&at("from"), &at("taken")).unwrap_err().kind(),
            io::ErrorKind::AlreadyExists
        );
        way(&at("from"), &dest).unwrap();

        assert_eq!(fs::read(dest).unwrap(), b"moved");
        assert!(!at("from").exists());
    }
    assert_eq!(
        way_left_behind(&at("absent"), &at("free")),
        io::ErrorKind::NotFound
    );
    assert!(!at("free").exists());
    assert_eq!(fs::read(at("taken")).unwrap(), b"kept");
}

fn way_left_behind(from: &Path, to: &Path) -> io::ErrorKind {
    rename_over_placeholder(from, to).unwrap_err().kind()
}

#[test]
fn a_folder_moves_without_kernel_support_and_replaces_none() {
    let temp = folder();
    let (from, taken, to) = (
        temp.path().join("from"),
        temp.path().join("taken"),
        temp.path().join("to"),
    );
    fs::create_dir_all(from.join("x")).unwrap();
    fs::create_dir(&taken).unwrap();

    assert_eq!(
        rename_by_link(&from, &taken).unwrap_err().kind(),
        io::ErrorKind::AlreadyExists
    );
    rename_by_link(&from, &to).unwrap();

    assert!(to.join("x").is_dir());
    assert!(!from.exists());
}

#[test]
fn a_move_makes_private_folders_and_refuses_to_overwrite() {
    let temp = folder();
    let (from, to) = (temp.path().join("from"), temp.path().join("a/b/to"));
    fs::write(&from, "moved").unwrap();
    fs::set_permissions(&from, fs::Permissions::from_mode(0o644)).unwrap();

    rename_synced(&from, &to).unwrap();
    fs::write(&from, "again").unwrap();
    let error = rename_synced(&from, &to).unwrap_err();

    assert_eq!(
        (error.kind(), error.path.as_path()),
        (FsErrorKind::AlreadyExists, to.as_path())
    );
    assert_eq!(fs::read(&to).unwrap(), b"moved");
    assert_eq!(fs::read(&from).unwrap(), b"again");
    assert_eq!(mode(&temp.path().join("a")), 0o700);
}

#[test]
fn a_move_takes_folders_and_links_as_they_are() {
    let temp = folder();
    fs::create_dir(temp.path().join("dir")).unwrap();
    fs::write(temp.path().join("dir/x"), "x").unwrap();
    symlink("dir", temp.path().join("link")).unwrap();

    rename_synced(&temp.path().join("dir"), &temp.path().join("new/dir")).unwrap();
    rename_synced(&temp.path().join("link"), &temp.path().join("new/link")).unwrap();

    assert_eq!(fs::read(temp.path().join("new/dir/x")).unwrap(), b"x");
    assert!(temp.path().join("new/link").is_symlink());
    assert_eq!(names(temp.path()), ["new"]);
}

#[test]
fn a_move_to_another_filesystem_copies_proves_and_removes() {
    let temp = folder();
    let (from, to) = (temp.path().join("from"), temp.path().join("to"));
    let bytes = vec![7; COPY_BUFFER_BYTES + 3];
    fs::write(&from, &bytes).unwrap();
    let modified = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    OpenOptions::new()
        .write(true)
        .open(&from)
        .unwrap()
        .set_modified(modified)
        .unwrap();

    move_across(&from, &to).unwrap();

    assert_eq!(fs::read(&to).unwrap(), bytes);
    assert_eq!(mode(&to), 0o600);
    assert_eq!(fs::metadata(&to).unwrap().modified().unwrap(), modified);
    assert_eq!(names(temp.path()), ["to"]);
}

#[test]
fn a_refused_move_to_another_filesystem_keeps_the_source_and_leaves_nothing() {
    let temp = folder();
    let (from, to) = (temp.path().join("from"), temp.path().join("to"));
    fs::write(&from, "from").unwrap();
    fs::write(&to, "kept").unwrap();
    fs::create_dir(temp.path().join("dir")).unwrap();

    assert_eq!(
        move_across(&from, &to).unwrap_err().kind(),
        FsErrorKind::AlreadyExists
    );
    assert!(move_across(&temp.path().join("dir"), &temp.path().join("new")).is_err());

    assert_eq!(fs::read(&to).unwrap(), b"kept");
    assert_eq!(names(temp.path()), ["dir", "from", "to"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_move_between_two_real_filesystems_arrives() {
    let (here, there) = (folder(), tempfile::tempdir_in("/dev/shm"));
    let Ok(there) = there else { return };
    fs::write(here.path().join("x"), "moved").unwrap();

    rename_synced(&here.path().join("x"), &there.path().join("sub/x")).unwrap();

    assert_eq!(fs::read(there.path().join("sub/x")).unwrap(), b"moved");
    assert_eq!(mode(&there.path().join("sub")), 0o700);
    assert!(names(here.path()).is_empty());
}

#[test]
fn a_copy_is_private_and_tells_length_and_hash() {
    let temp = folder();
    let (from, to) = (temp.path().join("from"), temp.path().join("to"));
    fs::write(&from, "bytes").unwrap();

    let copied = copy_private(&from, &to).unwrap();

    assert_eq!(copied, (5, sha256(b"bytes")));
    assert_eq!(hash_file(&to).unwrap(), copied);
    assert_eq!(mode(&to), 0o600);
    assert_eq!(
        copy_private(&from, &to).unwrap_err().kind(),
        FsErrorKind::AlreadyExists
    );
    assert_eq!(fs::read(&to).unwrap(), b"bytes");
}

#[test]
fn a_link_or_a_pipe_is_not_copied() {
    let temp = folder();
    let (file, link, pipe) = (
        temp.path().join("file"),
        temp.path().join("link"),
        temp.path().join("pipe"),
    );
    fs::write(&file, "bytes").unwrap();
    symlink(&file, &link).unwrap();
    rustix::fs::mknodat(CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();

    assert!(copy_private(&link, &temp.path().join("to")).is_err());
    assert!(copy_private(&pipe, &temp.path().join("to")).is_err());
    assert!(!temp.path().join("to").exists());
}

#[test]
fn a_removed_file_is_gone_and_a_missing_one_is_an_error() {
    let temp = folder();
    let path = temp.path().join("x");
    fs::write(&path, "").unwrap();

    remove_file_synced(&path).unwrap();

    assert_eq!(
        remove_file_synced(&path).unwrap_err().kind(),
        FsErrorKind::NotFound
    );
}

/// Needs the superuser to prepare; without, the rule it tests cannot apply either.
#[test]
fn the_superuser_gives_what_it_creates_to_the_owner_of_the_folder() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let temp = folder();
    std::os::unix::fs::chown(temp.path(), Some(1234), Some(2345)).unwrap();
    let at = |name: &str| temp.path().join(name);
    let owner = |path: &Path| {
        fs::metadata(path)
            .map(|data| (data.uid(), data.gid()))
            .unwrap()
    };

    create_dir_private(&at("a/b")).unwrap();
    create_file_private(&at("a/file")).unwrap();
    write_private(&at("a/b/written"), b"").unwrap();
    copy_private(&at("a/file"), &at("copy")).unwrap();

    for path in ["a", "a/b", "a/file", "a/b/written", "copy"] {
        assert_eq!(owner(&at(path)), (1234, 2345), "{path}");
    }
}
