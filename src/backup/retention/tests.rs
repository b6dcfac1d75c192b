//! Retention against a naive model, and case by case.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

const HOUR_MS: i64 = 3_600_000;
/// 2026-11-30T12:00:00Z, a Monday.
const NOW_MS: i64 = 1_796_040_000_000;

fn archive(number: usize, created_at_ms: i64) -> Dated {
    Dated {
        path: format!("{number:03}").into(),
        created_at_ms,
        pinned: None,
    }
}

fn archives(ages_in_hours: &[i64]) -> Vec<Dated> {
    let ages = ages_in_hours.iter().enumerate();
    ages.map(|(number, age)| archive(number, NOW_MS - age * HOUR_MS))
        .collect()
}

fn kept(archives: &[Dated], rules: Rules) -> Vec<String> {
    let decisions = keep(archives, &rules, NOW_MS).into_iter();
    let kept = decisions.filter(|decision| decision.keep);
    kept.map(|decision| decision.path.display().to_string())
        .collect()
}

fn rules(last: u32, daily: u32, weekly: u32, monthly: u32) -> Rules {
    Rules {
        last,
        daily,
        weekly,
        monthly,
    }
}

/// Days and weeks by division alone. 1970-01-01 was a Thursday, so weeks begin three days later than their count.
fn model_period(rule: KeepReason, ms: i64) -> String {
    let day = ms.div_euclid(DAY_MS);
    match rule {
        KeepReason::Daily => day.to_string(),
        KeepReason::Weekly => (day + 3).div_euclid(7).to_string(),
        _ => crate::clock::rfc3339(ms)[..7].to_owned(),
    }
}

/// Looks at each archive by itself, against all others.
fn model_keeps(all: &[Dated], this: &Dated, rules: &Rules, now_ms: i64) -> bool {
    let is_counted = |it: &&Dated| it.pinned.is_none() && it.created_at_ms <= now_ms;
    if !is_counted(&this) || rules.is_off() {
        return true;
    }
    let order = |it: &Dated| (it.created_at_ms, it.path.clone());
    let newer: Vec<&Dated> = all
        .iter()
        .filter(is_counted)
        .filter(|it| order(it) > order(this))
        .collect();
    let by_period = |rule, count: u32| {
        let own = model_period(rule, this.created_at_ms);
        let newer: BTreeSet<String> = newer
            .iter()
            .map(|it| model_period(rule, it.created_at_ms))
            .collect();
        !newer.contains(&own) && newer.len() < count as usize
    };
    newer.len() < rules.last.max(1) as usize
        || by_period(KeepReason::Daily, rules.daily)
        || by_period(KeepReason::Weekly, rules.weekly)
        || by_period(KeepReason::Monthly, rules.monthly)
}

fn any_archive() -> impl Strategy<Value = (i64, bool)> {
    // Dense enough that days, weeks and months repeat; some lie in the future, some at one moment.
    let steps = (-3_000_i64..300).prop_map(|steps| NOW_MS + steps * 7 * HOUR_MS);
    (steps, prop::bool::weighted(0.1))
}

fn any_rules() -> impl Strategy<Value = Rules> {
    (0_u32..6, 0_u32..10, 0_u32..10, 0_u32..30)
        .prop_map(|(last, daily, weekly, monthly)| rules(last, daily, weekly, monthly))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    #[test]
    fn c67_it_keeps_what_the_model_keeps(
        of in prop::collection::vec(any_archive(), 0..60),
        rules in any_rules(),
    ) {
        let all: Vec<Dated> = of
            .into_iter()
            .enumerate()
            .map(|(number, (created, is_pinned))| Dated {
                pinned: is_pinned.then_some(KeepReason::OwnName),
                ..archive(number, created)
            })
            .collect();

        let decisions = keep(&all, &rules, NOW_MS);

        prop_assert_eq!(decisions.len(), all.len());
        for decision in &decisions {
            let this = all.iter().find(|it| it.path == decision.path).unwrap();
            prop_assert_eq!(decision.keep, model_keeps(&all, this, &rules, NOW_MS), "{:?}", this);
            prop_assert_eq!(decision.keep, !decision.reasons.is_empty());
        }
    }

    #[test]
    fn c67_what_is_left_is_left_again(
        of in prop::collection::vec(any_archive(), 0..60),
        rules in any_rules(),
    ) {
        let all = of.into_iter().enumerate();
        let all: Vec<Dated> = all.map(|(number, (created, _))| archive(number, created)).collect();

        let first: BTreeSet<PathBuf> = keep(&all, &rules, NOW_MS)
            .into_iter()
            .filter_map(|it| it.keep.then_some(it.path))
            .collect();
        let left: Vec<Dated> = all.into_iter().filter(|it| first.contains(&it.path)).collect();

        prop_assert!(keep(&left, &rules, NOW_MS).iter().all(|it| it.keep));
    }
}

