//! Costs: every shape of their lines, every place of their files, and what the sums are.

use serde_json::{Value, json};

use super::state::{State, findings, source};
use crate::support::legacy::LegacyInstall;
use crate::support::sandbox::Sandbox;
use crate::support::sqlite;

const FILE: &str = "data/state/costs.jsonl";

/// A record with everything the newest release writes.
fn record(number: u32, agent: Value, cost_usd: &str) -> String {
    let usage = format!(
        r#"{{"model":"lark/large","input_tokens":{number},"output_tokens":2,"cached_input_tokens":1,"total_tokens":{total},"cost_usd":{cost_usd},"timestamp":"2026-09-{day:02}T23:59:59.999999999Z"}}"#,
        total = number + 2,
        day = number % 28 + 1,
    );
    format!(
        r#"{{"id":"c0570000-0000-4000-8000-{number:012}","usage":{usage},"session_id":"life-1","agent_alias":{agent}}}"#
    )
}

fn lines(records: &[String]) -> Vec<u8> {
    records
        .iter()
        .flat_map(|line| [line.as_bytes(), b"\n"].concat())
        .collect()
}

fn home_with(file: &str, bytes: &[u8]) -> (Sandbox, LegacyInstall) {
    let home = Sandbox::in_memory();
    let install = LegacyInstall::new(home.root());
    install
        .config("schema_version = 3\n[agents.atlas]\n")
        .file(file, bytes);
    (home, install)
}

fn fix(home: &Sandbox, code: i32) -> Value {
    home.zeroclaw(&["doctor", "--fix", "--json"])
        .exits(code)
        .json()
}

fn rows(home: &Sandbox, columns: &str) -> Vec<Vec<String>> {
    let query = format!("SELECT {columns} FROM usage_costs ORDER BY cost_id");
    sqlite::rows(&State::of(home.root()).global(), &query)
}

#[test]
fn a_price_comes_in_to_the_last_digit_whatever_way_it_was_written() {
    let written = ["0.0045179999999999994", "0.0", "1e-7", "5", "3.960E-3"];
    let records: Vec<String> = (1..)
        .zip(written)
        .map(|(number, cost)| record(number, json!("atlas"), cost))
        .collect();
    let (home, _) = home_with(FILE, &lines(&records));

    fix(&home, 0);

    let listed = home.zeroclaw(&["costs", "--json"]).exits(0).json();
    let mut costs: Vec<(String, f64, Value)> = listed["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cost| {
            let id = cost["cost_id"].as_str().unwrap().to_owned();
            let text = cost["cost_usd_text"].clone();
            (id, cost["cost_usd"].as_f64().unwrap(), text)
        })
        .collect();
    costs.sort_by(|a, b| a.0.cmp(&b.0));
    let found: Vec<f64> = costs.iter().map(|cost| cost.1).collect();
    assert_eq!(
        found,
        [0.004_517_999_999_999_999_4, 0.0, 1e-7, 5.0, 0.003_96]
    );
    let texts: Vec<&Value> = costs.iter().map(|cost| &cost.2).collect();
    assert_eq!(
        texts,
        [
            &Value::Null,
            &Value::Null,
            &Value::Null,
            &json!("5"),
            &json!("3.960E-3")
        ]
    );
}

#[test]
fn what_older_releases_did_not_write_has_its_meaning_and_what_no_column_holds_is_kept() {
    let oldest = r#"{"id":"a","usage":{"model":"m","input_tokens":7,"output_tokens":3,"total_tokens":10,"cost_usd":0.5,"timestamp":"2026-02-01T10:00:00.5Z"},"session_id":"s"}"#;
    let renamed = r#"{"id":"b","usage":{"model":"m","input_tokens":7,"output_tokens":3,"total_tokens":11,"cost_usd":0.0,"pricing_available":false,"timestamp":"2026-02-01T12:00:00.5+02:00"},"session_id":"s","task_id":"goal","agent_alias":"gone"}"#;
    let newer = r#"{"id":"c","usage":{"model":"m","cost_usd":1.0,"timestamp":"2026-02-01T10:00:00.5Z","tier":"batch"},"region":{"x":1},"agent_alias":"АГЕНТ"}"#;
    let (home, _) = home_with(
        FILE,
        format!("{oldest}\r\n\n{renamed}\n{newer}\n").as_bytes(),
    );

    let report = fix(&home, 0);

    let columns = "agent_id, cached_input_tokens, total_tokens, has_price, recorded_at_ms, goal_task_id, detail_json";
    assert_eq!(
        rows(&home, columns),
        [
            ["", "0", "10", "1", "1769940000500", "", ""],
            ["gone", "0", "11", "0", "1769940000500", "goal", ""],
            [
                "",
                "0",
                "0",
                "1",
                "1769940000500",
                "",
                r#"{"agent_alias":"АГЕНТ","region":{"x":1},"usage":{"tier":"batch"}}"#
            ],
        ]
    );
    let kept = ("agent-name-kept".to_owned(), "advice".to_owned());
    assert!(findings(&report).contains(&kept));
    // A cost alone makes nobody an agent.
    assert_eq!(State::of(home.root()).agents(), ["atlas"]);
}

#[test]
fn all_places_and_the_name_that_lies_are_generations_of_one_list() {
    let one = |number| record(number, json!("atlas"), "0.5");
    let (home, install) = home_with(FILE, &lines(&[one(1), one(2)]));
    install
        .file("workspace/state/costs.jsonl", &lines(&[one(2), one(3)]))
        .file("data/.zeroclaw/costs.db", &lines(&[one(4)]))
        .file("workspace/.zeroclaw/costs.db", &lines(&[one(1), one(5)]))
        .file(
            "agents/default/workspace/.zeroclaw/costs.db",
            &lines(&[one(6), one(6)]),
        );

    let report = fix(&home, 0);

    assert_eq!(rows(&home, "cost_id").len(), 6);
    assert_eq!(report["total"]["records"], 9);
    assert_eq!(report["total"]["imported"], 6);
    assert_eq!(report["total"]["present"], 3);
    assert!(!install.path("data/.zeroclaw/costs.db").exists());
    home.zeroclaw(&["doctor", "--fix"])
        .exits(0)
        .says("nothing was changed");
}

