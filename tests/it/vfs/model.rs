//! A tree in memory, and random steps for it and for what is to be like it.

use std::collections::BTreeMap;

use proptest::prelude::*;
use zeroclaw::model::{ErrorKind, VfsPath};

use super::{bytes_of, path};

/// Most bytes in a row: sizes round it are the interesting ones.
const EDGE: usize = 64 * 1024;

#[derive(Clone, Debug)]
pub(super) enum Step {
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
pub(super) struct Model(pub(super) BTreeMap<VfsPath, Option<Vec<u8>>>);

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

pub(super) fn steps() -> impl Strategy<Value = Step> {
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
pub(super) type Outcome = Result<Vec<u8>, ErrorKind>;

pub(super) fn counted(count: u64) -> Vec<u8> {
    count.to_le_bytes().to_vec()
}

pub(super) fn expect(model: &mut Model, step: &Step) -> Outcome {
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
