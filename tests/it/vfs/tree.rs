//! Random operations give what they give on a tree in memory.

use std::collections::BTreeMap;

use proptest::prelude::*;
use zeroclaw::model::{ErrorKind, VfsKind, VfsPath};
use zeroclaw::service::{Removal, ServiceError, Vfs, WriteMode};

use super::{Home, all_below, bytes_of, path};
use crate::support::sqlite::{block_on, check_index, is_sound};

/// Most bytes in a row: sizes round it are the interesting ones.
const EDGE: usize = 64 * 1024;

#[derive(Clone, Debug)]
enum Step {
    Write(VfsPath, usize, u8),
    WriteFrom(VfsPath, usize, u8),
    Append(VfsPath, usize, u8),
    MakeFolder(VfsPath),
    Rename(VfsPath, VfsPath),
    Remove(VfsPath, bool),
    Read(VfsPath, u64, usize),
}

/// The naive tree: a folder is `None`, a file its bytes. The top is not in it.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model(BTreeMap<VfsPath, Option<Vec<u8>>>);

impl Model {
    fn ensure_folder(&mut self, folder: &VfsPath) -> Result<(), ErrorKind> {
        let whole: Vec<_> = folder.ancestors().chain([folder.clone()]).collect();
        if whole
            .iter()
            .any(|path| matches!(self.0.get(path), Some(Some(_))))
        {
            return Err(ErrorKind::Refused);
        }
        for path in whole.into_iter().filter(|path| !path.is_top()) {
            self.0.insert(path, None);
        }
        Ok(())
    }

    /// Ready to take a file at `path`.
    fn ensure_file(&mut self, path: &VfsPath) -> Result<(), ErrorKind> {
        match self.0.get(path) {
            _ if path.is_top() => Err(ErrorKind::Refused),
            Some(None) => Err(ErrorKind::Refused),
            Some(Some(_)) => Ok(()),
            None => self.ensure_folder(&path.parent().unwrap_or_default()),
        }
    }

    fn rename(&mut self, from: &VfsPath, to: &VfsPath) -> Result<(), ErrorKind> {
        if from.is_top() || to.is_top() {
            return Err(ErrorKind::Refused);
        }
        let is_file = self.0.get(from).ok_or(ErrorKind::NotFound)?.is_some();
        if from == to {
            return Ok(());
        }
        let may_replace = match self.0.get(to) {
            None => true,
            Some(there) => is_file && there.is_some(),
        };
        if to.is_below(from) || !may_replace {
            return Err(ErrorKind::Refused);
        }
        self.ensure_folder(&to.parent().unwrap_or_default())?;
        let moved = self
            .0
            .keys()
            .filter(|path| *path == from || path.is_below(from));
        for path in moved.cloned().collect::<Vec<_>>() {
            let node = self.0.remove(&path).unwrap();
            self.0.insert(path.moved(from, to).unwrap(), node);
        }
        Ok(())
    }

    fn remove(&mut self, path: &VfsPath, is_recursive: bool) -> Result<u64, ErrorKind> {
        let below = self.0.keys().filter(|other| other.is_below(path)).count();
        if !path.is_top() && !self.0.contains_key(path) {
            return Err(ErrorKind::NotFound);
        }
        if (below > 0 || path.is_top()) && !is_recursive {
            return Err(ErrorKind::Refused);
        }
        self.0
            .retain(|other, _| other != path && !other.is_below(path));
        Ok(below as u64 + u64::from(!path.is_top()))
    }

    fn read(&self, path: &VfsPath, offset: u64, most: usize) -> Result<Vec<u8>, ErrorKind> {
        match self.0.get(path) {
            _ if path.is_top() => Err(ErrorKind::Refused),
            None => Err(ErrorKind::NotFound),
            Some(None) => Err(ErrorKind::Refused),
            Some(Some(bytes)) => {
                let start = usize::try_from(offset).unwrap().min(bytes.len());
                Ok(bytes[start..(start + most).min(bytes.len())].to_vec())
            }
        }
    }
}

/// Few names, so that steps meet; some that sort between a folder and what is in it, or need more bytes.
fn paths() -> impl Strategy<Value = VfsPath> {
    let names = prop::sample::select(vec!["a", "a-", "a0", "b", "ü", "_%"]);
    prop::collection::vec(names, 0..4).prop_map(|names| path(&names.join("/")))
}

fn sizes() -> impl Strategy<Value = usize> {
    prop_oneof![
        4 => 0..40_usize,
        2 => EDGE - 2..EDGE + 3,
        1 => prop::sample::select(vec![2 * EDGE, 2 * EDGE + 1, 3 * EDGE - 1]),
    ]
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (paths(), sizes(), any::<u8>()).prop_map(|(p, n, s)| Step::Write(p, n, s)),
        1 => (paths(), sizes(), any::<u8>()).prop_map(|(p, n, s)| Step::WriteFrom(p, n, s)),
        3 => (paths(), sizes(), any::<u8>()).prop_map(|(p, n, s)| Step::Append(p, n, s)),
        1 => paths().prop_map(Step::MakeFolder),
        3 => (paths(), paths()).prop_map(|(from, to)| Step::Rename(from, to)),
        2 => (paths(), any::<bool>()).prop_map(|(p, r)| Step::Remove(p, r)),
        2 => (paths(), 0..200_000_u64, 0..200_000_usize).prop_map(|(p, o, n)| Step::Read(p, o, n)),
    ]
}

/// What a step gave: bytes read, or a count.
type Outcome = Result<Vec<u8>, ErrorKind>;

fn counted(count: u64) -> Vec<u8> {
    count.to_le_bytes().to_vec()
}

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

fn expect(model: &mut Model, step: &Step) -> Outcome {
    match step {
        Step::Write(path, size, seed) | Step::WriteFrom(path, size, seed) => {
            model.ensure_file(path)?;
            model.0.insert(path.clone(), Some(bytes_of(*seed, *size)));
            Ok(counted(*size as u64))
        }
        Step::Append(path, size, seed) => {
            model.ensure_file(path)?;
            let bytes = model.0.entry(path.clone()).or_insert(Some(Vec::new()));
            let bytes = bytes.as_mut().unwrap();
            bytes.extend(bytes_of(*seed, *size));
            Ok(counted(bytes.len() as u64))
        }
        Step::MakeFolder(path) => model.ensure_folder(path).map(|()| counted(0)),
        Step::Rename(from, to) => model.rename(from, to).map(|()| counted(0)),
        Step::Remove(path, is_recursive) => model.remove(path, *is_recursive).map(counted),
        Step::Read(path, offset, most) => model.read(path, *offset, *most),
    }
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
