//! `[scheduler]`; what stood in `[cron]` before is taken from there.

use toml::Value;

use super::section::{Section, Warnings};

/// Runs of a job that are kept unless the configuration says otherwise.
const RUNS_KEPT: i64 = 50;
/// Commands that run at once unless the configuration says otherwise.
const MAX_CONCURRENT: usize = 4;
/// Most commands that run at once, whatever the configuration says.
const MOST_CONCURRENT: i64 = 64;

/// What `[scheduler]` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchedulerConfig {
    /// Whether scheduled jobs run.
    pub enabled: bool,
    /// Whether jobs that do not say otherwise catch up on what was missed.
    pub catch_up: bool,
    /// Runs kept of each job; 0 keeps all.
    pub runs_kept: i64,
    /// Commands that run at once.
    pub max_concurrent: usize,
    /// Zone of expressions that name none, as written; `None` for the host's.
    pub timezone: Option<String>,
}

impl Default for SchedulerConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            catch_up: true,
            runs_kept: RUNS_KEPT,
            max_concurrent: MAX_CONCURRENT,
            timezone: None,
        }
    }
}

pub(super) fn scheduler(root: &Section<'_>, warnings: &mut Warnings) -> SchedulerConfig {
    let usual = SchedulerConfig::default();
    let section = root.section("scheduler", warnings);
    let older = root.section("cron", warnings);
    let places: Vec<&Section<'_>> = section.iter().chain(&older).collect();
    let mut flag = |key: &str| {
        // A job may have that name where settings once stood.
        let place = places
            .iter()
            .find(|place| place.table.get(key).is_some_and(|value| !value.is_table()))?;
        place.get(key, "true or false", Value::as_bool, warnings)
    };
    let enabled = flag("enabled").unwrap_or(usual.enabled);
    let catch_up = flag("catch_up_on_startup").unwrap_or(usual.catch_up);
    let mut number = |key: &str| {
        let place = places
            .iter()
            .find(|place| place.table.get(key).is_some_and(|value| !value.is_table()))?;
        place.get(key, "a whole number", Value::as_integer, warnings)
    };
    SchedulerConfig {
        enabled,
        catch_up,
        // Zero and below mean: no limit.
        runs_kept: number("max_run_history").map_or(usual.runs_kept, |kept| kept.max(0)),
        max_concurrent: number("max_concurrent")
            .and_then(|most| usize::try_from(most.clamp(1, MOST_CONCURRENT)).ok())
            .unwrap_or(usual.max_concurrent),
        timezone: section.and_then(|section| section.text("timezone", warnings)),
    }
}
