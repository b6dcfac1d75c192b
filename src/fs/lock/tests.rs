use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

const DOCTOR: Holder = Holder {
    kind: HolderKind::Doctor,
    since_ms: 42,
};

fn root() -> (tempfile::TempDir, Layout) {
    let temp = tempfile::tempdir().unwrap();
    let layout = Layout::new(temp.path().join("root"));
    (temp, layout)
}

#[test]
fn one_writer_holds_a_root_and_its_text_names_it() {
    let (_temp, layout) = root();
    let lock = RootLock::try_exclusive(&layout, DOCTOR).unwrap();

    let error = RootLock::try_exclusive(&layout, DOCTOR).unwrap_err();

    let message = error.to_string();
    let LockError::Held {
        path,
        holder: Some(text),
        waited,
    } = error
    else {
        panic!("{message}")
    };
    assert_eq!((path, waited), (layout.daemon_lock(), Duration::ZERO));
    assert_eq!(
        (text.kind.as_str(), text.pid, text.since_ms),
        ("doctor", std::process::id(), 42)
    );
    assert!(
        message.contains(&format!("doctor (pid {}", text.pid)),
        "{message}"
    );

    drop(lock);
    RootLock::try_exclusive(&layout, DOCTOR).unwrap();
}

#[test]
fn the_lock_file_is_private_stays_and_is_empty_afterwards() {
    let (_temp, layout) = root();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;

    let lock = RootLock::try_exclusive(&layout, DOCTOR).unwrap();
    let text = fs::read_to_string(layout.daemon_lock()).unwrap();
    assert!(text.ends_with("}\n") && text.lines().count() == 1, "{text}");
    drop(lock);

    assert_eq!(mode(&layout.state_dir()), 0o700);
    assert_eq!(mode(&layout.daemon_lock()), 0o600);
    assert_eq!(fs::metadata(layout.daemon_lock()).unwrap().len(), 0);
}

#[test]
fn waiting_ends_when_the_holder_lets_go() {
    let (_temp, layout) = root();
    let lock = RootLock::try_exclusive(&layout, DOCTOR).unwrap();

    let waiter = {
        let layout = layout.clone();
        thread::spawn(move || RootLock::exclusive(&layout, DOCTOR, Duration::from_secs(30)).is_ok())
    };
    drop(lock);

    assert!(waiter.join().unwrap());
}

#[test]
fn waiting_ends_at_the_deadline() {
    let (_temp, layout) = root();
    let _lock = RootLock::try_exclusive(&layout, DOCTOR).unwrap();
    let wait = Duration::from_millis(60);

    let error = RootLock::exclusive(&layout, DOCTOR, wait).unwrap_err();

    assert!(
        matches!(error, LockError::Held { waited, .. } if waited >= wait),
        "{error}"
    );
}

#[test]
fn looking_makes_nothing_on_a_root_nobody_wrote() {
    let (_temp, layout) = root();

    assert!(matches!(
        RootLock::shared_if_present(&layout).unwrap(),
        SharedLock::NoFile
    ));

    assert!(!layout.root().exists());
}

#[test]
fn lookers_share_a_root_and_keep_writers_out() {
    let (_temp, layout) = root();
    drop(RootLock::try_exclusive(&layout, DOCTOR).unwrap());

    let first = RootLock::shared_if_present(&layout).unwrap();
    let second = RootLock::shared_if_present(&layout).unwrap();

    assert!(matches!(
        (&first, &second),
        (SharedLock::Held(_), SharedLock::Held(_))
    ));
    assert!(matches!(
        RootLock::try_exclusive(&layout, DOCTOR),
        Err(LockError::Held { holder: None, .. })
    ));
    drop((first, second));
    assert!(RootLock::try_exclusive(&layout, DOCTOR).is_ok());
}

#[test]
fn a_looker_learns_that_a_writer_lives() {
    let (_temp, layout) = root();
    let _lock = RootLock::try_exclusive(&layout, DOCTOR).unwrap();

    let SharedLock::WriterAlive(Some(text)) = RootLock::shared_if_present(&layout).unwrap() else {
        panic!("no writer seen")
    };

    assert_eq!(text.kind, "doctor");
}

#[test]
fn a_text_that_cannot_be_read_hides_the_holder_but_not_the_lock() {
    let (_temp, layout) = root();
    let _lock = RootLock::try_exclusive(&layout, DOCTOR).unwrap();
    fs::write(layout.daemon_lock(), "{\"kind\":").unwrap();

    let error = RootLock::try_exclusive(&layout, DOCTOR).unwrap_err();

    assert!(
        error.to_string().ends_with("is held by another process"),
        "{error}"
    );
}

#[test]
fn a_lock_file_that_is_a_link_is_refused() {
    let (temp, layout) = root();
    fs::create_dir_all(layout.state_dir()).unwrap();
    fs::write(temp.path().join("victim"), "kept").unwrap();
    symlink(temp.path().join("victim"), layout.daemon_lock()).unwrap();

    assert!(matches!(
        RootLock::try_exclusive(&layout, DOCTOR),
        Err(LockError::Fs(_))
    ));
    assert!(matches!(
        RootLock::shared_if_present(&layout),
        Err(LockError::Fs(_))
    ));

    assert_eq!(fs::read(temp.path().join("victim")).unwrap(), b"kept");
}

#[test]
fn work_under_a_file_lock_is_done_by_one_at_a_time() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("migrate.lock");
    let lock = FileLock::exclusive(&path, Duration::ZERO).unwrap();

    assert!(matches!(
        FileLock::exclusive(&path, Duration::ZERO),
        Err(LockError::Held { .. })
    ));

    drop(lock);
    assert!(FileLock::exclusive(&path, Duration::ZERO).is_ok());
}

#[test]
fn a_lock_file_that_was_removed_while_it_was_waited_for_gives_way_to_the_new_one() {
    let (_temp, layout) = root();
    let first = RootLock::try_exclusive(&layout, DOCTOR).unwrap();
    let waits = {
        let layout = layout.clone();
        thread::spawn(move || RootLock::exclusive(&layout, DOCTOR, Duration::from_secs(20)))
    };
    // Either it has opened the old file by then, or it opens the new one: the outcome is the same.
    thread::sleep(2 * POLL);

    first.remove(&layout).unwrap();
    let second = waits.join().unwrap().unwrap();

    assert!(layout.daemon_lock().exists());
    let refused = RootLock::try_exclusive(&layout, DOCTOR);
    assert!(matches!(refused, Err(LockError::Held { .. })));
    drop(second);
}
