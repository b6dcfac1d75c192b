//! What a schema is, apart from how it is written down, and how two differ.
//!
//! `sqlite_schema` keeps the text of each object, but `ALTER TABLE` rewrites it. So columns, indexes and keys are read
//! through pragmas; what no pragma tells (checks, collations, `WHERE` of an index, options of a virtual table) is
//! compared as text without comments, spacing, quotes and case.

use std::collections::BTreeMap;

use sqlx::{Row, SqliteConnection};

/// Facts by the place they speak of.
pub(super) type Structure = BTreeMap<String, String>;

/// All tables but SQLite's own and the migrator's.
const TABLES: &str = "SELECT name, type, ncol, wr, strict FROM pragma_table_list
    WHERE schema = 'main' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name <> '_sqlx_migrations' ORDER BY name";

/// Per table: what to ask, how many leading columns name the place, and its word for it.
const PRAGMAS: [(&str, &str); 4] = [
    (
        "column",
        "SELECT name, concat_ws(' ', cid, type, 'notnull', \"notnull\", 'default', ifnull(dflt_value, '-'), 'key', pk,
                'hidden', hidden)
         FROM pragma_table_xinfo(?1)",
    ),
    (
        "index",
        "SELECT name, concat_ws(' ', 'unique', \"unique\", 'origin', origin, 'partial', partial)
         FROM pragma_index_list(?1)",
    ),
    (
        "index column",
        "SELECT concat(i.name, ' ', c.seqno),
                concat_ws(' ', ifnull(c.name, 'expression or rowid'), 'desc', c.desc, c.coll, 'key', c.key)
         FROM pragma_index_list(?1) i, pragma_index_xinfo(i.name) c",
    ),
    (
        "foreign key",
        "SELECT concat(\"from\", ' ', \"table\", ' ', seq),
                concat_ws(' ', 'to', ifnull(\"to\", 'its key'), 'update', on_update, 'delete', on_delete, \"match\")
         FROM pragma_foreign_key_list(?1)",
    ),
];

/// Reads the structure behind a connection.
pub(super) async fn structure(conn: &mut SqliteConnection) -> Structure {
    let mut facts = Structure::new();
    for table in sqlx::query(TABLES).fetch_all(&mut *conn).await.unwrap() {
        let name: String = table.get(0);
        let (kind, columns, without_rowid, strict): (String, i64, i64, i64) =
            (table.get(1), table.get(2), table.get(3), table.get(4));
        facts.insert(
            format!("table {name}"),
            format!("{kind} of {columns} columns, without rowid {without_rowid}, strict {strict}"),
        );
        for (what, sql) in PRAGMAS {
            let rows: Vec<(String, String)> = sqlx::query_as(sql)
                .bind(&name)
                .fetch_all(&mut *conn)
                .await
                .unwrap();
            for (place, fact) in rows {
                facts.insert(format!("table {name} {what} {place}"), fact);
            }
        }
    }
    texts(conn, &mut facts).await;
    facts
}

async fn texts(conn: &mut SqliteConnection, facts: &mut Structure) {
    let rows: Vec<(String, String, String)> = sqlx::query_as(
        "SELECT type, name, sql FROM sqlite_schema
         WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name <> '_sqlx_migrations'",
    )
    .fetch_all(conn)
    .await
    .unwrap();
    for (kind, name, sql) in rows {
        let words = words(&sql);
        for (number, check) in checks(&words).iter().enumerate() {
            facts.insert(format!("table {name} check {number}"), check.clone());
        }
        facts.insert(format!("{kind} {name} text"), words.join(" "));
    }
}

/// What stands in one and not in the other, or otherwise; empty when they are equal.
pub(super) fn differences(expected: &Structure, found: &Structure) -> Vec<String> {
    let mut lines = Vec::new();
    for (place, fact) in expected {
        match found.get(place) {
            None => lines.push(format!("{place}: missing, should be: {fact}")),
            Some(other) if other != fact => {
                lines.push(format!("{place}: is: {other}, should be: {fact}"));
            }
            Some(_) => {}
        }
    }
    let surplus = found
        .iter()
        .filter(|(place, _)| !expected.contains_key(*place));
    lines.extend(surplus.map(|(place, fact)| format!("{place}: should not be there: {fact}")));
    lines
}

/// The words of an SQL text: no comments, no spacing, plain names without quotes and in small letters.
pub(super) fn words(sql: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = sql.trim_start();
    while let Some(first) = rest.chars().next() {
        let (word, length) = match first {
            '-' if rest.starts_with("--") => (None, rest.find('\n').unwrap_or(rest.len())),
            '/' if rest.starts_with("/*") => {
                (None, rest.find("*/").map_or(rest.len(), |at| at + 2))
            }
            '\'' => {
                let length = quoted_length(rest, '\'');
                (Some(rest[..length].to_owned()), length)
            }
            '"' | '`' => {
                let length = quoted_length(rest, first);
                (Some(rest[1..length - 1].to_lowercase()), length)
            }
            c if is_name(c) => {
                let length = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
                (Some(rest[..length].to_lowercase()), length)
            }
            c => (Some(c.to_string()), c.len_utf8()),
        };
        words.extend(word);
        rest = rest[length..].trim_start();
    }
    words
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Bytes of a quoted text with both its quotes; a doubled quote is part of it.
fn quoted_length(text: &str, quote: char) -> usize {
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c != quote {
            continue;
        }
        if chars.peek().is_none_or(|(_, next)| *next != quote) {
            return at + 1;
        }
        chars.next();
    }
    text.len()
}

/// The conditions of a table, sorted: whether one stands at its column or at the end means nothing.
fn checks(words: &[String]) -> Vec<String> {
    let starts = words
        .iter()
        .enumerate()
        .filter(|(_, word)| *word == "check");
    let mut checks: Vec<String> = starts
        .map(|(at, _)| {
            let mut depth = 0;
            let inside = words[at + 1..].iter().take_while(|word| {
                match word.as_str() {
                    "(" => depth += 1,
                    ")" => depth -= 1,
                    _ => {}
                }
                depth > 0
            });
            inside.skip(1).cloned().collect::<Vec<_>>().join(" ")
        })
        .collect();
    checks.sort();
    checks
}

mod tests {
    use super::super::written;
    use super::*;

    const BASE: &str = "
        CREATE TABLE owner (id TEXT NOT NULL PRIMARY KEY) STRICT;
        CREATE TABLE item (
            no INTEGER NOT NULL PRIMARY KEY,
            owner_id TEXT NOT NULL REFERENCES owner (id) ON DELETE CASCADE,
            kind TEXT NOT NULL DEFAULT 'a' CHECK (kind IN ('a', 'b')),
            size INTEGER,
            note TEXT,
            text TEXT NOT NULL,
            CHECK (size > 0)
        ) STRICT;
        CREATE UNIQUE INDEX item_by_owner ON item (owner_id, size DESC) WHERE size IS NOT NULL;
        CREATE INDEX item_by_kind ON item (ifnull(kind, ''));
        CREATE VIEW v_item AS SELECT no, size FROM item;
        CREATE TRIGGER item_kept BEFORE DELETE ON item WHEN old.size > 9 BEGIN SELECT raise(ABORT, 'kept'); END;
        CREATE VIRTUAL TABLE item_fts USING fts5 (text, content = 'item', content_rowid = 'no', tokenize = 'unicode61');
    ";

    /// What is planted: what it is, the text replaced, its replacement, the place that must be named.
    const PLANTS: &[(&str, &str, &str, &str)] = &[
        (
            "missing table",
            "CREATE TABLE owner (id TEXT NOT NULL PRIMARY KEY) STRICT;",
            "",
            "table owner",
        ),
        (
            "surplus table",
            "CREATE TABLE owner",
            "CREATE TABLE more (a) ; CREATE TABLE owner",
            "table more",
        ),
        ("missing column", "note TEXT,", "", "table item column note"),
        (
            "surplus column",
            "size INTEGER,",
            "size INTEGER, more TEXT,",
            "table item column more",
        ),
        (
            "other type",
            "size INTEGER,",
            "size REAL,",
            "table item column size",
        ),
        (
            "dropped NOT NULL",
            "text TEXT NOT NULL",
            "text TEXT",
            "table item column text",
        ),
        (
            "other default",
            "DEFAULT 'a'",
            "DEFAULT 'b'",
            "table item column kind",
        ),
        (
            "other order",
            "size INTEGER,\n            note TEXT,",
            "note TEXT, size INTEGER,",
            "table item column size",
        ),
        (
            "other primary key",
            "no INTEGER NOT NULL PRIMARY KEY",
            "no INTEGER NOT NULL",
            "table item column no",
        ),
        ("other check", "'a', 'b')", "'a', 'B')", "table item check"),
        (
            "missing check",
            "CHECK (size > 0)",
            "UNIQUE (size)",
            "table item check",
        ),
        (
            "other collation",
            "text TEXT NOT NULL",
            "text TEXT NOT NULL COLLATE NOCASE",
            "table item text",
        ),
        (
            "dropped STRICT",
            "CHECK (size > 0)\n        ) STRICT",
            "CHECK (size > 0)\n        )",
            "table item:",
        ),
        (
            "WITHOUT ROWID",
            "PRIMARY KEY) STRICT",
            "PRIMARY KEY) STRICT, WITHOUT ROWID",
            "table owner:",
        ),
        (
            "missing key",
            " REFERENCES owner (id) ON DELETE CASCADE",
            "",
            "table item foreign key owner_id owner",
        ),
        (
            "other action of a key",
            "ON DELETE CASCADE",
            "ON DELETE SET NULL",
            "table item foreign key owner_id owner",
        ),
        (
            "deferred key",
            "ON DELETE CASCADE",
            "ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED",
            "table item text",
        ),
        (
            "missing index",
            "CREATE INDEX item_by_kind ON item (ifnull(kind, ''));",
            "",
            "table item index item_by_kind",
        ),
        (
            "other column of an index",
            "(owner_id, size DESC)",
            "(owner_id, no DESC)",
            "table item index column item_by_owner 1",
        ),
        (
            "other order of an index",
            "(owner_id, size DESC)",
            "(size DESC, owner_id)",
            "table item index column item_by_owner 0",
        ),
        (
            "other direction of an index",
            "size DESC",
            "size",
            "table item index column item_by_owner 1",
        ),
        (
            "index no longer unique",
            "CREATE UNIQUE INDEX",
            "CREATE INDEX",
            "table item index item_by_owner",
        ),
        (
            "index no longer partial",
            " WHERE size IS NOT NULL",
            "",
            "table item index item_by_owner",
        ),
        (
            "other condition of an index",
            "size IS NOT NULL",
            "size IS NULL",
            "index item_by_owner text",
        ),
        (
            "other expression of an index",
            "ifnull(kind, '')",
            "ifnull(kind, '-')",
            "index item_by_kind text",
        ),
        (
            "other view",
            "SELECT no, size",
            "SELECT no, text",
            "view v_item text",
        ),
        (
            "other trigger",
            "old.size > 9",
            "old.size > 8",
            "trigger item_kept text",
        ),
        (
            "missing trigger",
            "CREATE TRIGGER item_kept BEFORE DELETE ON item WHEN old.size > 9 BEGIN SELECT raise(ABORT, 'kept'); END;",
            "",
            "trigger item_kept text",
        ),
        (
            "other full-text option",
            "'unicode61'",
            "'trigram'",
            "table item_fts text",
        ),
        (
            "other full-text content",
            "content = 'item', content_rowid = 'no', ",
            "",
            "table item_fts_content",
        ),
    ];

    #[test]
    fn every_kind_of_difference_is_found_where_it_is() {
        let base = written(BASE);

        for (what, from, to, place) in PLANTS {
            assert_eq!(
                BASE.matches(from).count(),
                1,
                "the plant of {what} has one place"
            );
            let found = differences(&base, &written(&BASE.replace(from, to)));
            assert!(
                found.iter().any(|line| line.starts_with(place)),
                "{what}: nothing about {place} in\n{}",
                found.join("\n")
            );
        }
    }

    #[test]
    fn spelling_is_no_difference() {
        let other = BASE
            .replace(
                "CREATE TABLE item (",
                "-- Why: to test.\ncreate table \"item\" ( /* here */ ",
            )
            .replace(", ", " ,\n")
            .replace("size INTEGER,", "\"size\" integer,")
            .replace("size INTEGER", "size\tINTEGER");

        assert_eq!(
            differences(&written(BASE), &written(&other)),
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_column_added_later_is_the_last_one_written_down() {
        let added = format!("{BASE} ALTER TABLE item ADD COLUMN more TEXT CHECK (more <> '');");
        let last = BASE.replace(
            "text TEXT NOT NULL,",
            "text TEXT NOT NULL, more TEXT CHECK (more <> ''),",
        );
        let first = BASE.replace(
            "size INTEGER,",
            "more TEXT CHECK (more <> ''), size INTEGER,",
        );

        assert_eq!(
            differences(&written(&last), &written(&added)),
            Vec::<String>::new()
        );
        assert!(!differences(&written(&first), &written(&added)).is_empty());
    }
}
