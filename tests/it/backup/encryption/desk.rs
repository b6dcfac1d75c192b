//! Encrypted archives at the command line: what a person is told, and that no key is.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use super::{Keys, PASSPHRASE};
use crate::support::inhabited;
use crate::support::sandbox::{Ran, Sandbox};

/// A root and a key of a person at the command line.
fn at_the_desk() -> (Sandbox, Keys) {
    let home = Sandbox::new();
    inhabited::build(&home.root());
    let keys = Keys::in_folder(home.home(), "keys.txt");
    (home, keys)
}

/// Runs the program with something on its standard input.
fn fed(home: &Sandbox, args: &[&str], input: &str) -> Ran {
    let mut command = home.command(args);
    let path = home.home().join("input");
    fs::File::create(&path)
        .and_then(|mut file| file.write_all(input.as_bytes()))
        .unwrap();
    command.stdin(Stdio::from(fs::File::open(path).unwrap()));
    Ran::of(command)
}

#[test]
fn a_person_is_told_how_it_is_encrypted_what_was_proved_and_what_opens_it() {
    let (home, keys) = at_the_desk();
    let other = Keys::in_folder(home.home(), "other.txt");
    fs::write(
        home.home().join("recipients.txt"),
        format!("# both\n\n{}\n{}\n", keys.recipient, other.recipient),
    )
    .unwrap();

    let made = home
        .zeroclaw(&["backup", "create", "--recipients-file", "recipients.txt"])
        .exits(0)
        .says("to its recipients")
        .says("yes, but for the key");
    let archive = made
        .stdout
        .lines()
        .find_map(|line| line.strip_prefix("archive "))
        .unwrap()
        .trim()
        .to_owned();
    assert!(archive.ends_with(".tar.gz.age"));
    let before = home.tree();
    for command in ["verify", "restore"] {
        let yes: &[&str] = match command {
            "restore" => &["--target", "new", "--yes"],
            _ => &[],
        };
        home.zeroclaw(&[&["backup", command, &archive], yes].concat())
            .exits(2)
            .says_nothing()
            .complains("is encrypted")
            .complains("--identity FILE");
        home.zeroclaw(
            &[
                &["backup", command, &archive, "--identity", "none.txt"],
                yes,
            ]
            .concat(),
        )
        .exits(2)
        .complains("none.txt: there is no such file");
        fs::write(home.home().join("tmp/pass"), PASSPHRASE).unwrap();
        home.zeroclaw(
            &[
                &["backup", command, &archive, "--passphrase-file", "tmp/pass"],
                yes,
            ]
            .concat(),
        )
        .exits(2)
        .complains("--identity FILE");
        fs::remove_file(home.home().join("tmp/pass")).unwrap();
    }
    home.is_unchanged_since(&before);
    for file in [&keys.file, &other.file] {
        home.zeroclaw(&[
            "backup",
            "verify",
            &archive,
            "--identity",
            file.to_str().unwrap(),
        ])
        .exits(0)
        .says("good")
        .says("recipients");
    }
    // An encrypted archive in the root is an archive all the same.
    fs::copy(&archive, home.root().join("zeroclaw-backup-old.tar.gz.age")).unwrap();
    home.zeroclaw(&["backup", "create", "--dry-run"])
        .exits(0)
        .complains("zeroclaw-backup-old.tar.gz.age: an archive");
}

#[test]
fn a_passphrase_comes_from_standard_input_and_is_never_told() {
    let (home, _) = at_the_desk();
    let dash = ["--passphrase-file", "-", "-vvv"];
    let create = [
        &["backup", "create", "--output", "a.age", "--json"],
        &dash[..],
    ]
    .concat();
    let line = format!("{PASSPHRASE}\n");

    let made = fed(&home, &create, &line).exits(0);

    assert_eq!(made.json()["encryption"], "passphrase");
    assert_eq!(made.json()["proof"], "read_back");
    let verify = [&["backup", "verify", "a.age"], &dash[..]].concat();
    let right = fed(&home, &verify, &line).exits(0);
    let wrong = fed(&home, &verify, "canary of another\n")
        .exits(2)
        .says_nothing()
        .complains("does not open");
    let missing = home
        .zeroclaw(&["backup", "verify", "a.age"])
        .exits(2)
        .complains("--passphrase-file FILE");
    for empty in ["", "\n", "\r\nsecond\n"] {
        fed(&home, &create, empty)
            .exits(2)
            .complains("standard input: its first line, the passphrase, is empty");
    }
    for ran in [made, right, wrong, missing] {
        assert!(!ran.stdout.contains("canary") && !ran.stderr.contains("canary"));
    }
}

