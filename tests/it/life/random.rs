//! Five names, steps at random, kills in between: every row belongs to an agent that is there or to an archive, and what
//! comes back says what it said.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::home::{global, traces};
use crate::support::dump::{Skip, logical_dump};
use crate::support::rng::Rng;
use crate::support::sandbox::{Ran, Sandbox};
use crate::support::sqlite::{change, number, rows};

const NAMES: [&str; 5] = ["atlas", "birch", "ceto", "delos", "elm"];
/// Steps of a run: enough that each kind comes several times.
const STEPS: u32 = 40;
/// Where a step may be killed; most are of one kind of step, and a step that does not come there is not killed.
const POINTS: [&str; 18] = [
    "rename.journalled",
    "rename.moved",
    "rename.copies",
    "rename.tier",
    "rename.rows",
    "backup.captured",
    "backup.packed",
    "delete.journalled",
    "delete.rows",
    "delete.folder",
    "delete.folder:2",
    "adopt.staging",
    "adopt.staged",
    "adopt.journalled",
    "restore.swap",
    "revive.rows",
    "restore.registered",
    "restore.cleared",
];
/// Tables that name an agent, in which these agents have rows.
const TABLES: [&str; 5] = [
    "agent_databases",
    "task_runs",
    "cron_jobs",
    "usage_costs",
    "diagnostic_events",
];

/// What an agent says of itself, with its name masked.
type Said = String;

/// What there should be.
#[derive(Default)]
struct Model {
    agents: BTreeMap<&'static str, Said>,
    // Archives of deleted agents that have not come back, and the names they had.
    archives: Vec<(String, &'static str, Said)>,
    made: u32,
}

#[test]
fn agents_come_go_and_come_back_at_random_with_kills_in_between() {
    let seed = std::env::var("ZEROCLAW_SEED").ok();
    let seed = seed
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(20_261_201);
    eprintln!("seed {seed}");
    let mut rng = Rng::new(seed);
    let home = Sandbox::new();
    home.zeroclaw(&["init"]).exits(0);
    let mut model = Model::default();

    for step in 0..STEPS {
        let what = model.step(&home, &mut rng);
        eprintln!("{step}: {what}");
        model.agrees(&home, &what);
    }
    for (archive, name, said) in std::mem::take(&mut model.archives) {
        if !model.agents.contains_key(name) {
            home.zeroclaw(&["agents", "restore", &archive, "--enable-cron", "--yes"])
                .exits(0);
            assert_eq!(said_of(&home.root(), name), said, "{archive}");
            model.agents.insert(name, said);
        }
    }
    model.agrees(&home, "the end");
    home.zeroclaw(&["db", "check"]).exits(0);
}

impl Model {
    /// Does one step, killed somewhere or not, and then looks what became of it.
    fn step(&mut self, home: &Sandbox, rng: &mut Rng) -> String {
        let free: Vec<_> = NAMES
            .into_iter()
            .filter(|name| !self.agents.contains_key(name))
            .collect();
        let there: Vec<_> = self.agents.keys().copied().collect();
        match rng.below(4) {
            0 if !there.is_empty() && !free.is_empty() => {
                let (old, new) = (pick(rng, &there), pick(rng, &free));
                let what = attempt(home, rng, &["agents", "rename", old, new]);
                if is_there(home, new) {
                    let said = self.agents.remove(old).unwrap();
                    self.agents.insert(new, said);
                }
                what
            }
            1 if !there.is_empty() => {
                let name = pick(rng, &there);
                let known = archives_of(home);
                let what = attempt(home, rng, &["agents", "delete", name, "--yes"]);
                if !is_there(home, name) {
                    let said = self.agents.remove(name).unwrap();
                    let new = archives_of(home).into_iter();
                    let mut new = new.filter(|archive| !known.contains(archive));
                    let archive = new.next().expect("what was deleted has an archive");
                    self.archives.push((archive, name, said));
                }
                what
            }
            2 if !self.archives.is_empty() && !free.is_empty() => {
                let at = usize::try_from(rng.below(self.archives.len() as u64)).unwrap();
                let name = pick(rng, &free);
                let archive = self.archives[at].0.clone();
                let args = [
                    "agents",
                    "restore",
                    &archive,
                    "--as",
                    name,
                    "--enable-cron",
                    "--yes",
                ];
                let what = attempt(home, rng, &args);
                if is_there(home, name) {
                    let (_, _, said) = self.archives.remove(at);
                    self.agents.insert(name, said);
                }
                what
            }
            _ if !free.is_empty() => {
                let name = pick(rng, &free);
                home.zeroclaw(&["agents", "create", name]).exits(0);
                self.fill(home, name);
                self.agents.insert(name, said_of(&home.root(), name));
                format!("create {name}")
            }
            _ => "nothing".to_owned(),
        }
    }

