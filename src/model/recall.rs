//! Recalling memories: what is asked, and how two rankings become one.

use serde::{Deserialize, Serialize};

use super::{MemoryHit, PageLimit};

/// Damps the difference between the first ranks, as usual for reciprocal rank fusion.
const FUSION_K: f64 = 60.0;
/// A memory that is not pinned loses half of what it can lose in this time.
const HALF_LIFE_MS: f64 = 30.0 * 24.0 * 60.0 * 60.0 * 1_000.0;
/// What the oldest memory keeps of its score.
const OLD_SHARE: f64 = 0.5;
/// Importance of a memory that does not say.
const USUAL_IMPORTANCE: f64 = 0.5;

/// What is to be recalled. Without words and without a vector nothing is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RecallQuery {
    /// Words; a memory must hold all of them to be found by words.
    pub text: Option<String>,
    /// The caller's vector of what is looked for; only memories whose vector has as many dimensions are compared.
    pub vector: Option<Vec<f32>>,
    /// Only of these categories, by their exact names; `None` for all, an empty list for none.
    pub categories: Option<Vec<String>>,
    /// Only of this namespace.
    pub namespace: Option<String>,
    /// Most memories.
    pub limit: PageLimit,
}

/// A memory that was recalled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recalled {
    /// The higher, the better; comparable within one answer only.
    pub score: f64,
    /// Place among those found by words, from 1.
    pub word_rank: Option<usize>,
    /// Place among those found by vector, from 1.
    pub vector_rank: Option<usize>,
    /// Cosine between its vector and the one that was asked with.
    pub similarity: Option<f64>,
    /// The memory and its owner.
    #[serde(flatten)]
    pub hit: MemoryHit,
}

/// Joins the places in both rankings: reciprocal rank fusion, times importance, times age.
///
/// `1 / (60 + rank)` of each ranking is added up, that of the vectors times the cosine: every vector has a place, the far ones
/// too, which alone is no merit. Importance 0 to 1 weighs 0.75 to 1.25. Age takes up to half, with a
/// half-life of 30 days since the last update; a pinned memory does not age.
#[must_use]
pub fn fused_score(
    word_rank: Option<usize>,
    vector: Option<(usize, f64)>,
    importance: Option<f64>,
    age_ms: Option<i64>,
) -> f64 {
    let share = |rank: Option<usize>| {
        // No ranking is long enough to lose a place in the conversion.
        rank.map_or(0.0, |rank| 1.0 / (FUSION_K + rank as f64))
    };
    let importance = importance.unwrap_or(USUAL_IMPORTANCE).clamp(0.0, 1.0);
    let freshness = age_ms.map_or(1.0, |age_ms| {
        (-(age_ms.max(0) as f64) / HALF_LIFE_MS).exp2()
    });
    let weight = 0.75 + 0.5 * importance;
    let near = vector.map_or(0.0, |(rank, cosine)| {
        share(Some(rank)) * cosine.clamp(0.0, 1.0)
    });
    (share(word_rank) + near) * weight * (OLD_SHARE + (1.0 - OLD_SHARE) * freshness)
}

/// Sums that run beside each other: as many as the widest common registers take. One sum alone waits for itself.
const LANES: usize = 16;

/// A vector that others are compared with; its own length is computed once.
#[derive(Clone, Copy, Debug)]
pub struct Direction<'a> {
    vector: &'a [f32],
    norm: f64,
}

impl<'a> Direction<'a> {
    /// Takes a vector.
    #[must_use]
    pub fn of(vector: &'a [f32]) -> Self {
        Self {
            vector,
            norm: norm(vector),
        }
    }

    /// Cosine between it and a vector of equal length; `None` when one has no direction.
    #[must_use]
    pub fn cosine(self, other: &[f32]) -> Option<f64> {
        let norm = self.norm * norm(other);
        (norm > 0.0 && norm.is_finite()).then(|| f64::from(dot(self.vector, other)) / norm)
    }
}

fn norm(vector: &[f32]) -> f64 {
    f64::from(dot(vector, vector)).sqrt()
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0_f32; LANES];
    let (whole, rest) = a.as_chunks::<LANES>();
    let (others, other_rest) = b.as_chunks::<LANES>();
    for (x, y) in whole.iter().zip(others) {
        for lane in 0..LANES {
            sums[lane] += x[lane] * y[lane];
        }
    }
    let tail: f32 = rest.iter().zip(other_rest).map(|(x, y)| x * y).sum();
    sums.iter().sum::<f32>() + tail
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

    #[test]
    fn found_by_both_beats_found_by_one() {
        let both = fused_score(Some(5), Some((5, 0.9)), None, None);
        let one = fused_score(Some(1), None, None, None);
        let far = fused_score(Some(1), Some((2, 0.0)), None, None);

        assert!(both > one);
        assert!((far - one).abs() < 1e-12, "a far vector adds nothing");
    }

    #[test]
    fn importance_and_age_move_a_memory_and_pinning_stops_age() {
        let score = |importance, age| fused_score(Some(1), None, Some(importance), age);

        assert!(score(1.0, Some(0)) > score(0.0, Some(0)));
        assert!(score(0.5, Some(0)) > score(0.5, Some(30 * DAY_MS)));
        let month = score(0.5, Some(30 * DAY_MS)) / score(0.5, None);
        assert!((month - 0.75).abs() < 1e-9);
        let ancient = score(0.5, Some(36_500 * DAY_MS)) / score(0.5, None);
        assert!((ancient - 0.5).abs() < 1e-9);
        // A clock that went back makes nothing younger than new.
        assert!((score(0.5, Some(-DAY_MS)) - score(0.5, None)).abs() < 1e-12);
    }

    #[test]
    fn a_vector_without_direction_has_no_cosine() {
        let cosine = |a: &[f32], b: &[f32]| Direction::of(a).cosine(b);
        let same = cosine(&[3.0, 4.0], &[6.0, 8.0]).unwrap();
        let none = cosine(&[3.0, 4.0], &[0.0, 0.0]);

        assert!((same - 1.0).abs() < 1e-6);
        assert_eq!(none, None);
        let long: Vec<f32> = (0..37_u8).map(f32::from).collect();
        let whole = cosine(&long, &long).unwrap();
        assert!(
            (whole - 1.0).abs() < 1e-6,
            "lanes and their rest are both counted"
        );
        assert_eq!(cosine(&[f32::NAN, 1.0], &[1.0, 1.0]), None);
    }
}
