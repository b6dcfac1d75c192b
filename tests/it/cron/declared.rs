//! Jobs that the configuration declares.

use serde_json::{Value, json};

use super::{config, home};
use crate::support::sandbox::Sandbox;

fn tick(home: &Sandbox) -> Value {
    let ran = home.zeroclaw(&["cron", "tick", "--json"]);
    ran.json()["reconciled"].clone()
}

fn job(home: &Sandbox, id: &str) -> Value {
    home.zeroclaw(&["cron", "show", id, "--json"])
        .exits(0)
        .json()
}

const DAILY: &str = "[cron.tidy]\nname = \"tidy up\"\ncommand = \"true\"\n\
                     schedule = { kind = \"cron\", expr = \"0 9 * * *\", tz = \"Asia/Tokyo\" }\n";

#[test]
fn declared_jobs_come_change_and_go_with_the_configuration() {
    let home = home();
    let at = [
        "--every", "1d", "--agent", "atlas", "--shell", "true", "--name", "own",
    ];
    home.zeroclaw(&[&["cron", "add"], &at[..]].concat())
        .exits(0);
    let own = job(&home, "own");
    let none = json!({ "added": [], "changed": [], "gone": [], "refused": [] });

    config(&home, DAILY);
    assert_eq!(tick(&home)["added"], json!(["tidy"]));
    assert_eq!(tick(&home), none, "twice is once");
    let first = job(&home, "tidy");
    assert_eq!(
        (&first["origin"], &first["agent_id"]),
        (&json!("config"), &json!("atlas"))
    );
    assert!(first["next_run_at_ms"].is_number());

    config(&home, &DAILY.replace("0 9", "30 9"));
    assert_eq!(tick(&home)["changed"], json!(["tidy"]));
    let moved = job(&home, "tidy");
    assert_ne!(moved["next_run_at_ms"], first["next_run_at_ms"]);
    assert_eq!(moved["created_at_ms"], first["created_at_ms"]);

    config(&home, "");
    assert_eq!(tick(&home)["gone"], json!(["tidy"]));
    assert_eq!(tick(&home), none);
    let gone = job(&home, "tidy");
    assert_eq!(
        (&gone["enabled"], &gone["next_run_at_ms"]),
        (&json!(false), &Value::Null)
    );

    config(&home, DAILY);
    assert_eq!(tick(&home)["changed"], json!(["tidy"]));
    assert_eq!(job(&home, "tidy")["enabled"], true);
    assert_eq!(job(&home, "own"), own, "never touched");
}

#[test]
fn a_paused_declared_job_stays_off_and_a_broken_declaration_changes_nothing() {
    let home = home();
    config(&home, DAILY);
    tick(&home);

    home.zeroclaw(&["cron", "pause", "tidy"]).exits(0);
    config(&home, &DAILY.replace("tidy up", "tidy all"));
    tick(&home);
    let paused = job(&home, "tidy");
    assert_eq!(
        (&paused["enabled"], &paused["name"]),
        (&json!(false), &json!("tidy all"))
    );

    config(&home, &DAILY.replace("0 9", "0 99"));
    let refused = tick(&home)["refused"].to_string();
    assert!(refused.contains("tidy: the field hour of"), "{refused}");
    assert_eq!(job(&home, "tidy"), paused);

    config(&home, DAILY);
    home.zeroclaw(&["cron", "resume", "tidy"]).exits(0);
    home.zeroclaw(&["cron", "edit", "tidy", "--every", "1h"])
        .exits(10);
    home.zeroclaw(&["cron", "remove", "tidy", "--yes"])
        .exits(10);
    assert_eq!(job(&home, "tidy")["enabled"], true);
}

#[test]
fn a_declared_job_without_an_agent_is_off_until_it_has_one() {
    let home = home();
    config(&home, &format!("[agents.birch]\n{DAILY}"));
    tick(&home);
    assert_eq!(job(&home, "tidy")["enabled"], false);

    config(
        &home,
        &format!("[agents.birch]\ncron_jobs = [\"tidy\"]\n{DAILY}"),
    );
    tick(&home);

    let owned = job(&home, "tidy");
    assert_eq!(
        (&owned["enabled"], &owned["agent_id"]),
        (&json!(true), &json!("birch"))
    );
}
