//! What plugins keep: under limits, until its time, claimed once, and brought up to date by the plugin alone.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use zeroclaw::model::{MigrationStatus, NamespaceKind, PageLimit, PluginBinding};
use zeroclaw::service::{
    Clock, Expect, HolderKind, KeyClaim, NamespaceVersion, PluginFault, PluginNamespace,
    PluginProvider, PluginQuery, Plugins, Service, ServiceError,
};

use super::{NOW, folder, service};
use crate::support::sandbox::Sandbox;
use crate::support::sqlite::block_on;

const HOUR: Duration = Duration::from_secs(60 * 60);
const HOUR_MS: i64 = 60 * 60 * 1_000;

fn durable(plugins: &Plugins, name: &str) -> PluginNamespace {
    plugins
        .namespace("telegram", name, NamespaceKind::Durable)
        .unwrap()
}

async fn put(namespace: &PluginNamespace, key: &str, value: Value) -> Result<i64, ServiceError> {
    namespace.put(key, &value, Expect::Anything, None).await
}

async fn keys(namespace: &PluginNamespace) -> Vec<String> {
    let page = namespace.list(None, PageLimit::default()).await.unwrap();
    page.items
        .into_iter()
        .map(|entry| entry.entry_key)
        .collect()
}

/// A root whose plugins may keep so much.
async fn limited(root: &std::path::Path, limits: &str, clock: Clock) -> Service {
    std::fs::write(
        root.join("config.toml"),
        format!("[state.plugins]\n{limits}\n"),
    )
    .unwrap();
    service(root, clock).await
}

#[tokio::test]
async fn a_value_is_written_only_over_the_version_that_was_seen() {
    let dir = folder();
    let service = service(dir.path(), Clock::fixed(NOW)).await;
    let cursors = durable(&service.plugins(), "update-offsets");

    let first = cursors
        .put("main", &json!({"id": 7}), Expect::Absent, None)
        .await
        .unwrap();
    let second = cursors
        .put("main", &json!({"id": 8}), Expect::Version(first), None)
        .await
        .unwrap();

    assert_eq!((first, second), (1, 2));
    for stale in [Expect::Absent, Expect::Version(first)] {
        let refused = cursors.put("main", &json!(0), stale, None).await;
        assert!(matches!(refused, Err(ServiceError::Conflict { .. })));
    }
    let found = cursors.get("main").await.unwrap().unwrap();
    assert_eq!((found.value, found.version), (Some(json!({"id": 8})), 2));
    assert!(cursors.delete("main").await.unwrap());
    assert!(cursors.get("main").await.unwrap().is_none());
    service.close().await;
}

#[tokio::test]
async fn what_has_expired_is_not_there_and_is_swept_later() {
    let dir = folder();
    let clock = Clock::fixed(NOW);
    let service = service(dir.path(), clock.clone()).await;
    let plugins = service.plugins();
    let seen = durable(&plugins, "sent-messages");
    seen.put("short", &json!(1), Expect::Anything, Some(HOUR))
        .await
        .unwrap();
    put(&seen, "long", json!(1)).await.unwrap();
    seen.put_blob("short", &json!({}), vec![1], Some(HOUR))
        .await
        .unwrap();

    clock.advance(HOUR_MS);

    assert_eq!(keys(&seen).await, ["long"]);
    assert!(seen.get("short").await.unwrap().is_none());
    assert!(seen.get_blob("short").await.unwrap().is_none());
    assert_eq!(plugins.list().await.unwrap()[0].rows, 3);
    assert_eq!(plugins.expire().await.unwrap(), 2);
    assert_eq!(plugins.list().await.unwrap()[0].rows, 1);
    service.close().await;
}

#[tokio::test]
async fn a_full_plugin_is_told_which_limit_how_full_and_what_frees_it_and_then_writes_again() {
    for (limits, what, used, most) in [
        ("max_rows = 3", "rows", 3, 3),
        ("max_bytes = 70", "bytes", 66, 70),
    ] {
        let dir = folder();
        let service = limited(dir.path(), limits, Clock::fixed(NOW)).await;
        let plugins = service.plugins();
        let conversations = durable(&plugins, "conversations");
        for key in ["k1", "k2", "k3"] {
            put(&conversations, key, json!("eighteen signs ..."))
                .await
                .unwrap();
        }
        let before = plugins.list().await.unwrap();

        let refused = put(&durable(&plugins, "other"), "key4", json!("value")).await;

        let error = refused.unwrap_err();
        assert!(
            matches!(&error, ServiceError::PluginFull { what: of, used: held, most: limit, .. }
                if (*of, *held, *limit) == (what, used, most)),
            "{error:?}"
        );
        assert!(
            error
                .to_string()
                .contains(&format!("{used} of {most} {what}"))
        );
        let hint = error.hint().unwrap();
        let command = "zeroclaw plugins clear telegram --namespace conversations --yes";
        assert!(hint.contains(command), "{hint}");
        assert_eq!(plugins.list().await.unwrap(), before);
        // Another plugin has limits of its own, and what is there may be written over.
        let matrix = plugins
            .namespace("matrix", "x", NamespaceKind::Durable)
            .unwrap();
        put(&matrix, "key", json!(1)).await.unwrap();
        put(&conversations, "k1", json!("short")).await.unwrap();

        plugins
            .clear("telegram", Some("conversations"), false)
            .await
            .unwrap();
        put(&durable(&plugins, "other"), "key4", json!("value"))
            .await
            .unwrap();
        service.close().await;
    }
}

