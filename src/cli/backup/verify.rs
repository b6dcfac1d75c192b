//! `zeroclaw backup verify`.

use std::path::PathBuf;

use clap::Args;
use zeroclaw::service::backup::{self, VerifyReport};

use super::key::KeyArgs;
use super::report::member_table;
use crate::cli::output::{Fields, time};
use crate::cli::{CliError, Context, Exit};

#[derive(Args, Debug)]
pub(crate) struct VerifyArgs {
    /// The archive
    archive: PathBuf,

    /// Restore it into a scratch folder as well, and compare
    #[arg(long)]
    deep: bool,

    #[command(flatten)]
    key: KeyArgs,
}

pub(super) async fn run(context: &Context, args: VerifyArgs) -> Result<Exit, CliError> {
    let clock = context.clock.clone();
    // Not recorded in the root: to verify is to look, and a look leaves no trace.
    let key = args.key.source();
    let report = backup::verify(&args.archive, clock, None, args.deep, key.as_ref()).await?;
    if context.json() {
        context.out.json(&report)?;
    } else {
        show(context, &report)?;
    }
    Ok(if report.ok { Exit::Done } else { Exit::Damaged })
}

fn show(context: &Context, report: &VerifyReport) -> Result<(), CliError> {
    let out = &context.out;
    out.table(&member_table(&report.members))?;
    out.text("\n")?;
    let fields = Fields::new()
        .add("archive", report.archive.display())
        .add("id", &report.id)
        .add("created", time(report.created_at_ms))
        .add(
            "encrypted",
            report.encryption.map_or("no", |it| it.as_str()),
        )
        .add("result", if report.ok { "good" } else { "DAMAGED" });
    out.fields(&fields)?;
    for finding in &report.findings {
        out.warn(finding);
    }
    Ok(())
}
