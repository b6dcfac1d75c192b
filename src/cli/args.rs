//! The flags of every command, and the commands.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};
use zeroclaw::model::{MAX_PAGE, PageLimit};

use super::logging::LogLevel;
use super::{
    CliError, Context, Exit, agent, audit, backup, channel, commitment, cost, cron, db, delivery,
    device, flow, init, knowledge, logs, memory, plugin, session, status, task,
};

/// When to use colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorWhen {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Flags that every command takes.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Globals {
    /// Use this root
    ///
    /// Default: ZEROCLAW_CONFIG_DIR, else the root that ZEROCLAW_DATA_DIR or ZEROCLAW_WORKSPACE
    /// belong to, else ~/.zeroclaw. Variables that are empty, `undefined` or `null` count as unset.
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) config_dir: Option<PathBuf>,

    /// Print JSON
    ///
    /// Data goes to stdout, one value on one line unless stdout is a terminal. A failure is one
    /// object {"error": …} on stderr. The shapes are documented in docs/cli-json.md and only grow.
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// Say more; repeat for still more
    ///
    /// Once for info, twice for debug, three times for trace.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,

    /// Log from this level on, on stderr
    ///
    /// Default: warn. The variable ZEROCLAW_LOG takes finer filters, for example
    /// `zeroclaw::db=debug`; the flags win.
    #[arg(long, global = true, value_name = "LEVEL", conflicts_with = "verbose")]
    pub(crate) log_level: Option<LogLevel>,

    /// Use colour: on a terminal, always or never
    ///
    /// `auto` honours NO_COLOR and TERM=dumb.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColorWhen,
}

/// Commands that work on a root through the service.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    #[command(display_order = 1)]
    Init(init::InitArgs),
    #[command(display_order = 2)]
    Status(status::StatusArgs),
    #[command(display_order = 10, subcommand)]
    Agents(agent::AgentsCommand),
    #[command(display_order = 11, subcommand)]
    Sessions(session::SessionsCommand),
    #[command(display_order = 14, subcommand)]
    Vfs(super::vfs::VfsCommand),
    #[command(display_order = 12, subcommand)]
    Cron(cron::CronCommand),
    #[command(display_order = 14, subcommand)]
    Tasks(task::TasksCommand),
    #[command(display_order = 13, subcommand)]
    Memory(memory::MemoryCommand),
    #[command(display_order = 14, subcommand)]
    Devices(device::DevicesCommand),
    #[command(display_order = 14, subcommand)]
    Channels(channel::ChannelsCommand),
    #[command(display_order = 15)]
    Costs(cost::CostsArgs),
    #[command(display_order = 16)]
    Logs(logs::LogsArgs),
    #[command(display_order = 17, subcommand)]
    Flows(flow::FlowsCommand),
    #[command(display_order = 17, subcommand)]
    Delivery(delivery::DeliveryCommand),
    #[command(display_order = 17, subcommand)]
    Commitments(commitment::CommitmentsCommand),
    #[command(display_order = 18, subcommand)]
    Plugins(plugin::PluginsCommand),
    #[command(display_order = 18, subcommand)]
    Knowledge(knowledge::KnowledgeCommand),
    #[command(display_order = 19, subcommand)]
    Audit(audit::AuditCommand),
    #[command(display_order = 4, subcommand)]
    Backup(backup::BackupCommand),
    #[command(display_order = 20, subcommand)]
    Db(db::DbCommand),
}

