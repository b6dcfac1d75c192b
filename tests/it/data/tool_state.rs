//! What tools keep in memory is whose it is, and no longer than it is good.

use std::sync::atomic::{AtomicUsize, Ordering};

use zeroclaw::model::{AgentId, ErrorKind};
use zeroclaw::service::{Clock, HolderKind, Isolation, Lifetime, Service, ToolCaller, ToolState};

async fn open(dir: &std::path::Path) -> Service {
    let opened = Service::init(dir, Clock::system(), HolderKind::Daemon).await;
    opened.unwrap().0
}

fn caller(service: &Service, agent: &str, session: &str) -> ToolCaller {
    ToolCaller {
        client: service.admit_client(),
        agent: AgentId::new(agent).unwrap(),
        session_id: session.to_owned(),
    }
}

#[tokio::test]
async fn nobody_sees_what_is_anothers() {
    let dir = tempfile::tempdir().unwrap();
    let service = open(dir.path()).await;
    let first = caller(&service, "atlas", "s1");
    // As much the same as a stranger can make itself.
    let stranger = caller(&service, "atlas", "s1");
    let elsewhere = ToolCaller {
        session_id: "s2".to_owned(),
        ..first.clone()
    };
    let other_agent = ToolCaller {
        agent: AgentId::new("birch").unwrap(),
        ..first.clone()
    };
    for (isolation, name, shares) in [
        (Isolation::Client, "browser", [true, true]),
        (Isolation::Agent, "notebook", [true, false]),
        (Isolation::Session, "shell", [false, false]),
    ] {
        let state: ToolState<&str> = service
            .tool_state(name, isolation, Lifetime::Generation)
            .unwrap();
        state.of(&first, || "mine");

        assert_eq!(state.get(&stranger), None, "{name}");
        assert_eq!(*state.of(&stranger, || "another's"), "another's");
        let seen = [&elsewhere, &other_agent].map(|caller| state.get(caller).is_some());
        assert_eq!(seen, shares, "{name}");
        assert_eq!(*state.of(&first, || "new"), "mine");
        state.end_client(&first.client);
        assert_eq!(state.get(&first), None);
        assert!(state.get(&stranger).is_some());
    }
    service.close().await;
}

#[tokio::test]
async fn a_reload_makes_it_stale_but_for_what_is_shown() {
    let dir = tempfile::tempdir().unwrap();
    let service = open(dir.path()).await;
    let state = |name, lifetime| -> ToolState<usize> {
        service
            .tool_state(name, Isolation::Session, lifetime)
            .unwrap()
    };
    let (key, shown) = (
        state("key", Lifetime::Generation),
        state("shown", Lifetime::Display),
    );
    let caller = caller(&service, "atlas", "s1");
    let made = AtomicUsize::new(0);
    let make = || made.fetch_add(1, Ordering::Relaxed);
    let (old, _) = (key.of(&caller, make), shown.of(&caller, make));

    service.reload().unwrap();

    assert_eq!(key.get(&caller), None);
    assert!(shown.get(&caller).is_some());
    assert_ne!(key.of(&caller, make), old);
    assert_eq!((key.sweep(), shown.sweep()), (0, 0));
    service.reload().unwrap();
    assert_eq!((key.sweep(), shown.sweep()), (1, 0));
    service.close().await;
}

#[tokio::test]
async fn a_name_is_one_tools_until_its_handle_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let service = open(dir.path()).await;
    let named = |name| service.tool_state::<String>(name, Isolation::Client, Lifetime::Display);
    let first = named("browser").unwrap();
    let clone = first.clone();

    drop(first);
    assert_eq!(named("browser").unwrap_err().kind(), ErrorKind::Refused);
    drop(clone);
    assert!(named("browser").is_ok());
    assert_eq!(named("").unwrap_err().kind(), ErrorKind::Usage);
    service.close().await;
}

#[tokio::test]
async fn a_configuration_is_saved_whole_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let service = open(dir.path()).await;
    let path = dir.path().join("config.toml");
    let backup = dir.path().join("config.toml.bak");
    let read = |path| std::fs::read_to_string(path).ok();

    let first = service.save_config("schema_version = 3\n").unwrap();
    assert!(!first.has_backup);
    let text = "schema_version = 3\n[state]\ndurability = \"normal\"\nhttp = 1\n";
    let second = service.save_config(text).unwrap();
    let refused = service.save_config("[state\n").unwrap_err();

    assert!(second.has_backup);
    assert_eq!(second.generation, first.generation + 1);
    assert_eq!(second.warnings.len(), 1, "{:?}", second.warnings);
    assert_eq!(refused.kind(), ErrorKind::Refused);
    assert_eq!(read(&path).as_deref(), Some(text));
    assert_eq!(read(&backup).as_deref(), Some("schema_version = 3\n"));
    assert_eq!(service.generation(), second.generation);
    for path in [&path, &backup] {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    service.close().await;
    // Who only looks does not write.
    let looking = Service::look(dir.path(), Clock::system()).await.unwrap();
    assert_eq!(
        looking.save_config(text).unwrap_err().kind(),
        ErrorKind::Usage
    );
    looking.close().await;
}
