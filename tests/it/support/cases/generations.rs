//! Two generations of one store in one install, as the move to the current layout left them.

use std::path::Path;

use super::{AGENT_ROWS, ATLAS, CONFIG, Case, DEFAULT, install};
use crate::support::expect::Expected;
use crate::support::recipe;
use crate::support::rows::{chat, job, memory, owned_memory, run, turns};
use crate::support::sqlite;

/// A live `jobs.db`, and the older one that the move put where nothing reads it.
///
/// They share run numbers and the job `shared`; one run stands in both. The job only the older one has was dead since
/// the move: it comes back disabled.
pub(crate) fn jobs_in_two_places(dir: &Path) -> Case {
    let install = install(dir, CONFIG);
    install
        .sqlite(
            "data/cron/jobs.db",
            "cron_v0_8_4.sql",
            &[
                &job("shared", "0 9 * * *", "echo the newer definition"),
                &job("new", "0 10 * * *", "echo new"),
                "UPDATE cron_jobs SET agent_alias = 'atlas', last_run = '2026-09-10T08:00:00+00:00', last_status = 'ok';
                 UPDATE cron_jobs SET agent_alias = 'birch' WHERE id = 'new';",
                &run("shared", "2026-03-01", 0, "ok"),
                &run("shared", "2026-09-10", 0, "ok"),
                &run("new", "2026-09-10", 1, "error"),
            ],
        )
        .sqlite(
            "agents/default/workspace/cron/jobs.db",
            "cron_v0_1_2.sql",
            &[
                &job("shared", "0 8 * * *", "echo the older definition"),
                &job("forgotten", "30 6 * * *", "echo forgotten"),
                "UPDATE cron_jobs SET last_run = '2026-03-02T08:00:00+00:00', last_status = 'ok';",
                &run("shared", "2026-03-01", 0, "ok"),
                &run("forgotten", "2026-03-01", 5, "ok"),
                &run("forgotten", "2026-03-02", 5, "error"),
            ],
        );

    let mut expected = Expected::default()
        .job("shared", Some("atlas"), Some(true))
        .job("new", Some("birch"), Some(true))
        .job("forgotten", None, Some(false));
    expected.runs = 5;
    // The job `shared` and its run of 1 March.
    expected.already_present = 2;
    (install, expected)
}

/// A `sessions.db` in the current place and one in the old place, with the same row numbers and one shared key.
///
/// Of the shared session the old file has the first two messages and the current one the next two.
pub(crate) fn sessions_in_two_places(dir: &Path) -> Case {
    let install = install(dir, CONFIG);
    let shared = turns("shared", 4);
    install
        .sqlite(
            "workspace/sessions/sessions.db",
            "sessions_v0_6_5.sql",
            &[
                &chat("telegram_main_1_shared", "2026-03-01", &shared[..2]),
                &chat("telegram_main_2_old", "2026-03-02", &turns("old", 3)),
            ],
        )
        .sqlite(
            "data/sessions/sessions.db",
            "sessions_v0_8.sql",
            &[
                &chat("telegram_main_1_shared", "2026-09-01", &shared[2..]),
                &chat("gw_new", "2026-09-02", &turns("new", 3)),
                "UPDATE session_metadata SET agent_alias = 'birch' WHERE session_key = 'gw_new';",
            ],
        );

    let expected = Expected::default()
        .session("atlas", "telegram_main_1_shared", 4)
        .session("atlas", "telegram_main_2_old", 3)
        .session("birch", "gw_new", 3);
    (install, expected)
}

/// A brain whose log was put elsewhere by the move: `brain.db` in `data/memory`, its old `-wal` in the workspace of
/// `default`, and the only matching pair in the safety copy.
///
/// The old brain had three rows, its log two more and a newer text of the first. After the move the program rebuilt the
/// file, then wrote a row for atlas and a newer text of the second.
pub(crate) fn split_brain(dir: &Path) -> Case {
    let install = install(dir, CONFIG);
    let at = "2025-11-01T09:00:00.500+01:00";
    let kept = ["first", "second", "third"]
        .map(|name| memory(name, &format!("{name}, as checkpointed"), at));
    let pending = format!(
        "UPDATE memories SET content = 'first, as in the log', updated_at = '2025-12-01T09:00:00+01:00' WHERE key = 'first';
         {}{}",
        memory("fourth", "fourth, only in the log", "2025-12-01T09:01:00+01:00"),
        memory("fifth", "fifth, only in the log", "2025-12-01T09:02:00+01:00"),
    );
    let old = sqlite::pair(
        &recipe::ddl("brain_v0_5_7.sql"),
        &[&kept.concat()],
        &[&pending],
    );
    let rebuilt = ["first", "second", "third"]
        .map(|name| owned_memory(name, &format!("{name}, as checkpointed"), at, DEFAULT));

    install
        .file("backup-20260101T000000/legacy-workspace/memory/brain.db", &old.main)
        .file("backup-20260101T000000/legacy-workspace/memory/brain.db-wal", &old.wal)
        .file("agents/default/workspace/memory/brain.db-wal", &old.wal)
        .sqlite(
            "data/memory/brain.db",
            "brain_v0_8_0.sql",
            &[
                AGENT_ROWS,
                &rebuilt.concat(),
                &owned_memory("sixth", "sixth, after the move", "2026-08-02T09:00:00+02:00", ATLAS),
                "UPDATE memories SET content = 'second, after the move', updated_at = '2026-08-03T09:00:00+02:00'
                 WHERE key = 'second';",
            ],
        );

    // Five living ones, and what the first and the second said before, kept as their history.
    let mut expected = Expected::default().memory("default", 7).memory("atlas", 1);
    expected.found = vec![
        ("default", "log", 3),
        ("default", "checkpointed", 1),
        ("default", "move", 1),
        ("atlas", "sixth", 1),
    ];
    // The third, in the live brain and in the safety copy.
    expected.already_present = 1;
    let pair = "backup-20260101T000000/legacy-workspace/memory/brain.db";
    expected.stays = vec![pair.into(), format!("{pair}-wal").into()];
    (install, expected)
}
