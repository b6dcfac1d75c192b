//! The index over memory files follows the files, and can be searched all the while.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use zeroclaw::model::{PageLimit, Reindexed};
use zeroclaw::service::{MAX_MEMORY_FILE_BYTES, Request, Response, Service};

use super::{NOW_MS, agent, home, open};
use crate::cli::json::is_documented;
use crate::support::rng::Rng;
use crate::support::sandbox::Sandbox;
use crate::support::sqlite::{self, block_on, check_index};

const ROWS: &str = "SELECT s.path, s.hash, s.size_bytes, c.id, c.start_line, c.end_line, c.category, c.key, c.text
    FROM memory_index_sources s LEFT JOIN memory_index_chunks c USING (source_no) ORDER BY s.path, c.start_line";

fn workspace(sandbox: &Sandbox) -> PathBuf {
    sandbox.root().join("agents/atlas/workspace")
}

fn write(folder: &Path, place: &str, text: &str) {
    let path = folder.join(place);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn database(sandbox: &Sandbox) -> PathBuf {
    sandbox.root().join("agents/atlas/agent/agent.sqlite")
}

async fn reindex(service: &Service, is_rebuild: bool) -> Reindexed {
    let atlas = agent("atlas");
    let done = service.reindex_memory(Some(&atlas), is_rebuild).await;
    done.unwrap().remove(0)
}

async fn found(service: &Service, text: &str) -> Vec<String> {
    let request = Request::MemoryIndexed {
        text: text.to_owned(),
        agent: Some(agent("atlas")),
        limit: PageLimit::from(1_000),
    };
    let Response::Indexed(hits) = service.dispatch(request).await.unwrap() else {
        panic!("no hits");
    };
    hits.into_iter().map(|hit| hit.path).collect()
}

#[test]
fn only_files_that_changed_are_written_and_what_is_gone_goes() {
    let sandbox = block_on(home(""));
    let folder = workspace(&sandbox);
    write(&folder, "MEMORY.md", "# Core\n- **boat**: is blue\n");
    write(&folder, "memory/2026-08-01.md", "- low tide\n");
    write(&folder, "memory/archive/old/2025.md", "- high tide\n");
    write(&folder, "memory/no.txt", "- no tide\n");
    write(&folder, "notes.md", "- no tide either\n");
    block_on(async {
        let service = open(&sandbox, NOW_MS).await;
        let first = reindex(&service, false).await;
        assert_eq!((first.files, first.indexed, first.entries), (3, 3, 3));
        assert_eq!(found(&service, "tide").await.len(), 2);
        let again = reindex(&service, false).await;
        assert_eq!((again.files, again.indexed, again.removed), (3, 0, 0));

        write(&folder, "memory/2026-08-01.md", "- slack water\n");
        std::fs::remove_file(folder.join("memory/archive/old/2025.md")).unwrap();
        let third = reindex(&service, false).await;
        assert_eq!((third.files, third.indexed, third.removed), (2, 1, 1));
        assert_eq!(found(&service, "tide").await.len(), 0);
        assert_eq!(
            found(&service, "slack").await,
            ["agents/atlas/workspace/memory/2026-08-01.md"]
        );
        // A disk that is away for a while takes nothing with it.
        std::fs::rename(&folder, folder.with_file_name("away")).unwrap();
        let away = reindex(&service, false).await;
        assert_eq!((away.has_workspace, away.removed), (false, 0));
        assert_eq!(found(&service, "slack").await.len(), 1);
        service.close().await;
    });
    let changes = "SELECT revision FROM memory_index_state";
    assert_eq!(sqlite::number(&database(&sandbox), changes), 5);
    check_index(&database(&sandbox), "memory_index_chunks_fts").unwrap();
}

#[test]
fn what_grows_by_increments_equals_what_is_built_from_nothing() {
    const SEED: u64 = 0x1dec_5001;
    let mut rng = Rng::new(SEED);
    let (grown, fresh) = (block_on(home("")), block_on(home("")));
    block_on(async {
        let service = open(&grown, NOW_MS).await;
        for _ in 0..25 {
            for _ in 0..4 {
                let place = match rng.below(6) {
                    0 => "MEMORY.md".to_owned(),
                    n => format!("memory/{}{n}.md", if n > 3 { "deep/er/" } else { "" }),
                };
                if rng.below(4) == 0 {
                    let _ = std::fs::remove_file(workspace(&grown).join(place));
                    continue;
                }
                let end = if rng.below(2) == 0 { "\r\n" } else { "\n" };
                let lines = (0..rng.below(5)).map(|_| match rng.below(4) {
                    0 => "# heading".to_owned(),
                    1 => String::new(),
                    n => format!("- **k{n}**: tide {}", rng.below(6)),
                });
                let text = lines.collect::<Vec<_>>().join(end);
                write(&workspace(&grown), &place, &text);
            }
            reindex(&service, false).await;
        }
        service.close().await;
        copy(&workspace(&grown), &workspace(&fresh));
        let service = open(&fresh, NOW_MS).await;
        reindex(&service, true).await;
        service.close().await;
    });

    let rows = |sandbox| sqlite::rows(&database(sandbox), ROWS);
    let expected = rows(&fresh);
    assert!(!expected.is_empty(), "seed {SEED:#x}");
    assert_eq!(rows(&grown), expected, "seed {SEED:#x}");
    block_on(async {
        let service = open(&grown, NOW_MS).await;
        let report = reindex(&service, true).await;
        assert_eq!(report.indexed, report.files);
        service.close().await;
    });
    assert_eq!(rows(&grown), expected, "seed {SEED:#x}");
    check_index(&database(&grown), "memory_index_chunks_fts").unwrap();
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for item in std::fs::read_dir(from).unwrap() {
        let item = item.unwrap();
        let target = to.join(item.file_name());
        if item.path().is_dir() {
            copy(&item.path(), &target);
        } else {
            std::fs::copy(item.path(), target).unwrap();
        }
    }
}

/// A workspace of this many files, each with one line about the tide.
fn fill(sandbox: &Sandbox, files: usize) {
    for number in 0..files {
        let place = format!("memory/{number:03}.md");
        let text = format!("- tide number {number}\n{}", "- filler\n".repeat(50));
        write(&workspace(sandbox), &place, &text);
    }
}

#[test]
fn a_search_during_a_rebuild_and_after_an_aborted_one_gives_all() {
    const FILES: usize = 60;
    let sandbox = block_on(home(""));
    fill(&sandbox, FILES);
    block_on(async {
        let service = Arc::new(open(&sandbox, NOW_MS).await);
        reindex(&service, false).await;
        let is_done = Arc::new(AtomicBool::new(false));
        let rebuild = tokio::spawn({
            let (service, is_done) = (Arc::clone(&service), Arc::clone(&is_done));
            async move {
                for _ in 0..3 {
                    reindex(&service, true).await;
                }
                is_done.store(true, Ordering::Release);
            }
        });
        let mut searches = 0;
        while !is_done.load(Ordering::Acquire) {
            assert_eq!(found(&service, "tide number").await.len(), FILES);
            searches += 1;
            tokio::task::yield_now().await;
        }
        rebuild.await.unwrap();
        assert!(searches > 0);

        // Cut off at any point: the future is dropped where it stands.
        for after_ms in [0, 1, 3, 10, 30] {
            let wait = std::time::Duration::from_millis(after_ms);
            let _ = tokio::time::timeout(wait, reindex(&service, true)).await;
            assert_eq!(found(&service, "tide number").await.len(), FILES);
        }
        Arc::into_inner(service).unwrap().close().await;
    });
    check_index(&database(&sandbox), "memory_index_chunks_fts").unwrap();
}

#[test]
fn drifted_words_are_repaired() {
    let sandbox = block_on(home(""));
    fill(&sandbox, 3);
    let run = |args: &[&str]| {
        let args = [&["memory", "reindex", "--agent", "atlas", "--json"], args].concat();
        let report = sandbox.zeroclaw(&args).exits(0).json();
        is_documented(&args, &report);
        report[0].clone()
    };
    assert_eq!(run(&[])["indexed"], 3);
    sqlite::change(
        &database(&sandbox),
        "UPDATE memory_index_chunks SET text = 'drifted' WHERE text LIKE '%number 1'",
    );
    check_index(&database(&sandbox), "memory_index_chunks_fts").unwrap_err();

    assert_eq!(run(&[])["words_rebuilt"], true);

    check_index(&database(&sandbox), "memory_index_chunks_fts").unwrap();
    assert_eq!(run(&[])["words_rebuilt"], false);
    // What the rows themselves lost, a rebuild brings back from the files.
    assert_eq!(run(&["--rebuild"])["indexed"], 3);
    let lost = "SELECT count(*) FROM memory_index_chunks WHERE text LIKE '%number 1'";
    assert_eq!(sqlite::number(&database(&sandbox), lost), 1);
}

#[test]
fn links_out_of_a_workspace_and_files_too_large_are_left_out() {
    let sandbox = block_on(home(""));
    let folder = workspace(&sandbox);
    let outside = tempfile::tempdir().unwrap();
    write(outside.path(), "secret.md", "- the secret\n");
    write(&folder, "memory/own.md", "- the open\n");
    let link = |to: &Path, at: &str| std::os::unix::fs::symlink(to, folder.join(at)).unwrap();
    link(&outside.path().join("secret.md"), "MEMORY.md");
    link(&outside.path().join("secret.md"), "memory/link.md");
    link(outside.path(), "memory/folder");
    link(Path::new("../memory"), "memory/circle");
    let large = std::fs::File::create(folder.join("memory/large.md")).unwrap();
    large.set_len(MAX_MEMORY_FILE_BYTES + 1).unwrap();

    sandbox
        .zeroclaw(&["memory", "reindex", "--agent", "atlas"])
        .exits(1)
        .complains("large.md");

    let texts = sqlite::rows(
        &database(&sandbox),
        "SELECT DISTINCT text FROM memory_index_chunks",
    );
    assert_eq!(texts.len(), 1, "{texts:?}");
    assert!(texts[0][0].contains("the open"), "{texts:?}");
}

#[test]
fn a_workspace_is_where_the_configuration_says_and_moves_with_it() {
    let elsewhere = tempfile::tempdir().unwrap();
    write(elsewhere.path(), "MEMORY.md", "- elsewhere\n");
    let sandbox = block_on(home(""));
    write(&workspace(&sandbox), "MEMORY.md", "- at home\n");
    let run = |config: &str| {
        std::fs::write(sandbox.root().join("config.toml"), config).unwrap();
        let args = ["memory", "reindex", "--agent", "atlas"];
        sandbox.zeroclaw(&args).exits(0);
        sandbox.zeroclaw(&["memory", "indexed"]).exits(0).told()
    };
    let (home, away) = ("- at home", "- elsewhere");
    let told = run("");
    assert!(told.contains(home) && !told.contains(away), "{told}");
    let there = format!(
        "schema_version = 3\n[agents.atlas.workspace]\npath = '{}'\n",
        elsewhere.path().display()
    );
    let told = run(&there);
    assert!(told.contains(away) && !told.contains(home), "{told}");
    let told = run("");
    assert!(told.contains(home) && !told.contains(away), "{told}");
}
