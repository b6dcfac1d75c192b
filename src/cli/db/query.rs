//! `zeroclaw db query`.

use std::io::Read;
use std::time::Duration;

use clap::Args;
use zeroclaw::model::{
    AgentId, Cell, MAX_QUERY_ROWS, MAX_QUERY_TIME, QueryAnswer, QueryCut, QueryLimits,
};

use crate::cli::carrier::looking;
use crate::cli::output::{Table, size};
use crate::cli::{CliError, Context, Exit};

/// Longest statement read from stdin.
const MAX_STDIN_BYTES: u64 = 1 << 20;
/// What SQLite may hold in this process: room to sort, and for a value too long to be shown.
const HEAP_BYTES: i64 = 256 << 20;

#[derive(Args, Debug)]
pub(crate) struct QueryArgs {
    /// The statement; `-` reads it from stdin
    #[arg(value_name = "SQL", allow_hyphen_values = true)]
    sql: String,

    /// Ask this agent's database, not the control plane
    #[arg(long, value_name = "ID")]
    agent: Option<AgentId>,

    /// Give at most this many rows, 1 to 1000000
    #[arg(
        long,
        value_name = "ROWS",
        default_value_t = QueryLimits::default().rows,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_QUERY_ROWS))
    )]
    limit: u32,

    /// Stop after this many seconds, 1 to 3600
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = QueryLimits::default().time.as_secs(),
        value_parser = clap::value_parser!(u64).range(1..=MAX_QUERY_TIME.as_secs())
    )]
    timeout: u64,

    /// Print comma-separated values with a header
    #[arg(long, conflicts_with = "json")]
    csv: bool,
}

pub(super) async fn query(context: &Context, args: QueryArgs) -> Result<Exit, CliError> {
    let limits = QueryLimits {
        rows: args.limit,
        time: Duration::from_secs(args.timeout),
        heap_bytes: Some(HEAP_BYTES),
        ..QueryLimits::default()
    };
    let sql = match args.sql.as_str() {
        "-" => from_stdin()?,
        _ => args.sql,
    };
    // Here also where a daemon lives: what a statement may cost is this process's, never the daemon's.
    let answer = looking(context, async |service| {
        Ok(service.query(args.agent.as_ref(), &sql, &limits).await?)
    });
    let answer = answer.await?;
    if context.json() {
        context.out.json(&answer)?;
    } else if args.csv {
        csv(context, &answer)?;
    } else if answer.rows.is_empty() {
        context.out.note("no rows");
    } else {
        context.out.table(&table(&answer))?;
    }
    tell_cuts(context, &answer, &limits);
    Ok(if answer.is_whole() {
        Exit::Done
    } else {
        Exit::Findings
    })
}

fn from_stdin() -> Result<String, CliError> {
    let mut sql = String::new();
    let stdin = std::io::stdin().lock();
    let read = stdin.take(MAX_STDIN_BYTES + 1).read_to_string(&mut sql);
    read.map_err(|error| CliError::new(Exit::Usage, "cannot read the statement").because(&error))?;
    Ok(sql)
}

fn table(answer: &QueryAnswer) -> Table {
    let mut table = Table::of_text(&answer.columns);
    for row in &answer.rows {
        table.row_of(row.iter().map(ToString::to_string));
    }
    table
}

fn tell_cuts(context: &Context, answer: &QueryAnswer, limits: &QueryLimits) {
    match answer.cut {
        Some(QueryCut::Rows) => context.out.warn(&format!(
            "there are more rows than {}: ask for more with --limit ROWS",
            answer.rows.len()
        )),
        Some(QueryCut::Bytes) => context.out.warn(&format!(
            "cut after {} rows: the rest goes beyond {}; ask for fewer columns, or in parts",
            answer.rows.len(),
            size(limits.bytes as u64)
        )),
        None => {}
    }
    if answer.cut_cells > 0 {
        context.out.warn(&format!(
            "{} values were longer than an answer takes and were cut: ask for parts with substr()",
            answer.cut_cells
        ));
    }
}

/// RFC 4180; nothing between the commas is `NULL`, and an empty text stands in quotes.
fn csv(context: &Context, answer: &QueryAnswer) -> Result<(), CliError> {
    let names = answer.columns.iter().map(|name| field(name));
    context.out.stored(line(names).as_bytes())?;
    for row in &answer.rows {
        if context.out.is_closed() {
            break;
        }
        let cells = row.iter().map(|cell| match cell {
            Cell::Null => String::new(),
            cell => field(&cell.to_string()),
        });
        context.out.stored(line(cells).as_bytes())?;
    }
    Ok(())
}

fn line(fields: impl Iterator<Item = String>) -> String {
    let fields: Vec<String> = fields.collect();
    format!("{}\r\n", fields.join(","))
}

fn field(text: &str) -> String {
    let is_plain = |c: char| !matches!(c, ',' | '"' | '\r' | '\n');
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("\"{}\"", text.replace('"', "\"\""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        assert_eq!(field("plain text"), "plain text");
        assert_eq!(field(""), "\"\"");
        assert_eq!(field("a,\"b\"\n"), "\"a,\"\"b\"\"\n\"");
    }
}