#[test]
fn c15_glued_torn_and_broken_records_are_parted_and_told_by_place() {
    let [a, b, c, d] = [1, 2, 3, 4].map(|number| record(number, json!("atlas"), "0.5"));
    // Two on a line; one torn by a crash with the next behind it; no JSON; no cost; a last one cut off.
    let bytes = format!(
        "{a}{b}\n{}{c}\nnot one\n{{\"id\":\"x\"}}\n{d}\n{}",
        &b[..60],
        &a[..90]
    );
    let (home, install) = home_with(FILE, bytes.as_bytes());

    let report = fix(&home, 1);

    assert_eq!(rows(&home, "cost_id").len(), 4);
    let source = source(&report, FILE).unwrap();
    assert_eq!(
        source["counts"]["costs"],
        json!({"records": 7, "imported": 4, "present": 0, "merged": 0, "refused": 3})
    );
    let second = a.len() + b.len() + 1;
    let third = second + 60 + c.len() + 1;
    let places: Vec<&str> = source["refused"]
        .as_array()
        .unwrap()
        .iter()
        .map(|refused| refused["place"].as_str().unwrap())
        .collect();
    assert_eq!(
        places,
        [
            format!("line 2 at byte {second}"),
            format!("line 3 at byte {third}"),
            format!("line 4 at byte {}", third + 8),
        ]
    );
    assert_eq!(source["partial_tails"].as_array().unwrap().len(), 1);
    let kept = State::of(home.root()).quarantined().concat();
    let wanted = format!("{}not one{{\"id\":\"x\"}}{}", &b[..60], &a[..90]);
    assert_eq!(String::from_utf8(kept).unwrap(), wanted);
    assert!(!install.path(FILE).exists());
    home.zeroclaw(&["doctor", "--fix"])
        .exits(0)
        .says("nothing was changed");
}

#[test]
fn a_database_under_the_name_of_lines_stays_and_is_told() {
    let bytes = [&b"SQLite format 3\0"[..], &[0; 100]].concat();
    let (home, install) = home_with("data/.zeroclaw/costs.db", &bytes);

    let report = fix(&home, 1);

    let unreadable = ("unreadable-source".to_owned(), "error".to_owned());
    assert!(findings(&report).contains(&unreadable), "{report}");
    assert!(install.path("data/.zeroclaw/costs.db").exists());
}

#[test]
fn c07_a_list_that_comes_back_longer_gives_only_what_is_new() {
    let one = |number, cost| record(number, json!("atlas"), cost);
    let (home, install) = home_with(FILE, &lines(&[one(1, "0.5"), one(2, "0.5")]));
    fix(&home, 0);
    // The second one says another price now: what is there stays.
    install.file(FILE, &lines(&[one(1, "0.5"), one(2, "9.5"), one(3, "0.5")]));

    let report = fix(&home, 0);

    assert_eq!(
        source(&report, FILE).unwrap()["counts"]["costs"],
        json!({"records": 3, "imported": 1, "present": 1, "merged": 1, "refused": 0})
    );
    assert_eq!(rows(&home, "cost_usd"), [["0.5"], ["0.5"], ["0.5"]]);
}

#[test]
fn costs_add_up_by_agent_model_and_day_within_a_span() {
    let records: Vec<String> = (1..=6)
        .map(|number| {
            let agent = if number == 6 {
                Value::Null
            } else {
                json!("atlas")
            };
            record(number, agent, "0.125")
        })
        .collect();
    let (home, _) = home_with(FILE, &lines(&records));
    fix(&home, 0);
    let ask = |args: &[&str]| {
        let args = [&["costs", "--json"], args].concat();
        home.zeroclaw(&args).exits(0).json()
    };

    let by_agent = ask(&["--by", "agent"]);
    let by_day = ask(&["--by", "day", "--from", "2026-09-03", "--to", "2026-09-05"]);
    let by_model = ask(&["--by", "model", "--agent", "atlas"]);
    let page = ask(&["--limit", "2"]);

    let groups = |report: &Value| -> Vec<(Value, i64, f64)> {
        let groups = report["groups"].as_array().unwrap().iter();
        groups
            .map(|group| {
                let calls = group["calls"].as_i64().unwrap();
                (
                    group["group"].clone(),
                    calls,
                    group["cost_usd"].as_f64().unwrap(),
                )
            })
            .collect()
    };
    assert_eq!(
        groups(&by_agent),
        [(json!("atlas"), 5, 0.625), (Value::Null, 1, 0.125)]
    );
    assert_eq!(by_agent["total"]["cost_usd"], 0.75);
    let days = ["2026-09-05", "2026-09-04", "2026-09-03"];
    assert_eq!(groups(&by_day), days.map(|day| (json!(day), 1, 0.125)));
    assert_eq!(groups(&by_model), [(json!("lark/large"), 5, 0.625)]);
    assert_eq!(page["items"].as_array().unwrap().len(), 2);
    assert_eq!(page["total"]["calls"], 6);
    assert_eq!(page["total"]["input_tokens"], 21);
    home.zeroclaw(&["costs"])
        .exits(0)
        .says("0.750000 USD for 6 calls");
    home.zeroclaw(&["costs", "--from", "tomorrow"]).exits(2);
}
