//! One line on a terminal that is drawn over and over.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::one_line;

/// Drawn at most this often a second.
const HZ: u8 = 10;
/// Whole of a bar.
const WHOLE: u64 = 1_000;

/// A line that says how far something is. Nothing of it stays when it is cleared or dropped.
#[derive(Clone, Debug)]
pub(crate) struct ProgressLine(ProgressBar);

impl ProgressLine {
    /// A line on stderr; nothing is drawn before something is shown.
    pub(crate) fn new() -> Self {
        let target = ProgressDrawTarget::stderr_with_hz(HZ);
        Self(ProgressBar::with_draw_target(Some(WHOLE), target))
    }

    /// Shows how far it is.
    ///
    /// * `share`: thousandths that are done; `None` where nobody knows.
    pub(crate) fn show(&self, share: Option<u64>, text: &str) {
        let template = match share {
            Some(_) => "[{bar:10}] {wide_msg}",
            None => "{wide_msg}",
        };
        let style = ProgressStyle::with_template(template)
            .expect("invariant: the templates name only what every bar has")
            .progress_chars("=> ");
        self.0.set_style(style);
        self.0.set_position(share.unwrap_or(0).min(WHOLE));
        self.0.set_message(one_line(text));
        self.0.tick();
    }

    /// Takes the line away, until something is shown again.
    pub(crate) fn clear(&self) {
        self.0.finish_and_clear();
        self.0.reset();
    }

    /// Lets something be printed while the line is away.
    pub(crate) fn aside(&self, print: impl FnOnce()) {
        self.0.suspend(print);
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
