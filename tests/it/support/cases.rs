//! Small installs, one damage or one history each, and what an import of each must end with.
//!
//! Recipes as functions: nothing here is committed as a binary. Each takes the folder to build in, which it creates.

mod copies;
mod damaged;
mod generations;
mod memories;
mod text;
mod variants;

use std::path::Path;

pub(crate) use copies::{duplicated_prefix, live_beside_rows, staged_with_and_without_receipt};
pub(crate) use damaged::{
    damaged_message_page, damaged_metadata_page, decoys, hot_rollback_journal,
};
pub(crate) use generations::{jobs_in_two_places, sessions_in_two_places, split_brain};
pub(crate) use memories::{c35_fts_drift, c37_undecodable_memories};
pub(crate) use text::{c15_torn_and_malformed, c17_non_utf8};
pub(crate) use variants::{brain_variants, cron_variants, sessions_variants};

use super::expect::Expected;
use super::legacy::LegacyInstall;

/// What a case gives: the install, and the outcome.
pub(crate) type Case = (LegacyInstall, Expected);

/// A named way to build a case.
pub(crate) type NamedCase = (&'static str, fn(&Path) -> Case);

/// Every case, by name.
pub(crate) fn all() -> Vec<NamedCase> {
    let mut cases: Vec<NamedCase> = vec![
        ("c15_torn_and_malformed", c15_torn_and_malformed),
        ("c17_non_utf8", c17_non_utf8),
        ("c35_fts_drift", c35_fts_drift),
        ("c37_undecodable_memories", c37_undecodable_memories),
        ("jobs_in_two_places", jobs_in_two_places),
        ("sessions_in_two_places", sessions_in_two_places),
        ("split_brain", split_brain),
        ("hot_rollback_journal", hot_rollback_journal),
        ("duplicated_prefix", duplicated_prefix),
        ("live_beside_rows", live_beside_rows),
        (
            "staged_with_and_without_receipt",
            staged_with_and_without_receipt,
        ),
        ("damaged_metadata_page", damaged_metadata_page),
        ("damaged_message_page", damaged_message_page),
        ("decoys", decoys),
    ];
    cases.extend(sessions_variants());
    cases.extend(cron_variants());
    cases.extend(brain_variants());
    cases
}

/// A current config: `atlas` owns the Telegram channel `main`, `birch` is named by rows only.
const CONFIG: &str = "\
schema_version = 3

[agents.atlas]
enabled = true
channels = [\"telegram.main\"]

[agents.birch]
enabled = true
channels = []

[channels.telegram.main]
enabled = true
";

/// A config of before several agents: everything belongs to `default`.
const OLD_CONFIG: &str = "\
schema_version = 2

[channels.telegram]
enabled = true
";

/// `agents.id` of atlas and birch where a brain knows them; see [`AGENT_ROWS`].
const ATLAS: &str = "a71a5000-0000-4000-8000-000000000001";
const BIRCH: &str = "b14c4000-0000-4000-8000-000000000002";
/// `agents.id` of `default`, which the schema text inserts.
const DEFAULT: &str = "0d0d0d0d-0000-4000-8000-000000000000";

/// Makes atlas and birch known to a brain.
const AGENT_ROWS: &str = "\
INSERT INTO agents VALUES ('a71a5000-0000-4000-8000-000000000001', 'atlas', '2026-08-01T09:00:00+00:00');
INSERT INTO agents VALUES ('b14c4000-0000-4000-8000-000000000002', 'birch', '2026-08-01T09:00:00+00:00');
";

fn install(dir: &Path, config: &str) -> LegacyInstall {
    let install = LegacyInstall::new(dir);
    install.config(config).secret_key();
    install
}
