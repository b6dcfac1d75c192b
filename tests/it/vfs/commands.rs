//! `zeroclaw vfs`.

use std::io::Write;
use std::process::Stdio;

use serde_json::json;

use crate::cli::json::is_documented;
use crate::support::inhabited;
use crate::support::sandbox::Sandbox;

fn home() -> Sandbox {
    let home = Sandbox::new();
    inhabited::build(&home.root());
    std::fs::write(home.home().join("note"), "the tide turns at nine\n").unwrap();
    home
}

#[test]
fn a_file_is_stored_listed_printed_found_copied_out_and_removed() {
    let home = home();
    let of = ["--agent", "atlas"];
    let run = |args: &[&str]| home.zeroclaw(&[&["vfs"], args, &of].concat());

    run(&["put", "note", "/diary/book.md"])
        .exits(0)
        .says("diary/book.md");
    run(&["ls"]).exits(0).says("diary/");
    run(&["ls", "--recursive"]).exits(0).says("diary/book.md");
    run(&["ls", "--trees"]).exits(0).says("default");
    let cat = run(&["cat", "diary/book.md"]).exits(0);
    assert_eq!(cat.stdout, "the tide turns at nine\n");
    run(&["search", "turns"])
        .exits(0)
        .says("tide [turns] at nine");
    run(&["export", "/", "out"]).exits(0);
    let copied = std::fs::read(home.home().join("out/diary/book.md")).unwrap();
    assert_eq!(copied, b"the tide turns at nine\n");
    run(&["rm", "diary"]).exits(10).complains("not empty");
    run(&["rm", "diary", "--recursive"])
        .exits(10)
        .complains("--yes");
    run(&["rm", "diary", "--recursive", "--dry-run"])
        .exits(0)
        .says("2");
    run(&["rm", "diary/book.md"]).exits(0);
    run(&["rm", "diary", "--recursive", "--yes"]).exits(0);
    run(&["cat", "diary/book.md"])
        .exits(9)
        .complains("--recursive");
    home.zeroclaw(&["vfs", "ls", "--agent", "nobody"]).exits(9);
    run(&["cat", "../secret"]).exits(2);
}

#[test]
fn stdin_is_stored_to_the_byte() {
    let home = home();
    let bytes: Vec<u8> = (0..=255).cycle().take(1_000_000).collect();
    let mut child = home
        .command(&["vfs", "put", "-", "a", "--agent", "atlas"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&bytes).unwrap();
    assert!(child.wait().unwrap().success());

    let cat = home
        .command(&["vfs", "cat", "a", "--agent", "atlas"])
        .output();

    assert!(cat.unwrap().stdout == bytes);
}

#[test]
fn every_answer_is_documented_json() {
    let home = home();
    let of = ["--agent", "atlas", "--json"];
    let run = |args: &[&str]| home.zeroclaw(&[&["vfs"], args, &of].concat()).exits(0);

    for args in [
        &["put", "note", "diary/book.md"][..],
        &["ls"],
        &["ls", "--trees"],
        &["cat", "diary/book.md"],
        &["search", "tide"],
        &["export", "diary", "out"],
        &["rm", "diary/book.md", "--dry-run"],
    ] {
        is_documented(args, &run(args).json());
    }
    let shown = run(&["cat", "diary/book.md"]).json();
    assert_eq!(shown["text"], "the tide turns at nine\n");
    let removed = run(&["rm", "diary", "--recursive", "--yes"]).json();
    assert_eq!(
        removed,
        json!({ "namespace": "default", "path": "diary", "entries": 2, "dry_run": false })
    );
    let none = run(&["ls", "--namespace", "none"]).json();
    assert_eq!(none, json!({ "items": [], "next": null }));
    assert_eq!(run(&["search", "nothing"]).json(), json!([]));
}
