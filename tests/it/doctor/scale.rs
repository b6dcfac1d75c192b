//! Time and memory grow with the input, and memory not with any one file.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::state::State;
use crate::support::legacy::LegacyInstall;
use crate::support::sandbox::Sandbox;
use crate::support::scale::Scale;

const CONFIG: &str = "schema_version = 3\n[agents.atlas]\nchannels = ['telegram.main']\n";

/// What a run took.
struct Took {
    time: Duration,
    peak_kib: u64,
    written: u64,
}

/// Imports what is in HOME, looking at the process as it goes.
fn import(home: &Sandbox) -> Took {
    let started = Instant::now();
    let mut command = home.command(&["doctor", "--fix"]);
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let process = Path::new("/proc").join(child.id().to_string());
    let (mut peak_kib, mut written) = (0, 0);
    let status = loop {
        peak_kib = field(&process.join("status"), "VmHWM:").unwrap_or(peak_kib);
        written = field(&process.join("io"), "write_bytes:").unwrap_or(written);
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert!(status.success(), "{status}");
    Took {
        time: started.elapsed(),
        peak_kib,
        written,
    }
}

fn field(file: &Path, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

fn tell(what: &str, took: &Took, input: usize) {
    println!(
        "{what}: {:?}, peak {} KiB, {} bytes written for {input} of input",
        took.time, took.peak_kib, took.written
    );
}

#[test]
fn c19_ten_times_the_files_take_less_than_fifteen_times_the_time() {
    let took = [60, 600].map(|files| {
        let home = Sandbox::new();
        let install = LegacyInstall::new(home.root());
        install.config(CONFIG);
        let written = install.many_files(
            files,
            20,
            Scale {
                text_bytes: 150,
                ..Scale::default()
            },
        );

        let took = import(&home);

        tell(&format!("{files} files"), &took, written.content_bytes);
        assert_eq!(State::of(home.root()).sessions().len(), files);
        took
    });

    assert!(
        took[1].time < took[0].time * 15,
        "{:?} to {:?}",
        took[0].time,
        took[1].time
    );
    assert!(took[1].peak_kib < 300 * 1024, "{} KiB", took[1].peak_kib);
}

/// Bytes of the sources below a root.
fn input(root: &Path) -> u64 {
    let files = walkdir::WalkDir::new(root.join("data")).into_iter();
    let meta = files.map(|entry| entry.unwrap().metadata().unwrap());
    meta.filter(std::fs::Metadata::is_file)
        .map(|meta| meta.len())
        .sum()
}

#[test]
fn c19_files_of_13_kilobytes_write_less_than_five_times_their_size() {
    let home = Sandbox::new();
    let install = LegacyInstall::new(home.root());
    install.config(CONFIG);
    install.many_files(500, 60, Scale::default());
    let input = input(&home.root());

    let took = import(&home);

    tell("500 files", &took, input.try_into().unwrap());
    if took.written == 0 {
        return println!("skipped, this file system counts no writes");
    }
    assert!(
        took.written < 5 * input,
        "{} of {input}: {:.1} ×",
        took.written,
        took.written as f64 / input as f64
    );
}

#[test]
fn c19_a_large_store_comes_in_in_bounded_memory() {
    let home = Sandbox::new();
    let install = LegacyInstall::new(home.root());
    install.config(CONFIG);
    let written = install.many_sessions(
        200,
        100,
        Scale {
            text_bytes: 400,
            ..Scale::default()
        },
    );

    let took = import(&home);

    tell("20,000 messages", &took, written.content_bytes);
    let messages: usize = State::of(home.root())
        .sessions()
        .iter()
        .map(|session| session.2)
        .sum();
    assert_eq!(messages, 20_000);
    assert!(took.peak_kib < 300 * 1024, "{} KiB", took.peak_kib);
}

#[test]
fn c19_one_long_file_comes_in_in_bounded_memory() {
    let home = Sandbox::new();
    let install = LegacyInstall::new(home.root());
    install.config(CONFIG);
    let written = install.many_files(
        1,
        20_000,
        Scale {
            text_bytes: 400,
            ..Scale::default()
        },
    );

    let took = import(&home);

    tell("20,000 lines", &took, written.content_bytes);
    assert!(took.peak_kib < 300 * 1024, "{} KiB", took.peak_kib);
}
