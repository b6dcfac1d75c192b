//! `zeroclaw plugins`.

use clap::{Args, Subcommand};
use serde_json::Value;
use zeroclaw::model::{MigrationRun, PluginUsage};
use zeroclaw::service::{PluginCleared, PluginShown, Request, Response};

use super::args::LimitArgs;
use super::carrier::change;
use super::output::{Column, Fields, Table, or_dash, size, time};
use super::{CliError, Context, Exit, ask};

/// Show what plugins keep and where they may answer, and free what they keep
#[derive(Debug, Subcommand)]
pub(crate) enum PluginsCommand {
    /// List plugins that keep something, and how much of their limits they use
    ///
    /// Limits are 100000 rows and 256 MiB a plugin unless `[state.plugins]` in config.toml says otherwise.
    #[command(after_long_help = Exit::help_of_look())]
    List,
    /// Show what one plugin keeps, by namespace and key
    ///
    /// Values are not shown without --values: some are tokens. What has expired is not there any more.
    #[command(after_long_help = Exit::help_of_named())]
    Show(ShowArgs),
    /// Delete what a plugin keeps, in one namespace or in all
    ///
    /// A plugin then starts anew there; channels may see old messages again. Without --yes it is counted, nothing is
    /// deleted, and the exit code is 10.
    #[command(after_long_help = Exit::help_of(&[Exit::NotInitialised, Exit::Busy, Exit::NotFound, Exit::Refused]))]
    Clear(ClearArgs),
    /// List on which accounts plugins may answer, newest first
    #[command(after_long_help = Exit::help_of_look())]
    Bindings(BindingsArgs),
    /// List which plugins the runtime found installed
    #[command(after_long_help = Exit::help_of_look())]
    Installed,
}

#[derive(Args, Debug)]
pub(crate) struct ShowArgs {
    /// The plugin
    plugin: String,

    /// Only this namespace
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,

    /// Blobs instead of values
    #[arg(long)]
    blobs: bool,

    /// Print values too, or what is said of blobs
    #[arg(long)]
    values: bool,

    #[command(flatten)]
    limit: LimitArgs,

    /// Go on behind this cursor of an earlier page
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct ClearArgs {
    /// The plugin
    plugin: String,

    /// Only this namespace
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,

    /// Count what would be deleted, and delete nothing
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,

    /// Delete
    #[arg(long)]
    yes: bool,
}

#[derive(Args, Debug)]
pub(crate) struct BindingsArgs {
    /// Only this plugin
    plugin: Option<String>,
}

impl PluginsCommand {
    pub(super) async fn run(self, context: &Context) -> Result<Exit, CliError> {
        match self {
            Self::List => list(context).await,
            Self::Show(args) => show(context, args).await,
            Self::Clear(args) => clear(context, args).await,
            Self::Bindings(args) => bindings(context, args).await,
            Self::Installed => installed(context).await,
        }
    }
}

async fn list(context: &Context) -> Result<Exit, CliError> {
    let Response::Plugins(plugins) = ask(context, Request::PluginsList).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&plugins)?;
    } else if plugins.is_empty() {
        context.out.note("no plugin keeps anything");
    } else {
        let mut table = Table::new(&[
            Column::word("plugin"),
            Column::number("namespaces").minor(),
            Column::number("rows"),
            Column::number("of"),
            Column::number("size"),
            Column::number("of"),
            Column::word("written").minor(),
        ]);
        for plugin in &plugins {
            table.row([
                plugin.plugin_id.clone(),
                plugin.namespaces.to_string(),
                plugin.rows.to_string(),
                plugin.limits.max_rows.to_string(),
                bytes(plugin.size_bytes),
                bytes(plugin.limits.max_bytes),
                time(plugin.updated_at_ms),
            ]);
        }
        context.out.table(&table)?;
    }
    Ok(Exit::Done)
}

fn bytes(count: i64) -> String {
    size(count.unsigned_abs())
}

