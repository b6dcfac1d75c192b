//! Which sessions old age, number or size takes. Pure: the same sessions at the same time give the same plan.

use serde::{Deserialize, Serialize};

use super::RetentionItem;
use crate::model::{AgentId, RetentionRules};

/// A day, milliseconds.
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
/// Where nothing at all was said for so long, the clock rather than the talk may have stopped.
const SILENCE_MS: i64 = 30 * DAY_MS;

/// Why a session goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetentionReason {
    /// It is too old.
    Age,
    /// There are enough newer ones.
    Count,
    /// There are too many bytes.
    Bytes,
}

impl RetentionReason {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Age => "age",
            Self::Count => "count",
            Self::Bytes => "bytes",
        }
    }
}

/// A session as the rules see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Owner.
    pub agent_id: AgentId,
    /// The session.
    pub session_id: String,
    /// Its key.
    pub session_key: String,
    /// When it last changed.
    pub updated_at_ms: i64,
    /// Bytes of its texts and JSON.
    pub bytes: i64,
    /// Pinned, or in a turn: no rule takes it.
    pub is_protected: bool,
}

/// What the rules take of one agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Planned {
    /// The sessions, oldest first.
    pub items: Vec<RetentionItem>,
    /// Why the clock may be wrong.
    pub clock_doubt: Option<String>,
}

/// Applies the rules to the sessions of one agent.
///
/// Protected sessions count towards number and bytes, and stay. The session changed last stays too, whatever the rules
/// say of number and bytes: an agent is never emptied by them.
#[must_use]
pub fn plan_retention(rules: &RetentionRules, now_ms: i64, sessions: &[Candidate]) -> Planned {
    let mut newest_first: Vec<&Candidate> = sessions.iter().collect();
    newest_first.sort_by(|a, b| {
        let (left, right) = (b.updated_at_ms, a.updated_at_ms);
        left.cmp(&right)
            .then_with(|| a.session_id.cmp(&b.session_id))
    });
    let limit_ms = now_ms.saturating_sub(rules.max_age_days.max(0).saturating_mul(DAY_MS));
    let most = usize::try_from(rules.max_sessions.max(0)).unwrap_or(usize::MAX);
    let mut reasons: Vec<Option<RetentionReason>> = newest_first
        .iter()
        .enumerate()
        .map(|(place, session)| match session {
            _ if session.is_protected => None,
            _ if rules.max_age_days > 0 && session.updated_at_ms < limit_ms => {
                Some(RetentionReason::Age)
            }
            _ if rules.max_sessions > 0 && place >= most => Some(RetentionReason::Count),
            _ => None,
        })
        .collect();
    if rules.max_bytes > 0 {
        take_bytes(rules.max_bytes, &newest_first, &mut reasons);
    }
    let items: Vec<_> = newest_first
        .iter()
        .zip(&reasons)
        .filter_map(|(session, reason)| Some(item(session, (*reason)?)))
        .rev()
        .collect();
    let takes_by_age = reasons.contains(&Some(RetentionReason::Age));
    let newest = newest_first.first().map(|session| session.updated_at_ms);
    Planned {
        items,
        clock_doubt: newest
            .filter(|_| takes_by_age)
            .and_then(|newest| clock_doubt(now_ms, newest)),
    }
}

/// Why the clock may be wrong, by the last that was said.
pub(super) fn clock_doubt(now_ms: i64, newest_ms: i64) -> Option<String> {
    let silence_ms = now_ms.saturating_sub(newest_ms);
    (silence_ms > SILENCE_MS).then(|| {
        let days = silence_ms / DAY_MS;
        format!("nothing was said for {days} days: the clock may have jumped")
    })
}

/// Takes the oldest until what stays fits, or nothing is left to take.
fn take_bytes(
    max_bytes: i64,
    newest_first: &[&Candidate],
    reasons: &mut [Option<RetentionReason>],
) {
    let stays = newest_first.iter().zip(reasons.iter());
    let stays = stays.filter(|(_, reason)| reason.is_none());
    let mut total: i128 = stays.map(|(session, _)| i128::from(session.bytes)).sum();
    for (place, session) in newest_first.iter().enumerate().skip(1).rev() {
        if total <= i128::from(max_bytes) {
            break;
        }
        if reasons[place].is_none() && !session.is_protected && session.bytes > 0 {
            reasons[place] = Some(RetentionReason::Bytes);
            total -= i128::from(session.bytes);
        }
    }
}

