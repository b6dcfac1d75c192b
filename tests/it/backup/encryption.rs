//! Encrypted archives: who opens them, what is proved of them, and that no secret is told.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use age::secrecy::{ExposeSecret, SecretString};
use age::x25519::Identity;
use zeroclaw::backup::BackupError;
use zeroclaw::service::ServiceError;
use zeroclaw::service::backup::{
    self, CreateOptions, CreateReport, Encryption, KeySource, Proof, RestoreOptions, SealSource,
    VerifyReport,
};

use super::home::{Home, clock, dumps, runs, unpack};

mod desk;

const PASSPHRASE: &str = "canary correct horse battery";

/// A key, and its file as `age-keygen` writes it.
struct Keys {
    recipient: String,
    identity: Identity,
    file: PathBuf,
}

impl Keys {
    fn in_folder(folder: &Path, name: &str) -> Self {
        let identity = Identity::generate();
        let recipient = identity.to_public().to_string();
        let file = folder.join(name);
        let secret = identity.to_string();
        let text = format!(
            "# created: 2026-11-30T12:00:00Z\n# public key: {recipient}\n{}\n",
            secret.expose_secret()
        );
        fs::write(&file, text).unwrap();
        Self {
            recipient,
            identity,
            file,
        }
    }

    fn source(&self) -> KeySource {
        KeySource::IdentityFiles(vec![self.file.clone()])
    }

    fn secret(&self) -> String {
        self.identity.to_string().expose_secret().to_owned()
    }
}

async fn create_for(home: &Home, recipients: &[&Keys]) -> CreateReport {
    let given = recipients.iter().map(|it| it.recipient.clone()).collect();
    let seal = SealSource::Recipients {
        given,
        files: Vec::new(),
    };
    let options = CreateOptions {
        seal: Some(seal),
        include_workspace: true,
        ..CreateOptions::default()
    };
    home.create(options).await.unwrap()
}

async fn verify(archive: &Path, key: Option<&KeySource>) -> Result<VerifyReport, ServiceError> {
    backup::verify(archive, clock(), None, false, key).await
}

async fn restore(
    archive: &Path,
    target: &Path,
    key: Option<KeySource>,
) -> Result<(), ServiceError> {
    let options = RestoreOptions {
        archive: archive.to_owned(),
        key,
        target: target.to_owned(),
        agent: None,
        dry_run: false,
        yes: true,
    };
    backup::restore(clock(), options).await.map(|_| ())
}

/// As the `age` tool would, by its library.
fn decrypted(archive: &Path, identity: &dyn age::Identity) -> Vec<u8> {
    let file = std::io::BufReader::new(fs::File::open(archive).unwrap());
    let decryptor = age::Decryptor::new_buffered(file).unwrap();
    let mut content = Vec::new();
    let mut reader = decryptor.decrypt(std::iter::once(identity)).unwrap();
    reader.read_to_end(&mut content).unwrap();
    content
}

fn fault(result: Result<VerifyReport, ServiceError>) -> BackupError {
    match result {
        Err(ServiceError::Backup(error)) => error,
        other => panic!("not refused by the archive: {other:?}"),
    }
}

#[tokio::test]
async fn each_recipient_opens_verifies_and_restores_and_age_reads_it_too() {
    let home = Home::with_two_agents().await;
    let (one, two) = (
        Keys::in_folder(&home.path(""), "one.txt"),
        Keys::in_folder(&home.path(""), "two.txt"),
    );

    let report = create_for(&home, &[&one, &two]).await;

    let archive = &report.archive;
    assert_eq!(report.encryption, Some(Encryption::Recipients));
    assert_eq!(
        (report.verified, report.proof),
        (true, Some(Proof::BeforeEncryption))
    );
    assert!(archive.to_str().unwrap().ends_with(".tar.gz.age"));
    let meta = fs::metadata(archive).unwrap();
    assert_eq!(
        (meta.permissions().mode() & 0o777, meta.len()),
        (0o600, report.bytes)
    );
    let expected = dumps(&home.root());
    for (number, keys) in [&one, &two].into_iter().enumerate() {
        let verified = verify(archive, Some(&keys.source())).await.unwrap();
        assert_eq!(verified.encryption, Some(Encryption::Recipients));
        assert_eq!(verified.findings, Vec::<String>::new());
        let target = home.path(&format!("new {number}"));
        restore(archive, &target, Some(keys.source()))
            .await
            .unwrap();
        assert_eq!(dumps(&target), expected);
    }
    backup::verify(archive, clock(), None, true, Some(&one.source()))
        .await
        .unwrap();
    let plain = home.path("plain.tar.gz");
    fs::write(&plain, decrypted(archive, &one.identity)).unwrap();
    let members = unpack(&plain);
    assert_eq!(members[0].0, "manifest.json");
    assert_eq!(members.len(), report.members.len() + 2);
    let run = &runs(&home.root()).await[0];
    assert_eq!(run.archive_path, archive.to_str().unwrap());
    assert!(run.manifest_json.contains("members"));
}

