//! Random operations give what they give on a tree in memory.

use proptest::prelude::*;
use zeroclaw::model::{VfsKind, VfsPath};
use zeroclaw::service::{Removal, ServiceError, Vfs, WriteMode};

use super::model::{Model, Outcome, Step, counted, expect, steps};
use super::{Home, all_below, bytes_of, path};
use crate::support::sqlite::{block_on, check_index, is_sound};

async fn take(vfs: &Vfs, step: &Step) -> Outcome {
    let mode = WriteMode::default();
    let done: Result<Vec<u8>, ServiceError> = match step {
        Step::Write(path, size, seed) => vfs
            .write(path, bytes_of(*seed, *size), mode)
            .await
            .map(|entry| counted(u64::try_from(entry.size_bytes).unwrap())),
        Step::WriteFrom(path, size, seed) => vfs
            .write_from(path, &mut &bytes_of(*seed, *size)[..], mode)
            .await
            .map(|entry| counted(u64::try_from(entry.size_bytes).unwrap())),
        Step::Append(path, size, seed) => vfs
            .append(path, bytes_of(*seed, *size))
            .await
            .map(|entry| counted(u64::try_from(entry.size_bytes).unwrap())),
        Step::MakeFolder(path) => vfs.make_folder(path).await.map(|()| counted(0)),
        Step::Rename(from, to) => vfs.rename(from, to).await.map(|()| counted(0)),
        Step::Remove(path, is_recursive) => {
            let removal = if *is_recursive {
                Removal::Tree
            } else {
                Removal::Alone
            };
            vfs.remove(path, removal).await.map(counted)
        }
        Step::Read(path, offset, most) => vfs.read(path, *offset, *most).await,
    };
    done.map_err(|error| error.kind())
}

/// The whole tree as it is stored.
async fn stored(vfs: &Vfs) -> Model {
    let mut model = Model::default();
    for entry in all_below(vfs, &VfsPath::top(), 3).await {
        let bytes = match entry.kind {
            VfsKind::File => {
                let bytes = vfs.read(&entry.path, 0, usize::MAX).await.unwrap();
                assert_eq!(i64::try_from(bytes.len()).unwrap(), entry.size_bytes);
                Some(bytes)
            }
            VfsKind::Folder => None,
            VfsKind::Whiteout => panic!("{} is a whiteout", entry.path),
        };
        model.0.insert(entry.path, bytes);
    }
    model
}

fn same_as_in_memory(steps: &[Step]) {
    let database = block_on(async {
        let home = Home::new().await;
        let vfs = home.vfs("tree").await;
        let other = home.vfs("other").await;
        let untouched = path("a/b");
        let kept = other.write(&untouched, b"kept".to_vec(), WriteMode::default());
        kept.await.unwrap();
        let mut model = Model::default();
        for step in steps {
            // A refused step must leave nothing behind.
            let before = model.clone();
            let expected = expect(&mut model, step);
            if expected.is_err() {
                model = before;
            }
            assert_eq!(take(&vfs, step).await, expected, "{step:?}");
        }
        assert_eq!(stored(&vfs).await, model);
        assert_eq!(other.read(&untouched, 0, 9).await.unwrap(), b"kept");
        for folder in model.0.iter().filter(|(_, node)| node.is_none()) {
            let listed = vfs.list(folder.0, None, 100.into()).await.unwrap();
            let names: Vec<_> = listed.items.into_iter().map(|entry| entry.path).collect();
            let parents = |path: &&VfsPath| path.parent().as_ref() == Some(folder.0);
            let expected: Vec<_> = model.0.keys().filter(parents).cloned().collect();
            assert_eq!(names, expected);
        }
        drop((vfs, other));
        let database = home.database();
        home.service.close().await;
        check_index(&database, "vfs_entries_fts").unwrap();
        assert!(is_sound(&database));
        home.sandbox
    });
    drop(database);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_steps_give_what_they_give_in_memory(steps in prop::collection::vec(steps(), 1..40)) {
        same_as_in_memory(&steps);
    }
}

#[test]
fn names_with_the_signs_of_patterns_are_names_and_nothing_else() {
    block_on(async {
        let home = Home::new().await;
        let vfs = home.vfs("default").await;
        for name in ["100%/a", "100x/a", "a_b/c", "axb/c", "Ä/x", "ä/x"] {
            vfs.write(&path(name), name.into(), WriteMode::default())
                .await
                .unwrap();
        }

        for (folder, expected) in [("100%", "100%/a"), ("a_b", "a_b/c"), ("Ä", "Ä/x")] {
            let found = all_below(&vfs, &path(folder), 10).await;
            let names: Vec<_> = found.iter().map(|entry| entry.path.as_str()).collect();
            assert_eq!(names, [expected]);
        }
        let page = vfs.list_prefix("100", None, 10.into()).await.unwrap();
        assert_eq!(page.items.len(), 4);
    });
}

#[test]
fn a_word_is_found_in_names_and_in_text_and_no_more_once_it_is_gone() {
    block_on(async {
        let home = Home::new().await;
        let vfs = home.vfs("default").await;
        let mode = WriteMode::default();
        let found = async |words: &str| {
            let hits = vfs.search(words, 10.into()).await.unwrap();
            let paths = hits.into_iter().map(|hit| hit.entry.path.to_string());
            paths.collect::<Vec<_>>()
        };
        vfs.write(&path("log/tide.md"), b"The Heron stood".to_vec(), mode)
            .await
            .unwrap();
        vfs.write(&path("heron.bin"), vec![0xff, 0, 1], mode)
            .await
            .unwrap();
        vfs.write(&path("鷺.txt"), "水辺の鷺を見た".into(), mode)
            .await
            .unwrap();

        assert_eq!(found("tide").await, ["log/tide.md"]);
        let mut both = found("heron").await;
        both.sort();
        assert_eq!(both, ["heron.bin", "log/tide.md"]);
        assert_eq!(found("水辺").await, ["鷺.txt"]);
        vfs.rename(&path("log"), &path("book")).await.unwrap();
        assert_eq!(found("stood").await, ["book/tide.md"]);
        let large = bytes_of(1, 70_000);
        vfs.append(&path("book/tide.md"), large).await.unwrap();
        assert_eq!(found("stood").await, Vec::<String>::new());
        vfs.remove(&path("book"), Removal::Tree).await.unwrap();
        assert_eq!(found("tide").await, Vec::<String>::new());
    });
}
