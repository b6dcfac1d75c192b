//! Files and folders that live in an agent's database.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::text_enum;

/// Longest path, bytes.
pub const MAX_VFS_PATH_BYTES: usize = 4_096;
/// Longest name of one file or folder, bytes: what a disk takes, so that every tree can be exported.
pub const MAX_VFS_NAME_BYTES: usize = 255;
/// Longest name of a namespace, bytes.
pub const MAX_NAMESPACE_BYTES: usize = 200;

/// A place in a tree of files: names joined by `/`; the empty path is the top.
///
/// A leading or trailing `/` and doubled ones are dropped, so `/notes//a.md` is `notes/a.md`. Names `.` and `..`, and
/// names with a NUL, are refused: a path can neither leave its tree nor fail to be exported.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct VfsPath(String);

/// A separate tree of files within one agent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct VfsNamespace(String);

/// Why a text is no path or no namespace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no {what}: {reason}")]
pub struct VfsNameError {
    /// The text as it was given, cut to a readable length.
    pub text: String,
    /// `path` or `namespace`.
    pub what: &'static str,
    /// The rule it breaks.
    pub reason: &'static str,
}

impl VfsNameError {
    fn new(text: &str, what: &'static str, reason: &'static str) -> Self {
        Self {
            text: text.chars().take(80).collect(),
            what,
            reason,
        }
    }
}

impl VfsPath {
    /// Takes a path that follows the rule.
    ///
    /// # Errors
    ///
    /// [`VfsNameError`] when it does not.
    pub fn new(text: &str) -> Result<Self, VfsNameError> {
        let refuse = |reason| Err(VfsNameError::new(text, "path", reason));
        let mut path = String::with_capacity(text.len());
        for name in text.split('/').filter(|name| !name.is_empty()) {
            match name {
                "." | ".." => return refuse("the names . and .. have no meaning here"),
                _ if name.contains('\0') => return refuse("a name holds a NUL"),
                _ if name.len() > MAX_VFS_NAME_BYTES => {
                    return refuse("a name is longer than 255 bytes");
                }
                _ => {}
            }
            if !path.is_empty() {
                path.push('/');
            }
            path.push_str(name);
        }
        if path.len() > MAX_VFS_PATH_BYTES {
            return refuse("it is longer than 4096 bytes");
        }
        Ok(Self(path))
    }

    /// The top of the tree.
    #[must_use]
    pub fn top() -> Self {
        Self::default()
    }

    /// Whether it is the top.
    #[must_use]
    pub fn is_top(&self) -> bool {
        self.0.is_empty()
    }

    /// The path as text, without a leading `/`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The folder it stands in; `None` for the top.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        if self.is_top() {
            return None;
        }
        let parent = self.0.rsplit_once('/').map_or("", |(parent, _)| parent);
        Some(Self(parent.to_owned()))
    }

    /// Its last name; empty for the top.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.rsplit_once('/').map_or(&self.0, |(_, name)| name)
    }

    /// The folders above it, outermost first, without the top.
    pub fn ancestors(&self) -> impl Iterator<Item = Self> + '_ {
        self.0
            .match_indices('/')
            .map(|(at, _)| Self(self.0[..at].to_owned()))
    }

    /// Whether it lies inside of `folder`, at any depth; nothing lies inside of itself.
    #[must_use]
    pub fn is_below(&self, folder: &Self) -> bool {
        if folder.is_top() {
            return !self.is_top();
        }
        self.0
            .strip_prefix(&folder.0)
            .is_some_and(|rest| rest.starts_with('/'))
    }

    /// The same place when `from` has become `to`; itself when it is neither `from` nor below.
    ///
    /// # Errors
    ///
    /// [`VfsNameError`] when the new path would be too long.
    pub fn moved(&self, from: &Self, to: &Self) -> Result<Self, VfsNameError> {
        if self == from {
            return Ok(to.clone());
        }
        if !self.is_below(from) {
            return Ok(self.clone());
        }
        let rest = self.0[from.0.len()..].trim_start_matches('/');
        Self::new(&format!("{to}/{rest}"))
    }

    /// This place seen from `folder`, which it must lie in or be.
    #[must_use]
    pub fn within<'a>(&'a self, folder: &Self) -> &'a str {
        let rest = self.0.strip_prefix(&folder.0).unwrap_or(&self.0);
        rest.trim_start_matches('/')
    }
}