async fn show(context: &Context, args: ShowArgs) -> Result<Exit, CliError> {
    let request = Request::PluginsShow {
        plugin: args.plugin,
        namespace: args.namespace,
        blobs: args.blobs,
        with_values: args.values,
        after: args.after,
        limit: args.limit.page(),
    };
    let Response::Plugin(plugin) = ask(context, request).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&plugin)?;
    } else {
        tell(context, &plugin, args.values)?;
    }
    let (entries, blobs) = (&plugin.entries.next, &plugin.blobs.next);
    if let Some(cursor) = entries.as_ref().or(blobs.as_ref()) {
        context.offer_next("--after", cursor);
    }
    Ok(Exit::Done)
}

fn tell(context: &Context, plugin: &PluginShown, with_values: bool) -> Result<(), CliError> {
    let (mut rows, mut held) = (0, 0);
    for usage in &plugin.namespaces {
        rows += usage.entries + usage.blobs;
        held += usage.size_bytes;
    }
    let fields = Fields::new()
        .add("plugin", &plugin.plugin_id)
        .add("rows", format!("{rows} of {}", plugin.limits.max_rows))
        .add(
            "size",
            format!("{} of {}", bytes(held), bytes(plugin.limits.max_bytes)),
        );
    context.out.fields(&fields)?;
    if !plugin.namespaces.is_empty() {
        context.out.text("\n")?;
        context.out.table(&usage_table(&plugin.namespaces))?;
    }
    if !plugin.migrations.is_empty() {
        context.out.text("\n")?;
        context.out.table(&migration_table(&plugin.migrations))?;
    }
    tell_rows(context, plugin, with_values)
}

fn usage_table(namespaces: &[PluginUsage]) -> Table {
    let mut table = Table::new(&[
        Column::word("namespace"),
        Column::number("values"),
        Column::number("blobs"),
        Column::number("size"),
        Column::word("written").minor(),
    ]);
    for usage in namespaces {
        table.row([
            usage.namespace.clone(),
            usage.entries.to_string(),
            usage.blobs.to_string(),
            bytes(usage.size_bytes),
            time(usage.updated_at_ms),
        ]);
    }
    table
}

fn migration_table(runs: &[MigrationRun]) -> Table {
    let mut table = Table::new(&[
        Column::word("migrated"),
        Column::word("status"),
        Column::word("namespace"),
        Column::word("from"),
        Column::word("to"),
        Column::text("error"),
    ]);
    for run in runs {
        let report: Value = serde_json::from_str(&run.report_json).unwrap_or_default();
        let number = |name: &str| or_dash(report[name].as_i64());
        table.row([
            time(run.started_at_ms),
            run.status.to_string(),
            or_dash(report["namespace"].as_str()),
            number("from"),
            number("to"),
            or_dash(report["error"].as_str()),
        ]);
    }
    table
}

fn tell_rows(context: &Context, plugin: &PluginShown, with_values: bool) -> Result<(), CliError> {
    let shown = |value: &Option<Value>| match value {
        Some(value) if with_values => value.to_string(),
        _ => String::new(),
    };
    let mut table = Table::new(&[
        Column::word("namespace"),
        Column::text("key"),
        Column::number("version").minor(),
        Column::number("size"),
        Column::word("written"),
        Column::word("expires"),
        Column::text("claimed by"),
        Column::text(if with_values { "value" } else { "" }),
    ]);
    for entry in &plugin.entries.items {
        table.row([
            entry.namespace.clone(),
            entry.entry_key.clone(),
            entry.version.to_string(),
            bytes(entry.size_bytes),
            time(entry.updated_at_ms),
            or_dash(entry.expires_at_ms.map(time)),
            or_dash(entry.claim_owner.as_deref()),
            shown(&entry.value),
        ]);
    }
    for blob in &plugin.blobs.items {
        table.row([
            blob.namespace.clone(),
            blob.entry_key.clone(),
            or_dash(None::<&str>),
            bytes(blob.size_bytes),
            time(blob.updated_at_ms),
            or_dash(blob.expires_at_ms.map(time)),
            or_dash(None::<&str>),
            shown(&blob.metadata),
        ]);
    }
    if plugin.entries.items.is_empty() && plugin.blobs.items.is_empty() {
        return Ok(());
    }
    context.out.text("\n")?;
    context.out.table(&table)
}