fn item(session: &Candidate, reason: RetentionReason) -> RetentionItem {
    RetentionItem {
        agent_id: session.agent_id.clone(),
        session_id: session.session_id.clone(),
        session_key: session.session_key.clone(),
        updated_at_ms: session.updated_at_ms,
        bytes: session.bytes,
        reason,
        copy: None,
        deleted: false,
        error: None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn session(number: usize, age_days: i64, bytes: i64, is_protected: bool) -> Candidate {
        Candidate {
            agent_id: AgentId::new("atlas").unwrap(),
            session_id: format!("s{number:03}"),
            session_key: String::new(),
            updated_at_ms: 1_000 * DAY_MS - age_days * DAY_MS,
            bytes,
            is_protected,
        }
    }

    const NOW: i64 = 1_000 * DAY_MS + 1;

    fn taken(rules: RetentionRules, sessions: &[Candidate]) -> Vec<String> {
        let planned = plan_retention(&rules, NOW, sessions);
        planned
            .items
            .into_iter()
            .map(|item| item.session_id)
            .collect()
    }

    #[test]
    fn c67_zero_and_less_are_off_and_protected_ones_stay() {
        let sessions = [
            session(0, 0, 5, false),
            session(1, 50, 5, true),
            session(2, 90, 5, false),
        ];
        let rules = |max_age_days, max_sessions, max_bytes| RetentionRules {
            max_age_days,
            max_sessions,
            max_bytes,
        };

        for off in [
            rules(0, 0, 0),
            rules(-1, -1, -1),
            rules(i64::MIN, i64::MIN, i64::MIN),
        ] {
            assert!(taken(off, &sessions).is_empty() && !off.is_any_on());
        }
        assert!(taken(rules(i64::MAX, i64::MAX, i64::MAX), &sessions).is_empty());
        assert_eq!(taken(rules(30, 0, 0), &sessions), ["s002"]);
        assert_eq!(taken(rules(0, 1, 0), &sessions), ["s002"]);
        assert_eq!(taken(rules(0, 0, 1), &sessions), ["s002"]);
    }

    #[test]
    fn c67_a_jump_of_the_clock_raises_doubt() {
        let sessions = [session(0, 0, 5, false), session(1, 1, 5, false)];
        let rules = RetentionRules {
            max_age_days: 30,
            ..RetentionRules::default()
        };

        let jumped = plan_retention(&rules, NOW + 60 * DAY_MS, &sessions);
        let back = plan_retention(&rules, NOW - 60 * DAY_MS, &sessions);

        assert_eq!(jumped.items.len(), 2);
        assert!(jumped.clock_doubt.is_some());
        assert_eq!(back, Planned::default());
    }

    proptest! {
        /// Beside a model that asks of each session alone whether it may stay.
        #[test]
        fn c67_the_plan_is_what_the_rules_say(
            days in -2_i64..60, most in -2_i64..12, bytes in -2_i64..200,
            sessions in prop::collection::vec((0_i64..90, 0_i64..50, any::<bool>()), 0..20),
        ) {
            let sessions: Vec<_> = sessions.iter().enumerate()
                .map(|(number, (age, bytes, is_protected))| session(number, *age, *bytes, *is_protected)).collect();
            let rules = RetentionRules { max_age_days: days, max_sessions: most, max_bytes: bytes };
            let planned = plan_retention(&rules, NOW, &sessions);
            let goes = |session: &Candidate| planned.items.iter().find(|item| item.session_id == session.session_id);
            let newer = |than: &Candidate| sessions.iter().filter(|other|
                (other.updated_at_ms, std::cmp::Reverse(&other.session_id))
                    > (than.updated_at_ms, std::cmp::Reverse(&than.session_id))).count() as i64;
            for session in &sessions {
                let is_old = days > 0 && NOW - session.updated_at_ms > days * DAY_MS;
                let is_many = most > 0 && newer(session) >= most;
                let reason = goes(session).map(|item| item.reason);
                if session.is_protected {
                    prop_assert_eq!(reason, None);
                } else if is_old {
                    prop_assert_eq!(reason, Some(RetentionReason::Age));
                } else if is_many {
                    prop_assert_eq!(reason, Some(RetentionReason::Count));
                } else {
                    prop_assert!(reason.is_none_or(|reason| reason == RetentionReason::Bytes && bytes > 0));
                }
            }
            // Bytes: what stays fits, or nothing more could go; and the last one taken was needed.
            let left: i64 = sessions.iter().filter(|session| goes(session).is_none()).map(|session| session.bytes).sum();
            let spare = |session: &&Candidate| goes(session).is_none() && !session.is_protected
                && session.bytes > 0 && newer(session) > 0;
            if bytes > 0 {
                prop_assert!(left <= bytes || sessions.iter().filter(spare).count() == 0);
                let mut by_bytes = planned.items.iter().rev().filter(|item| item.reason == RetentionReason::Bytes);
                if let Some(last) = by_bytes.next() {
                    prop_assert!(left + last.bytes > bytes);
                }
            }
        }
    }
}
