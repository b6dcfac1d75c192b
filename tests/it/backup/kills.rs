//! SIGKILL at any moment of a restore over a live root whose last process was killed itself: all old or all new.
//!
//! The points of [`super::kill`] are chosen; here the clock chooses, in the program as it is shipped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::home::{Home, add_memories, add_task, dumps, open};
use crate::support::legacy::copy_tree;
use crate::support::rng::Rng;
use crate::support::sandbox::Sandbox;
use crate::support::sqlite::{block_on, sidecar};

type Dumps = std::collections::BTreeMap<String, String>;

/// Any command finishes or takes back what a kill left.
const LOOKS: [&[&str]; 5] = [
    &["status"],
    &["agents", "list"],
    &["sessions", "list"],
    &["backup", "list"],
    &["db", "check"],
];

/// What a round ended with.
struct Outcome {
    /// Whether the kill fell between the first and the last write of the restore.
    was_cut: bool,
    /// Whether all is new in the end.
    is_new: bool,
}

/// A crashed root, the archive of what it was before, and what both say.
struct Stage {
    place: Sandbox,
    archive: PathBuf,
    crashed: PathBuf,
    old: Dumps,
    new: Dumps,
    /// How long a restore takes, and how long after its journal appears.
    whole: Duration,
    after_journal: Duration,
}

impl Stage {
    fn set() -> Self {
        let place = Sandbox::in_memory();
        let home = block_on(Home::with_two_agents());
        let crashed = place.home().join("crashed");
        let archive = place.home().join("archive.tar.gz");
        let new_root = place.home().join("new");
        block_on(async {
            let made = home.archive().await;
            fs::copy(made, &archive).unwrap();
            let importer = open(&home.root()).await;
            let id = zeroclaw::model::AgentId::new("ceto").unwrap();
            let active = zeroclaw::model::AgentStatus::Active;
            importer.ensure_agent(&id, active, None).await.unwrap();
            add_memories(&importer, "ceto", 2).await;
            add_task(&importer, "second").await;
            fs::write(home.root().join("config.toml"), "# later settings\n").unwrap();
            // Taken while its writer lives: the last commits are in the logs alone.
            copy_tree(&home.root(), &crashed);
            importer.close().await;
            home.restore(&archive, &new_root).await.unwrap();
        });
        let log = sidecar(&crashed.join("state/state.sqlite"), "-wal");
        assert!(
            fs::metadata(log).unwrap().len() > 0,
            "nothing was left in the log"
        );
        let mut stage = Self {
            old: dumps(&crashed),
            new: dumps(&new_root),
            place,
            archive,
            crashed,
            whole: Duration::ZERO,
            after_journal: Duration::ZERO,
        };
        assert_ne!(stage.old, stage.new);
        stage.measure();
        stage
    }

    fn measure(&mut self) {
        let root = self.root("measured");
        let began = Instant::now();
        let mut child = self.restore(&root);
        wait_for_journal(&root, &mut child);
        let journal = began.elapsed();
        assert!(child.wait().unwrap().success());
        self.whole = began.elapsed();
        self.after_journal = self.whole.saturating_sub(journal);
        assert_eq!(dumps(&root), self.new);
        fs::remove_dir_all(root).unwrap();
    }

    /// A crashed root of its own.
    fn root(&self, name: &str) -> PathBuf {
        let root = self.place.home().join(name);
        copy_tree(&self.crashed, &root);
        root
    }

