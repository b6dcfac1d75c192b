//! What is in an archive, as a table, and how old it is.

use zeroclaw::service::backup::{CreateReport, Encryption, MemberReport, Proof};

use crate::cli::output::{Column, Table, or_dash, size, span};

/// How long ago something was made; a wrong clock may have dated it later than now.
pub(super) fn age(now_ms: i64, created_at_ms: i64) -> String {
    match now_ms.saturating_sub(created_at_ms) {
        age @ 0.. => span(age),
        _ => "future".to_owned(),
    }
}

/// One row a member.
pub(in crate::cli) fn member_table(members: &[MemberReport]) -> Table {
    let mut table = Table::new(&[
        Column::word("kind"),
        Column::word("role").minor(),
        Column::word("agent").minor(),
        Column::number("size"),
        Column::number("rows").minor(),
        Column::word("integrity"),
        Column::text("path"),
    ]);
    for member in members {
        let rows = member.rows.as_ref().map(|rows| rows.values().sum::<i64>());
        table.row([
            member.kind.to_string(),
            or_dash(member.role.as_ref()),
            or_dash(member.agent_id.as_ref()),
            size(member.bytes),
            or_dash(rows),
            or_dash(member.integrity.as_deref()),
            member.path.clone(),
        ]);
    }
    table
}

/// How an archive is encrypted, in words.
pub(crate) fn encrypted(report: &CreateReport) -> &'static str {
    match report.encryption {
        None => "no",
        Some(Encryption::Recipients) => "to its recipients: only their identities open it",
        Some(Encryption::Passphrase) => "with a passphrase: nothing else opens it",
    }
}

/// What was proved of an archive, in words.
pub(crate) fn verified(report: &CreateReport) -> &'static str {
    match report.proof {
        Some(Proof::ReadBack) => "yes",
        Some(Proof::BeforeEncryption) => {
            "yes, but for the key: `zeroclaw backup verify ARCHIVE --identity FILE` proves that it opens"
        }
        None => "no: `zeroclaw backup verify` does it",
    }
}
