//! `zeroclaw backup create`.

use std::path::PathBuf;

use clap::Args;
use zeroclaw::service::backup::{
    self, CreateOptions, CreateReport, Encryption, MemberKind, Proof, SealSource,
};

use super::report::member_table;
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
    /// Left out are the configuration, .secret_key, databases of other programs, and the columns of
    /// our own that hold credentials; the report lists them. Transcripts and memories stay as they are.
    #[arg(long)]
    no_secrets: bool,

    /// Take the agents' workspaces along
    #[arg(long)]
    include_workspace: bool,

    /// Do not read the archive back
    #[arg(long)]
    no_verify: bool,

    /// Encrypt to this recipient, an age public key (age1…); may be given more than once
    #[arg(long, value_name = "RECIPIENT", conflicts_with = "passphrase_file")]
    encrypt_to: Vec<String>,

    /// Encrypt to the recipients in this file, one a line
    #[arg(long, value_name = "FILE", conflicts_with = "passphrase_file")]
    recipients_file: Vec<PathBuf>,

    /// Encrypt with the passphrase on the first line of this file; - reads standard input
    ///
    /// Nobody can open the archive without it, you neither.
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,

    /// Show what would be in it, and write nothing
    #[arg(long)]
    dry_run: bool,
}

impl CreateArgs {
    fn seal(&self) -> Option<SealSource> {
        if let Some(path) = &self.passphrase_file {
            return Some(SealSource::PassphraseFile(path.clone()));
        }
        let is_given = !self.encrypt_to.is_empty() || !self.recipients_file.is_empty();
        is_given.then(|| SealSource::Recipients {
            given: self.encrypt_to.clone(),
            files: self.recipients_file.clone(),
        })
    }
}

pub(super) async fn run(context: &Context, args: CreateArgs) -> Result<Exit, CliError> {
    let seal = args.seal();
    let options = CreateOptions {
        output: args.output,
        with_secrets: !args.no_secrets,
        include_workspace: args.include_workspace,
        verify: !args.no_verify,
        seal,
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
    let encrypted = match report.encryption {
        None => "no",
        Some(Encryption::Recipients) => "to its recipients: only their identities open it",
        Some(Encryption::Passphrase) => "with a passphrase: nothing else opens it",
    };
    let fields = Fields::new().add("archive", report.archive.display());
    if report.dry_run {
        return fields.add("secrets", secrets).add("encrypted", encrypted);
    }
    let verified = match report.proof {
        Some(Proof::ReadBack) => "yes",
        Some(Proof::BeforeEncryption) => {
            "yes, but for the key: `zeroclaw backup verify ARCHIVE --identity FILE` proves that it opens"
        }
        None => "no: `zeroclaw backup verify` does it",
    };
    fields
        .add("id", &report.id)
        .add("size", size(report.bytes))
        .add("secrets", secrets)
        .add("encrypted", encrypted)
        .add("verified", verified)
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
