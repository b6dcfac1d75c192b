use std::time::Instant;

use age::secrecy::ExposeSecret;

use super::*;

fn identity() -> x25519::Identity {
    x25519::Identity::generate()
}

fn text_of(identity: &x25519::Identity) -> String {
    identity.to_string().expose_secret().to_owned()
}

fn seal_to(identities: &[&x25519::Identity]) -> Seal {
    let texts: Vec<String> = identities
        .iter()
        .map(|it| it.to_public().to_string())
        .collect();
    let named = texts.iter().map(|text| ("here".to_owned(), text.as_str()));
    Seal::to_recipients(named).unwrap()
}

fn key_of(identity: &x25519::Identity) -> Key {
    let text = format!("# created: today\n\n{}\n", text_of(identity));
    Key::from_identity_files([("keys".to_owned(), text.as_str())]).unwrap()
}

fn sealed(seal: &Seal, content: &[u8]) -> Vec<u8> {
    let mut writer = seal.wrap(Vec::new()).unwrap();
    writer.write_all(content).unwrap();
    writer.finish().unwrap()
}

fn open(bytes: &[u8], key: Option<&Key>) -> Result<Vec<u8>, BackupError> {
    let input = Cursor::new(bytes.to_vec());
    let mut unsealed = unseal(input, Path::new("a.age"), key)?;
    let mut content = Vec::new();
    unsealed.content.read_to_end(&mut content).unwrap();
    Ok(content)
}

#[test]
fn each_recipient_opens_and_nobody_else_does() {
    let (one, two, other) = (identity(), identity(), identity());
    let content = vec![7; 200_000];
    let bytes = sealed(&seal_to(&[&one, &two]), &content);

    for key in [key_of(&one), key_of(&two)] {
        assert!(open(&bytes, Some(&key)).unwrap() == content);
    }
    let passphrase = Key::passphrase("long enough".into());
    let wrong = open(&bytes, Some(&key_of(&other))).unwrap_err();
    assert!(matches!(wrong, BackupError::WrongKey { .. }), "{wrong:?}");
    for key in [None, Some(&passphrase)] {
        let missing = open(&bytes, key).unwrap_err();
        assert!(
            missing.hint().unwrap().contains("--identity"),
            "{missing:?}"
        );
    }
}

#[test]
fn what_is_not_encrypted_passes() {
    assert_eq!(open(b"plain", None).unwrap(), b"plain");
    assert_eq!(open(b"", Some(&key_of(&identity()))).unwrap(), b"");
}

#[test]
fn a_broken_header_is_damage_and_costs_little() {
    let key = Key::passphrase("guess".into());
    let stanza = |work: &str| {
        let (salt, body, mac) = ["A".repeat(22), "A".repeat(43), "A".repeat(43)].into();
        let head = format!("age-encryption.org/v1\n-> scrypt {salt} {work}\n{body}\n--- {mac}\n");
        [head.as_bytes(), &[0; 64]].concat()
    };
    let endless = [MAGIC, b"v1\n", &b"-> a\n\n".repeat(500_000)].concat();
    let whole = sealed(&seal_to(&[&identity()]), b"content");
    for bytes in [
        &stanza("30")[..],
        &stanza("63"),
        &stanza("x"),
        &endless,
        &whole[..100],
        b"age-encryption.org/v9\n--- \n",
    ] {
        let started = Instant::now();
        let refused = open(bytes, Some(&key)).unwrap_err();
        assert!(
            matches!(refused, BackupError::Damaged { .. }),
            "{refused:?}"
        );
        assert!(started.elapsed().as_secs() < 10);
    }
}

#[test]
fn a_header_that_was_changed_does_not_match_its_sum() {
    let identity = identity();
    let whole = sealed(&seal_to(&[&identity]), b"content");
    let mac = whole.windows(5).position(|it| it == HEADER_END).unwrap() + 6;
    let mut changed = whole.clone();
    changed[mac] = if changed[mac] == b'A' { b'B' } else { b'A' };

    let refused = open(&changed, Some(&key_of(&identity))).unwrap_err();

    assert!(
        matches!(refused, BackupError::Damaged { .. }),
        "{refused:?}"
    );
}

#[test]
fn no_message_holds_a_key() {
    let identity = identity();
    let secret = text_of(&identity);
    let broken = &secret[..secret.len() - 3];
    let as_recipient = |text: &str| {
        let given = [("recipient 1".to_owned(), text)];
        Seal::to_recipients(given).unwrap_err()
    };
    let as_identity = |text: &str| {
        let files = [("keys".to_owned(), text)];
        Key::from_identity_files(files).unwrap_err()
    };
    for error in [
        as_recipient(&secret),
        as_recipient(&secret.to_lowercase()),
        as_recipient(broken),
        as_recipient(""),
        as_identity(broken),
        as_identity(&format!("# fine\n{secret}\n{broken}\n")),
        as_identity("# nothing\n"),
        as_identity("age-encryption.org/v1\n"),
    ] {
        let told = format!("{error} {error:?} {:?}", error.hint());
        let part = &secret[20..40];
        assert!(
            !told.contains(part) && !told.contains(&part.to_lowercase()),
            "{told}"
        );
    }
    let key = key_of(&identity);
    let passphrase = Seal::with_passphrase("canary".into());
    let told = format!("{key:?} {passphrase:?} {:?}", passphrase.key());
    assert!(
        !told.contains("canary") && !told.contains(&secret),
        "{told}"
    );
    assert!(
        as_identity(&format!("# fine\n\n{broken}\n"))
            .to_string()
            .contains("line 3")
    );
}

#[test]
fn recipients_are_bounded() {
    let text = identity().to_public().to_string();
    let many = |count| Seal::to_recipients((0..count).map(|it: usize| (it.to_string(), &text[..])));

    assert!(many(MAX_RECIPIENTS).is_ok());
    assert!(many(MAX_RECIPIENTS + 1).is_err());
    assert!(many(0).is_err());
    // All of them fit into a header that is read.
    let bytes = sealed(&many(MAX_RECIPIENTS).unwrap(), b"");
    assert!((bytes.len() as u64) < MAX_HEADER_BYTES / 2);
}