#[test]
fn c67_without_a_rule_everything_stays() {
    let all = archives(&[1, 30, 900]);

    assert_eq!(kept(&all, Rules::default()).len(), 3);
    assert!(keep(&[], &rules(1, 1, 1, 1), NOW_MS).is_empty());
}

#[test]
fn the_newest_stays_even_where_no_rule_reaches_it() {
    let mut all = archives(&[1, 2]);
    all[0].created_at_ms = NOW_MS + DAY_MS;

    let decisions = keep(&all, &rules(0, 0, 0, 1), NOW_MS);

    assert_eq!(decisions[0].reasons, [KeepReason::Future]);
    assert_eq!(
        decisions[1].reasons,
        [KeepReason::Monthly, KeepReason::Newest]
    );
}

#[test]
fn each_rule_keeps_the_newest_of_its_period() {
    // Hours before Monday noon: two on Monday, two on Sunday, one a week and one a month before.
    let all = archives(&[1, 2, 13, 14, 24 * 7, 24 * 31]);

    assert_eq!(kept(&all, rules(3, 0, 0, 0)), ["000", "001", "002"]);
    assert_eq!(kept(&all, rules(0, 2, 0, 0)), ["000", "002"]);
    assert_eq!(kept(&all, rules(0, 0, 2, 0)), ["000", "002"]);
    assert_eq!(kept(&all, rules(0, 0, 3, 0)), ["000", "002", "005"]);
    assert_eq!(kept(&all, rules(0, 0, 0, 2)), ["000", "005"]);
    assert_eq!(kept(&all, rules(2, 2, 0, 2)), ["000", "001", "002", "005"]);
}

#[test]
fn a_week_goes_over_the_turn_of_the_year() {
    // 2027-01-01T00:00:00Z is the Friday of the last ISO week of 2026.
    let new_year = 1_798_761_600_000;
    let all = [
        archive(0, new_year - DAY_MS),
        archive(1, new_year),
        archive(2, new_year + 3 * DAY_MS),
    ];

    let decisions = keep(&all, &rules(0, 0, 9, 0), new_year + 9 * DAY_MS);

    let kept = decisions.iter().filter(|it| it.keep);
    assert_eq!(
        kept.map(|it| &it.path).collect::<Vec<_>>(),
        [&all[2].path, &all[1].path]
    );
}

#[test]
fn c67_a_clock_that_jumps_ahead_deletes_nothing_and_a_large_deletion_is_doubted() {
    let all = archives(&[0, 24, 48, 72]);
    let week = rules(0, 7, 0, 0);
    let later = NOW_MS + 61 * DAY_MS;

    let ahead = keep(&all, &week, later);
    let few = keep(&all, &rules(1, 0, 0, 0), later);
    let back = keep(&all, &rules(1, 0, 0, 0), NOW_MS - 100 * DAY_MS);

    assert!(ahead.iter().all(|it| it.keep));
    assert!(!is_doubtful(&all, &ahead, later));
    assert!(is_doubtful(&all, &few, later));
    assert!(!is_doubtful(&all, &few, NOW_MS + DAY_MS));
    assert!(back.iter().all(|it| it.reasons == [KeepReason::Future]));
}

#[test]
fn times_beyond_the_calendar_are_taken() {
    let all = [
        archive(0, i64::MIN),
        archive(1, i64::MAX),
        archive(2, NOW_MS),
    ];

    let decisions = keep(&all, &rules(1, 1, 1, 1), NOW_MS);

    let reasons: Vec<_> = decisions.iter().map(|it| it.reasons.len()).collect();
    // The future one, the newest under all four rules, and one that is beyond all of them.
    assert_eq!(reasons, [1, 5, 0]);
    assert!(is_doubtful(&all[..1], &decisions[2..], i64::MAX));
}

#[test]
fn names_given_by_a_backup_are_told_from_a_persons() {
    for name in [
        "zeroclaw-backup-20261130T164228Z-0123abcd.tar.gz",
        "zeroclaw-backup-20261130T164228Z-aaaa-before-import.tar.gz",
    ] {
        assert!(is_given_name(Path::new(name)), "{name}");
    }
    for name in [
        "one.tar.gz",
        "zeroclaw-backup-golden.tar.gz",
        "zeroclaw-backup-20261130T164228Z-0123abcd (copy).tar.gz",
        "zeroclaw-backup-20261130T164228Z-0123abcd.tar.gz.keep",
        "zeroclaw-backup-20261130T164228Z-.tar.gz",
        "keep-zeroclaw-backup-20261130T164228Z-0123abcd.tar.gz",
    ] {
        assert!(!is_given_name(Path::new(name)), "{name}");
    }
}
