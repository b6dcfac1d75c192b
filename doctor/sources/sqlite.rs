//! Opening foreign SQLite files without leaving a trace in them.
//!
//! A file at rest is opened immutable. Where a write-ahead log or a rollback journal holds part of
//! the truth, main file and log are copied to a private folder and SQLite recovers the copy: opening
//! the original would write beside it, and an immutable view would miss committed rows.

use std::path::{Path, PathBuf};

use sqlx::sqlite::{SqliteConnectOptions, SqliteRow};
use sqlx::{Connection, Row, SqliteConnection};
use zeroclaw::fs::{FsError, atomic, sidecars};

use super::ReadError;
use crate::doctor::units::stable_id;

/// First bytes of every SQLite file.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Rows SQLite may run ahead of the reader.
const ROW_BUFFER: usize = 256;

/// An old database, open to read.
#[derive(Debug)]
pub(crate) struct LegacyDb {
    pub(crate) conn: SqliteConnection,
    options: SqliteConnectOptions,
}

/// Whether the file begins as SQLite files do.
pub(crate) fn is_sqlite(path: &Path) -> bool {
    use std::io::Read;
    let mut head = [0; 16];
    std::fs::File::open(path)
        .and_then(|mut file| file.read_exact(&mut head))
        .is_ok()
        && &head == MAGIC
}

fn has_bytes(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|meta| meta.len() > 0)
}

impl LegacyDb {
    /// Opens the database at `path`; copies, where one is needed, go to a folder in `scratch` and stay there: each phase
    /// reads every source once more.
    pub(crate) async fn open(path: &Path, scratch: &Path) -> Result<Self, ReadError> {
        if !is_sqlite(path) {
            return Err(ReadError::Format {
                reason: "not a SQLite database".to_owned(),
            });
        }
        let [wal, _, journal] = sidecars(path);
        let options = if has_bytes(&wal) || has_bytes(&journal) {
            SqliteConnectOptions::new().filename(private_copy(path, scratch)?)
        } else {
            let options = SqliteConnectOptions::new().filename(path);
            options.immutable(true).read_only(true)
        };
        Ok(Self {
            conn: connect(options.clone()).await?,
            options,
        })
    }

    /// Another connection to the same file, for a second look while rows stream; gone before this one.
    pub(crate) async fn again(&self) -> Result<Self, ReadError> {
        Ok(Self {
            conn: connect(self.options.clone()).await?,
            options: self.options.clone(),
        })
    }

    /// The columns of a table, in their order; none when there is no such table.
    pub(crate) async fn columns(&mut self, table: &str) -> Result<Vec<String>, ReadError> {
        Ok(sqlx::query_scalar("SELECT name FROM pragma_table_info(?1)")
            .bind(table)
            .fetch_all(&mut self.conn)
            .await?)
    }

    /// Whether it holds nothing that anybody wrote: no rows but those that making it leaves.
    pub(crate) async fn is_empty(&mut self) -> Result<bool, ReadError> {
        let tables: Vec<String> = sqlx::query_scalar(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
             AND name NOT IN ('agents', 'schema_version', 'memory_meta') AND name NOT LIKE 'memories\\_fts%' ESCAPE '\\'",
        )
        .fetch_all(&mut self.conn)
        .await?;
        for table in tables {
            // Safe: the name comes from the schema itself and is quoted.
            let sql = format!(
                "SELECT EXISTS (SELECT 1 FROM \"{}\")",
                table.replace('"', "\"\"")
            );
            let has_rows: bool = sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
                .fetch_one(&mut self.conn)
                .await?;
            if has_rows {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Closes it.
    pub(crate) async fn close(self) {
        // Read only: there is nothing that could be lost.
        let _ = self.conn.close().await;
    }
}

/// The copy of a database and its logs as they are now; made if there is none yet.
fn private_copy(path: &Path, scratch: &Path) -> Result<PathBuf, ReadError> {
    let [wal, _, journal] = sidecars(path);
    let mut state = path.as_os_str().as_encoded_bytes().to_vec();
    for file in [path, &wal, &journal] {
        let meta = std::fs::metadata(file).ok();
        let modified = meta.as_ref().and_then(|meta| meta.modified().ok());
        let seen = (meta.as_ref().map(std::fs::Metadata::len), modified);
        state.extend(format!("\0{seen:?}").into_bytes());
    }
    let folder = scratch.join(format!("copy-{}", stable_id(&[&state])));
    let copy = folder.join("source.db");
    let made = folder.join("whole");
    if made.exists() {
        return Ok(copy);
    }
    atomic::create_dir_private(&folder)?;
    let [copy_wal, _, copy_journal] = sidecars(&copy);
    for (from, to) in [(path, &copy), (&wal, &copy_wal), (&journal, &copy_journal)] {
        if from == path || has_bytes(from) {
            match std::fs::remove_file(to) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(FsError::at("remove", to)(error).into());
                }
                _ => {}
            }
            atomic::copy_scratch(from, to)?;
        }
    }
    drop(atomic::create_file_private(&made)?);
    Ok(copy)
}

async fn connect(options: SqliteConnectOptions) -> Result<SqliteConnection, ReadError> {
    let options = options
        .create_if_missing(false)
        .row_buffer_size(ROW_BUFFER)
        .pragma("trusted_schema", "OFF")
        .pragma("query_only", "ON");
    Ok(SqliteConnection::connect_with(&options).await?)
}

impl From<sqlx::Error> for ReadError {
    fn from(error: sqlx::Error) -> Self {
        let reason = error.to_string();
        let code = error.as_database_error().and_then(|error| error.code());
        match code
            .and_then(|code| code.parse::<i32>().ok())
            .map(|code| code & 0xff)
        {
            Some(11 | 26) => Self::Damaged { reason },
            _ => Self::Format { reason },
        }
    }
}

/// `SELECT` of columns that may be missing: a missing one reads as NULL.
///
/// Every column comes twice, its type and its bytes: old tables are not strict, and a text column
/// can hold anything.
pub(crate) fn select(table: &str, wanted: &[&str], present: &[String], tail: &str) -> String {
    let columns: Vec<String> = wanted
        .iter()
        .map(|name| {
            if present.iter().any(|column| column == name) {
                format!("typeof(\"{name}\"), CAST(\"{name}\" AS BLOB)")
            } else {
                "'null', NULL".to_owned()
            }
        })
        .collect();
    format!(
        "SELECT rowid, {} FROM \"{table}\" {tail}",
        columns.join(", ")
    )
}

/// A row read by [`select`]: values by their place in `wanted`.
pub(crate) struct Values {
    /// The table's own row number.
    pub(crate) rowid: i64,
    cells: Vec<Option<Vec<u8>>>,
    blobs: Vec<bool>,
}

/// A value that is no text.
#[derive(Debug)]
pub(crate) struct NotText;

impl Values {
    /// Takes a row apart.
    pub(crate) fn of(row: &SqliteRow, columns: usize) -> Result<Self, ReadError> {
        let mut cells = Vec::with_capacity(columns);
        let mut blobs = Vec::with_capacity(columns);
        for column in 0..columns {
            blobs.push(row.try_get::<&str, _>(1 + 2 * column)? == "blob");
            cells.push(row.try_get::<Option<Vec<u8>>, _>(2 + 2 * column)?);
        }
        Ok(Self {
            rowid: row.try_get(0)?,
            cells,
            blobs,
        })
    }

