//! Archives made to do harm: refused by name, in little memory and time.

use std::fs;
use std::io::Write;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use zeroclaw::model::ErrorKind;

use super::home::{Home, damage_of, pack_agreeing, pack_raw, unpack, verify};

/// One tar entry as raw bytes, whatever a decent tool would say to it.
fn entry(kind: u8, name: &str, mode: u32, size: u64, content: &[u8]) -> Vec<u8> {
    let mut header = tar::Header::new_gnu();
    header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
    header.as_old_mut().linkflag = [kind];
    header.set_mode(mode);
    header.set_size(size);
    header.set_cksum();
    let mut bytes = header.as_bytes().to_vec();
    bytes.extend_from_slice(content);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

fn file(name: &str, content: &[u8]) -> Vec<u8> {
    entry(b'0', name, 0o600, content.len() as u64, content)
}

/// A good archive's members as raw entries, without the end.
async fn good(home: &Home) -> Vec<(String, Vec<u8>)> {
    let members = unpack(&home.archive().await);
    let members = members.into_iter();
    members
        .map(|(name, bytes)| (name.clone(), file(&name, &bytes)))
        .collect()
}

fn joined(entries: &[(String, Vec<u8>)]) -> Vec<u8> {
    entries.iter().flat_map(|it| it.1.clone()).collect()
}

type Edit = fn(&mut serde_json::Value);

const END: [u8; 1024] = [0; 1024];

#[tokio::test]
async fn what_is_no_listed_regular_file_is_refused() {
    let home = Home::with_two_agents().await;
    let good = joined(&good(&home).await);
    let bad = home.path("bad.tar.gz");
    let pax = |text: &str| {
        let line = format!(" {text}\n");
        let line = format!("{}{line}", line.len() + 2);
        entry(b'x', "pax", 0o600, line.len() as u64, line.as_bytes())
    };
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("traversal", file("../outside", b"x")),
        ("absolute", file("/etc/outside", b"x")),
        ("twice", file("config.toml", b"# settings\n")),
        ("symlink", entry(b'2', "link", 0o600, 0, b"")),
        ("hard link", entry(b'1', "link", 0o600, 0, b"")),
        ("character device", entry(b'3', "device", 0o600, 0, b"")),
        ("block device", entry(b'4', "device", 0o600, 0, b"")),
        ("folder", entry(b'5', "folder", 0o700, 0, b"")),
        ("pipe", entry(b'6', "pipe", 0o600, 0, b"")),
        ("sparse", entry(b'S', "sparse", 0o600, 0, b"")),
        ("global attributes", entry(b'g', "pax", 0o600, 0, b"")),
        ("setuid", entry(b'0', "config.toml", 0o4755, 0, b"")),
        ("size attribute", pax("size=999999999")),
        ("link attribute", pax("linkpath=/etc/passwd")),
        (
            "broken attributes",
            entry(b'x', "pax", 0o600, 9, b"nonsense\n"),
        ),
        ("endless name", entry(b'L', "name", 0o600, 1 << 40, b"")),
        (
            "endless attributes",
            entry(b'x', "pax", 0o600, 1 << 40, b""),
        ),
        (
            "endless member",
            entry(b'0', "state/big", 0o600, 1 << 50, b""),
        ),
        ("name of control characters", file("a\u{1b}[2Jb", b"x")),
        ("broken sum", {
            let mut bytes = file("config.toml", b"x");
            bytes[0] ^= 1;
            bytes
        }),
    ];
    for (label, extra) in cases {
        pack_raw(&bad, &[&good[..], &extra, &END].concat());

        let (member, reason) = damage_of(&bad).await;

        let text = format!("{member}: {reason}");
        assert!(!text.chars().any(char::is_control), "{label}: {text}");
    }
    assert!(!home.path("outside").exists());
}

#[tokio::test]
async fn what_follows_the_end_is_refused() {
    let home = Home::with_two_agents().await;
    let good = joined(&good(&home).await);
    let bad = home.path("bad.tar.gz");

    pack_raw(&bad, &[&good[..], &END, &[0; 9216]].concat());
    verify(&bad).await.unwrap();

    pack_raw(&bad, &[&good[..], &END, &[1; 512]].concat());
    assert!(damage_of(&bad).await.1.contains("follows the end"));

    pack_raw(&bad, &good);
    assert!(damage_of(&bad).await.1.contains("cut short"));

    pack_raw(&bad, &[&good[..], &END].concat());
    let mut file = fs::OpenOptions::new().append(true).open(&bad).unwrap();
    file.write_all(b"and more than a header").unwrap();
    assert!(damage_of(&bad).await.1.contains("follows the end"));
}

