//! The only place that prints.
//!
//! stdout is data, stderr is talk. Stored text is never trusted: control characters are made
//! visible before they reach a terminal or a pipe (see [`text`]). A reader that goes away, as
//! `| head` does, is no failure: what is left unsaid is dropped and the command ends as it would have.

use std::io::{self, IsTerminal, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context as TaskContext, Poll};

use serde::Serialize;

use super::args::ColorWhen;
use super::{CliError, Exit, Globals};

mod json;
mod progress;
mod table;
mod text;

pub(crate) use progress::ProgressLine;
pub(crate) use table::{Column, Fields, Table};
pub(crate) use text::{one_line, or_dash, shell_word, size, span, time};

const BOLD: &str = "\x1b[1m";
const RED: &str = "\x1b[1;31m";
const YELLOW: &str = "\x1b[1;33m";
const CYAN: &str = "\x1b[1;36m";
const PLAIN: &str = "\x1b[0m";

/// Where a command speaks, and how. Clones speak to the same place.
#[derive(Clone, Debug)]
pub(crate) struct Out {
    is_json: bool,
    data_is_terminal: bool,
    colours_data: bool,
    colours_talk: bool,
    is_closed: Arc<AtomicBool>,
}

impl Out {
    /// Speaks as the flags say.
    pub(crate) fn new(globals: &Globals) -> Self {
        let data_is_terminal = io::stdout().is_terminal();
        Self {
            is_json: globals.json,
            data_is_terminal,
            colours_data: has_colour(globals.color, data_is_terminal),
            colours_talk: has_colour(globals.color, io::stderr().is_terminal()),
            is_closed: Arc::default(),
        }
    }

    /// Speaks for a command line that could not be understood: only the flag for JSON is looked for.
    pub(crate) fn from_environment() -> Self {
        Self::new(&Globals {
            json: std::env::args_os().any(|arg| arg == "--json"),
            ..Globals::default()
        })
    }

