//! What SQLite would do for a statement, instruction by instruction, before it does it.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::{Row, SqliteConnection};

use super::QueryError;

/// What a query does not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// A table.
    pub table: &'static str,
    /// A column of it; `None` for the whole table.
    pub column: Option<&'static str>,
}

/// Where `ANALYZE` keeps samples of indexed columns, sealed ones too.
const SAMPLES: [&str; 2] = ["sqlite_stat3", "sqlite_stat4"];

/// The instructions of programs that read (SQLite 3.51.3). Rows are written through cursors, and the only cursors these
/// open for that are of tables that live as long as the statement.
const READING: &[&str] = &[
    "Abortable",
    "Add",
    "AddImm",
    "Affinity",
    "AggFinal",
    "AggInverse",
    "AggStep",
    "AggStep1",
    "AggValue",
    "And",
    "BeginSubrtn",
    "BitAnd",
    "BitNot",
    "BitOr",
    "Blob",
    "Cast",
    "Close",
    "ClrSubtype",
    "CollSeq",
    "Column",
    "ColumnsUsed",
    "Compare",
    "Concat",
    "Copy",
    "Count",
    "CursorHint",
    "CursorLock",
    "CursorUnlock",
    "DecrJumpZero",
    "DeferredSeek",
    "Delete",
    "Divide",
    "ElseEq",
    "EndCoroutine",
    "Eq",
    "Explain",
    "Filter",
    "FilterAdd",
    "FinishSeek",
    "Found",
    "Function",
    "Ge",
    "GetSubtype",
    "Gosub",
    "Goto",
    "Gt",
    "Halt",
    "HaltIfNull",
    "IdxDelete",
    "IdxGE",
    "IdxGT",
    "IdxInsert",
    "IdxLE",
    "IdxLT",
    "IdxRowid",
    "If",
    "IfEmpty",
    "IfNoHope",
    "IfNot",
    "IfNotOpen",
    "IfNotZero",
    "IfNullRow",
    "IfPos",
    "IfSizeBetween",
    "Init",
    "InitCoroutine",
    "Insert",
    "IntCopy",
    "Int64",
    "Integer",
    "IsNull",
    "IsTrue",
    "IsType",
    "Jump",
    "Last",
    "Le",
    "Lt",
    "MakeRecord",
    "MemMax",
    "Move",
    "Multiply",
    "MustBeInt",
    "Ne",
    "NewRowid",
    "Next",
    "Noop",
    "Not",
    "NotExists",
    "NotFound",
    "NotNull",
    "Null",
    "NullRow",
    "Offset",
    "OffsetLimit",
    "Once",
    "OpenAutoindex",
    "OpenDup",
    "OpenEphemeral",
    "OpenPseudo",
    "OpenRead",
    "Or",
    "Param",
    "Permutation",
    "Prev",
    "PureFunc",
    "Real",
    "RealAffinity",
    "ReleaseReg",
    "Remainder",
    "ReopenIdx",
    "ResetSorter",
    "ResultRow",
    "Return",
    "Rewind",
    "RowData",
    "RowSetAdd",
    "RowSetRead",
    "RowSetTest",
    "Rowid",
    "SCopy",
    "SeekEnd",
    "SeekGE",
    "SeekGT",
    "SeekHit",
    "SeekLE",
    "SeekLT",
    "SeekRowid",
    "SeekScan",
    "Sequence",
    "SequenceTest",
    "SetSubtype",
    "ShiftLeft",
    "ShiftRight",
    "SoftNull",
    "Sort",
    "SorterCompare",
    "SorterData",
    "SorterInsert",
    "SorterNext",
    "SorterOpen",
    "SorterSort",
    "String",
    "String8",
    "Subtract",
    "Trace",
    "Transaction",
    "VColumn",
    "VFilter",
    "VInitIn",
    "VNext",
    "VOpen",
    "Variable",
    "Yield",
    "ZeroOrNull",
];

/// Instructions that compare a key of an index, and so tell what is in it.
const COMPARING: [&str; 13] = [
    "SeekLT",
    "SeekLE",
    "SeekGE",
    "SeekGT",
    "SeekScan",
    "IdxLE",
    "IdxGT",
    "IdxLT",
    "IdxGE",
    "Found",
    "NotFound",
    "NoConflict",
    "IfNoHope",
];

/// What is closed about one table or index.
#[derive(Clone, Debug)]
struct Closed {
    /// Its table, and the column where that is closed alone.
    name: String,
    /// Places of closed columns in a record; `None` when all of it is closed.
    columns: Option<BTreeSet<i64>>,
    is_index: bool,
}

struct Step {
    opcode: String,
    p1: i64,
    p2: i64,
    p3: i64,
}

/// Proves that `sql` only reads, and nothing of `sealed`.
///
/// # Errors
///
/// [`QueryError::Refused`] by what it would do; `sqlx::Error` when SQLite does not understand it.
pub(super) async fn check(
    conn: &mut SqliteConnection,
    sql: &str,
    sealed: &[Sealed],
) -> Result<Result<(), QueryError>, sqlx::Error> {
    let closed = closed(conn, sealed).await?;
    // `EXPLAIN` runs nothing; the statement has been read word by word.
    let explain = sqlx::AssertSqlSafe(format!("EXPLAIN {sql}"));
    let rows = sqlx::query(explain)
        .persistent(false)
        .fetch_all(conn)
        .await?;
    let steps = rows.iter().map(|row| Step {
        opcode: row.get("opcode"),
        p1: row.get("p1"),
        p2: row.get("p2"),
        p3: row.get("p3"),
    });
    Ok(judge(steps, &closed))
}

