//! Sessions and jobs of one kind each, and nothing of them left out.

use super::state::{State, source};
use crate::support::legacy::LegacyInstall;
use crate::support::rows::{job, json_line, jsonl, turns};
use crate::support::sandbox::Sandbox;
use crate::support::sqlite;

const CONFIG: &str =
    "schema_version = 3\n[agents.atlas]\nchannels = ['telegram.main']\n[agents.birch]\n";
const FILE: &str = "data/sessions/telegram_main_1_talk.jsonl";

fn home_with(bytes: &[u8]) -> (Sandbox, LegacyInstall) {
    let home = Sandbox::in_memory();
    let install = LegacyInstall::new(home.root());
    install.config(CONFIG).jsonl(FILE, bytes);
    (home, install)
}

fn told(home: &Sandbox) -> Vec<Vec<String>> {
    let query = "SELECT role, text FROM transcript_events ORDER BY session_no, seq";
    sqlite::rows(&State::of(home.root()).agent("atlas"), query)
}

#[test]
fn c13_every_role_comes_in_and_every_line_is_accounted_for() {
    let lines = [
        r#"{"role":"system","content":"be brief"}"#,
        r#"{"role":"user","content":"hello"}"#,
        r#"{"role":"assistant","content":"hi","provider":"codex","api":"an-unknown-api"}"#,
        r#"{"role":"tool","content":"[Tool exchange: 3 results collapsed]"}"#,
        r#"{"role":"developer","content":""}"#,
        r#"{"role":"assistant","content":"bye","model":{"id":"m"},"role2":null}"#,
        // What is no message is named, not passed over.
        r#"{"type":"model_change","model":"m2"}"#,
        r#"{"role":"user","content":["a","list"]}"#,
        r#"{"role":null,"content":"nobody"}"#,
        r#"[1,2]"#,
    ];
    let (home, _) = home_with((lines.join("\n") + "\n").as_bytes());

    let report = home
        .zeroclaw(&["doctor", "--fix", "--json"])
        .exits(1)
        .json();

    let roles: Vec<String> = told(&home).into_iter().map(|row| row[0].clone()).collect();
    assert_eq!(
        roles,
        [
            "system",
            "user",
            "assistant",
            "tool",
            "developer",
            "assistant"
        ]
    );
    let talk = source(&report, FILE).unwrap();
    assert_eq!(talk["counts"]["messages"]["records"], 10);
    assert_eq!(talk["counts"]["messages"]["imported"], 6);
    assert_eq!(talk["refused"].as_array().unwrap().len(), 4);
    let kept = State::of(home.root()).quarantined().concat();
    assert_eq!(kept, lines[6..].concat().as_bytes());
    // What a line says besides role and content is kept with it.
    let more = "SELECT count(*) FROM transcript_events WHERE event_json LIKE '%codex%'";
    assert_eq!(
        sqlite::number(&State::of(home.root()).agent("atlas"), more),
        1
    );
}

#[test]
fn c18_a_first_line_cut_short_hides_nothing_behind_it() {
    let mut bytes = b"{\"role\":\"user\",\"cont\n".to_vec();
    bytes.extend(jsonl(&turns("talk", 10)));
    let (home, _) = home_with(&bytes);

    let report = home
        .zeroclaw(&["doctor", "--fix", "--json"])
        .exits(1)
        .json();

    assert_eq!(told(&home).len(), 10);
    let place = &source(&report, FILE).unwrap()["refused"][0]["place"];
    assert_eq!(place, "line 1 at byte 0");
}

#[test]
fn c18_line_ends_marks_and_blank_lines_of_other_editors_cost_no_message() {
    let lines: Vec<String> = turns("talk", 10).iter().map(json_line).collect();
    let text = format!(
        "\u{FEFF}{}\r\n\r\n  \n{}",
        lines[..5].join("\r\n"),
        lines[5..].join("\n")
    );
    let (home, _) = home_with(text.as_bytes());

    home.zeroclaw(&["doctor", "--fix"]).exits(0);

    assert_eq!(told(&home).len(), 10);
}

#[test]
fn c18_a_session_is_named_by_its_file_whatever_its_lines_say() {
    let mut bytes = b"{\"role\":\"user\",\"content\":\"hello\",\"id\":\"another\",\"session_key\":\"gw_other\"}\n".to_vec();
    bytes.extend(jsonl(&turns("talk", 9)));
    let (home, _) = home_with(&bytes);

    home.zeroclaw(&["doctor", "--fix"]).exits(0);

    let sessions = State::of(home.root()).sessions();
    assert_eq!(
        sessions,
        [("atlas".to_owned(), "telegram_main_1_talk".to_owned(), 10)]
    );
}

