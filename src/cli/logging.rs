//! What the program says of itself while it works: on stderr, by level.

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

use super::{CliError, Exit, Globals, Out};

/// Names a filter in the grammar of `RUST_LOG`, for single parts of the program.
const FILTER_VARIABLE: &str = "ZEROCLAW_LOG";

/// How much is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogLevel {
    /// Nothing.
    Off,
    /// What failed.
    Error,
    /// What may surprise.
    Warn,
    /// What is done.
    Info,
    /// How it is done.
    Debug,
    /// Everything.
    Trace,
}

impl LogLevel {
    fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

/// Begins to log: `--log-level`, else `-v`, else `ZEROCLAW_LOG`, else warnings.
///
/// # Errors
///
/// [`CliError`] when the variable holds no filter.
pub(crate) fn start_logging(globals: &Globals, out: &Out) -> Result<(), CliError> {
    let variable = std::env::var(FILTER_VARIABLE).unwrap_or_default();
    let filter = EnvFilter::try_new(directives(globals, &variable)).map_err(|error| {
        CliError::new(
            Exit::Usage,
            format!("{FILTER_VARIABLE} holds no log filter"),
        )
        .because(&error)
        .hint(format!("for example: {FILTER_VARIABLE}=zeroclaw=debug"))
    })?;
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(out.colours_talk());
    // A second start in one process keeps the first.
    let _ = if out.is_json() {
        log.json().try_init()
    } else {
        log.without_time().with_target(false).compact().try_init()
    };
    Ok(())
}

/// Flags speak of this program only: its libraries log statements, which hold what people said.
fn directives(globals: &Globals, variable: &str) -> String {
    let counted = match globals.verbose {
        0 => None,
        1 => Some(LogLevel::Info),
        2 => Some(LogLevel::Debug),
        _ => Some(LogLevel::Trace),
    };
    match globals.log_level.or(counted) {
        Some(LogLevel::Off) => "off".to_owned(),
        Some(LogLevel::Error) => "error".to_owned(),
        Some(level) => format!("warn,zeroclaw={}", level.as_str()),
        None if variable.trim().is_empty() => "warn".to_owned(),
        None => variable.to_owned(),
    }
}
