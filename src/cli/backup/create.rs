//! `zeroclaw backup create`.

use std::path::PathBuf;

use clap::Args;
use zeroclaw::service::backup::{self, CreateOptions, CreateReport, MemberKind};

use super::key::SealArgs;
use super::report::{encrypted, member_table, verified};
use crate::cli::output::{Fields, size, span};
use crate::cli::{CliError, Context, Exit};

#[derive(Args, Debug)]
pub(crate) struct CreateArgs {
    /// Write to this file, or into this folder
    ///
    /// Default: a new file in the folder backups of the root.
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,

    /// Leave out keys and credentials
    ///
    /// Left out are the configuration, .secret_key, databases and files of other programs, and the
    /// columns of our own that hold credentials; the report lists them. Transcripts and memories stay as
    /// they are.
    #[arg(long)]
    no_secrets: bool,

    /// Take the agents' workspaces along
    #[arg(long)]
    include_workspace: bool,

    /// Do not read the archive back
    #[arg(long)]
    no_verify: bool,

    #[command(flatten)]
    seal: SealArgs,

    /// Show what would be in it, and write nothing
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn run(context: &Context, args: CreateArgs) -> Result<Exit, CliError> {
    let options = CreateOptions {
        output: args.output,
        with_secrets: !args.no_secrets,
        include_workspace: args.include_workspace,
        verify: !args.no_verify,
        seal: args.seal.source(),
        dry_run: args.dry_run,
    };
    let report = backup::create(&context.root, context.clock.clone(), options).await?;
    if context.json() {
        context.out.json(&report)?;
    } else {
        show(context, &report)?;
    }
    Ok(Exit::Done)
}

fn show(context: &Context, report: &CreateReport) -> Result<(), CliError> {
    let out = &context.out;
    out.table(&member_table(&report.members))?;
    out.text("\n")?;
    out.fields(&summary(report))?;
    for left in &report.left_out {
        out.note(&format!("left out {}: {}", left.path, left.reason));
    }
    for warning in &report.warnings {
        out.warn(warning);
    }
    if report.dry_run {
        out.note("nothing was written: without --dry-run this archive is made");
    }
    Ok(())
}

fn summary(report: &CreateReport) -> Fields {
    let secrets = secrets_of(report);
    let encrypted = encrypted(report);
    let fields = Fields::new().add("archive", report.archive.display());
    if report.dry_run {
        return fields.add("secrets", secrets).add("encrypted", encrypted);
    }
    fields
        .add("id", &report.id)
        .add("size", size(report.bytes))
        .add("secrets", secrets)
        .add("encrypted", encrypted)
        .add("verified", verified(report))
        .add(
            "took",
            span(i64::try_from(report.duration_ms).unwrap_or(i64::MAX)),
        )
}

fn secrets_of(report: &CreateReport) -> &'static str {
    let has_key = report
        .members
        .iter()
        .any(|member| member.kind == MemberKind::Key);
    match (report.has_secrets, has_key) {
        (false, _) => "left out; what was said and done is inside",
        (true, false) => "inside: keep the archive as safe as the root",
        (true, true) => {
            "inside: keep the archive as safe as the root; .secret_key lies in it beside what it opens"
        }
    }
}