impl Command {
    /// Runs it.
    ///
    /// # Errors
    ///
    /// [`CliError`], which knows the exit code.
    pub(crate) async fn run(self, context: &Context) -> Result<Exit, CliError> {
        match self {
            Self::Init(args) => args.run(context).await,
            Self::Status(args) => args.run(context).await,
            Self::Agents(command) => command.run(context).await,
            Self::Sessions(command) => command.run(context).await,
            Self::Vfs(command) => command.run(context).await,
            Self::Cron(command) => command.run(context).await,
            Self::Memory(command) => command.run(context).await,
            Self::Tasks(command) => command.run(context).await,
            Self::Devices(command) => command.run(context).await,
            Self::Channels(command) => command.run(context).await,
            Self::Costs(args) => args.run(context).await,
            Self::Logs(args) => args.run(context).await,
            Self::Flows(command) => command.run(context).await,
            Self::Delivery(command) => command.run(context).await,
            Self::Commitments(command) => command.run(context).await,
            Self::Plugins(command) => command.run(context).await,
            Self::Knowledge(command) => command.run(context).await,
            Self::Audit(command) => command.run(context).await,
            Self::Backup(command) => command.run(context).await,
            Self::Db(command) => command.run(context).await,
        }
    }
}

/// How much a listing shows at once.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct LimitArgs {
    /// Show at most this many, 1 to 1000
    #[arg(
        long,
        value_name = "ROWS",
        default_value_t = 100,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_PAGE))
    )]
    limit: u32,
}

impl LimitArgs {
    /// The bound of the page.
    pub(crate) fn page(self) -> PageLimit {
        PageLimit::from(self.limit)
    }
}

/// Takes one of the words of an enum of the library, and shows them in help.
pub(crate) fn one_of<T: Clone + Send + Sync + 'static>(
    words: &'static [&'static str],
    parse: fn(&str) -> Option<T>,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(words)
        .try_map(move |word| parse(&word).ok_or("not known to this release"))
}

/// Takes `1h30m` and the like.
pub(crate) fn span_ms(text: &str) -> Result<i64, String> {
    let wrong = || format!("{text:?} is no span such as 90s, 10m, 1h30m or 2d");
    let (mut total, mut number) = (0_i64, String::new());
    for char in text.chars() {
        if char.is_ascii_digit() {
            number.push(char);
            continue;
        }
        let unit_ms = match char {
            's' => 1_000,
            'm' => 60_000,
            'h' => 3_600_000,
            'd' => 86_400_000,
            _ => return Err(wrong()),
        };
        let count: i64 = number.parse().map_err(|_| wrong())?;
        let part = count.checked_mul(unit_ms).ok_or_else(wrong)?;
        total = total.checked_add(part).ok_or_else(wrong)?;
        number.clear();
    }
    match number.is_empty() && total > 0 {
        true => Ok(total),
        false => Err(wrong()),
    }
}

/// Takes a day, a time with its offset, or Unix milliseconds.
pub(crate) fn instant(text: &str) -> Result<i64, String> {
    if let Ok(ms) = text.parse() {
        return Ok(ms);
    }
    if let Ok(day) = text.parse::<chrono::NaiveDate>() {
        return Ok(day
            .and_time(chrono::NaiveTime::MIN)
            .and_utc()
            .timestamp_millis());
    }
    chrono::DateTime::parse_from_rfc3339(text)
        .map(|time| time.timestamp_millis())
        .map_err(|_| "not a day, a time with its offset, or Unix milliseconds".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_a_day_a_time_or_milliseconds() {
        assert_eq!(instant("1788000000000"), Ok(1_788_000_000_000));
        assert_eq!(instant("1970-01-02"), Ok(86_400_000));
        assert_eq!(instant("1970-01-01T01:00:00.5+01:00"), Ok(500));
        assert!(instant("yesterday").is_err());
    }

    #[test]
    fn spans_are_added_up_and_nonsense_is_refused() {
        assert_eq!(span_ms("90s"), Ok(90_000));
        assert_eq!(span_ms("1h30m"), Ok(5_400_000));
        assert_eq!(span_ms("2d"), Ok(172_800_000));
        for wrong in ["", "0s", "10", "m", "1w", "-5m", "99999999999999999d"] {
            assert!(span_ms(wrong).is_err(), "{wrong}");
        }
    }
}
