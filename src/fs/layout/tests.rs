use std::fs;
use std::os::unix::ffi::OsStringExt;

use super::*;

fn resolve(flag: Option<&str>, vars: &[(&str, &str)]) -> Result<PathBuf, RootError> {
    resolve_root(flag.map(PathBuf::from), &|name| {
        vars.iter()
            .find(|(key, _)| *key == name)
            .map(|(_, value)| OsString::from(value))
    })
}

#[test]
fn every_path_lies_where_the_contract_puts_it() {
    let layout = Layout::new(PathBuf::from("/r"));

    assert_eq!(layout.global_db(), Path::new("/r/state/state.sqlite"));
    assert_eq!(layout.daemon_lock(), Path::new("/r/state/daemon.lock"));
    assert_eq!(layout.migrate_lock(), Path::new("/r/state/migrate.lock"));
    assert_eq!(
        layout.restore_journal(),
        Path::new("/r/state/restore.journal")
    );
    assert_eq!(
        layout.migrated_run_dir("run"),
        Path::new("/r/state/migrated/run")
    );
    assert_eq!(
        layout.quarantine_dir("run"),
        Path::new("/r/state/quarantine/run")
    );
    assert_eq!(
        layout.agent_db("a"),
        Path::new("/r/agents/a/agent/agent.sqlite")
    );
    assert_eq!(
        layout.agent_db("a").parent(),
        Some(layout.agent_db_dir("a").as_path())
    );
    assert_eq!(
        Layout::agent_db_relative("a"),
        Path::new("agents/a/agent/agent.sqlite")
    );
    assert_eq!(
        layout.workspace("a@20261130T164228Z"),
        Path::new("/r/agents/a@20261130T164228Z/workspace")
    );
    assert_eq!(layout.backups_dir(), Path::new("/r/backups"));
    assert_eq!(layout.config_file(), Path::new("/r/config.toml"));
    assert_eq!(layout.secret_key_file(), Path::new("/r/.secret_key"));
}

#[test]
fn a_root_that_is_not_utf8_keeps_its_bytes() {
    let root = PathBuf::from(OsString::from_vec(b"/r\xff".to_vec()));
    let db = Layout::new(root).global_db();

    assert_eq!(
        db.as_os_str().as_encoded_bytes(),
        b"/r\xff/state/state.sqlite"
    );
    assert_eq!(
        sidecars(&db)[0].as_os_str().as_encoded_bytes(),
        b"/r\xff/state/state.sqlite-wal"
    );
}

#[test]
fn sidecars_are_named_after_the_database() {
    let names = sidecars(Path::new("/r/x.sqlite"));

    assert_eq!(
        names,
        ["/r/x.sqlite-wal", "/r/x.sqlite-shm", "/r/x.sqlite-journal"].map(PathBuf::from)
    );
}

#[test]
fn the_flag_wins_over_the_variables_and_they_over_the_home() {
    let all = [
        ("HOME", "/h"),
        ("ZEROCLAW_CONFIG_DIR", "/c"),
        ("ZEROCLAW_DATA_DIR", "/d/data"),
        ("ZEROCLAW_WORKSPACE", "/w/workspace"),
    ];

    assert_eq!(resolve(Some("/f"), &all).unwrap(), Path::new("/f"));
    assert_eq!(resolve(None, &all).unwrap(), Path::new("/c"));
    assert_eq!(
        resolve(None, &[all[0], all[2], all[3]]).unwrap(),
        Path::new("/d/.zeroclaw")
    );
    assert_eq!(
        resolve(None, &[all[0], all[3]]).unwrap(),
        Path::new("/w/.zeroclaw")
    );
    assert_eq!(resolve(None, &all[..1]).unwrap(), Path::new("/h/.zeroclaw"));
}

#[test]
fn empty_undefined_and_null_count_as_unset() {
    for value in ["", " ", "undefined", "null"] {
        let vars = [
            ("HOME", "/h"),
            ("ZEROCLAW_CONFIG_DIR", value),
            ("ZEROCLAW_DATA_DIR", value),
        ];
        assert_eq!(
            resolve(None, &vars).unwrap(),
            Path::new("/h/.zeroclaw"),
            "{value:?}"
        );
    }
    assert!(matches!(
        resolve(None, &[("HOME", "undefined")]),
        Err(RootError::NoHome)
    ));
    assert!(matches!(
        resolve(Some(""), &[("HOME", "/h")]),
        Err(RootError::Empty)
    ));
}

#[test]
fn a_tilde_stands_for_the_home_and_a_relative_path_becomes_absolute() {
    let home = [("HOME", "/h")];

    assert_eq!(resolve(Some("~"), &home).unwrap(), Path::new("/h"));
    assert_eq!(resolve(Some("~/z"), &home).unwrap(), Path::new("/h/z"));
    assert_eq!(resolve(Some("/x/~/z"), &home).unwrap(), Path::new("/x/~/z"));
    assert_eq!(
        expand_home(Path::new("~bob/z"), Some(Path::new("/h"))),
        Path::new("~bob/z")
    );
    assert_eq!(
        resolve(Some("z"), &home).unwrap(),
        std::env::current_dir().unwrap().join("z")
    );
}

#[test]
fn a_data_folder_leads_to_the_root_it_belongs_to() {
    let temp = tempfile::tempdir().unwrap();
    let base = temp.path();
    let near = |name: &str| {
        let value = base.join(name).into_os_string();
        resolve_root(None, &move |key| {
            (key == "ZEROCLAW_DATA_DIR").then(|| value.clone())
        })
        .unwrap()
    };
    assert_eq!(near("elsewhere"), base.join("elsewhere"));
    assert_eq!(near("data"), base.join(".zeroclaw"));
    assert_eq!(near("data/"), base.join(".zeroclaw"));

    fs::create_dir(base.join(".zeroclaw")).unwrap();
    fs::write(base.join(".zeroclaw/config.toml"), "").unwrap();
    assert_eq!(near("elsewhere"), base.join(".zeroclaw"));

    fs::create_dir(base.join("data")).unwrap();
    fs::write(base.join("data/config.toml"), "").unwrap();
    assert_eq!(near("data"), base.join("data"));
}

#[test]
fn a_program_of_homebrew_has_its_root_beside_the_cellar() {
    let of = |program: &str| homebrew_root(Path::new(program));

    assert_eq!(
        of("/opt/nowhere/Cellar/zeroclaw/0.8.4/bin/zeroclaw"),
        Some(PathBuf::from("/opt/nowhere/var/zeroclaw"))
    );
    assert_eq!(of("/usr/bin/zeroclaw"), None);
}
