//! Planted crashes: what a kill at this very point leaves behind can be tested.
//!
//! Compiled in with debug assertions or the feature `fault-points`; a release build does nothing here.

/// Ends the process as a kill would, if `ZEROCLAW_FAULT` names this point.
///
/// `ZEROCLAW_FAULT=point` stops at the first passage, `ZEROCLAW_FAULT=point:3` at the third.
pub fn fault(point: &str) {
    #[cfg(any(debug_assertions, feature = "fault-points"))]
    planted::pass(point);
    #[cfg(not(any(debug_assertions, feature = "fault-points")))]
    let _ = point;
}

#[cfg(any(debug_assertions, feature = "fault-points"))]
mod planted {
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Passages of the one point that the variable names.
    static PASSED: AtomicUsize = AtomicUsize::new(0);

    pub(super) fn pass(point: &str) {
        let Some(wanted) = std::env::var_os("ZEROCLAW_FAULT") else {
            return;
        };
        let Some(passage) = wanted.to_str().and_then(|wanted| passage_of(wanted, point)) else {
            return;
        };
        if PASSED.fetch_add(1, Ordering::SeqCst) + 1 == passage {
            std::process::abort();
        }
    }

    /// The passage of `point` at which to stop; `None` when another point is meant.
    pub(super) fn passage_of(wanted: &str, point: &str) -> Option<usize> {
        match wanted.rsplit_once(':') {
            _ if wanted == point => Some(1),
            Some((name, count)) if name == point => count.parse().ok(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::planted::passage_of;

    #[test]
    fn the_variable_names_a_point_and_a_passage() {
        assert_eq!(passage_of("restore.swap", "restore.swap"), Some(1));
        assert_eq!(passage_of("restore.swap:3", "restore.swap"), Some(3));
        assert_eq!(passage_of("restore.swapped", "restore.swap"), None);
        assert_eq!(passage_of("restore.swap:x", "restore.swap"), None);
        assert_eq!(passage_of("", "restore.swap"), None);
    }
}
