//! What people see: tables, pages, and nothing that a terminal would obey.

use crate::support::inhabited::{self, HOSTILE};
use crate::support::sandbox::{Ran, Sandbox};

fn inhabited() -> Sandbox {
    let home = Sandbox::new();
    inhabited::build(&home.root());
    home
}

#[test]
fn stored_text_is_shown_and_never_obeyed() {
    let home = inhabited();

    for args in super::looking::commands() {
        let ran = home.zeroclaw(&args).exits(0);
        for text in [&ran.stdout, &ran.stderr] {
            let obeyed = text
                .chars()
                .find(|&c| (c.is_control() && c != '\n' && c != '\t') || c == '\u{202e}');
            assert_eq!(obeyed, None, "{args:?}: {text:?}");
        }
    }
    home.zeroclaw(&["sessions", "show", "session-1"])
        .says(r"hi\u{1b}[2J\u{1b}]0;owned\u{7} \u{9b}31m\r\u{202e}txt.exe");
    home.zeroclaw(&["cron", "runs"]).says(r"\u{1b}[2J");
    let shown = home.zeroclaw(&["sessions", "show", "session-1", "--json"]);
    assert_eq!(shown.json()["events"][1]["text"], HOSTILE);
}

#[test]
fn colour_comes_only_when_asked_for() {
    let home = inhabited();

    let plain = home.zeroclaw(&["agents", "list"]).exits(0);
    let always = home
        .zeroclaw(&["agents", "list", "--color", "always"])
        .exits(0);
    let json = home
        .zeroclaw(&["agents", "list", "--color", "always", "--json"])
        .exits(0);

    assert!(!plain.stdout.contains('\x1b'));
    assert!(always.stdout.contains("\x1b[1m"));
    assert!(!json.stdout.contains('\x1b'));
}

#[test]
fn a_table_in_a_pipe_is_aligned_and_whole() {
    let home = inhabited();

    let ran = home.zeroclaw(&["agents", "list"]).exits(0);

    let lines: Vec<_> = ran.stdout.lines().collect();
    assert!(
        lines[0].starts_with("AGENT  STATUS   SCHEMA  CREATED "),
        "{}",
        lines[0]
    );
    assert!(lines[1].starts_with("atlas  active   "), "{}", lines[1]);
    assert!(lines[2].starts_with("brook  retired  "), "{}", lines[2]);
    assert!(lines[2].ends_with("agents/brook/agent/agent.sqlite  no longer in the configuration"));
    assert!(!ran.stdout.contains('…'));
}

#[test]
fn each_page_names_the_command_for_the_next_and_together_they_are_all() {
    let home = inhabited();
    let mut seen = Vec::new();
    let mut args = vec![
        "sessions".to_owned(),
        "list".to_owned(),
        "--limit".to_owned(),
        "2".to_owned(),
    ];

    for _ in 0..3 {
        let ran = home.zeroclaw(&args).exits(0);
        seen.extend(ran.stdout.lines().skip(1).map(|line| {
            line.split_whitespace()
                .next()
                .unwrap_or_default()
                .to_owned()
        }));
        let Some(next) = ran
            .stderr
            .lines()
            .find_map(|line| line.strip_prefix("next page: "))
        else {
            break;
        };
        // The words of this listing need no quotes.
        args = next.split(' ').skip(1).map(str::to_owned).collect();
    }

    assert_eq!(seen, ["session-3", "session-2", "session-1", "large"]);
}

