//! Where the room in a file goes: its pages by table, and how it is made smaller.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sqlx::{Connection as _, Row, SqliteConnection};

use super::check::FULL_TEXT_INDEXES;
use super::error::DbError;
use super::open::{ConnectHere, Db};
use super::options::write_options;
use super::{Durability, check_connection, check_full_text, check_relations};
use crate::model::CheckOutcome;

/// A file up to this size is made smaller in memory; a larger one by a scratch file.
const IN_MEMORY_BYTES: u64 = 64 << 20;

/// Pages of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DbPages {
    /// Bytes of one.
    pub page_bytes: u64,
    /// All of them, with what is in the log.
    pub pages: u64,
    /// Those that hold nothing.
    pub free_pages: u64,
}

impl DbPages {
    /// Bytes of pages that hold something.
    #[must_use]
    pub fn live_bytes(self) -> u64 {
        self.page_bytes * self.pages.saturating_sub(self.free_pages)
    }

    /// Bytes of those that hold nothing.
    #[must_use]
    pub fn free_bytes(self) -> u64 {
        self.page_bytes * self.free_pages
    }
}

/// What a table takes up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableSize {
    /// Pages of its rows, bytes.
    pub row_bytes: u64,
    /// Pages of its indexes, bytes.
    pub index_bytes: u64,
    /// What of both holds nothing, bytes.
    pub unused_bytes: u64,
}

/// What making a file smaller was worth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DbProof {
    /// `PRAGMA integrity_check`.
    pub integrity: CheckOutcome,
    /// `PRAGMA foreign_key_check`.
    pub foreign_keys: CheckOutcome,
    /// Full-text indexes say what the rows say.
    pub full_text: CheckOutcome,
    /// Rows by table.
    pub rows: BTreeMap<String, i64>,
}

impl DbProof {
    /// The first thing that is wrong, in SQLite's words.
    #[must_use]
    pub fn fault(&self) -> Option<&str> {
        let outcomes = [&self.integrity, &self.foreign_keys, &self.full_text];
        outcomes.into_iter().find_map(|outcome| match outcome {
            CheckOutcome::Ok => None,
            CheckOutcome::Failed { lines } => {
                Some(lines.first().map_or("a check failed", String::as_str))
            }
        })
    }
}

impl Db {
    /// How many pages it has.
    ///
    /// # Errors
    ///
    /// [`DbError`] when SQLite fails.
    pub async fn pages(&self) -> Result<DbPages, DbError> {
        let mut conn = self.read().await?;
        let row = sqlx::query(
            "SELECT (SELECT page_size FROM pragma_page_size), (SELECT page_count FROM pragma_page_count),
                 (SELECT freelist_count FROM pragma_freelist_count)",
        );
        let row = row.fetch_one(&mut *conn).await;
        let row = row.map_err(|error| DbError::from(error).at(self.path()))?;
        let number = |at| u64::try_from(row.get::<i64, _>(at)).unwrap_or(0);
        Ok(DbPages {
            page_bytes: number(0),
            pages: number(1),
            free_pages: number(2),
        })
    }

    /// What each table takes up, by name; every page is looked at. The parts of a full-text index count as the index.
    ///
    /// # Errors
    ///
    /// [`DbError`] when SQLite fails.
    pub async fn table_sizes(&self) -> Result<BTreeMap<String, TableSize>, DbError> {
        let mut conn = self.read().await?;
        let rows = sqlx::query(
            "SELECT coalesce(s.tbl_name, d.name), coalesce(s.type = 'index', 0), d.pgsize, d.unused
             FROM dbstat d LEFT JOIN sqlite_schema s ON s.name = d.name WHERE d.aggregate = TRUE",
        );
        let rows = rows.fetch_all(&mut *conn).await;
        let rows = rows.map_err(|error| DbError::from(error).at(self.path()))?;
        let mut sizes: BTreeMap<String, TableSize> = BTreeMap::new();
        for row in &rows {
            let name: String = row.get(0);
            let bytes = |at| u64::try_from(row.get::<i64, _>(at)).unwrap_or(0);
            let size = sizes.entry(owner(&name)).or_default();
            match row.get::<bool, _>(1) {
                true => size.index_bytes += bytes(2),
                false => size.row_bytes += bytes(2),
            }
            size.unused_bytes += bytes(3);
        }
        Ok(sizes)
    }

