//! `zeroclaw agents export` and `import` as a person uses them. What moves is the business of the backup tests.

use crate::support::inhabited;
use crate::support::sandbox::Sandbox;

/// A root with agents, an archive of `brook` and one of all, and an empty root `other`.
fn with_archives() -> (Sandbox, String, String) {
    let home = Sandbox::new();
    inhabited::build(&home.root());
    let path = |args: &[&str]| {
        let made = home.zeroclaw(&[args, &["--json"]].concat()).exits(0);
        made.json()["archive"].as_str().unwrap().to_owned()
    };
    let one = path(&["agents", "export", "atlas", "--output", "one.tar.gz"]);
    let all = path(&["backup", "create", "--output", "all.tar.gz"]);
    home.zeroclaw(&["--config-dir", "other", "init"]).exits(0);
    (home, one, all)
}

#[test]
fn an_agent_moves_and_says_the_same_there() {
    let (home, one, _) = with_archives();
    let there = |args: &[&str]| home.zeroclaw(&[&["--config-dir", "other"], args].concat());

    home.zeroclaw(&["backup", "verify", &one])
        .exits(0)
        .says("good");
    there(&["agents", "import", &one, "--yes"])
        .exits(0)
        .says("agents/atlas/agent/agent.sqlite")
        .complains("config.toml does not name atlas: to run it, add `[agents.atlas]`");

    for args in [
        &["sessions", "list", "--agent", "atlas", "--json"][..],
        &["sessions", "show", "session-1", "--json"],
        &[
            "sessions", "search", "lantern", "--agent", "atlas", "--json",
        ],
        &["memory", "list", "--agent", "atlas", "--json"],
    ] {
        let here = home.zeroclaw(args).exits(0).json();
        assert_eq!(there(args).exits(0).json(), here, "{args:?}");
    }
    there(&["db", "check"]).exits(0);
    let runs = there(&["backup", "list", "--json"]).exits(0).json();
    assert_eq!(runs[0]["kind"], "restore");
}

#[test]
fn an_export_tells_what_stays_and_does_not_count_as_a_backup() {
    let home = Sandbox::new();
    inhabited::build(&home.root());
    std::fs::create_dir_all(home.root().join("agents/atlas/workspace")).unwrap();
    let before = home.zeroclaw(&["backup", "list"]).exits(0).stdout;

    let told = home
        .zeroclaw(&["agents", "export", "atlas"])
        .exits(0)
        .complains("left out agents/atlas/workspace")
        .complains("scheduled jobs (1) and tasks (5) of atlas");

    assert!(told.stdout.contains("backups/zeroclaw-agent-atlas-"));
    assert_eq!(home.zeroclaw(&["backup", "list"]).stdout, before);
    // Nor is it deleted as one.
    for _ in 0..2 {
        home.zeroclaw(&["backup", "create"]).exits(0);
    }
    home.zeroclaw(&["backup", "prune", "--keep-last", "1", "--yes"])
        .exits(0);
    let names = std::fs::read_dir(home.root().join("backups")).unwrap();
    let mut names: Vec<String> = names
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names.len(), 2);
    assert!(names[0].starts_with("zeroclaw-agent-") && names[1].starts_with("zeroclaw-backup-"));
}

#[test]
fn a_taken_name_exits_10_and_names_the_way_out() {
    let (home, one, _) = with_archives();
    let before = home.tree();

    for consent in ["--dry-run", "--yes"] {
        home.zeroclaw(&["agents", "import", &one, consent])
            .exits(10)
            .says_nothing()
            .complains("there is an agent atlas already")
            .complains("--as NEW");
    }
    home.zeroclaw(&["agents", "import", &one, "--as", "twin"])
        .exits(10)
        .says_nothing()
        .complains("--as twin --yes");
    home.zeroclaw(&["agents", "import", &one, "--as", "twin", "--dry-run"])
        .exits(0)
        .says("agents/twin/agent/agent.sqlite")
        .complains("nothing was written");
    home.zeroclaw(&["agents", "import", &one, "--as", "../x", "--yes"])
        .exits(2);

    let unlocked = |tree: Vec<crate::support::tree::TreeEntry>| -> Vec<_> {
        let kept = tree.into_iter();
        kept.filter(|it| !it.path.ends_with(b"daemon.lock"))
            .collect()
    };
    assert_eq!(unlocked(before), unlocked(home.tree()));
    home.zeroclaw(&["agents", "import", &one, "--as", "twin", "--yes"])
        .exits(0)
        .says("named before");
    home.zeroclaw(&["sessions", "search", "lantern", "--agent", "twin"])
        .exits(0)
        .says("lantern");
}

#[test]
fn a_backup_wants_to_know_which_agent_and_a_retired_one_stays_so() {
    let (home, one, all) = with_archives();
    let import = |args: &[&str]| {
        home.zeroclaw(&[&["--config-dir", "other", "agents", "import"], args].concat())
    };

    import(&[&all, "--yes"])
        .exits(2)
        .says_nothing()
        .complains("atlas, brook");
    import(&[&all, "--agent", "nobody", "--yes"]).exits(9);
    import(&[&one, "--agent", "brook", "--yes"]).exits(9);
    import(&["nowhere.tar.gz", "--yes"]).exits(9);
    import(&[&all, "--agent", "brook", "--yes"])
        .exits(0)
        .says("retired")
        .complains("brook is retired, as it was");

    home.zeroclaw(&["--config-dir", "other", "agents", "list"])
        .says("no longer in the configuration");
    home.zeroclaw(&["agents", "export", "nobody"])
        .exits(9)
        .says_nothing();
    home.zeroclaw(&["--config-dir", "none", "agents", "import", &one, "--yes"])
        .exits(3)
        .says_nothing();
    home.zeroclaw(&["backup", "restore", &one, "--target", "new", "--yes"])
        .exits(10)
        .complains("agents import");
    assert!(!home.home().join("new").exists() && !home.home().join("none").exists());
}

#[test]
fn the_configuration_is_read_for_what_to_do_next() {
    let (home, one, _) = with_archives();
    for (name, text, told) in [
        ("on", "enabled = true", None),
        ("off", "enabled = false", Some("config.toml disables off")),
    ] {
        std::fs::write(
            home.home().join("other/config.toml"),
            format!("schema_version = 3\n[agents.{name}]\n{text}\n"),
        )
        .unwrap();
        let args = [
            "--config-dir",
            "other",
            "agents",
            "import",
            &one,
            "--yes",
            "--as",
            name,
        ];

        let ran = home.zeroclaw(&args).exits(0);

        match told {
            Some(told) => drop(ran.complains(told)),
            None => assert!(!ran.stderr.contains("config.toml"), "{}", ran.told()),
        }
    }
}

#[test]
fn every_field_of_a_move_is_documented() {
    let (home, one, all) = with_archives();

    for args in [
        &["agents", "export", "atlas", "--json"][..],
        &[
            "agents",
            "import",
            &one,
            "--as",
            "twin",
            "--dry-run",
            "--json",
        ],
        &["agents", "import", &one, "--as", "twin", "--yes", "--json"],
        &[
            "agents", "import", &all, "--agent", "brook", "--as", "b", "--yes", "--json",
        ],
        &["backup", "verify", &one, "--json"],
    ] {
        super::json::is_documented(args, &home.zeroclaw(args).exits(0).json());
    }
}
