//! What is said above a table and an index, in the files that people read.

use super::package;

/// Tables without their why, writer and way out, and indexes without a reason, as `line: name`.
fn unexplained(sql: &str) -> Vec<String> {
    let mut comment = String::new();
    let mut found = Vec::new();
    for (line, number) in sql.lines().zip(1..) {
        if let Some(words) = line.strip_prefix("--") {
            comment.push_str(words);
            comment.push('\n');
            continue;
        }
        let needed: &[&str] = match line {
            _ if line.starts_with("CREATE TABLE ") => &["Why:", "Written by:", "Rows leave:"],
            _ if line.starts_with("CREATE VIRTUAL TABLE ") => {
                &["Why:", "Written by:", "Rows leave:"]
            }
            _ if line.starts_with("CREATE INDEX ") => &["Serves:"],
            // A unique index may be a rule as well as a way to find.
            _ if line.starts_with("CREATE UNIQUE INDEX ") => &[" "],
            _ => &[],
        };
        if needed.iter().any(|word| !comment.contains(word)) {
            found.push(format!("{number}: {line}"));
        }
        comment.clear();
    }
    found
}

#[test]
fn every_table_says_why_it_is_there_and_every_index_which_query_it_serves() {
    for tier in ["global", "agent"] {
        let sql = std::fs::read_to_string(package(&format!("schema/{tier}.sql"))).unwrap();

        let found = unexplained(&sql);

        assert!(found.is_empty(), "schema/{tier}.sql\n{}", found.join("\n"));
    }
}

#[test]
fn a_table_or_index_without_a_word_is_found() {
    let table =
        "-- Why: to test.\n-- Written by: nobody. Rows leave: never.\nCREATE TABLE t (a);\n";
    let index = "-- Serves: nothing.\nCREATE INDEX i ON t (a);\n";
    let virtual_table = table.replace("CREATE TABLE", "CREATE VIRTUAL TABLE");

    assert!(unexplained(&format!("{table}\n{index}\n{virtual_table}")).is_empty());
    for word in ["Why:", "Written by:", "Rows leave:"] {
        assert_eq!(unexplained(&table.replace(word, "")).len(), 1, "{word}");
        assert_eq!(
            unexplained(&virtual_table.replace(word, "")).len(),
            1,
            "{word}"
        );
    }
    assert_eq!(unexplained(&index.replace("Serves:", "")).len(), 1);
    assert_eq!(
        unexplained(&format!("{table}CREATE INDEX i ON t (a);")).len(),
        1
    );
    assert_eq!(unexplained("\nCREATE UNIQUE INDEX i ON t (a);").len(), 1);
}