#[tokio::test]
async fn a_bomb_is_refused_before_it_grows() {
    let home = Home::with_two_agents().await;
    let good = joined(&good(&home).await);
    let bad = home.path("bad.tar.gz");
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(&good).unwrap();
    // A gigabyte of nothing behind the end: a few megabytes of file.
    let nothing = vec![0; 1 << 20];
    for _ in 0..1024 {
        gzip.write_all(&nothing).unwrap();
    }
    fs::write(&bad, gzip.finish().unwrap()).unwrap();

    let begun = Instant::now();
    let (_, reason) = damage_of(&bad).await;

    assert!(reason.contains("inflates to more"), "{reason}");
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_list_with_bad_paths_or_places_is_refused() {
    let home = Home::with_two_agents().await;
    let members = unpack(&home.archive().await);
    let bad = home.path("bad.tar.gz");
    let paths = [
        "../outside",
        "/etc/passwd",
        "state/daemon.lock",
        "state/restored/x",
        "state/undone/x",
        "CONFIG.toml",
        "state/state.sqlite-wal",
        "state/state.sqlite/x",
        "state/state.sqlite",
    ];
    for path in paths {
        let mut members = members.clone();
        pack_agreeing(&bad, &mut members, |manifest| {
            let file = serde_json::json!({
                "kind": "file", "archive_path": path, "bytes": 0, "mode": 384,
                "sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            });
            manifest["members"].as_array_mut().unwrap().push(file);
        });
        damage_of(&bad).await;
    }
    let wrong = [
        ("kind", "config"),
        ("role", "global"),
        ("agent_id", "borea"),
        ("sha256", "00"),
    ];
    for (key, value) in wrong {
        let mut members = members.clone();
        pack_agreeing(&bad, &mut members, |manifest| {
            let listed = manifest["members"].as_array_mut().unwrap();
            let atlas = listed
                .iter_mut()
                .find(|it| it["agent_id"] == "atlas")
                .unwrap();
            atlas[key] = value.into();
        });
        damage_of(&bad).await;
    }
}

#[tokio::test]
async fn c60_a_newer_format_and_a_newer_schema_are_told_from_damage() {
    let home = Home::with_two_agents().await;
    let members = unpack(&home.archive().await);
    let bad = home.path("newer.tar.gz");
    let edits: [(&str, Edit); 2] = [
        ("manifest.json", |manifest| {
            manifest["format_version"] = 3.into()
        }),
        ("state/state.sqlite", |manifest| {
            manifest["members"][0]["schema_version"] = 99.into();
        }),
    ];
    for (name, edit) in edits {
        pack_agreeing(&bad, &mut members.clone(), edit);

        let refused = verify(&bad).await.unwrap_err();
        let restored = home.restore(&bad, &home.path("two")).await.unwrap_err();

        assert_eq!(refused.kind(), ErrorKind::NewerSchema);
        assert!(refused.to_string().contains(name), "{refused}");
        assert_eq!(restored.kind(), ErrorKind::NewerSchema);
        assert!(!home.path("two").exists());
    }
}

#[tokio::test]
async fn long_names_of_other_tools_are_taken() {
    let home = Home::with_two_agents().await;
    let deep = home
        .root()
        .join("agents/atlas/workspace")
        .join("d".repeat(120))
        .join("f".repeat(120));
    fs::create_dir_all(deep.parent().unwrap()).unwrap();
    fs::write(&deep, "deep").unwrap();
    let options = zeroclaw::service::backup::CreateOptions {
        include_workspace: true,
        ..Default::default()
    };
    let report = home.create(options).await.unwrap();
    let pax = home.path("pax.tar.gz");
    let mut entries: Vec<u8> = Vec::new();
    for (name, bytes) in unpack(&report.archive) {
        let record = format!(" path={name}\n");
        let length = (record.len() + 2..).find(|all| all.to_string().len() + record.len() == *all);
        let record = format!("{}{record}", length.unwrap());
        entries.extend(entry(
            b'x',
            "pax",
            0o600,
            record.len() as u64,
            record.as_bytes(),
        ));
        entries.extend(file("short", &bytes));
    }

    pack_raw(&pax, &[&entries[..], &END].concat());

    verify(&report.archive).await.unwrap();
    verify(&pax).await.unwrap();
    home.restore(&pax, &home.path("two")).await.unwrap();
    let restored = home
        .path("two")
        .join(deep.strip_prefix(home.root()).unwrap());
    assert_eq!(fs::read(restored).unwrap(), b"deep");
}