#[tokio::test]
async fn a_full_plugin_loses_what_has_expired_first_and_then_the_oldest_of_a_cache() {
    let dir = folder();
    let clock = Clock::fixed(NOW);
    let service = limited(dir.path(), "max_rows = 4", clock.clone()).await;
    let plugins = service.plugins();
    let kept = durable(&plugins, "kept");
    let cache = plugins
        .namespace("telegram", "cache", NamespaceKind::Cache)
        .unwrap();
    put(&kept, "a", json!(1)).await.unwrap();
    kept.put("gone", &json!(1), Expect::Anything, Some(HOUR))
        .await
        .unwrap();
    for key in ["one", "two"] {
        clock.advance(1);
        put(&cache, key, json!(1)).await.unwrap();
    }
    clock.advance(HOUR_MS);

    put(&cache, "three", json!(1)).await.unwrap();
    assert_eq!(keys(&cache).await, ["one", "three", "two"]);
    clock.advance(1);
    put(&cache, "four", json!(1)).await.unwrap();

    assert_eq!(keys(&cache).await, ["four", "three", "two"]);
    assert_eq!(keys(&kept).await, ["a"]);
    let refused = put(&kept, "b", json!(1)).await;
    assert!(matches!(refused, Err(ServiceError::PluginFull { .. })));
    service.close().await;
}