#[test]
fn no_key_is_told_not_even_a_wrong_one() {
    let (home, keys) = at_the_desk();
    let secret = keys.secret();
    let broken = &secret[..secret.len() - 2];
    fs::write(home.home().join("broken.txt"), format!("{broken}\n")).unwrap();
    let archive = ["--output", "a.age"];
    home.zeroclaw(
        &[
            &["backup", "create", "--encrypt-to", &keys.recipient],
            &archive[..],
        ]
        .concat(),
    )
    .exits(0);

    let refusals = [
        // The worst of all mistakes: the secret half in place of the public one.
        &["backup", "create", "--encrypt-to", &secret, "-vvv"][..],
        &["backup", "create", "--encrypt-to", broken, "-vvv"],
        &["backup", "create", "--encrypt-to", "", "-vvv"],
        &["backup", "create", "--recipients-file", "keys.txt", "-vvv"],
        &["backup", "create", "--recipients-file", "/dev/null"],
        &[
            "backup",
            "verify",
            "a.age",
            "--identity",
            "broken.txt",
            "-vvv",
        ],
        &["backup", "verify", "a.age", "--identity", "/dev/null"],
        &["backup", "verify", "a.age", "--identity", "a.age"],
        &[
            "backup",
            "create",
            "--passphrase-file",
            "x",
            "--encrypt-to",
            &keys.recipient,
        ],
        &[
            "backup",
            "verify",
            "a.age",
            "--identity",
            "x",
            "--passphrase-file",
            "x",
        ],
    ];
    let before = home.tree();
    for args in refusals {
        let ran = home.zeroclaw(args).exits(2).says_nothing();
        assert!(!ran.stderr.contains(&secret[20..40]), "{}", ran.stderr);
    }
    home.is_unchanged_since(&before);
    let identity = keys.file.to_str().unwrap();
    let verify = ["backup", "verify", "a.age", "--identity", identity, "-vvv"];
    let ran = home.zeroclaw(&verify).exits(0);
    assert!(!ran.stderr.contains(&secret[20..40]) && !ran.stdout.contains(&secret[20..40]));
}

#[test]
fn an_agent_moves_in_an_encrypted_archive_and_out_of_an_encrypted_backup() {
    let (home, keys) = at_the_desk();
    let identity = keys.file.to_str().unwrap();
    home.zeroclaw(&["--config-dir", "new", "init"]).exits(0);
    let to = ["--encrypt-to", &keys.recipient, "--output"];
    let export = ["agents", "export", "atlas"];
    home.zeroclaw(&[&export[..], &to, &["atlas.age"]].concat())
        .exits(0)
        .says("to its recipients");
    home.zeroclaw(&[&["backup", "create"], &to[..], &["all.age"]].concat())
        .exits(0);
    let import = |args: &[&str]| {
        let start = ["--config-dir", "new", "agents", "import", "--yes"];
        home.zeroclaw(&[&start[..], args].concat())
    };

    import(&["atlas.age"]).exits(2).complains("--identity FILE");
    import(&["atlas.age", "--identity", identity]).exits(0);
    import(&["all.age", "--agent", "brook", "--identity", identity]).exits(0);
    let verify = ["backup", "verify", "--deep", "atlas.age", "--identity"];
    home.zeroclaw(&[&verify[..], &[identity]].concat()).exits(0);

    home.zeroclaw(&["--config-dir", "new", "agents", "list"])
        .exits(0)
        .says("atlas")
        .says("brook");
}

#[test]
fn without_its_key_an_archive_is_listed_and_never_pruned() {
    let (home, keys) = at_the_desk();
    let create = ["backup", "create", "--encrypt-to", &keys.recipient];
    for _ in 0..2 {
        home.zeroclaw(&create).exits(0);
    }
    for _ in 0..2 {
        home.zeroclaw(&["backup", "create"]).exits(0);
    }
    let sealed = || {
        let names = fs::read_dir(home.root().join("backups")).unwrap();
        let names = names.map(|it| it.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.ends_with(".age")).count()
    };

    home.zeroclaw(&["backup", "list", "--archives", "--json"])
        .exits(0)
        .says(".tar.gz.age")
        .says("is encrypted");
    home.zeroclaw(&["backup", "prune", "--keep-last", "1", "--yes", "--json"])
        .exits(0)
        .says("is encrypted");

    assert_eq!(sealed(), 2);
    assert_eq!(
        fs::read_dir(home.root().join("backups")).unwrap().count(),
        3
    );
}