#[tokio::test]
async fn a_passphrase_is_proved_by_reading_back_and_another_changes_nothing() {
    let home = Home::with_two_agents().await;
    let file = |name: &str, text: &str| {
        let path = home.path(name);
        fs::write(&path, text).unwrap();
        KeySource::PassphraseFile(path)
    };
    let (right, wrong) = (
        file("right", &format!("{PASSPHRASE}\r\nnot this\n")),
        file("wrong", "canary"),
    );
    let options = CreateOptions {
        seal: Some(SealSource::PassphraseFile(home.path("right"))),
        ..CreateOptions::default()
    };

    let report = home.create(options).await.unwrap();

    let archive = &report.archive;
    assert_eq!(report.encryption, Some(Encryption::Passphrase));
    assert_eq!(report.proof, Some(Proof::ReadBack));
    let refused = fault(verify(archive, Some(&wrong)).await);
    assert!(
        matches!(refused, BackupError::WrongKey { .. }),
        "{refused:?}"
    );
    let target = home.path("new");
    restore(archive, &target, Some(wrong)).await.unwrap_err();
    assert!(!target.exists());
    restore(archive, &target, Some(right)).await.unwrap();
    assert_eq!(dumps(&target), dumps(&home.root()));
    let identity = age::scrypt::Identity::new(SecretString::from(PASSPHRASE));
    assert!(decrypted(archive, &identity).starts_with(&[0x1f, 0x8b]));
}

#[tokio::test]
async fn without_the_key_or_with_another_nothing_is_written() {
    let home = Home::with_two_agents().await;
    let (mine, other) = (
        Keys::in_folder(&home.path(""), "mine.txt"),
        Keys::in_folder(&home.path(""), "other.txt"),
    );
    let archive = create_for(&home, &[&mine]).await.archive;
    let target = home.path("new");

    for key in [None, Some(other.source())] {
        let refused = fault(verify(&archive, key.as_ref()).await);
        assert!(matches!(
            (&key, refused),
            (None, BackupError::Encrypted { .. }) | (Some(_), BackupError::WrongKey { .. })
        ));
        restore(&archive, &target, key).await.unwrap_err();
        assert!(!target.exists());
    }
}

#[tokio::test]
async fn damage_anywhere_is_found() {
    let home = Home::with_two_agents().await;
    let keys = Keys::in_folder(&home.path(""), "keys.txt");
    // Several chunks of the encryption, which are 64 KiB each, so that each place in one can be hit.
    let noise = home.root().join("agents/atlas/workspace/noise");
    fs::create_dir_all(noise.parent().unwrap()).unwrap();
    let mut random = 1_u64;
    let bytes = std::iter::repeat_with(|| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        random.to_be_bytes()[0]
    });
    fs::write(&noise, bytes.take(200_000).collect::<Vec<u8>>()).unwrap();
    let archive = create_for(&home, &[&keys]).await.archive;
    let whole = fs::read(&archive).unwrap();
    assert!(whole.len() > 200_000);
    // Behind the header's sum of 43 characters: the nonce, then the chunks.
    let body = whole.windows(5).position(|it| it == b"\n--- ").unwrap() + 5 + 43 + 1;
    let bad = home.path("bad.tar.gz.age");
    let flipped = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        bytes
    };
    let step = (whole.len() - body) / 12;
    let mut cases: Vec<Vec<u8>> = (body..whole.len()).step_by(step).map(flipped).collect();
    cases.push(flipped(whole.len() - 1));
    cases.push(flipped(body - 40));
    cases.push(whole[..whole.len() - 1].to_vec());
    // A cut after a whole chunk, and in the middle of one.
    cases.push(whole[..body + 16 + 2 * (65_536 + 16)].to_vec());
    cases.push(whole[..body + 70_000].to_vec());
    cases.push(whole[..40].to_vec());
    cases.push([&whole[..], b"more"].concat());
    cases.push([&whole[..], &whole].concat());

    for (number, bytes) in cases.iter().enumerate() {
        fs::write(&bad, bytes).unwrap();
        let refused = fault(verify(&bad, Some(&keys.source())).await);
        assert!(
            matches!(refused, BackupError::Damaged { .. }),
            "{number}: {refused:?}"
        );
    }
    let target = home.path("new");
    fs::write(&bad, flipped(whole.len() - 1)).unwrap();
    restore(&bad, &target, Some(keys.source()))
        .await
        .unwrap_err();
    assert!(!target.exists());
}

#[tokio::test]
async fn a_key_for_a_plain_archive_is_told_to_be_of_no_use() {
    let home = Home::with_two_agents().await;
    let keys = Keys::in_folder(&home.path(""), "keys.txt");
    let archive = home.archive().await;

    let report = verify(&archive, Some(&keys.source())).await.unwrap();

    assert_eq!(report.encryption, None);
    assert!(report.findings[0].contains("not encrypted"));
}
