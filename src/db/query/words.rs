//! The words of a statement: what kind it is, and that it is one alone.

use super::QueryError;

/// Longest statement.
const MAX_BYTES: usize = 1 << 20;

/// Pragmas that read, each a table of the name `pragma_…` too, and whether it takes the name of something.
const PRAGMAS: [(&str, bool); 19] = [
    ("application_id", false),
    ("auto_vacuum", false),
    ("collation_list", false),
    ("compile_options", false),
    ("encoding", false),
    ("foreign_key_list", true),
    ("freelist_count", false),
    ("function_list", false),
    ("index_info", true),
    ("index_list", true),
    ("index_xinfo", true),
    ("journal_mode", false),
    ("page_count", false),
    ("page_size", false),
    ("schema_version", false),
    ("table_info", true),
    ("table_list", true),
    ("table_xinfo", true),
    ("user_version", false),
];

/// A statement that reads, as far as its words tell.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Statement {
    /// A query that can stand between parentheses.
    Query(String),
    /// A query whose plan is asked for.
    Plan(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Word,
    /// A name in quotes.
    Name,
    Text,
    Number,
    Parameter,
    Symbol,
}

#[derive(Clone, Copy, Debug)]
struct Token<'a> {
    kind: Kind,
    text: &'a str,
}

impl Token<'_> {
    fn is(&self, word: &str) -> bool {
        self.kind == Kind::Word && self.text.eq_ignore_ascii_case(word)
    }

    fn is_symbol(&self, symbol: &str) -> bool {
        self.kind == Kind::Symbol && self.text == symbol
    }

    /// What stands in the quotes, or the word.
    fn bare(&self) -> String {
        match self.kind {
            Kind::Name | Kind::Text => {
                let end = self.text.chars().next_back().unwrap_or_default();
                let inner = &self.text[1..self.text.len() - 1];
                inner.replace(&format!("{end}{end}"), &end.to_string())
            }
            _ => self.text.to_owned(),
        }
    }
}

/// Tells what a text asks for.
///
/// # Errors
///
/// [`QueryError::Refused`] when it is no single statement that reads.
pub(super) fn read(sql: &str) -> Result<Statement, QueryError> {
    if sql.len() > MAX_BYTES {
        return Err(QueryError::refused("the statement is longer than 1 MiB"));
    }
    let mut tokens = tokens(sql)?;
    let mut end = sql.len();
    while let Some(last) = tokens.last().filter(|token| token.is_symbol(";")) {
        end = offset(sql, last);
        tokens.pop();
    }
    let text = &sql[..end];
    check_single(&tokens)?;
    check_names(&tokens)?;
    match tokens.first().map(|token| token.text.to_ascii_uppercase()) {
        None => Err(QueryError::refused("there is no statement")),
        Some(word) if ["SELECT", "VALUES"].contains(&word.as_str()) => {
            Ok(Statement::Query(text.to_owned()))
        }
        Some(word) if word == "WITH" => {
            check_with(&tokens)?;
            Ok(Statement::Query(text.to_owned()))
        }
        Some(word) if word == "PRAGMA" => pragma(&tokens[1..]),
        Some(word) if word == "EXPLAIN" => plan(text, &tokens[1..]),
        Some(word) => Err(QueryError::refused(format!(
            "a query only reads: {} is refused",
            shown(&word)
        ))),
    }
}

/// A word as it can be told.
fn shown(word: &str) -> String {
    let short: String = word.chars().take(30).collect();
    format!("{short:?}").trim_matches('"').to_owned()
}

/// Where a token begins.
fn offset(sql: &str, token: &Token<'_>) -> usize {
    // A token is a part of the very text.
    token.text.as_ptr() as usize - sql.as_ptr() as usize
}