async fn clear(context: &Context, args: ClearArgs) -> Result<Exit, CliError> {
    let request = Request::PluginsClear {
        plugin: args.plugin,
        namespace: args.namespace,
        dry_run: !args.yes,
    };
    let answer = match args.yes {
        true => change(context, request).await?,
        false => ask(context, request).await?,
    };
    let Response::PluginCleared(cleared) = answer else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&cleared)?;
    } else {
        context.out.text(&told(&cleared))?;
    }
    if !args.yes && !args.dry_run && !cleared.namespaces.is_empty() {
        let refused = CliError::new(Exit::Refused, "deleting what a plugin keeps needs consent");
        return Err(refused.hint("the same command with --yes does it"));
    }
    Ok(Exit::Done)
}

fn told(cleared: &PluginCleared) -> String {
    let verb = match cleared.is_dry_run {
        true => "to delete",
        false => "deleted",
    };
    let lines = cleared.namespaces.iter().map(|usage| {
        let (name, held) = (&usage.namespace, bytes(usage.size_bytes));
        format!(
            "{verb}: {name}: {} values, {} blobs, {held}\n",
            usage.entries, usage.blobs
        )
    });
    match cleared.namespaces.is_empty() {
        true => format!("{verb}: nothing\n"),
        false => lines.collect(),
    }
}

async fn bindings(context: &Context, args: BindingsArgs) -> Result<Exit, CliError> {
    let request = Request::PluginsBindings {
        plugin: args.plugin,
    };
    let Response::PluginBindings(bindings) = ask(context, request).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&bindings)?;
    } else if bindings.is_empty() {
        context.out.note("no plugin may answer anywhere");
    } else {
        let mut table = Table::new(&[
            Column::word("plugin"),
            Column::text("channel"),
            Column::text("account"),
            Column::word("approved"),
            Column::text("folder"),
        ]);
        for binding in &bindings {
            table.row([
                binding.plugin_id.clone(),
                binding.channel.clone(),
                binding.account_id.clone(),
                time(binding.approved_at_ms),
                binding.plugin_root.clone(),
            ]);
        }
        context.out.table(&table)?;
    }
    Ok(Exit::Done)
}

async fn installed(context: &Context) -> Result<Exit, CliError> {
    let Response::PluginsInstalled(indexes) = ask(context, Request::PluginsInstalled).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&indexes)?;
    } else if indexes.is_empty() {
        context.out.note("no plugin was found installed");
    } else {
        let mut table = Table::new(&[
            Column::word("index"),
            Column::text("plugin"),
            Column::word("found"),
            Column::text("warning"),
        ]);
        for index in &indexes {
            for plugin in names(&index.plugins_json) {
                table.row([
                    index.index_key.clone(),
                    plugin,
                    time(index.generated_at_ms),
                    or_dash(index.warning.as_deref()),
                ]);
            }
        }
        context.out.table(&table)?;
    }
    Ok(Exit::Done)
}

/// Names of the plugins of an index: the runtime writes a list of objects or an object by name.
fn names(plugins_json: &str) -> Vec<String> {
    match serde_json::from_str(plugins_json) {
        Ok(Value::Array(plugins)) => {
            let name = |plugin: &Value| {
                let id = ["id", "pluginId", "name"]
                    .iter()
                    .find_map(|key| plugin[key].as_str());
                or_dash(id.or(plugin.as_str()))
            };
            plugins.iter().map(name).collect()
        }
        Ok(Value::Object(plugins)) => plugins.keys().cloned().collect(),
        _ => Vec::new(),
    }
}