    /// Whether data is wanted as JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.is_json
    }

    /// Whether what goes to stderr may be coloured.
    pub(crate) fn colours_talk(&self) -> bool {
        self.colours_talk
    }

    /// Whether the reader of stdout has gone: a long listing can stop.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    /// Prints data as it is, without a look at what it holds.
    ///
    /// # Errors
    ///
    /// [`CliError`] when stdout cannot be written, unless its reader has gone.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> Result<(), CliError> {
        if self.is_closed() {
            return Ok(());
        }
        let mut stdout = io::stdout().lock();
        match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.is_closed.store(true, Ordering::Relaxed);
                Ok(())
            }
            Err(error) => Err(cannot_print(&error)),
        }
    }

    /// Prints stored bytes: as they are into a file or a pipe, made visible on a terminal.
    ///
    /// # Errors
    ///
    /// As [`Out::bytes`].
    pub(crate) fn stored(&self, bytes: &[u8]) -> Result<(), CliError> {
        if self.data_is_terminal {
            return self.text(&String::from_utf8_lossy(bytes));
        }
        self.bytes(bytes)
    }

    /// Takes stored bytes piece by piece, as [`Out::stored`] does. When the reader has gone it fails, so that whoever
    /// writes stops.
    pub(crate) fn sink(&self) -> Sink<'_> {
        Sink(self)
    }

    /// Prints text, line breaks kept, other control characters made visible.
    ///
    /// # Errors
    ///
    /// As [`Out::bytes`].
    pub(crate) fn text(&self, text: &str) -> Result<(), CliError> {
        self.bytes(text::lines(text).as_bytes())
    }

    /// Prints a heading in bold where that can be seen.
    ///
    /// # Errors
    ///
    /// As [`Out::bytes`].
    pub(crate) fn heading(&self, heading: &str) -> Result<(), CliError> {
        let heading = one_line(heading);
        let line = if self.colours_data {
            format!("{BOLD}{heading}{PLAIN}\n")
        } else {
            format!("{heading}\n")
        };
        self.bytes(line.as_bytes())
    }

    /// Prints a table: cut to a terminal's width, whole in a pipe.
    ///
    /// # Errors
    ///
    /// As [`Out::bytes`].
    pub(crate) fn table(&self, table: &Table) -> Result<(), CliError> {
        let width = self.data_is_terminal.then(terminal_width);
        self.bytes(table.render(width, self.colours_data).as_bytes())
    }

    /// Prints names and values, one pair a line.
    ///
    /// # Errors
    ///
    /// As [`Out::bytes`].
    pub(crate) fn fields(&self, fields: &Fields) -> Result<(), CliError> {
        self.bytes(fields.render(self.colours_data).as_bytes())
    }

    /// Prints a value as JSON: for reading on a terminal, on one line in a pipe.
    ///
    /// # Errors
    ///
    /// As [`Out::bytes`].
    pub(crate) fn json<T: Serialize + ?Sized>(&self, value: &T) -> Result<(), CliError> {
        let mut bytes = json::render(value, self.data_is_terminal)?;
        bytes.push(b'\n');
        self.bytes(&bytes)
    }

    /// Prints a part of a JSON text that is too long to be built as a whole.
    ///
    /// # Errors
    ///
    /// As [`Out::bytes`].
    pub(crate) fn json_part<T: Serialize + ?Sized>(
        &self,
        before: &str,
        value: &T,
        after: &str,
    ) -> Result<(), CliError> {
        let mut bytes = before.as_bytes().to_vec();
        bytes.append(&mut json::render(value, false)?);
        bytes.extend_from_slice(after.as_bytes());
        self.bytes(&bytes)
    }

    /// Says something on stderr.
    pub(crate) fn note(&self, text: &str) {
        self.talk(&format!("{}\n", text::lines(text)));
    }

    /// Whether what goes to stderr is seen on a terminal.
    pub(crate) fn talk_is_terminal(&self) -> bool {
        io::stderr().is_terminal()
    }

    /// Says on stderr how far something is, as JSON on one line.
    pub(crate) fn progress<T: Serialize + ?Sized>(&self, value: &T) {
        if let Ok(text) = json::render(&serde_json::json!({ "progress": value }), false) {
            self.talk(&format!("{}\n", String::from_utf8_lossy(&text)));
        }
    }

    /// Says on stderr what may surprise.
    pub(crate) fn warn(&self, text: &str) {
        self.say("warning", YELLOW, text);
    }

    /// Tells a failure on stderr; gives the exit it asks for.
    pub(crate) fn report(&self, error: &CliError) -> Exit {
        if self.is_json {
            let text = json::render(&error.to_json(), false).unwrap_or_default();
            self.talk(&format!("{}\n", String::from_utf8_lossy(&text)));
            return error.exit();
        }
        for (word, text) in error.lines() {
            self.say(word, if word == "error" { RED } else { CYAN }, text);
        }
        error.exit()
    }

    /// Tells what clap has to say: help and version as data, anything else as a failure.
    pub(crate) fn usage(&self, error: &clap::Error) -> Exit {
        if !error.use_stderr() {
            let told = self.bytes(styled(error, self.colours_data).as_bytes());
            return told.map_or_else(|failure| self.report(&failure), |()| Exit::Done);
        }
        if self.is_json {
            return self.report(&CliError::new(Exit::Usage, usage_message(error)));
        }
        self.talk(&styled(error, self.colours_talk));
        Exit::Usage
    }

    fn say(&self, word: &str, colour: &str, text: &str) {
        let text = text::lines(text);
        if self.colours_talk {
            self.talk(&format!("{colour}{word}:{PLAIN} {text}\n"));
        } else {
            self.talk(&format!("{word}: {text}\n"));
        }
    }

    /// Nobody is left to be told that stderr cannot be written.
    fn talk(&self, text: &str) {
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }
}

/// stdout for a stream of bytes.
#[derive(Debug)]
pub(crate) struct Sink<'a>(&'a Out);

impl tokio::io::AsyncWrite for Sink<'_> {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut TaskContext<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let printed = self.0.stored(bytes);
        Poll::Ready(match printed {
            Ok(()) if self.0.is_closed() => Err(io::ErrorKind::BrokenPipe.into()),
            Ok(()) => Ok(bytes.len()),
            Err(_) => Err(io::Error::other("cannot write to stdout")),
        })
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut TaskContext<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut TaskContext<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

fn styled(error: &clap::Error, has_colour: bool) -> String {
    let text = error.render();
    if has_colour {
        text.ansi().to_string()
    } else {
        text.to_string()
    }
}

/// The first paragraph, without the word that starts it.
fn usage_message(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let first = text.split("\n\n").next().unwrap_or_default();
    first.trim_start_matches("error: ").trim().to_owned()
}

fn has_colour(when: ColorWhen, is_terminal: bool) -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    match when {
        ColorWhen::Always => true,
        ColorWhen::Never => false,
        ColorWhen::Auto => {
            is_terminal
                && !is_set("NO_COLOR")
                && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
        }
    }
}

/// `COLUMNS`, else what the terminal says, else 80.
fn terminal_width() -> u16 {
    let asked = std::env::var("COLUMNS")
        .ok()
        .and_then(|columns| columns.parse().ok())
        .filter(|&columns| columns > 0);
    asked.or_else(table::screen_width).unwrap_or(80)
}

fn cannot_print(error: &io::Error) -> CliError {
    let exit = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Exit::NoSpace,
        _ => Exit::Internal,
    };
    CliError::new(exit, "cannot write to stdout").because(error)
}
