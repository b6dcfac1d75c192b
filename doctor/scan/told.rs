//! What the configuration says of places and of paired devices, and what an emergency stop says.

use std::path::Path;

use zeroclaw::fs::FsError;

use super::{Scan, is_link, store};
use crate::doctor::finding::{Finding, Level};
use crate::doctor::names::escaped;
use crate::doctor::sources::zeroclaw::elsewhere::{Target, configured};
use crate::doctor::sources::zeroclaw::estop;
use crate::doctor::sources::zeroclaw::paired_tokens::PairedTokens;
use crate::doctor::sources::zeroclaw::surfaces::PLACES;

/// Where the emergency stop is unless the configuration says otherwise.
const EMERGENCY_STOP: &str = "estop-state.json";

/// Adds what the configuration puts elsewhere inside the root, and names what it puts outside.
pub(super) fn elsewhere(root: &Path, scan: &mut Scan) -> Result<(), FsError> {
    for found in configured(root) {
        match (found.target, found.place) {
            (Target::Source(format), Ok(relative)) => {
                let is_usual = PLACES
                    .iter()
                    .any(|place| Path::new(place.pattern) == relative);
                if !is_usual {
                    store(root, &relative, format, true, scan)?;
                }
            }
            (Target::EmergencyStop, Ok(relative)) => {
                if relative != Path::new(EMERGENCY_STOP) {
                    stop_at(root, &relative, scan);
                }
            }
            (_, Err(path)) => {
                let message = format!(
                    "{} puts it outside of the root; nothing of it was taken",
                    found.key
                );
                let remedy = format!(
                    "put the file in its usual place and take {} out of config.toml, then run `zeroclaw doctor --fix` again",
                    found.key
                );
                let place = path.display().to_string();
                let finding = Finding::new("outside-root", Level::Warning, place, message);
                scan.findings.push(finding.with_remedy(remedy));
            }
        }
    }
    Ok(())
}

/// Tells of an emergency stop in its usual place.
pub(super) fn emergency_stop(root: &Path, scan: &mut Scan) {
    stop_at(root, Path::new(EMERGENCY_STOP), scan);
}

/// An emergency stop that is in force stays so, and is told; one behind a link cannot be judged.
fn stop_at(root: &Path, relative: &Path, scan: &mut Scan) {
    let path = root.join(relative);
    let in_force = if is_link(&path) {
        Some("whatever the linked file says".to_owned())
    } else {
        estop::in_force(&path)
    };
    if let Some(what) = in_force {
        let message =
            format!("an emergency stop is in force for {what}; an import does not lift it");
        let finding = Finding::new("emergency-stop", Level::Warning, escaped(relative), message);
        scan.findings.push(finding.with_remedy(
            "when its reason is gone, lift it as it was made; it stays in force until this file says otherwise",
        ));
    }
}

/// What keeps paired tokens from being known.
pub(super) fn sealed_tokens(root: &Path) -> Result<Option<Finding>, FsError> {
    let list = PairedTokens::load(root)?;
    let finding = list.sealed().map(|(sealed, reasons)| {
        let message = format!(
            "{sealed} of {} entries cannot be read: {reasons}; devices that cannot be told are not let in",
            list.len()
        );
        let place = "config.toml: gateway.paired_tokens";
        Finding::new("sealed-tokens", Level::Warning, place, message).with_remedy(
            "put the .secret_key of this install back and run `zeroclaw doctor --fix` again; without it pair the devices again",
        )
    });
    Ok(finding)
}

/// Devices whose standing the configuration does not tell.
pub(super) fn unknown_pairing(root: &Path) -> Result<Option<Finding>, FsError> {
    if PairedTokens::load(root)?.is_known() {
        return Ok(None);
    }
    let message = "does not say which devices are paired; they come in, and none is let in";
    let finding = Finding::new("unknown-pairing", Level::Warning, "config.toml", message);
    Ok(Some(finding.with_remedy(
        "put config.toml and .secret_key of this install back and run `zeroclaw doctor --fix` again; without them pair the devices again",
    )))
}
