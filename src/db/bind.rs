//! Carries a statement built by sea-query to sqlx.
//!
//! The ready-made binder crate was left out: it switches on SQLite's extension loading for the
//! whole tree and panics on numbers SQLite cannot hold.

use sea_query::{QueryStatementWriter, SqliteQueryBuilder, Value};
use sqlx::Sqlite;
use sqlx::query::Query;
use sqlx::sqlite::SqliteArguments;

/// A query for `statement` with its values bound.
///
/// Safe as SQL text: sea-query quotes every identifier and leaves every value as a placeholder.
pub fn bound<S: QueryStatementWriter>(statement: &S) -> Query<'static, Sqlite, SqliteArguments> {
    let (sql, values) = statement.build(SqliteQueryBuilder);
    let mut query = sqlx::query(sqlx::AssertSqlSafe(sql));
    for value in values {
        query = match value {
            Value::Bool(v) => query.bind(v),
            Value::TinyInt(v) => query.bind(v.map(i64::from)),
            Value::SmallInt(v) => query.bind(v.map(i64::from)),
            Value::Int(v) => query.bind(v.map(i64::from)),
            Value::BigInt(v) => query.bind(v),
            Value::TinyUnsigned(v) => query.bind(v.map(i64::from)),
            Value::SmallUnsigned(v) => query.bind(v.map(i64::from)),
            Value::Unsigned(v) => query.bind(v.map(i64::from)),
            // Larger numbers than SQLite's own would wrap round; they read as its largest.
            Value::BigUnsigned(v) => query.bind(v.map(|v| i64::try_from(v).unwrap_or(i64::MAX))),
            Value::Float(v) => query.bind(v.map(f64::from)),
            Value::Double(v) => query.bind(v),
            Value::String(v) => query.bind(v),
            Value::Char(v) => query.bind(v.map(String::from)),
            Value::Bytes(v) => query.bind(v),
            Value::Enum(v) => query.bind(match v {
                sea_query::OptionEnum::Some(v) => Some(v.value.to_string()),
                sea_query::OptionEnum::None(_) => None,
            }),
        };
    }
    query
}
