//! Two processes and more occurrences than either can run alone; and kills.

use std::collections::BTreeSet;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use super::{HOUR_MS, at, every, home, now_ms, plant, runs, seen, witness};
use crate::support::rng::Rng;
use crate::support::sandbox::Sandbox;

/// Occurrences that each distance has due.
const OF_EACH: usize = 5;

/// Plants `count` due occurrences: half are instants, half are missed ones of distances that all run.
fn fill(home: &Sandbox, count: usize) -> BTreeSet<String> {
    let file = home.home().join("witness");
    let mut wanted = BTreeSet::new();
    let started = now_ms();
    for number in 0..count / 2 {
        let id = format!("at-{number}");
        let due = started - 60_000 - i64::try_from(number).unwrap();
        plant(home, &id, &witness(&file), &at(due));
        wanted.insert(format!("{id} {due}"));
    }
    for number in 0..count / 2 / OF_EACH {
        let id = format!("every-{number}");
        let of_each = i64::try_from(OF_EACH).unwrap();
        // The one after the last is half an hour away.
        let first = started - (of_each - 1) * HOUR_MS - HOUR_MS / 2;
        plant(home, &id, &witness(&file), &every(HOUR_MS, first));
        wanted.extend((0..of_each).map(|step| format!("{id} {}", first + step * HOUR_MS)));
    }
    wanted
}

fn tick(home: &Sandbox) -> Child {
    let mut command = home.command(&["cron", "tick", "--json"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Lets it run to its end, or to a kill after `life`.
fn until(child: &mut Child, life: Duration) -> bool {
    let since = Instant::now();
    while since.elapsed() < life {
        if child.try_wait().unwrap().is_some() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    false
}

/// Two processes race `count` occurrences; `kills` times one of them is killed, at any moment.
fn race(count: usize, kills: usize, seed: u64) {
    let home = home();
    let wanted = fill(&home, count);
    let mut rng = Rng::new(seed);
    let mut killed = 0;
    while killed < kills {
        let mut pair = [tick(&home), tick(&home)];
        let victim = usize::try_from(rng.below(2)).unwrap();
        let has_ended = until(&mut pair[victim], Duration::from_millis(5 + rng.below(250)));
        // The other goes on for a while without it, then it is killed too or has ended.
        let other_has = until(&mut pair[1 - victim], Duration::from_millis(rng.below(150)));
        killed += usize::from(!has_ended) + usize::from(!other_has);
        if has_ended && other_has {
            break;
        }
    }
    let last = [tick(&home), tick(&home)];
    for child in last {
        let output = child.wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        // 1 where it found runs of the killed.
        assert!(matches!(output.status.code(), Some(0 | 1)), "{told}");
    }
    // What a killed process had begun may end later than it; nothing waits for it.
    std::thread::sleep(Duration::from_millis(300));
    // Runs whose process died within the last moments of the other.
    let output = tick(&home).wait_with_output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 1)));

    let witnessed = seen(&home.home().join("witness"));
    let twice: Vec<_> = witnessed.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "seed {seed}: ran twice: {twice:?}");
    let recorded = runs(&home);
    let names: BTreeSet<String> = recorded.iter().map(|(name, _)| name.clone()).collect();
    assert_eq!(recorded.len(), names.len(), "seed {seed}: two runs of one");
    assert_eq!(names, wanted, "seed {seed}: each has a record");
    let mut lost = 0;
    for (name, status) in &recorded {
        match status.as_str() {
            "succeeded" => assert!(witnessed.contains_key(name), "seed {seed}: {name}"),
            "lost" => lost += 1,
            other => panic!("seed {seed}: {name} is {other}"),
        }
    }
    assert!(
        lost <= killed * 8,
        "seed {seed}: {lost} lost of {killed} kills"
    );
    println!("{count} occurrences, {killed} kills, {lost} lost with a record");
}

#[test]
fn two_processes_racing_run_each_occurrence_once() {
    race(200, 0, 1);
}

#[test]
fn killed_at_random_none_runs_twice_and_none_is_lost_without_a_record() {
    race(200, 6, 2);
}

#[test]
#[ignore = "minutes: 1,000 occurrences without kills, then with many"]
fn a_thousand_occurrences_and_many_kills() {
    race(1_000, 0, 3);
    for seed in 4..8 {
        race(1_000, 24, seed);
    }
}