    /// Gives an agent rows of its own in both tiers, and a file.
    fn fill(&mut self, home: &Sandbox, name: &str) {
        self.made += 1;
        let no = self.made;
        let root = home.root();
        let note = format!("note {no}");
        home.zeroclaw(&["memory", "store", "--agent", name, "harbour", &note])
            .exits(0);
        change(
            &global(&root),
            &format!(
                "INSERT INTO task_runs (task_id, owner_kind, agent_id, status, created_at_ms)
                     VALUES ('task-{no}', 'task', '{name}', 'succeeded', {no});
                 INSERT INTO goal_tasks (task_id, objective) VALUES ('task-{no}', 'goal {no}');
                 INSERT INTO usage_costs (cost_id, agent_id, model, input_tokens, output_tokens, total_tokens, cost_usd,
                         recorded_at_ms)
                     VALUES ('cost-{no}', '{name}', 'm', 1, 2, 3, 0.5, {no});
                 INSERT INTO diagnostic_events (scope, event_key, created_at_ms, level, agent_id, payload_json)
                     VALUES ('log', 'event-{no}', {no}, 'info', '{name}', '{{}}');"
            ),
        );
        let add = [
            "cron", "add", "--agent", name, "--every", "1h", "--shell", "true",
        ];
        home.zeroclaw(&add).exits(0);
        let workspace = root.join(format!("agents/{name}/workspace"));
        fs::create_dir_all(&workspace).unwrap();
        fs::write(workspace.join("file"), note).unwrap();
    }

    /// Holds the root against what there should be.
    fn agrees(&self, home: &Sandbox, what: &str) {
        let root = home.root();
        for name in NAMES {
            match self.agents.get(name) {
                Some(said) => assert_eq!(said_of(&root, name), *said, "{name} after {what}"),
                None => assert_eq!(traces(&root, name), Vec::<String>::new(), "after {what}"),
            }
        }
        let registered = number(&global(&root), "SELECT count(*) FROM agent_databases");
        assert_eq!(
            usize::try_from(registered).unwrap(),
            self.agents.len(),
            "after {what}"
        );
        // What was spent is spent, whoever is gone; of everything else there is as much as there are agents.
        let spent = number(&global(&root), "SELECT count(*) FROM usage_costs");
        assert_eq!(spent, i64::from(self.made), "after {what}");
        for table in ["task_runs", "goal_tasks", "cron_jobs", "diagnostic_events"] {
            let held = number(&global(&root), &format!("SELECT count(*) FROM {table}"));
            assert_eq!(held, registered, "{table} after {what}");
        }
        assert!(!root.join("state/restore.journal").exists(), "after {what}");
        let left = fs::read_dir(root.join("state")).unwrap();
        let left = left.filter(|entry| {
            let name = entry.as_ref().unwrap().file_name();
            name.to_string_lossy().starts_with(".restore")
        });
        assert_eq!(left.count(), 0, "after {what}");
    }
}

fn pick<'a>(rng: &mut Rng, from: &[&'a str]) -> &'a str {
    from[usize::try_from(rng.below(from.len() as u64)).unwrap()]
}

/// Runs a step that may be killed, and the recovery likewise.
fn attempt(home: &Sandbox, rng: &mut Rng, args: &[&str]) -> String {
    let mut what = args[1..].join(" ");
    for args in [args, &["agents", "list"]] {
        let mut command = home.command(args);
        if rng.below(3) > 0 {
            let point = pick(rng, &POINTS);
            command.env("ZEROCLAW_FAULT", point);
            let ran = Ran::of(command);
            if ran.code().is_none() {
                what.push_str(&format!(", killed at {point}"));
                continue;
            }
            assert_eq!(ran.code(), Some(0), "{}", ran.told());
        } else {
            Ran::of(command).exits(0);
        }
    }
    home.zeroclaw(&["agents", "list"]).exits(0);
    what
}

fn is_there(home: &Sandbox, name: &str) -> bool {
    home.zeroclaw(&["agents", "show", name]).code() == Some(0)
}

fn archives_of(home: &Sandbox) -> Vec<String> {
    let Ok(entries) = fs::read_dir(home.root().join("backups")) else {
        return Vec::new();
    };
    let paths = entries.map(|entry| entry.unwrap().path());
    let paths = paths.filter(|path| path.extension().is_some_and(|it| it == "gz"));
    paths
        .map(|path| path.to_str().unwrap().to_owned())
        .collect()
}

/// Everything an agent has in both tiers, and its file, without its name.
fn said_of(root: &Path, name: &str) -> Said {
    let skip = Skip {
        tables: &["state_leases"],
        columns: &[],
    };
    let mut said = logical_dump(
        &root.join(format!("agents/{name}/agent/agent.sqlite")),
        skip,
    );
    for table in TABLES {
        let sql = format!("SELECT * FROM {table} WHERE agent_id = '{name}' ORDER BY 2");
        said += &format!("{:?}\n", rows(&global(root), &sql));
    }
    let goals = "SELECT g.* FROM goal_tasks g JOIN task_runs t ON t.task_id = g.task_id";
    let goals = format!("{goals} WHERE t.agent_id = '{name}'");
    said += &format!("{:?}\n", rows(&global(root), &goals));
    let file = root.join(format!("agents/{name}/workspace/file"));
    said += &fs::read_to_string(file).unwrap();
    said.replace(&format!("\"{name}\""), "<agent>")
        .replace(&format!("agents/{name}/"), "agents/<agent>/")
}
