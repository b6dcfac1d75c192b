//! What is taken for reading, and what is not.

use super::*;

fn refusal(sql: &str) -> String {
    read(sql).unwrap_err().to_string()
}

fn query(sql: &str) -> String {
    match read(sql).unwrap() {
        Statement::Query(query) => query,
        Statement::Plan(query) => panic!("a plan of {query}"),
    }
}

#[test]
fn queries_are_taken_as_they_are() {
    for sql in [
        "SELECT 1",
        "\n\t-- a comment\n select * from v_agents /* ; */",
        "WITH a AS (SELECT 1) SELECT * FROM a",
        "values (1), (2)",
        "SELECT ';', \"a;b\", [a;b], `a;b`, 'it''s', x'00', 1.5e3, a->>'$.b'",
        "SELECT replace('a', 'b', 'c')",
        "SELECT 'DELETE FROM x', 'pragma says: no'",
    ] {
        assert_eq!(query(sql), sql);
    }
    assert_eq!(query("SELECT 1 ; ; -- end\n"), "SELECT 1 ");
}

#[test]
fn whatever_is_no_query_is_refused_by_its_word() {
    for word in [
        "DELETE",
        "INSERT",
        "UPDATE",
        "REPLACE",
        "DROP",
        "CREATE",
        "ALTER",
        "ATTACH",
        "DETACH",
        "VACUUM",
        "REINDEX",
        "ANALYZE",
        "BEGIN",
        "COMMIT",
        "ROLLBACK",
        "SAVEPOINT",
        "RELEASE",
    ] {
        let told = refusal(&format!("/**/{} x", word.to_lowercase()));
        assert!(told.contains(&format!("{word} is refused")), "{told}");
    }
    for with in [
        "INSERT INTO t SELECT 1",
        "delete from t",
        "UPDATE t SET a = 1",
    ] {
        let told = refusal(&format!("WITH a AS (SELECT 1) {with}"));
        assert!(told.contains("is refused"), "{told}");
    }
}

#[test]
fn one_statement_is_taken_and_no_way_out_of_parentheses() {
    for sql in [
        "SELECT 1; SELECT 2",
        "SELECT 1; DELETE FROM t",
        "SELECT 1;;ATTACH 'x' AS y",
    ] {
        assert!(refusal(sql).contains("more than one statement"), "{sql}");
    }
    for sql in [
        "SELECT 1) SELECT 2 --",
        "SELECT (1",
        "SELECT 'open",
        "SELECT \"open",
        "SELECT [open",
        "SELECT /* open",
        "SELECT 1 \0 2",
        "SELECT ?1",
        "SELECT :a",
        "SELECT @a",
        "SELECT $a",
        "",
        " ; ",
        "-- only a comment",
    ] {
        assert!(read(sql).is_err(), "{sql}");
    }
}

#[test]
fn pragmas_that_read_are_turned_into_their_tables() {
    assert_eq!(
        query("PRAGMA page_count"),
        "SELECT * FROM pragma_page_count"
    );
    assert_eq!(
        query("pragma TABLE_INFO(\"o'b\")"),
        "SELECT * FROM pragma_table_info('o''b')"
    );
    for sql in [
        "PRAGMA writable_schema",
        "PRAGMA writable_schema = ON",
        "PRAGMA query_only = OFF",
        "PRAGMA user_version = 7",
        "PRAGMA user_version(7)",
        "PRAGMA journal_mode = DELETE",
        "PRAGMA main.journal_mode",
        "PRAGMA wal_checkpoint(TRUNCATE)",
        "PRAGMA optimize",
        "PRAGMA",
        "SELECT * FROM pragma_optimize",
        "SELECT * FROM \"pragma_optimize\"",
        "SELECT * FROM 'PRAGMA_OPTIMIZE'",
        "SELECT load_extension('x')",
        "SELECT \"load_extension\"('x')",
    ] {
        assert!(
            refusal(sql).contains("refused") || refusal(sql).contains("without"),
            "{sql}"
        );
    }
}

#[test]
fn a_plan_is_of_a_query() {
    assert_eq!(
        read("EXPLAIN QUERY PLAN SELECT 1;").unwrap(),
        Statement::Plan("SELECT 1".to_owned())
    );
    for sql in [
        "EXPLAIN SELECT 1",
        "EXPLAIN QUERY PLAN DELETE FROM t",
        "EXPLAIN QUERY PLAN EXPLAIN QUERY PLAN SELECT 1",
        "EXPLAIN",
    ] {
        assert!(read(sql).is_err(), "{sql}");
    }
}
