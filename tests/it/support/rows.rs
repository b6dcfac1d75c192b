//! Rows of the old stores as SQL text, and lines of the old text files.

use std::fmt::Write as _;

/// A role and a text.
pub(crate) type Turn = (String, String);

/// `n` turns, user and assistant in turn, each text unlike any other: `<label> 1`, `<label> 2`, …
pub(crate) fn turns(label: &str, n: usize) -> Vec<Turn> {
    (1..=n)
        .map(|i| {
            let role = if i % 2 == 1 { "user" } else { "assistant" };
            (role.to_owned(), format!("{label} {i}"))
        })
        .collect()
}

/// A SQL text literal. The text must hold no NUL.
pub(crate) fn literal(text: &str) -> String {
    assert!(!text.contains('\0'), "write a NUL as char(0)");
    format!("'{}'", text.replace('\'', "''"))
}

/// A whole chat: its rows a minute apart on `day` (`2026-09-01`), and its metadata of the first four columns.
pub(crate) fn chat(key: &str, day: &str, turns: &[Turn]) -> String {
    let times: Vec<String> = (0..turns.len())
        .map(|i| format!("{day}T08:{i:02}:00+00:00"))
        .collect();
    let mut sql = messages(key, turns, &times);
    let last = times
        .last()
        .cloned()
        .unwrap_or_else(|| format!("{day}T08:00:00+00:00"));
    sql.push_str(&metadata(
        key,
        &format!("{day}T08:00:00+00:00"),
        &last,
        turns.len(),
    ));
    sql
}

/// Rows of the `sessions` table with the given times, without metadata.
pub(crate) fn messages(key: &str, turns: &[Turn], times: &[String]) -> String {
    assert_eq!(turns.len(), times.len());
    turns.iter().zip(times).fold(String::new(), |mut sql, ((role, content), at)| {
        writeln!(
            sql,
            "INSERT INTO sessions (session_key, role, content, created_at) VALUES ({}, {}, {}, {});",
            literal(key),
            literal(role),
            literal(content),
            literal(at)
        )
        .unwrap();
        sql
    })
}

/// A row of `session_metadata`, first four columns.
pub(crate) fn metadata(
    key: &str,
    created_at: &str,
    last_activity: &str,
    message_count: usize,
) -> String {
    format!(
        "INSERT INTO session_metadata (session_key, created_at, last_activity, message_count) \
         VALUES ({}, {}, {}, {message_count});\n",
        literal(key),
        literal(created_at),
        literal(last_activity)
    )
}

/// An import receipt for the bytes of `<key>.jsonl`.
pub(crate) fn receipt(key: &str, bytes: &[u8], imported_at: &str) -> String {
    format!(
        "INSERT INTO jsonl_import_receipts VALUES ({}, {}, '{}', {}, {});\n",
        literal(&format!("{key}.jsonl")),
        literal(key),
        super::recipe::sha256_hex(bytes),
        bytes.len(),
        literal(imported_at)
    )
}

/// One line of a session file, without its line end.
pub(crate) fn json_line((role, content): &Turn) -> String {
    serde_json::json!({ "role": role, "content": content }).to_string()
}

/// A session file: each turn a line, each line ended.
pub(crate) fn jsonl(turns: &[Turn]) -> Vec<u8> {
    turns
        .iter()
        .flat_map(|turn| (json_line(turn) + "\n").into_bytes())
        .collect()
}

/// A memory with the columns that every variant has. `id` and `key` both come from `name`.
pub(crate) fn memory(name: &str, content: &str, updated_at: &str) -> String {
    format!(
        "INSERT INTO memories (id, key, content, category, created_at, updated_at) \
         VALUES ('id-{name}', '{name}', {}, 'core', '2025-11-01T09:00:00.500+01:00', {});\n",
        literal(content),
        literal(updated_at)
    )
}

/// A memory of an agent, for the variants that have owners.
pub(crate) fn owned_memory(name: &str, content: &str, updated_at: &str, agent_id: &str) -> String {
    format!(
        "INSERT INTO memories (id, key, content, category, created_at, updated_at, agent_id) \
         VALUES ('id-{name}', '{name}', {}, 'core', '2026-08-01T09:00:00.500+02:00', {}, '{agent_id}');\n",
        literal(content),
        literal(updated_at)
    )
}

/// A job with the columns that every variant has.
pub(crate) fn job(id: &str, expression: &str, command: &str) -> String {
    format!(
        "INSERT INTO cron_jobs (id, expression, command, created_at, next_run) VALUES \
         ('{id}', {}, {}, '2026-02-01T08:00:00+00:00', '2026-02-02T08:00:00+00:00');\n",
        literal(expression),
        literal(command)
    )
}

/// A run of a minute's length that started at minute `minute` of 08:00 on `day`.
pub(crate) fn run(job_id: &str, day: &str, minute: u32, status: &str) -> String {
    format!(
        "INSERT INTO cron_runs (job_id, started_at, finished_at, status, output, duration_ms) VALUES \
         ('{job_id}', '{day}T08:{minute:02}:00+00:00', '{day}T08:{minute:02}:59+00:00', '{status}', 'run of {job_id}', 59000);\n"
    )
}