    /// What making it smaller needs: bytes beside the file, and in the folder for temporary files, which is named.
    ///
    /// The new pages go to a scratch file first, then through the log.
    #[must_use]
    pub fn room_to_compact(&self, pages: DbPages) -> (u64, Option<(PathBuf, u64)>) {
        let live = pages.live_bytes();
        let scratch = (live > IN_MEMORY_BYTES).then(|| (scratch_folder(), live));
        (live, scratch)
    }

    /// Proves what can be proved of it, and counts its rows.
    ///
    /// # Errors
    ///
    /// [`DbError`] when a check cannot run; what it finds is an outcome.
    pub async fn prove(&self) -> Result<DbProof, DbError> {
        let mut conn = self.writing().await?;
        let proof = prove(&mut conn).await;
        let rows = self.rows().await?;
        let (integrity, foreign_keys, full_text) = proof.map_err(|error| error.at(self.path()))?;
        Ok(DbProof {
            integrity,
            foreign_keys,
            full_text,
            rows,
        })
    }

    /// Writes all pages anew, without gaps, and gives the rest back to the disk.
    ///
    /// Cut off at any moment it is as it was. Nobody else may use it meanwhile.
    ///
    /// # Errors
    ///
    /// [`DbError`]: held by somebody, or no room.
    pub async fn compact(&self, pages: DbPages) -> Result<(), DbError> {
        let named = |error: sqlx::Error| DbError::from(error).at(self.path());
        let mut conn = self.writing().await?;
        let mut statements = vec!["PRAGMA wal_checkpoint(TRUNCATE)", "VACUUM"];
        if pages.live_bytes() > IN_MEMORY_BYTES {
            // Private all the same: SQLite makes it 0600 and without a name.
            statements.insert(0, "PRAGMA temp_store = FILE");
        }
        statements.push("PRAGMA wal_checkpoint(TRUNCATE)");
        for statement in statements {
            sqlx::query(statement)
                .fetch_all(&mut conn)
                .await
                .map_err(named)?;
        }
        conn.close().await.map_err(named)
    }

    async fn writing(&self) -> Result<SqliteConnection, DbError> {
        if !self.is_writer() {
            return Err(DbError::stopped().at(self.path()));
        }
        let options = write_options(self.path(), Durability::Full);
        let conn = options.connect_here().await;
        conn.map_err(|error| DbError::from(error).at(self.path()))
    }
}

async fn prove(
    conn: &mut SqliteConnection,
) -> Result<(CheckOutcome, CheckOutcome, CheckOutcome), DbError> {
    let integrity = check_connection(conn).await?;
    if !integrity.is_ok() {
        return Ok((integrity, CheckOutcome::Ok, CheckOutcome::Ok));
    }
    let foreign_keys = check_relations(conn).await?;
    let full_text = check_full_text(conn, &FULL_TEXT_INDEXES).await?;
    Ok((integrity, foreign_keys, full_text))
}

/// The table that a part of a full-text index belongs to; any other table is its own.
fn owner(name: &str) -> String {
    let is_part = |index: &&&str| {
        let part = name
            .strip_prefix(**index)
            .and_then(|rest| rest.strip_prefix('_'));
        part.is_some_and(|part| ["data", "idx", "content", "docsize", "config"].contains(&part))
    };
    let index = FULL_TEXT_INDEXES.iter().find(is_part);
    index.map_or(name, |index| *index).to_owned()
}

/// Where SQLite puts files without a name.
fn scratch_folder() -> PathBuf {
    let named = ["SQLITE_TMPDIR", "TMPDIR"]
        .into_iter()
        .filter_map(std::env::var_os);
    let usual = ["/var/tmp", "/usr/tmp", "/tmp"].into_iter().map(Into::into);
    let mut folders = named.chain(usual).map(PathBuf::from);
    let found = folders.find(|folder| folder.is_dir() && crate::fs::space::is_writable(folder));
    found.unwrap_or_else(|| Path::new(".").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_full_text_index_count_as_the_index() {
        for (name, of) in [
            ("memories_fts_data", "memories_fts"),
            ("memories_fts", "memories_fts"),
            ("memories", "memories"),
            ("memories_fts_other", "memories_fts_other"),
        ] {
            assert_eq!(owner(name), of);
        }
    }
}