fn judge(
    steps: impl Iterator<Item = Step>,
    closed: &BTreeMap<i64, Closed>,
) -> Result<(), QueryError> {
    // A number may stand for several cursors, one after another: what was ever closed about it stays so.
    let mut cursors: Vec<(i64, &Closed)> = Vec::new();
    let steps: Vec<Step> = steps.collect();
    for step in &steps {
        if !READING.contains(&step.opcode.as_str()) {
            return Err(QueryError::refused(format!(
                "a query only reads: SQLite would {} for it",
                step.opcode
            )));
        }
        if step.opcode == "Transaction" && step.p2 != 0 {
            return Err(QueryError::refused(
                "a query only reads: this one would write",
            ));
        }
        let opens = ["OpenRead", "ReopenIdx"].contains(&step.opcode.as_str());
        if opens
            && step.p3 == 0
            && let Some(found) = closed.get(&step.p2)
        {
            if found.columns.is_none() {
                return Err(is_closed(found));
            }
            cursors.push((step.p1, found));
        }
    }
    for step in &steps {
        for (cursor, closed) in &cursors {
            if reveals(step, *cursor, closed) {
                return Err(is_closed(closed));
            }
        }
    }
    Ok(())
}

fn reveals(step: &Step, cursor: i64, closed: &Closed) -> bool {
    let is_closed = |place| closed.columns.as_ref().is_none_or(|of| of.contains(&place));
    match step.opcode.as_str() {
        "Column" => step.p1 == cursor && is_closed(step.p2),
        "RowData" => step.p1 == cursor,
        opcode => closed.is_index && step.p1 == cursor && COMPARING.contains(&opcode),
    }
}

fn is_closed(closed: &Closed) -> QueryError {
    QueryError::refused(format!(
        "{} may hold credentials and is not read by queries: name other columns, or take a view (docs/views.md)",
        closed.name
    ))
}

/// What is closed, by the page at which a table or index begins.
async fn closed(
    conn: &mut SqliteConnection,
    sealed: &[Sealed],
) -> Result<BTreeMap<i64, Closed>, sqlx::Error> {
    let objects: Vec<(String, String, String, i64)> = sqlx::query_as(
        "SELECT type, name, tbl_name, rootpage FROM sqlite_schema WHERE rootpage > 0",
    )
    .fetch_all(&mut *conn)
    .await?;
    let mut closed = BTreeMap::new();
    for (kind, name, table, root) in objects {
        let is_index = kind == "index";
        let whole = SAMPLES.contains(&table.as_str())
            || sealed
                .iter()
                .any(|of| of.table == table && of.column.is_none());
        let columns: Vec<&str> = sealed
            .iter()
            .filter(|of| of.table == table)
            .filter_map(|of| of.column)
            .collect();
        let found = match (whole, columns.as_slice()) {
            (true, _) => None,
            (false, []) => continue,
            (false, columns) if is_index => places_in_index(conn, &name, columns).await?,
            (false, columns) => places_in_table(conn, &table, columns).await?,
        };
        if found.as_ref().is_none_or(|places| !places.is_empty()) {
            let name = match columns.as_slice() {
                [] => table,
                columns => format!("{table}.{}", columns.join(", ")),
            };
            let columns = found;
            closed.insert(
                root,
                Closed {
                    name,
                    columns,
                    is_index,
                },
            );
        }
    }
    Ok(closed)
}

/// Places of columns in a table's record; `None` where they are not in the order they were declared in.
async fn places_in_table(
    conn: &mut SqliteConnection,
    table: &str,
    columns: &[&str],
) -> Result<Option<BTreeSet<i64>>, sqlx::Error> {
    let is_tree: bool = sqlx::query_scalar(
        "SELECT coalesce(max(wr), 1) FROM pragma_table_list WHERE schema = 'main' AND name = ?1",
    )
    .bind(table)
    .fetch_one(&mut *conn)
    .await?;
    if is_tree {
        return Ok(None);
    }
    // 2: a generated column that is not stored.
    let stored: Vec<String> = sqlx::query_scalar(
        "SELECT name FROM pragma_table_xinfo(?1) WHERE hidden <> 2 ORDER BY cid",
    )
    .bind(table)
    .fetch_all(conn)
    .await?;
    let places = (0..).zip(stored);
    Ok(Some(
        places
            .filter(|(_, name)| columns.contains(&name.as_str()))
            .map(|(place, _)| place)
            .collect(),
    ))
}

/// Places of columns in an index; `None` where an expression may hold them.
async fn places_in_index(
    conn: &mut SqliteConnection,
    index: &str,
    columns: &[&str],
) -> Result<Option<BTreeSet<i64>>, sqlx::Error> {
    let keys: Vec<(i64, i64, Option<String>)> =
        sqlx::query_as("SELECT seqno, cid, name FROM pragma_index_xinfo(?1)")
            .bind(index)
            .fetch_all(conn)
            .await?;
    if keys.iter().any(|(_, cid, _)| *cid == -2) {
        return Ok(None);
    }
    let is_closed =
        |name: &Option<String>| name.as_deref().is_some_and(|name| columns.contains(&name));
    Ok(Some(
        keys.iter()
            .filter(|(_, _, name)| is_closed(name))
            .map(|(place, ..)| *place)
            .collect(),
    ))
}