/// Forty-five jobs of every kind: each third with a zone, each third without, an interval, a moment.
fn forty_five_jobs() -> String {
    let schedule = |n: usize| match n % 4 {
        0 => r#"{"kind":"cron","expr":"15 7 * * 1-5","tz":"Europe/Berlin"}"#,
        1 => r#"{"kind":"cron","expr":"0 9 * * 0","tz":null}"#,
        2 => r#"{"kind":"every","every_ms":60000}"#,
        _ => r#"{"kind":"at","at":"2035-01-01T09:00:00Z"}"#,
    };
    (0..45_usize)
        .map(|n| {
            let kind = if n.is_multiple_of(2) { "shell" } else { "agent" };
            let (target, enabled) = (if n.is_multiple_of(3) { "main" } else { "isolated" }, usize::from(!n.is_multiple_of(9)));
            job(&format!("job-{n:02}"), "", &format!("echo {n}"))
                + &format!(
                    "UPDATE cron_jobs SET schedule = '{}', job_type = '{kind}', prompt = 'ask {n}',
                         session_target = '{target}', enabled = {enabled}, agent_alias = 'birch',
                         last_run = '2026-09-01T08:00:00+00:00', last_status = 'ok' WHERE id = 'job-{n:02}';",
                    schedule(n)
                )
        })
        .collect()
}

#[test]
fn c01_every_job_comes_in_as_it_was() {
    let home = Sandbox::in_memory();
    let install = LegacyInstall::new(home.root());
    install.config(CONFIG).sqlite(
        "data/cron/jobs.db",
        "cron_v0_8_4.sql",
        &[&forty_five_jobs()],
    );

    let looked = home.zeroclaw(&["doctor", "--json"]).exits(7).json();
    home.zeroclaw(&["doctor", "--fix"]).exits(0);

    assert_eq!(looked["total"]["records"], 45);
    let jobs = home.zeroclaw(&["cron", "list", "--json"]).exits(0).json();
    let jobs = jobs.as_array().unwrap();
    assert_eq!(jobs.len(), 45);
    for job in jobs {
        let id = job["job_id"].as_str().unwrap();
        let n: usize = id.strip_prefix("job-").unwrap().parse().unwrap();
        let schedule = &job["schedule"];
        let (kind, tz_origin) =
            [("cron", "job"), ("cron", "host"), ("every", ""), ("at", "")][n % 4];
        assert_eq!(schedule["kind"], kind, "{job}");
        assert_eq!(
            schedule["tz_origin"].as_str().unwrap_or_default(),
            tz_origin,
            "{job}"
        );
        assert_eq!(job["enabled"], !n.is_multiple_of(9), "{job}");
        assert_eq!(job["agent_id"], "birch", "{job}");
        assert_eq!(
            job["session_target"],
            if n.is_multiple_of(3) {
                "main"
            } else {
                "isolated"
            },
            "{job}"
        );
        assert_eq!(
            job["payload_message"],
            if n.is_multiple_of(2) {
                format!("echo {n}")
            } else {
                format!("ask {n}")
            }
        );
        assert_eq!(job["next_run_at_ms"], 1_770_019_200_000_u64, "{job}");
        assert_eq!(job["last_run_at_ms"], 1_788_249_600_000_u64, "{job}");
    }
}

#[test]
fn c03_a_job_belongs_to_whom_it_names_or_who_lists_it_and_else_is_off_and_told() {
    let home = Sandbox::in_memory();
    let install = LegacyInstall::new(home.root());
    let jobs: String = ["named", "listed", "nobodys"]
        .map(|id| job(id, "* * * * *", "echo"))
        .concat();
    install
        .config("schema_version = 3\n[agents.atlas]\ncron_jobs = ['listed']\n[agents.birch]\n")
        .sqlite(
            "data/cron/jobs.db",
            "cron_v0_8_4.sql",
            &[
                &jobs,
                "UPDATE cron_jobs SET agent_alias = 'birch' WHERE id = 'named'",
            ],
        );

    let run = home.zeroclaw(&["doctor", "--fix"]).exits(0);

    let wanted = [
        ("listed", "atlas", true),
        ("named", "birch", true),
        ("nobodys", "", false),
    ];
    let wanted = wanted.map(|(id, agent, enabled)| (id.to_owned(), agent.to_owned(), enabled));
    assert_eq!(State::of(home.root()).jobs(), wanted);
    assert!(
        run.stdout.contains("unowned") && run.stdout.contains("job nobodys"),
        "{}",
        run.told()
    );
}

#[test]
fn c37_memories_without_an_id_come_in_once_each() {
    let home = Sandbox::in_memory();
    let install = LegacyInstall::new(home.root());
    let rows = ["same", "same", "other"].map(|content| {
        format!(
            "INSERT INTO memories (id, key, content, category, created_at, updated_at) VALUES \
             (NULL, 'k', '{content}', 'core', '2026-08-01T09:00:00+02:00', '2026-08-01T09:00:00+02:00');"
        )
    });
    let ddl = "CREATE TABLE memories (id TEXT PRIMARY KEY, key TEXT, content TEXT, category TEXT, \
               created_at TEXT, updated_at TEXT);";
    install.config(CONFIG).store(
        "data/memory/brain.db",
        sqlite::Journal::Wal,
        ddl,
        &rows.each_ref().map(String::as_str),
    );

    let report = home
        .zeroclaw(&["doctor", "--fix", "--json"])
        .exits(0)
        .json();

    let counts = &source(&report, "data/memory/brain.db").unwrap()["counts"]["memories"];
    assert_eq!(
        (&counts["imported"], &counts["present"]),
        (&2.into(), &1.into()),
        "{counts}"
    );
    assert_eq!(State::of(home.root()).memories().values().sum::<usize>(), 2);
}
