//! What an import of a case must end with.
//!
//! Counts are of the whole install after one run, over all sources. Where the old format leaves the choice to the
//! importer, a field is `None` and the case says so.

use std::path::PathBuf;

/// The outcome of one case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Expected {
    /// Every session that must exist.
    pub(crate) sessions: Vec<ExpectedSession>,
    /// Rows that become memories, by agent; superseded ones count.
    pub(crate) memories: Vec<(&'static str, usize)>,
    /// Every job that must exist.
    pub(crate) jobs: Vec<ExpectedJob>,
    /// Runs that must exist, over all jobs.
    pub(crate) runs: usize,
    /// Records that cannot go in as they are: each must be named, its bytes kept.
    pub(crate) refused: Vec<Refused>,
    /// Records that another record of the same install already says.
    pub(crate) already_present: usize,
    /// What a search must find afterwards: agent, word, hits.
    pub(crate) found: Vec<(&'static str, &'static str, usize)>,
    /// Files that must be in place and unchanged afterwards, whatever else happens.
    pub(crate) stays: Vec<PathBuf>,
}

impl Expected {
    /// Messages over all sessions.
    pub(crate) fn messages(&self) -> usize {
        self.sessions.iter().map(|session| session.messages).sum()
    }

    /// Adds a session with a known key.
    pub(crate) fn session(mut self, agent: &'static str, key: &str, messages: usize) -> Self {
        self.sessions.push(ExpectedSession {
            agent,
            key: Some(key.to_owned()),
            messages,
        });
        self
    }

    /// Adds a session whose key the importer chooses.
    pub(crate) fn session_of_any_key(mut self, agent: &'static str, messages: usize) -> Self {
        self.sessions.push(ExpectedSession {
            agent,
            key: None,
            messages,
        });
        self
    }

    /// Adds an agent's memories.
    pub(crate) fn memory(mut self, agent: &'static str, rows: usize) -> Self {
        self.memories.push((agent, rows));
        self
    }

    /// Adds a job; `agent` and `enabled` are `None` where the format does not decide.
    pub(crate) fn job(
        mut self,
        id: &'static str,
        agent: Option<&'static str>,
        enabled: Option<bool>,
    ) -> Self {
        self.jobs.push(ExpectedJob { id, agent, enabled });
        self
    }

    /// Adds a record that must be named.
    pub(crate) fn refuse(mut self, refused: Refused) -> Self {
        self.refused.push(refused);
        self
    }
}

/// A session that must exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExpectedSession {
    /// Whose it is.
    pub(crate) agent: &'static str,
    /// The old key; `None` where the importer has to make one up.
    pub(crate) key: Option<String>,
    /// How many messages it has.
    pub(crate) messages: usize,
}

/// A job that must exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExpectedJob {
    /// The old id.
    pub(crate) id: &'static str,
    /// Whose it is.
    pub(crate) agent: Option<&'static str>,
    /// Whether it may fire.
    pub(crate) enabled: Option<bool>,
}

/// A record that must be named in the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    /// The source, below the install.
    pub(crate) path: PathBuf,
    /// Where in it.
    pub(crate) place: Place,
    /// What is wrong with it.
    pub(crate) why: Why,
    /// Its bytes, which must be kept somewhere; empty where a whole page is gone.
    pub(crate) raw: Vec<u8>,
}

/// Where in a source a record is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// A line of a text file, from 1, and its byte offset, from 0.
    Line {
        /// The line.
        number: usize,
        /// Where it starts.
        offset: usize,
    },
    /// A row of a table, by the table's own row number.
    Row {
        /// The table.
        table: &'static str,
        /// Its rowid.
        rowid: i64,
    },
    /// A page of a database file, from 1.
    Page(i64),
}

/// What is wrong with a refused record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// The last line was cut short by a crash.
    TornTail,
    /// A whole line that is not JSON.
    NotJson,
    /// Bytes that are not UTF-8.
    NotUtf8,
    /// A value of another type than the column promises.
    WrongType,
    /// NULL where a value is needed.
    Missing,
    /// A page that SQLite cannot read.
    DamagedPage,
}
