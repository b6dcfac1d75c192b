//! Paired devices: what opened before opens after, and nothing else does.

use serde_json::{Value, json};
use zeroclaw::model::{PairedDevice, TokenStatus};
use zeroclaw::service::{Clock, Service};

use super::state::{State, digest_of, findings, source};
use crate::support::legacy::LegacyInstall;
use crate::support::recipe::{self, sha256_hex};
use crate::support::sandbox::Sandbox;
use crate::support::secrets::{enc, enc2, sealed_hash};
use crate::support::sqlite::{self, Journal, block_on};

const DEVICES: &str = "data/devices.db";
const CONFIG: &str = "config.toml";

/// A token as a client has it.
fn token(name: &str) -> String {
    format!("zc_{}", sha256_hex(name.as_bytes()))
}

fn config(entries: &[String]) -> String {
    let list: Vec<String> = entries.iter().map(|entry| format!("{entry:?}")).collect();
    format!(
        "schema_version = 3\n[agents.atlas]\n[gateway]\nport = 1\npaired_tokens = [{}]\n",
        list.join(", ")
    )
}

/// A row of the store; `day` of September 2026 is when it was last seen.
fn device(name: &str, id: &str, day: u32) -> String {
    format!(
        "INSERT INTO devices (token_hash, id, name, device_type, paired_at, last_seen, ip_address)
         VALUES ('{}', '{id}', '{name}', 'phone', '2026-08-01T08:00:00+00:00', '2026-09-{day:02}T09:00:00.5+00:00', '192.0.2.7');",
        sha256_hex(token(name).as_bytes())
    )
}

/// A home whose configuration lists these names, sealed as current releases do.
fn home_of(paired: &[&str]) -> (Sandbox, LegacyInstall) {
    let home = Sandbox::in_memory();
    let install = LegacyInstall::new(home.root());
    let entries: Vec<String> = paired
        .iter()
        .map(|name| sealed_hash(&token(name)))
        .collect();
    install.config(&config(&entries)).secret_key();
    (home, install)
}

fn fix(home: &Sandbox, code: i32) -> Value {
    let ran = home.zeroclaw(&["doctor", "--fix", "--json"]).exits(code);
    for name in ["one", "two", "three", "four"] {
        let hash = sha256_hex(token(name).as_bytes());
        for secret in [&token(name), &hash] {
            assert!(!ran.told().contains(secret.as_str()), "{}", ran.told());
        }
    }
    ran.json()
}

/// The device a token opens as, if it does.
fn opens(home: &Sandbox, token: &str) -> Option<PairedDevice> {
    block_on(async {
        let service = Service::look(&home.root(), Clock::system()).await.unwrap();
        let found = service.verify_device(token).await.unwrap();
        service.close().await;
        found
    })
}

fn listed(home: &Sandbox) -> Vec<(String, String)> {
    let list = home
        .zeroclaw(&["devices", "list", "--json"])
        .exits(0)
        .json();
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let mut rows: Vec<_> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (text(&row["display_name"]), text(&row["status"])))
        .collect();
    rows.sort();
    rows
}

fn all(n: u64) -> Value {
    json!({"records": n, "imported": n, "present": 0, "merged": 0, "refused": 0})
}

#[test]
fn c33_every_paired_device_of_every_release_still_opens_and_no_other_does() {
    for ddl in ["devices_v0_5.sql", "devices_v0_8.sql"] {
        let (home, install) = home_of(&["one", "two", "three"]);
        let rows = [
            device("one", "d1", 1),
            device("two", "d2", 2),
            device("four", "d4", 4),
        ];
        install.sqlite(DEVICES, ddl, &[&rows.concat()]);

        let report = fix(&home, 0);

        assert_eq!(
            source(&report, DEVICES).unwrap()["counts"]["devices"],
            all(3)
        );
        let list = &source(&report, CONFIG).unwrap()["counts"]["devices"];
        assert_eq!(
            (&list["imported"], &list["present"]),
            (&json!(1), &json!(2))
        );
        let one = opens(&home, &token("one")).unwrap();
        assert_eq!(one.device_id, "d1");
        assert_eq!(one.last_seen_at_ms, Some(1_788_253_200_500));
        assert_eq!(one.remote_ip.as_deref(), Some("192.0.2.7"));
        assert_eq!(opens(&home, &token("two")).unwrap().device_id, "d2");
        assert!(opens(&home, &token("three")).unwrap().is_bare());
        // In the store, and not in the list: revoked long ago.
        assert_eq!(opens(&home, &token("four")), None);
        for no_token in ["", "zc_", &sha256_hex(token("one").as_bytes()), "four"] {
            assert_eq!(opens(&home, no_token), None, "{no_token}");
        }
        assert!(findings(&report).contains(&("revoked-device".to_owned(), "advice".to_owned())));
        assert_eq!(
            listed(&home),
            [
                ("-", "active"),
                ("four", "revoked"),
                ("one", "active"),
                ("two", "active")
            ]
            .map(|(name, status)| (name.to_owned(), status.to_owned()))
        );
        assert!(!install.path(DEVICES).exists());
    }
}

