//! Files are private from their first moment, whatever the user's umask.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use super::{control_plane, put, row};
use crate::support::process::{part, played_on};
use crate::support::sqlite::{block_on, sidecar};

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Makes a root's database, writes, and looks at the modes while it is open.
#[test]
#[ignore = "run by the test beside it, under another umask"]
fn maker() {
    let Some(path) = played_on() else {
        return;
    };
    block_on(async {
        let db = control_plane(path.parent().unwrap()).await;
        put(&db, row("a")).await.unwrap();
        assert_eq!(mode(path.parent().unwrap()), 0o700);
        for suffix in ["", "-wal", "-shm"] {
            assert_eq!(mode(&sidecar(&path, suffix)), 0o600, "{suffix}");
        }
        assert_eq!(mode(&path.with_file_name("migrate.lock")), 0o600);
        db.close().await;
    });
}

#[test]
fn under_an_open_umask_a_database_and_its_log_are_readable_by_their_owner_only() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state/state.sqlite");
    let maker = part("db::private::maker", &path);
    let shell = |umask: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("umask {umask}; exec \"$0\" \"$@\"")]);
        command.arg(maker.get_program()).args(maker.get_args());
        command.envs(
            maker
                .get_envs()
                .filter_map(|(key, value)| Some((key, value?))),
        );
        command.output().unwrap()
    };

    for umask in ["000", "022"] {
        let output = shell(umask);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "under {umask}: {said}");
        assert_eq!(mode(&path), 0o600);
    }
}