fn check_single(tokens: &[Token<'_>]) -> Result<(), QueryError> {
    let mut depth = 0_i64;
    for token in tokens {
        match token.text {
            ";" if token.kind == Kind::Symbol => {
                return Err(QueryError::refused(
                    "more than one statement: one at a time is run",
                ));
            }
            "(" if token.kind == Kind::Symbol => depth += 1,
            ")" if token.kind == Kind::Symbol => depth -= 1,
            _ => {}
        }
        if depth < 0 {
            return Err(QueryError::refused(
                "a parenthesis is closed that is not open",
            ));
        }
        if token.kind == Kind::Parameter {
            return Err(QueryError::refused(format!(
                "{} stands for a value, and there is none to put in: write the value",
                shown(token.text)
            )));
        }
    }
    if depth > 0 {
        return Err(QueryError::refused("a parenthesis is left open"));
    }
    Ok(())
}

/// Names that reach beyond reading, wherever they stand. SQLite takes a text for a name, too.
fn check_names(tokens: &[Token<'_>]) -> Result<(), QueryError> {
    for token in tokens {
        if !matches!(token.kind, Kind::Word | Kind::Name | Kind::Text) {
            continue;
        }
        let name = token.bare().to_ascii_lowercase();
        if name == "load_extension" {
            return Err(QueryError::refused(
                "a query only reads: load_extension is refused",
            ));
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if let Some(pragma) = name.strip_prefix("pragma_")
            && pragma.chars().all(is_name)
            && !PRAGMAS.iter().any(|(known, _)| *known == pragma)
        {
            return Err(not_reading(pragma));
        }
    }
    Ok(())
}

fn not_reading(pragma: &str) -> QueryError {
    let known: Vec<_> = PRAGMAS.iter().map(|(name, _)| *name).collect();
    QueryError::refused(format!(
        "a query only reads: PRAGMA {} is refused; taken are {}",
        shown(pragma),
        known.join(", ")
    ))
}

/// `WITH` may begin a write too; SQLite's grammar would refuse it later, with fewer words.
fn check_with(tokens: &[Token<'_>]) -> Result<(), QueryError> {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate() {
        match token.text {
            "(" if token.kind == Kind::Symbol => depth += 1,
            ")" if token.kind == Kind::Symbol => depth -= 1,
            _ => {}
        }
        let is_after_body = at > 0 && tokens[at - 1].is_symbol(")");
        let writes = ["INSERT", "REPLACE", "UPDATE", "DELETE"];
        if depth == 0
            && is_after_body
            && let Some(word) = writes.iter().find(|word| token.is(word))
        {
            return Err(QueryError::refused(format!(
                "a query only reads: {word} is refused"
            )));
        }
    }
    Ok(())
}

/// `PRAGMA name` or `PRAGMA name(of)`, as the table it is known as.
fn pragma(tokens: &[Token<'_>]) -> Result<Statement, QueryError> {
    let name = tokens.first().map(Token::bare).unwrap_or_default();
    let name = name.to_ascii_lowercase();
    let Some((name, takes_name)) = PRAGMAS.iter().find(|(known, _)| *known == name) else {
        return Err(not_reading(&name));
    };
    let of = match &tokens[1..] {
        [] => String::new(),
        [open, of, close] if *takes_name && open.is_symbol("(") && close.is_symbol(")") => {
            format!("('{}')", of.bare().replace('\'', "''"))
        }
        _ => {
            return Err(QueryError::refused(format!(
                "a query only reads: PRAGMA {name} is taken without a new value"
            )));
        }
    };
    Ok(Statement::Query(format!("SELECT * FROM pragma_{name}{of}")))
}

fn plan(text: &str, tokens: &[Token<'_>]) -> Result<Statement, QueryError> {
    let [query, plan, first, ..] = tokens else {
        return Err(QueryError::refused(
            "EXPLAIN is taken as EXPLAIN QUERY PLAN",
        ));
    };
    if !query.is("QUERY") || !plan.is("PLAN") {
        return Err(QueryError::refused(
            "EXPLAIN is taken as EXPLAIN QUERY PLAN",
        ));
    }
    match read(&text[offset(text, first)..])? {
        Statement::Query(query) => Ok(Statement::Plan(query)),
        Statement::Plan(_) => Err(QueryError::refused("EXPLAIN stands before a query")),
    }
}

fn tokens(sql: &str) -> Result<Vec<Token<'_>>, QueryError> {
    let mut tokens = Vec::new();
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        let (len, kind) = token(rest, first)?;
        if let Some(kind) = kind {
            tokens.push(Token {
                kind,
                text: &rest[..len],
            });
        }
        rest = &rest[len..];
    }
    Ok(tokens)
}

/// Length and kind of what `rest` begins with; no kind for blanks and comments.
fn token(rest: &str, first: char) -> Result<(usize, Option<Kind>), QueryError> {
    let span = |is_in: fn(char) -> bool| {
        let end = rest.find(|c| !is_in(c));
        end.unwrap_or(rest.len())
    };
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$' || !c.is_ascii();
    Ok(match first {
        '\0' => return Err(QueryError::refused("the statement holds a zero byte")),
        _ if rest.starts_with("--") => (rest.find('\n').unwrap_or(rest.len()), None),
        _ if rest.starts_with("/*") => match rest[2..].find("*/") {
            Some(end) => (end + 4, None),
            None => return Err(QueryError::refused("a comment is left open")),
        },
        c if c.is_ascii_whitespace() || c == '\u{b}' => {
            (span(|c| c.is_ascii_whitespace() || c == '\u{b}'), None)
        }
        '\'' => (quoted(rest, '\'')?, Some(Kind::Text)),
        '"' | '`' => (quoted(rest, first)?, Some(Kind::Name)),
        '[' => match rest.find(']') {
            Some(end) => (end + 1, Some(Kind::Name)),
            None => return Err(QueryError::refused("a quote is left open")),
        },
        '0'..='9' => (span(is_word), Some(Kind::Number)),
        // `$` begins a parameter and goes on in a name.
        '?' | ':' | '@' | '$' | '#' => {
            let name = rest[1..].find(|c| !is_word(c));
            (
                name.map_or(rest.len(), |end| end + 1),
                Some(Kind::Parameter),
            )
        }
        c if is_word(c) => (span(is_word), Some(Kind::Word)),
        c => (c.len_utf8(), Some(Kind::Symbol)),
    })
}

/// Length of a text in quotes, in which the quote itself stands twice.
fn quoted(rest: &str, quote: char) -> Result<usize, QueryError> {
    let mut at = 1;
    while let Some(end) = rest[at..].find(quote) {
        at += end + 1;
        if !rest[at..].starts_with(quote) {
            return Ok(at);
        }
        at += 1;
    }
    Err(QueryError::refused("a quote is left open"))
}

#[cfg(test)]
mod tests;