#[test]
fn a_list_without_a_store_is_enough_in_each_form_a_value_can_have() {
    let home = Sandbox::in_memory();
    let install = LegacyInstall::new(home.root());
    let hash = |name: &str| sha256_hex(token(name).as_bytes());
    let entries = [
        enc2(&hash("one")),
        enc(&hash("two")),
        hash("three"),
        token("four"),
        enc2(&token("five")),
        enc(&token("six")),
    ];
    install.config(&config(&entries)).secret_key();
    let before = digest_of(&install.path(CONFIG));

    let report = fix(&home, 0);

    assert_eq!(
        source(&report, CONFIG).unwrap()["counts"]["devices"],
        all(6)
    );
    for name in ["one", "two", "three", "four", "five", "six"] {
        assert!(opens(&home, &token(name)).is_some(), "{name}");
        // Neither the token nor its place is in any file of ours.
        for file in walkdir::WalkDir::new(home.root().join("state")) {
            let file = file.unwrap();
            if file.file_type().is_file() {
                let bytes = std::fs::read(file.path()).unwrap();
                let needle = token(name).into_bytes();
                let is_in = bytes.windows(needle.len()).any(|part| part == needle);
                assert!(!is_in, "{name} in {}", file.path().display());
            }
        }
    }
    assert_eq!(digest_of(&install.path(CONFIG)), before);
    assert_eq!(source(&report, CONFIG).unwrap()["now_at"], CONFIG);
}

#[test]
fn other_changes_of_the_configuration_bring_nothing_in_again() {
    let (home, install) = home_of(&["one"]);
    fix(&home, 0);
    let sealed = sealed_hash(&token("one"));
    // Saved by the old program: a setting changed, and every value sealed anew or not at all.
    for entry in [sealed, sha256_hex(token("one").as_bytes())] {
        install.config(&(config(&[entry]) + "[heartbeat]\nagent = 'atlas'\n"));
        let before = home.tree();

        let looked = home.zeroclaw(&["doctor", "--json"]).exits(0).json();
        home.zeroclaw(&["doctor", "--fix"])
            .exits(0)
            .says("nothing was changed");

        assert_eq!(source(&looked, CONFIG).unwrap()["status"], "done");
        home.is_unchanged_since(&before);
    }

    install.config(&config(&[token("two"), token("one")]));
    let report = fix(&home, 0);

    let counts = &source(&report, CONFIG).unwrap()["counts"]["devices"];
    assert_eq!(
        (&counts["imported"], &counts["present"]),
        (&json!(1), &json!(1))
    );
    assert!(opens(&home, &token("two")).is_some());
}