impl VfsNamespace {
    /// Takes the name of a tree: 1 to 200 bytes without control characters.
    ///
    /// # Errors
    ///
    /// [`VfsNameError`] when it is not.
    pub fn new(text: &str) -> Result<Self, VfsNameError> {
        let refuse = |reason| Err(VfsNameError::new(text, "namespace", reason));
        match text {
            "" => refuse("it is empty"),
            _ if text.len() > MAX_NAMESPACE_BYTES => refuse("it is longer than 200 bytes"),
            _ if text.chars().any(char::is_control) => refuse("it holds a control character"),
            _ => Ok(Self(text.to_owned())),
        }
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for VfsNamespace {
    fn default() -> Self {
        Self("default".to_owned())
    }
}

/// What stands at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VfsKind {
    /// Bytes.
    File,
    /// A folder.
    Folder,
    /// In a layer over another tree: what lies below it is gone from here.
    Whiteout,
}

text_enum!(VfsKind {
    File => "file",
    Folder => "folder",
    Whiteout => "whiteout",
});

/// A file or folder, without its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VfsEntry {
    /// Its tree.
    pub namespace: String,
    /// Its place.
    pub path: VfsPath,
    /// What it is.
    pub kind: VfsKind,
    /// Size of a file; 0 for others.
    pub size_bytes: i64,
    /// Whether a disk should let it be started.
    pub is_executable: bool,
    /// When it was made.
    pub created_at_ms: i64,
    /// When its bytes last changed.
    pub updated_at_ms: i64,
}

/// A file or folder that a search found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VfsHit {
    /// bm25 of SQLite's FTS5, the lower the better.
    pub rank: f64,
    /// Where the words stand, found ones in brackets; empty when only the name holds them.
    pub snippet: String,
    /// What was found.
    #[serde(flatten)]
    pub entry: VfsEntry,
}

/// A tree and what it holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VfsTree {
    /// Its name.
    pub namespace: String,
    /// Files in it.
    pub files: i64,
    /// Their size together.
    pub size_bytes: i64,
    /// Newest change.
    pub updated_at_ms: i64,
}

/// Text forms of both names.
macro_rules! name_text {
    ($name:ident) => {
        impl TryFrom<String> for $name {
            type Error = VfsNameError;

            fn try_from(text: String) -> Result<Self, VfsNameError> {
                Self::new(&text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::str::FromStr for $name {
            type Err = VfsNameError;

            fn from_str(text: &str) -> Result<Self, VfsNameError> {
                Self::new(text)
            }
        }
    };
}

name_text!(VfsPath);
name_text!(VfsNamespace);

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> VfsPath {
        VfsPath::new(text).unwrap()
    }

    #[test]
    fn paths_have_one_spelling() {
        for text in ["notes/a.md", "/notes/a.md", "notes//a.md/", "//notes/a.md"] {
            assert_eq!(path(text).as_str(), "notes/a.md");
        }
        assert!(path("/").is_top() && path("").is_top());
    }

    #[test]
    fn paths_that_could_leave_or_not_be_exported_are_refused() {
        for text in ["..", "a/../b", "./a", "a/.", "a\0b", &"x".repeat(256)] {
            assert!(VfsPath::new(text).is_err(), "{text:?}");
        }
        assert!(VfsPath::new(&vec!["abc"; 1_025].join("/")).is_err());
        assert!(VfsPath::new("...").is_ok() && VfsPath::new("a\\..\\b").is_ok());
    }

    #[test]
    fn a_path_knows_what_is_above_and_below() {
        let deep = path("a/b/c");

        assert_eq!(deep.parent(), Some(path("a/b")));
        assert_eq!(path("a").parent(), Some(VfsPath::top()));
        assert_eq!(VfsPath::top().parent(), None);
        assert_eq!(deep.name(), "c");
        let above: Vec<_> = deep.ancestors().collect();
        assert_eq!(above, [path("a"), path("a/b")]);
        assert!(deep.is_below(&path("a")) && deep.is_below(&VfsPath::top()));
        assert!(!deep.is_below(&deep) && !path("ab").is_below(&path("a")));
        assert_eq!(deep.within(&path("a")), "b/c");
    }

    #[test]
    fn a_move_takes_along_what_is_below_and_nothing_beside() {
        let moved = |text: &str| path(text).moved(&path("a"), &path("x/y")).unwrap();

        assert_eq!(moved("a"), path("x/y"));
        assert_eq!(moved("a/b/c"), path("x/y/b/c"));
        assert_eq!(moved("ab"), path("ab"));
    }
}