    fn command(&self, root: &Path, args: &[&str]) -> Command {
        let args = [&["--config-dir", root.to_str().unwrap()], args].concat();
        let mut command = self.place.command(&args);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn restore(&self, root: &Path) -> Child {
        let archive = self.archive.to_str().unwrap();
        let mut command = self.command(root, &["backup", "restore", archive, "--yes"]);
        command.spawn().unwrap()
    }

    /// One kill, or two.
    fn round(&self, number: usize, rng: &mut Rng) -> Outcome {
        let root = self.root(&format!("root {number}"));
        let mut child = self.restore(&root);
        // Half of the kills are kept for the short time in which files move.
        let span = if number.is_multiple_of(2) {
            self.whole
        } else {
            wait_for_journal(&root, &mut child);
            self.after_journal
        };
        kill_within(child, span, rng);
        let was_cut = root.join("state/restore.journal").exists();
        let look = LOOKS[usize::try_from(rng.below(LOOKS.len() as u64)).unwrap()];
        if number.is_multiple_of(3) {
            // Who cleans up may be killed as well.
            let child = self.command(&root, look).spawn().unwrap();
            kill_within(child, self.after_journal, rng);
        }
        let ended = self.command(&root, look).status().unwrap();
        assert_eq!(ended.code(), Some(0), "{look:?}");

        let found = dumps(&root);
        let is_new = found == self.new;
        assert!(
            is_new || found == self.old,
            "neither old nor new: {found:#?}"
        );
        let config = fs::read_to_string(root.join("config.toml")).unwrap();
        assert_eq!(
            config == "# settings\n",
            is_new,
            "the configuration is of the other state"
        );
        let left: Vec<String> = fs::read_dir(root.join("state"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.starts_with(".restore") || name.ends_with(".journal"))
            .collect();
        assert_eq!(left, Vec::<String>::new());
        let aside: Vec<PathBuf> = fs::read_dir(root.join("state/restored"))
            .map(|entries| entries.map(|entry| entry.unwrap().path()).collect())
            .unwrap_or_default();
        if is_new {
            assert_eq!(aside.len(), 1);
            assert_eq!(
                dumps(&aside[0]),
                self.old,
                "the old state cannot be had back"
            );
        } else {
            assert_eq!(aside, Vec::<PathBuf>::new());
        }
        let check = self.command(&root, &["db", "check"]).status().unwrap();
        assert_eq!(check.code(), Some(0));
        fs::remove_dir_all(root).unwrap();
        Outcome { was_cut, is_new }
    }
}

fn wait_for_journal(root: &Path, child: &mut Child) {
    let journal = root.join("state/restore.journal");
    while !journal.exists() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// SIGKILL at a random moment of `span`, or a little later.
fn kill_within(mut child: Child, span: Duration, rng: &mut Rng) {
    let micros = u64::try_from(span.as_micros()).unwrap();
    let wait = rng.below(micros + micros / 10 + 1);
    std::thread::sleep(Duration::from_micros(wait));
    // It may have come to its end already.
    let _ = child.kill();
    child.wait().unwrap();
}

fn kill_at_random(rounds: usize, seed: u64) -> Vec<Outcome> {
    let stage = Stage::set();
    let mut rng = Rng::new(seed);
    let mut outcomes = Vec::new();
    for number in 0..rounds {
        println!("seed {seed}, round {number}");
        outcomes.push(stage.round(number, &mut rng));
    }
    let new = outcomes.iter().filter(|it| it.is_new).count();
    let cut = outcomes.iter().filter(|it| it.was_cut).count();
    println!(
        "{rounds} kills of a restore of {:?}: {cut} in the middle; {} all old, {new} all new",
        stage.whole,
        rounds - new
    );
    outcomes
}

#[test]
fn a_kill_at_any_moment_leaves_all_old_or_all_new() {
    kill_at_random(12, 41);
}

/// About twenty seconds.
#[test]
#[ignore = "long: a hundred kills"]
fn a_hundred_kills_leave_all_old_or_all_new() {
    let outcomes = kill_at_random(100, 42);

    // The kills did not all come before or after the work.
    let cut: Vec<bool> = outcomes
        .iter()
        .filter(|it| it.was_cut)
        .map(|it| it.is_new)
        .collect();
    assert!(cut.contains(&true) && cut.contains(&false));
}