    /// A JSON object as a row: what a later program wrote of the same columns. Numbers and flags become
    /// text, values of a deeper shape their JSON text.
    ///
    /// * `number`: from 1, stands for the row number.
    pub(crate) fn of_object(
        object: &serde_json::Map<String, serde_json::Value>,
        names: &[&str],
        number: i64,
    ) -> Self {
        use serde_json::Value::{Bool, Null, String};
        let cell = |name: &&str| match object.get(*name) {
            None | Some(Null) => None,
            Some(String(text)) => Some(text.clone().into_bytes()),
            Some(Bool(flag)) => Some(i32::from(*flag).to_string().into_bytes()),
            Some(other) => Some(other.to_string().into_bytes()),
        };
        Self {
            rowid: number,
            cells: names.iter().map(cell).collect(),
            blobs: vec![false; names.len()],
        }
    }

    /// The bytes; `None` for NULL.
    pub(crate) fn bytes(&self, column: usize) -> Option<&[u8]> {
        self.cells[column].as_deref()
    }

    /// Whether the value was stored as a BLOB.
    pub(crate) fn is_blob(&self, column: usize) -> bool {
        self.blobs[column]
    }

    /// The bytes, taken out.
    pub(crate) fn take(&mut self, column: usize) -> Option<Vec<u8>> {
        self.cells[column].take()
    }

    /// The value as text; a BLOB that is UTF-8 counts as text.
    pub(crate) fn text(&self, column: usize) -> Result<Option<&str>, NotText> {
        self.bytes(column)
            .map(|bytes| std::str::from_utf8(bytes).map_err(|_| NotText))
            .transpose()
    }

    /// The value as text; what is no text, and the empty text, count as absent.
    pub(crate) fn hint(&self, column: usize) -> Option<String> {
        self.text(column)
            .ok()
            .flatten()
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
    }

    /// The value as a whole number.
    pub(crate) fn integer(&self, column: usize) -> Option<i64> {
        self.text(column)
            .ok()
            .flatten()
            .and_then(|text| text.trim().parse().ok())
    }

    /// The value as a number.
    pub(crate) fn real(&self, column: usize) -> Option<f64> {
        let number: Option<f64> = self
            .text(column)
            .ok()
            .flatten()
            .and_then(|text| text.trim().parse().ok());
        number.filter(|number| number.is_finite())
    }

    /// All values by name as JSON text; bytes that are no text as hex, vectors left out.
    pub(crate) fn json(&self, names: &[&str], without: &[&str]) -> String {
        let mut object = serde_json::Map::new();
        for (column, name) in names
            .iter()
            .enumerate()
            .filter(|(_, name)| !without.contains(name))
        {
            let value = match (self.bytes(column), self.text(column)) {
                (None, _) => serde_json::Value::Null,
                (Some(_), Ok(Some(text))) => serde_json::Value::from(text),
                (Some(bytes), _) => serde_json::json!({ "hex": crate::doctor::units::hex(bytes) }),
            };
            object.insert((*name).to_owned(), value);
        }
        serde_json::Value::Object(object).to_string()
    }
}