#[test]
fn without_the_right_key_no_device_is_let_in_and_with_it_they_all_are() {
    for wrong in [None, Some("0".repeat(64)), Some("too short".to_owned())] {
        let (home, install) = home_of(&["one", "two"]);
        install.sqlite(DEVICES, "devices_v0_8.sql", &[&device("one", "d1", 1)]);
        let key = install.path(".secret_key");
        match wrong {
            None => std::fs::remove_file(&key).unwrap(),
            Some(text) => std::fs::write(&key, text).unwrap(),
        }

        let report = fix(&home, 1);

        assert_eq!(opens(&home, &token("one")), None);
        assert_eq!(listed(&home), [("one".to_owned(), "unverified".to_owned())]);
        assert_eq!(
            source(&report, CONFIG).unwrap()["counts"]["devices"]["refused"],
            2
        );
        let told = report["findings"].as_array().unwrap().iter();
        let told: Vec<_> = told.filter(|it| it["code"] == "sealed-tokens").collect();
        assert_eq!(told.len(), 1);
        assert!(told[0]["remedy"].as_str().unwrap().contains(".secret_key"));
        let before = home.tree();
        fix(&home, 1);
        home.is_unchanged_since(&before);

        install.secret_key();
        fix(&home, 0);

        assert_eq!(opens(&home, &token("one")).unwrap().device_id, "d1");
        assert!(opens(&home, &token("two")).is_some());
    }
}

#[test]
fn c07_a_revoked_device_stays_revoked_when_its_old_files_come_back() {
    let (home, install) = home_of(&["one", "two"]);
    let rows = device("one", "d1", 1) + &device("two", "d2", 2);
    install.sqlite(DEVICES, "devices_v0_8.sql", &[&rows]);
    let old = std::fs::read(install.path(DEVICES)).unwrap();
    fix(&home, 0);

    home.zeroclaw(&["devices", "revoke", "nobody"]).exits(9);
    home.zeroclaw(&["devices", "revoke", "d1"]).exits(0);
    assert_eq!(opens(&home, &token("one")), None);
    // As it was, then with a row more and the revoked one seen since.
    install.file(DEVICES, &old);
    fix(&home, 0);
    install.file(DEVICES, &old).alter(
        DEVICES,
        Journal::Wal,
        &(device("three", "d3", 3)
            + "UPDATE devices SET last_seen = '2026-09-30T00:00:00+00:00' WHERE id = 'd1'"),
    );
    let entries = ["one", "two", "three"].map(|name| sealed_hash(&token(name)));
    install.config(&config(&entries));
    fix(&home, 0);

    assert_eq!(opens(&home, &token("one")), None);
    assert!(opens(&home, &token("two")).is_some());
    assert_eq!(opens(&home, &token("three")).unwrap().device_id, "d3");
    let list = home
        .zeroclaw(&["devices", "list", "--json"])
        .exits(0)
        .json();
    let one = list
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["device_id"] == "d1")
        .unwrap();
    assert_eq!(
        (&one["status"], &one["status_reason"]),
        (&json!("revoked"), &json!("revoked by hand"))
    );
    assert_eq!(one["token"].as_str().unwrap().chars().count(), 9);
}

#[test]
fn of_two_generations_the_device_seen_last_is_told_and_both_tokens_open() {
    let (home, install) = home_of(&["one", "two", "three"]);
    install
        .sqlite(
            "workspace/devices.db",
            "devices_v0_5.sql",
            &[&(device("one", "d1", 9) + &device("two", "same", 9))],
        )
        .sqlite(
            DEVICES,
            "devices_v0_8.sql",
            &[&(device("one", "d1", 3) + &device("three", "same", 12))],
        );

    let report = fix(&home, 0);

    assert_eq!(report["total"]["refused"], 0);
    let one = opens(&home, &token("one")).unwrap();
    assert_eq!(one.last_seen_at_ms, Some(1_788_944_400_500));
    // One device with two tokens: the newer row names it.
    for name in ["two", "three"] {
        let same = opens(&home, &token(name)).unwrap();
        assert_eq!(
            (same.device_id.as_str(), same.display_name.as_deref()),
            ("same", Some("three"))
        );
    }
    home.zeroclaw(&["doctor", "--fix"])
        .exits(0)
        .says("nothing was changed");
}

