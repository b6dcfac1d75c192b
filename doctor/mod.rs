//! All that is known of old formats: the one way in for legacy files.
//!
//! Phases: [`scan`] finds sources, [`plan`] says what will happen, [`safety`] archives what there is,
//! [`apply`] brings rows in, [`verify`] reads them back, [`retire`] moves proven sources aside.
//! Remove this folder, and the runtime still builds: to the library its name does not exist.

mod apply;
mod before;
mod clean;
mod command;
mod finding;
mod health;
mod hold;
mod names;
mod offer;
mod owner;
mod phases;
mod plan;
mod preflight;
mod progress;
mod quarantine;
mod record;
mod report;
mod results;
mod retire;
mod roots;
mod rows;
mod run;
mod safety;
mod scan;
mod scratch;
mod settings;
mod show;
mod sources;
mod split_log;
mod standing;
mod stop;
mod survey;
mod target;
mod task;
mod undo;
mod units;
mod verify;
mod work;

pub(crate) use command::{DoctorArgs, run};
pub(crate) use standing::admit;
