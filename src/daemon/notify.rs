//! What systemd wants to hear, where it started this process; nothing elsewhere.

use sd_notify::NotifyState;

/// Says that clients are heard.
pub(super) fn ready() {
    say(&[NotifyState::Ready]);
}

/// Says that no new work is taken.
pub(super) fn stopping() {
    say(&[NotifyState::Stopping]);
}

/// Whether systemd wants to hear that this process works.
pub(super) fn is_watched() -> bool {
    sd_notify::watchdog_enabled().is_some()
}

/// Says that it works.
pub(super) fn alive() {
    say(&[NotifyState::Watchdog]);
}

fn say(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "systemd was not told");
    }
}