#[test]
fn a_log_that_the_upgrade_left_in_the_workspace_is_read_with_its_own_database() {
    let (home, install) = home_of(&["one", "two"]);
    let old = sqlite::pair(
        &recipe::ddl("devices_v0_5.sql"),
        &[&device("one", "d1", 1)],
        &[&device("two", "d2", 2)],
    );
    install
        .file(
            "backup-20260101T000000/legacy-workspace/devices.db",
            &old.main,
        )
        .file(
            "backup-20260101T000000/legacy-workspace/devices.db-wal",
            &old.wal,
        )
        .file("agents/default/workspace/devices.db-wal", &old.wal)
        .sqlite(DEVICES, "devices_v0_8.sql", &[&device("one", "d1", 8)]);

    fix(&home, 0);

    assert_eq!(opens(&home, &token("two")).unwrap().device_id, "d2");
    assert!(
        !install
            .path("agents/default/workspace/devices.db-wal")
            .exists()
    );
    assert!(
        install
            .path("backup-20260101T000000/legacy-workspace/devices.db-wal")
            .exists()
    );
}

#[test]
fn odd_rows_come_in_as_far_as_they_can_be_read_and_others_are_named() {
    let (home, install) = home_of(&["one", "two"]);
    let odd = format!(
        "INSERT INTO devices VALUES ('{}', '', X'6162ff', 'phone', 'yesterday', '9999-12-31T23:59:59+00:00', NULL, NULL, 'x');
         INSERT INTO devices VALUES ('{}', 'd3', 'a token for a digest', NULL, '', '', NULL, NULL, NULL);",
        sha256_hex(token("two").as_bytes()),
        token("three"),
    );
    let later = "ALTER TABLE devices ADD COLUMN from_later TEXT;";
    install.sqlite(
        DEVICES,
        "devices_v0_8.sql",
        &[later, &device("one", "d1", 1), &odd],
    );

    let report = fix(&home, 1);

    let devices = source(&report, DEVICES).unwrap();
    assert_eq!(devices["counts"]["devices"]["refused"], 1);
    assert_eq!(devices["refused"][0]["place"], "table devices, row 3");
    let two = opens(&home, &token("two")).unwrap();
    assert_eq!(two.display_name.as_deref(), Some("ab\u{fffd}"));
    assert_eq!(
        (two.paired_at_ms, two.last_seen_at_ms),
        (None, Some(253_402_300_799_000))
    );
    assert_eq!(two.status, TokenStatus::Active);
    let codes: Vec<String> = findings(&report).into_iter().map(|found| found.0).collect();
    for code in ["odd-value", "unknown-columns", "refused-record"] {
        assert!(
            codes.iter().any(|found| found == code),
            "{code} in {codes:?}"
        );
    }
    assert!(State::of(home.root()).complaints().is_empty());
    // Not even the kept bytes of a refused row hold what may be a token.
    for kept in State::of(home.root()).quarantined() {
        assert!(!String::from_utf8_lossy(&kept).contains(&token("three")));
    }
}

#[test]
fn a_list_that_came_along_from_a_foreign_root_is_not_brought_in_twice() {
    let home = Sandbox::in_memory();
    let foreign = LegacyInstall::new(home.home().join("old"));
    foreign
        .config(&config(&[sealed_hash(&token("one"))]))
        .secret_key()
        .sqlite(DEVICES, "devices_v0_8.sql", &[&device("one", "d1", 1)]);
    let from = foreign.root().to_str().unwrap().to_owned();

    home.zeroclaw(&["doctor", "--fix", "--from", &from])
        .exits(0);
    let looked = home.zeroclaw(&["doctor", "--json"]).exits(0).json();

    assert_eq!(source(&looked, CONFIG).unwrap()["status"], "done");
    assert_eq!(opens(&home, &token("one")).unwrap().device_id, "d1");
}

#[test]
fn without_a_configuration_no_device_is_let_in_until_it_is_back() {
    let home = Sandbox::in_memory();
    let install = LegacyInstall::new(home.root());
    install.sqlite(DEVICES, "devices_v0_8.sql", &[&device("one", "d1", 1)]);

    let report = fix(&home, 1);

    let told = report["findings"].as_array().unwrap().iter();
    let told: Vec<_> = told.filter(|it| it["code"] == "unknown-pairing").collect();
    assert!(
        told[0]["remedy"]
            .as_str()
            .unwrap()
            .contains("pair the devices again")
    );
    assert_eq!(listed(&home), [("one".to_owned(), "unverified".to_owned())]);

    install.config(&config(&[token("one")]));
    fix(&home, 0);

    assert_eq!(opens(&home, &token("one")).unwrap().device_id, "d1");
}
