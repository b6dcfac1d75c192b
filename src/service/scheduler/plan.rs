//! What becomes of the occurrences of a job that have come: pure, no clock, no rows.

use crate::model::{CatchUp, Timetable};

/// An occurrence that is no older than this was not missed: longer than any sane poll, shorter than a person's patience.
const ON_TIME_MS: i64 = 2 * 60 * 1_000;

/// How far back all missed occurrences run where the job names no window.
const ALL_WINDOW_MS: i64 = 24 * 60 * 60 * 1_000;

/// Passed-over occurrences are counted no further.
const MOST_COUNTED: u32 = 10_000;

/// What a job, or the configuration, says of missed occurrences.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) catch_up: CatchUp,
    pub(super) window_ms: Option<i64>,
}

/// Occurrences that will not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Passed {
    pub(super) first_ms: i64,
    pub(super) last_ms: i64,
    pub(super) count: u32,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// The occurrence that runs now.
    pub(super) run: Option<i64>,
    /// Those before it that do not.
    pub(super) passed: Option<Passed>,
    /// The occurrence after it, which may have come already.
    pub(super) next: Option<i64>,
}

/// Decides about the occurrences from `first`, which has come, up to `now_ms`.
pub(super) fn plan(table: &Timetable, first: i64, now_ms: i64, rules: Rules) -> Plan {
    let last = table.last_until(first, now_ms).unwrap_or(first);
    let fresh = now_ms.saturating_sub(ON_TIME_MS);
    let since = |window_ms: i64| now_ms.saturating_sub(window_ms.max(ON_TIME_MS));
    let run = match rules.catch_up {
        CatchUp::Skip => Some(last).filter(|last| *last >= fresh),
        CatchUp::Once => {
            let oldest = rules.window_ms.map_or(i64::MIN, since);
            Some(last).filter(|last| *last >= oldest)
        }
        CatchUp::All => {
            let oldest = since(rules.window_ms.unwrap_or(ALL_WINDOW_MS));
            if first >= oldest {
                Some(first)
            } else {
                let next = table.next_after(oldest.saturating_sub(1));
                next.filter(|next| *next <= last)
            }
        }
    };
    let passed_until = run.map_or(last, |run| run - 1);
    let passed = (first <= passed_until).then(|| Passed {
        first_ms: first,
        last_ms: table.last_until(first, passed_until).unwrap_or(first),
        count: 1 + table.count_until(first, passed_until, MOST_COUNTED),
    });
    Plan {
        run,
        passed,
        next: table.next_after(run.unwrap_or(last)),
    }
}

/// Where in its stagger a job stands: always the same place, spread over jobs (FNV-1a of its id).
pub(super) fn shift(job_id: &str, stagger_ms: Option<i64>) -> i64 {
    let Some(stagger_ms) = stagger_ms.filter(|stagger| *stagger > 0) else {
        return 0;
    };
    let hash = job_id
        .bytes()
        .fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
        });
    i64::try_from(hash % stagger_ms.unsigned_abs()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Schedule;

    const MINUTE: i64 = 60_000;
    const HOUR: i64 = 60 * MINUTE;

    fn hourly() -> Timetable {
        let schedule = Schedule::Every {
            every_ms: HOUR,
            anchor_ms: Some(0),
        };
        Timetable::new(&schedule, "UTC", 0).unwrap()
    }

    fn planned(catch_up: CatchUp, window_ms: Option<i64>, first: i64, now_ms: i64) -> Plan {
        let rules = Rules {
            catch_up,
            window_ms,
        };
        plan(&hourly(), first, now_ms, rules)
    }

    #[test]
    fn what_is_on_time_runs_under_every_policy() {
        for catch_up in [CatchUp::Skip, CatchUp::Once, CatchUp::All] {
            let plan = planned(catch_up, None, 5 * HOUR, 5 * HOUR + MINUTE);

            assert_eq!((plan.run, plan.passed), (Some(5 * HOUR), None));
            assert_eq!(plan.next, Some(6 * HOUR));
        }
    }

    #[test]
    fn missed_ones_are_passed_over_once_or_all_run() {
        let now = 8 * HOUR + 30 * MINUTE;
        let passed = |first: i64, last: i64, count| {
            Some(Passed {
                first_ms: first * HOUR,
                last_ms: last * HOUR,
                count,
            })
        };

        let skip = planned(CatchUp::Skip, None, 5 * HOUR, now);
        assert_eq!((skip.run, skip.passed), (None, passed(5, 8, 4)));
        let once = planned(CatchUp::Once, None, 5 * HOUR, now);
        assert_eq!((once.run, once.passed), (Some(8 * HOUR), passed(5, 7, 3)));
        assert_eq!(once.next, Some(9 * HOUR));
        let all = planned(CatchUp::All, None, 5 * HOUR, now);
        assert_eq!((all.run, all.passed), (Some(5 * HOUR), None));
        assert_eq!(all.next, Some(6 * HOUR));
    }

    #[test]
    fn a_window_bounds_what_is_caught_up_on() {
        let now = 8 * HOUR + 30 * MINUTE;

        let once = planned(CatchUp::Once, Some(20 * MINUTE), 5 * HOUR, now);
        assert_eq!((once.run, once.next), (None, Some(9 * HOUR)));
        let all = planned(CatchUp::All, Some(2 * HOUR), 5 * HOUR, now);
        assert_eq!(all.run, Some(7 * HOUR));
        assert_eq!(all.passed.map(|passed| passed.count), Some(2));
        let day = planned(CatchUp::All, None, 0, 30 * HOUR);
        assert_eq!(day.run, Some(6 * HOUR));
    }

    #[test]
    fn an_instant_that_was_missed_has_no_next() {
        let at = Timetable::new(&Schedule::At { at_ms: HOUR }, "UTC", 0).unwrap();
        let rules = Rules {
            catch_up: CatchUp::Skip,
            window_ms: None,
        };

        let plan = plan(&at, HOUR, 2 * HOUR, rules);

        assert_eq!((plan.run, plan.next), (None, None));
        assert_eq!(plan.passed.map(|passed| passed.count), Some(1));
    }

    #[test]
    fn stagger_is_the_same_each_time_and_within_its_width() {
        assert_eq!(shift("a", None), 0);
        assert_eq!(shift("a", Some(1_000)), shift("a", Some(1_000)));
        assert!((0..1_000).contains(&shift("b", Some(1_000))));
        assert_ne!(shift("a", Some(1_000_000)), shift("b", Some(1_000_000)));
    }
}
