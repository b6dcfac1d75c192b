//! What every command is given: the root, the clock, and where to speak.

use std::ffi::OsString;
use std::path::PathBuf;

use zeroclaw::service::{Clock, resolve_root};

use super::output::shell_word;
use super::{CliError, Globals, Out};

/// What every command is given.
#[derive(Debug)]
pub(crate) struct Context {
    /// The root, absolute; it need not exist.
    pub(crate) root: PathBuf,
    /// The time.
    pub(crate) clock: Clock,
    /// Where to speak.
    pub(crate) out: Out,
    args: Vec<OsString>,
}

impl Context {
    /// Finds the root that the flags and the environment name.
    ///
    /// # Errors
    ///
    /// [`CliError`] when there is none to be named.
    pub(crate) fn new(globals: &Globals, out: &Out) -> Result<Self, CliError> {
        let env = |name: &str| std::env::var_os(name);
        Ok(Self {
            root: resolve_root(globals.config_dir.clone(), &env)?,
            clock: Clock::system(),
            out: out.clone(),
            args: std::env::args_os().collect(),
        })
    }

    /// Whether the answer is wanted as JSON.
    pub(crate) fn json(&self) -> bool {
        self.out.is_json()
    }

    /// Names, on stderr, the command that shows the next page: this one with `flag` set to `cursor`.
    pub(crate) fn offer_next(&self, flag: &str, cursor: &str) {
        if !self.json() {
            let command = with_flag(&self.args, flag, cursor);
            self.out.note(&format!("next page: {command}"));
        }
    }
}

/// The command line again, with one flag set anew.
fn with_flag(args: &[OsString], flag: &str, value: &str) -> String {
    let mut words = Vec::new();
    let mut rest = args.iter().map(|arg| arg.to_string_lossy());
    let mut behind = Vec::new();
    while let Some(arg) = rest.next() {
        if arg == "--" {
            // What follows is no flag, so the new flag goes before.
            behind.push(arg);
            behind.extend(rest.by_ref());
        } else if arg == flag {
            rest.next();
        } else if arg
            .strip_prefix(flag)
            .is_none_or(|end| !end.starts_with('='))
        {
            words.push(arg);
        }
    }
    words.extend([flag.into(), value.into()]);
    words.append(&mut behind);
    let quoted: Vec<_> = words.iter().map(|word| shell_word(word)).collect();
    quoted.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(line: &[&str]) -> String {
        let args: Vec<OsString> = line.iter().map(Into::into).collect();
        with_flag(&args, "--before", "17:a b")
    }

    #[test]
    fn the_next_page_is_the_same_command_with_another_cursor() {
        assert_eq!(
            next(&["zeroclaw", "--config-dir", "/my root", "sessions", "list"]),
            "zeroclaw --config-dir '/my root' sessions list --before '17:a b'"
        );
        assert_eq!(
            next(&["z", "list", "--before", "9:x", "--limit", "3"]),
            "z list --limit 3 --before '17:a b'"
        );
        assert_eq!(
            next(&["z", "list", "--before=9:x"]),
            "z list --before '17:a b'"
        );
        assert_eq!(
            next(&["z", "runs", "--", "-job"]),
            "z runs --before '17:a b' -- -job"
        );
    }
}
