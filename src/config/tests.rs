use super::*;

fn parse(text: &str) -> Config {
    Config::parse(text).unwrap()
}

#[test]
fn the_present_shape_is_read() {
    let config = parse(
        r#"
        schema_version = 3
        unknown = 1
        [agents.atlas]
        enabled = false
        channels = ["telegram.main"]
        cron_jobs = ["nightly"]
        [agents.atlas.workspace]
        path = "~/atlas"
        read_memory_from = ["birch", { agent = "cedar", categories = ["core"] }]
        [agents.atlas.memory]
        backend = "markdown"
        [agents.birch]
        [state]
        durability = "normal"
        [memory]
        backend = "sqlite.main"
        [heartbeat]
        agent = "atlas"
        [cron.nightly]
        command = "true"
        "#,
    );

    let atlas = &config.agents["atlas"];
    assert!(!atlas.enabled);
    assert_eq!(atlas.channels, ["telegram.main"]);
    assert_eq!(atlas.cron_jobs, ["nightly"]);
    assert_eq!(atlas.workspace_path.as_deref(), Some(Path::new("~/atlas")));
    assert_eq!(atlas.memory_backend, "markdown");
    assert_eq!(atlas.read_memory_from.len(), 2);
    assert_eq!(config.agents["birch"], AgentConfig::default());
    assert_eq!(config.durability, Durability::Normal);
    assert_eq!(config.memory_backend, "sqlite.main");
    assert_eq!(config.heartbeat_agent.as_deref(), Some("atlas"));
    assert_eq!(config.cron["nightly"]["command"].as_str(), Some("true"));
    assert_eq!((config.schema_version, config.warnings.len()), (3, 0));
}

#[test]
fn an_empty_text_means_version_1_and_its_one_agent() {
    let config = parse("");

    assert_eq!(config.schema_version, 1);
    assert_eq!(config.durability, Durability::Full);
    assert_eq!(config.agents.keys().collect::<Vec<_>>(), ["default"]);
}

#[test]
fn files_from_before_agents_have_one_that_answers_on_every_channel() {
    let config = parse(
        r#"
        [channels_config]
        cli = true
        [channels_config.telegram]
        bot_token = "t"
        [channels.matrix.home]
        room = "r"
        "#,
    );

    assert_eq!(
        config.agents["default"].channels,
        ["matrix.home", "telegram.default"]
    );
    assert!(config.warnings.is_empty());
}

#[test]
fn named_agents_of_an_older_file_get_no_default_beside_them() {
    assert_eq!(
        parse("schema_version = 2\n[agents.atlas]")
            .agents
            .keys()
            .collect::<Vec<_>>(),
        ["atlas"]
    );
    assert!(parse("schema_version = 3").agents.is_empty());
}

#[test]
fn listed_cron_jobs_get_the_ids_the_runtime_gives_them() {
    let config = parse(
        r#"
        [cron]
        enabled = true
        [[cron.jobs]]
        name = "Disk check"
        [[cron.jobs]]
        name = "disk-check"
        [[cron.jobs]]
        id = "x1"
        [[cron.jobs]]
        "#,
    );

    assert_eq!(
        config.cron.keys().collect::<Vec<_>>(),
        ["disk_check", "disk_check_2", "job_4", "x1"]
    );
}

#[test]
fn a_part_of_the_wrong_shape_is_named_and_the_rest_is_read() {
    let config = parse(
        r#"
        schema_version = "three"
        memory = "hunter2"
        [agents]
        birch = "hunter2"
        [agents.atlas]
        enabled = "hunter2"
        channels = ["telegram.main", 7]
        [state]
        durability = "hunter2"
        "#,
    );

    assert_eq!(config.agents["atlas"].channels, ["telegram.main"]);
    assert_eq!(config.agents["birch"], AgentConfig::default());
    assert_eq!(
        config.warnings,
        [
            "schema_version: expected a positive whole number",
            "agents.atlas.enabled: expected true or false",
            "agents.atlas.channels: an entry is not a text",
            "agents.birch: expected a table",
            "memory: expected a table",
            "state.durability: expected \"full\" or \"normal\"",
        ]
    );
}

#[test]
fn agents_of_the_wrong_shape_are_not_taken_for_the_one_default_agent() {
    let config = parse("agents = 1");

    assert!(config.agents.is_empty());
    assert_eq!(config.warnings, ["agents: expected a table"]);
}

#[test]
fn a_newer_file_is_read_with_a_warning() {
    let config = parse("schema_version = 4\n[agents.atlas]\n");

    assert!(config.agents.contains_key("atlas"));
    assert_eq!(config.warnings.len(), 1);
}

#[test]
fn an_error_names_the_place_and_no_value() {
    for text in [
        "a = 1\n  token = \"hunter2",
        "a = 1\n  token = hunter2",
        "token = \"hunter2\"\ntoken = \"hunter2\"",
        "token = [\"hunter2\"",
        "token = \"hunter2\"\n[token]",
        "token = \"hunter2\"\ntoken.x = \"hunter2\"",
        "token = 99999999999999999999",
    ] {
        let error = Config::parse(text).unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(error.line >= 1 && error.column >= 1);
        assert!(
            !shown.contains("hunter2") && !shown.contains("99999"),
            "{shown}"
        );
    }
    let error = Config::parse("a = 1\n\u{e9} = 2").unwrap_err();
    assert_eq!((error.line, error.column), (2, 1));
}

#[test]
fn debug_output_holds_nothing_that_may_be_secret() {
    let config = parse(
        r#"
        api_key = "hunter2"
        [channels.telegram]
        bot_token = "hunter2"
        [gateway]
        paired_tokens = ["hunter2"]
        [cron.x]
        command = "curl -H hunter2"
        "#,
    );

    let shown = format!("{config:?}");

    assert!(shown.contains('x') && !shown.contains("hunter2"), "{shown}");
}

#[test]
fn a_missing_file_is_none_and_a_bad_one_is_named() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("config.toml");
    assert_eq!(Config::load(&path).unwrap(), None);

    fs::write(&path, "\u{feff}[state]\ndurability = \"normal\"\n").unwrap();
    assert_eq!(
        Config::load(&path).unwrap().unwrap().durability,
        Durability::Normal
    );

    fs::write(&path, b"a = 1\nb = \xff").unwrap();
    let error = Config::load(&path).unwrap_err();
    assert!(error.to_string().contains("config.toml"));
    assert!(matches!(
        error,
        ConfigError::Syntax {
            source: SyntaxError {
                line: 2,
                column: 5,
                ..
            },
            ..
        }
    ));

    assert!(matches!(
        Config::load(temp.path()),
        Err(ConfigError::Read { .. })
    ));
}