#[test]
fn a_whole_transcript_is_shown_in_order() {
    let home = inhabited();

    let text = home
        .zeroclaw(&["sessions", "show", "large", "--all"])
        .exits(0);
    let json = home
        .zeroclaw(&["sessions", "show", "large", "--all", "--json"])
        .exits(0)
        .json();
    let page = home
        .zeroclaw(&["sessions", "show", "large", "--after", "1198"])
        .exits(0);

    let headings = text
        .stdout
        .lines()
        .filter(|line| line.starts_with('#'))
        .count();
    assert_eq!(headings, 1_200);
    let places: Vec<_> = json["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["seq"].as_i64().unwrap())
        .collect();
    assert_eq!(places, (1..=inhabited::LARGE_EVENTS).collect::<Vec<_>>());
    assert!(json["next_after"].is_null());
    assert!(page.stdout.contains("#1199  ") && !page.stdout.contains("#1198  "));
}

#[test]
fn words_are_found_in_retired_agents_too() {
    let home = inhabited();

    home.zeroclaw(&["sessions", "search", "heron"])
        .exits(0)
        .says("old-talk")
        .says("only the [heron] knew");
    home.zeroclaw(&["sessions", "search", "heron", "--agent", "atlas"])
        .exits(0)
        .says_nothing()
        .complains("nothing found");
    home.zeroclaw(&["memory", "search", "tide"])
        .exits(0)
        .says("harbour");
}

#[test]
fn an_empty_answer_is_nothing_on_stdout_and_a_word_on_stderr() {
    let home = Sandbox::new();
    home.zeroclaw(&["init"]).exits(0);

    for args in [
        &["agents", "list"][..],
        &["sessions", "list"],
        &["sessions", "search", "x"],
        &["cron", "list"],
        &["cron", "runs"],
        &["tasks", "list"],
        &["tasks", "goals"],
        &["tasks", "settlements"],
        &["costs"],
        &["costs", "--by", "day"],
        &["logs"],
        &["memory", "list"],
        &["memory", "search", "x"],
        &["backup", "list"],
        &["doctor", "history"],
    ] {
        let ran = home.zeroclaw(args).exits(0).says_nothing();
        assert_eq!(ran.stderr.lines().count(), 1, "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn unset_variables_and_their_look_alikes_lead_to_the_home_folder() {
    let home = Sandbox::new();
    home.zeroclaw(&["init"]).exits(0);

    for value in ["", "undefined", "null"] {
        let mut command = home.command(&["status"]);
        command.env("ZEROCLAW_CONFIG_DIR", value);
        Ran::of(command)
            .exits(0)
            .says(home.root().to_str().unwrap());
    }
}

#[test]
fn completions_and_manual_need_no_root() {
    let home = Sandbox::new();

    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        home.zeroclaw(&["completions", shell])
            .exits(0)
            .says("zeroclaw");
    }
    home.zeroclaw(&["man"]).exits(0).says(".TH zeroclaw");
    home.zeroclaw(&["man", "sessions", "list"])
        .exits(0)
        .says("config\\-dir");
    home.zeroclaw(&["--version"])
        .exits(0)
        .says(env!("CARGO_PKG_VERSION"));
    home.zeroclaw(&["--help"]).exits(0).says("Exit codes:");
    assert!(!home.root().exists());
}

#[test]
fn logs_go_to_stderr_and_only_when_asked_for() {
    let home = inhabited();

    let list = ["agents", "list"];
    home.zeroclaw(&list).exits(0).complains_of_nothing();
    home.zeroclaw(&[&list[..], &["-vvv"]].concat())
        .exits(0)
        .says("atlas");
    home.zeroclaw(&[&list[..], &["--log-level", "off"]].concat())
        .exits(0)
        .complains_of_nothing();
}

#[test]
fn no_secret_of_the_configuration_is_ever_told() {
    let home = inhabited();
    let secret = "sk-SECRET-0123456789";
    for broken in ["", "durability = = 1\n"] {
        let config = format!(
            "api_key = \"{secret}\"\nlevel = \"{secret}\"\n{broken}[state]\ndurability = \"{secret}\"\n"
        );
        std::fs::write(home.root().join("config.toml"), config).unwrap();
        std::fs::write(home.root().join(".secret_key"), secret).unwrap();

        for args in super::looking::commands() {
            let ran = home.zeroclaw(&[&args[..], &["-vvv"]].concat());
            assert!(
                !ran.stdout.contains(secret) && !ran.stderr.contains(secret),
                "{args:?}"
            );
        }
    }
    home.zeroclaw(&["status"])
        .exits(0)
        .complains("config.toml is not valid")
        .complains("line 3");
}