#[tokio::test]
async fn a_cache_makes_room_for_bytes_and_refuses_what_can_never_fit() {
    let dir = folder();
    let clock = Clock::fixed(NOW);
    let service = limited(dir.path(), "max_bytes = 1000", clock.clone()).await;
    let cache = service
        .plugins()
        .namespace("telegram", "pictures", NamespaceKind::Cache)
        .unwrap();
    for number in 0..9 {
        clock.advance(1);
        cache
            .put_blob(&format!("p{number}"), &json!(null), vec![7; 94], None)
            .await
            .unwrap();
    }

    cache
        .put_blob("large", &json!(null), vec![7; 500], None)
        .await
        .unwrap();
    let refused = cache
        .put_blob("never", &json!(null), vec![7; 2_000], None)
        .await;

    assert!(matches!(
        refused,
        Err(ServiceError::PluginFull { what: "bytes", .. })
    ));
    // Oldest first, no more than needed: 100 bytes each, 509 for the large one.
    assert!(cache.get_blob("p4").await.unwrap().is_none());
    let found = cache.get_blob("p5").await.unwrap().unwrap();
    assert_eq!(found.bytes, [7; 94]);
    assert!(cache.get_blob("large").await.unwrap().is_some());
    service.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_1000_concurrent_claims_of_one_dedupe_key_one_wins() {
    let dir = folder();
    let clock = Clock::fixed(NOW);
    let service = service(dir.path(), clock.clone()).await;
    // Half through the root's own writer, half through connections of their own, as other processes have.
    let mut plugins = vec![service.plugins()];
    for _ in 0..3 {
        plugins.push(Plugins::open(dir.path(), clock.clone()).await.unwrap());
    }
    let claims = (0..1_000).map(|number| {
        let namespace = durable(&plugins[number % plugins.len()], "inbound-dedupe");
        tokio::spawn(async move {
            namespace
                .claim("message-1", &format!("worker {number}"), HOUR)
                .await
                .unwrap()
        })
    });
    let claims: Vec<_> = claims.collect();
    let (mut won, mut held) = (Vec::new(), Vec::new());
    for claim in claims {
        match claim.await.unwrap() {
            KeyClaim::Won(key) => won.push(key),
            KeyClaim::Held(key) => held.push(key),
        }
    }

    assert_eq!((won.len(), held.len()), (1, 999));
    assert!(held.iter().all(|key| *key == won[0]));
    for beside in plugins.drain(1..) {
        beside.close().await;
    }
    service.close().await;
}

#[tokio::test]
async fn a_claim_expires_under_a_moved_clock_and_never_early() {
    let dir = folder();
    let clock = Clock::fixed(NOW);
    let service = service(dir.path(), clock.clone()).await;
    let dedupe = durable(&service.plugins(), "inbound-dedupe");
    let KeyClaim::Won(first) = dedupe.claim("m", "one", HOUR).await.unwrap() else {
        panic!("nobody else claims");
    };

    for at in [HOUR_MS - 1, -24 * HOUR_MS] {
        clock.set(NOW + at);
        let again = dedupe.claim("m", "two", HOUR).await.unwrap();
        assert_eq!(again, KeyClaim::Held(first.clone()), "{at}");
    }
    clock.set(NOW + HOUR_MS);
    let KeyClaim::Won(second) = dedupe.claim("m", "two", HOUR).await.unwrap() else {
        panic!("the first claim is over");
    };

    assert_eq!(second.owner, "two");
    // Who comes late cannot keep or give up what is another's now.
    assert!(!dedupe.keep_claim("m", &first, HOUR).await.unwrap());
    assert!(!dedupe.release_claim("m", &first).await.unwrap());
    assert!(dedupe.release_claim("m", &second).await.unwrap());
    assert!(matches!(
        dedupe.claim("m", "three", HOUR).await.unwrap(),
        KeyClaim::Won(_)
    ));
    let written = put(&dedupe, "m", json!(1)).await;
    assert!(matches!(written, Err(ServiceError::Conflict { .. })));
    service.close().await;
}

#[tokio::test]
async fn a_claim_that_is_kept_lasts_for_as_long_as_was_said() {
    let dir = folder();
    let clock = Clock::fixed(NOW);
    let service = service(dir.path(), clock.clone()).await;
    let dedupe = durable(&service.plugins(), "inbound-dedupe");
    let KeyClaim::Won(claim) = dedupe.claim("m", "one", HOUR).await.unwrap() else {
        panic!("nobody else claims");
    };

    assert!(dedupe.keep_claim("m", &claim, 24 * HOUR).await.unwrap());
    clock.advance(23 * HOUR_MS);

    let again = dedupe.claim("m", "two", HOUR).await.unwrap();
    assert!(matches!(again, KeyClaim::Held(held) if held.owner == "one"));
    service.close().await;
}

/// Writes `{"n": …}` from version 2 on, and cannot read a text.
#[derive(Debug)]
struct Counter(i64);

impl PluginProvider for Counter {
    fn plugin_id(&self) -> &str {
        "telegram"
    }

    fn namespaces(&self) -> Vec<NamespaceVersion> {
        vec![NamespaceVersion {
            name: "counts".to_owned(),
            version: self.0,
        }]
    }

    fn migrate(
        &self,
        _namespace: &str,
        from: i64,
        key: &str,
        value: Value,
    ) -> Result<Option<Value>, PluginFault> {
        match (from, value) {
            (_, Value::String(_)) => Err(PluginFault(format!("{key} is a text"))),
            (_, Value::Null) => Ok(None),
            (1, Value::Number(number)) => Ok(Some(json!({ "n": number }))),
            (_, value) => Ok(Some(value)),
        }
    }
}

#[tokio::test]
async fn a_plugin_brings_its_own_values_up_to_date_once_and_it_is_recorded() {
    let dir = folder();
    let service = service(dir.path(), Clock::fixed(NOW)).await;
    let plugins = service.plugins();
    let counts = durable(&plugins, "counts");
    // What is there before a plugin ever said a version is of version 0.
    for (key, value) in [("a", json!(1)), ("b", json!({"n": 2})), ("c", json!(null))] {
        put(&counts, key, value).await.unwrap();
    }

    let done = plugins.register(Arc::new(Counter(2))).await.unwrap();
    let again = plugins.register(Arc::new(Counter(2))).await.unwrap();

    let one = &done[0];
    assert_eq!((one.from, one.to), (0, 2));
    assert_eq!((one.changed, one.dropped, one.kept), (1, 1, 1));
    assert_eq!(again[0].run_id, None);
    let found = counts.get("a").await.unwrap().unwrap();
    assert_eq!(found.value, Some(json!({"n": 1})));
    let shown = plugins.show("telegram", &PluginQuery::default()).await;
    let runs = shown.unwrap().migrations;
    assert_eq!(runs.len(), 1);
    assert_eq!(Some(&runs[0].id), one.run_id.as_ref());
    assert_eq!(runs[0].status, MigrationStatus::Completed);
    // An older plugin does not touch what a newer one wrote.
    let older = plugins.register(Arc::new(Counter(1))).await;
    assert!(matches!(older, Err(ServiceError::Conflict { .. })));
    service.close().await;
}

#[tokio::test]
async fn a_migration_that_fails_leaves_the_namespace_as_it_was_and_is_recorded() {
    let dir = folder();
    let service = service(dir.path(), Clock::fixed(NOW)).await;
    let plugins = service.plugins();
    let counts = durable(&plugins, "counts");
    put(&counts, "a", json!(1)).await.unwrap();
    put(&counts, "z", json!("text")).await.unwrap();

    let failed = plugins.register(Arc::new(Counter(2))).await.unwrap_err();

    assert!(failed.to_string().contains("z is a text"), "{failed}");
    let found = counts.get("a").await.unwrap().unwrap();
    assert_eq!(found.value, Some(json!(1)));
    let shown = plugins.show("telegram", &PluginQuery::default()).await;
    let runs = shown.unwrap().migrations;
    assert_eq!(runs[0].status, MigrationStatus::Failed);
    // Once the plugin can read it, it goes through.
    counts.delete("z").await.unwrap();
    let done = plugins.register(Arc::new(Counter(2))).await.unwrap();
    assert_eq!(done[0].changed, 1);
    service.close().await;
}

#[tokio::test]
async fn a_plugin_answers_only_where_the_one_of_its_folder_was_allowed_to() {
    let dir = folder();
    let service = service(dir.path(), Clock::fixed(NOW)).await;
    let plugins = service.plugins();
    let binding = PluginBinding {
        plugin_root: "/opt/telegram".to_owned(),
        channel: "telegram".to_owned(),
        account_id: "main".to_owned(),
        plugin_id: "telegram".to_owned(),
        plugin_name: None,
        approved_at_ms: NOW,
    };
    plugins.approve_binding(binding).await.unwrap();

    let mut answers = Vec::new();
    for (root, id, account) in [
        ("/opt/telegram", "telegram", "main"),
        ("/tmp/telegram", "telegram", "main"),
        ("/opt/telegram", "other", "main"),
        ("/opt/telegram", "telegram", "second"),
    ] {
        let may = plugins.is_bound(root, id, "telegram", account);
        answers.push(may.await.unwrap());
    }

    assert_eq!(answers, [true, false, false, false]);
    let gone = plugins.revoke_binding("/opt/telegram", "telegram", "main");
    assert!(gone.await.unwrap());
    assert!(plugins.bindings(None).await.unwrap().is_empty());
    service.close().await;
}

#[tokio::test]
async fn names_and_values_that_cannot_be_taken_are_refused() {
    let dir = folder();
    let service = service(dir.path(), Clock::fixed(NOW)).await;
    let plugins = service.plugins();

    for (plugin, namespace) in [
        ("", "x"),
        ("a b", "x"),
        ("a;rm", "x"),
        ("a", "@versions"),
        ("a", "é"),
    ] {
        let refused = plugins.namespace(plugin, namespace, NamespaceKind::Durable);
        assert!(matches!(refused, Err(ServiceError::Invalid { .. })));
    }
    let large = json!("x".repeat(1024 * 1024));
    let refused = put(&durable(&plugins, "x"), "key", large).await;
    assert!(matches!(refused, Err(ServiceError::Invalid { .. })));
    service.close().await;
}

#[test]
fn plugins_are_listed_shown_without_values_and_cleared_by_commands() {
    let home = Sandbox::new();
    home.zeroclaw(&["init"]).exits(0);
    block_on(async {
        let opened = Service::open(&home.root(), Clock::system(), HolderKind::Cli).await;
        let service = opened.unwrap();
        let tokens = durable(&service.plugins(), "sso-tokens");
        put(&tokens, "user", json!("canary-token")).await.unwrap();
        service.close().await;
    });

    home.zeroclaw(&["plugins", "list"])
        .exits(0)
        .says("telegram");
    for hidden in [
        &["plugins", "show", "telegram"][..],
        &["plugins", "show", "telegram", "--json"],
    ] {
        let shown = home.zeroclaw(hidden).exits(0);
        let shown = shown.says("sso-tokens");
        assert!(!shown.stdout.contains("canary-token"));
    }
    home.zeroclaw(&["plugins", "show", "telegram", "--values"])
        .exits(0)
        .says("canary-token");
    let clear = ["plugins", "clear", "telegram", "--namespace", "sso-tokens"];
    home.zeroclaw(&clear).exits(10);
    home.zeroclaw(&[&clear[..], &["--dry-run"]].concat())
        .exits(0)
        .says("to delete");
    home.zeroclaw(&[&clear[..], &["--yes"]].concat())
        .exits(0)
        .says("deleted");
    home.zeroclaw(&["plugins", "show", "telegram"]).exits(9);
}
