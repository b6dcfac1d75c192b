//! The rules of the house, checked over the source tree as text: who may name whom, and what is said nowhere.
//!
//! The compiler cannot see most of them. Each rule is a function over files, so that it can be shown a planted
//! violation: a guard that never fails guards nothing.

use std::path::Path;

use walkdir::WalkDir;

mod layers;
mod rules;
mod syntax;

/// A file as the rules see it.
struct Source {
    /// From the package's folder, with `/`.
    path: String,
    text: String,
}

impl Source {
    fn new(path: &str, text: &str) -> Self {
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    /// Whether the path is `place` or lies under it.
    fn is_in(&self, place: &str) -> bool {
        Path::new(&self.path).starts_with(place)
    }

    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    fn says(&self, line: usize, what: &str) -> String {
        format!("{}:{line}: {what}", self.path)
    }
}

/// Reads all files of the package that the rules speak of.
fn tree() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let places = [
        "benches",
        "build.rs",
        "doctor",
        "migrations",
        "schema",
        "src",
        "tests/it",
    ];
    let files = places
        .iter()
        .map(|place| root.join(place))
        .filter(|place| place.exists())
        .flat_map(WalkDir::new);
    files
        .map(Result::unwrap)
        .filter(|entry| entry.file_type().is_file())
        .filter(|entry| {
            entry
                .path()
                .extension()
                .is_some_and(|end| end == "rs" || end == "sql")
        })
        .map(|entry| {
            let path = entry.path().strip_prefix(root).unwrap().to_str().unwrap();
            Source::new(path, &std::fs::read_to_string(entry.path()).unwrap())
        })
        .collect()
}

/// Fails with one violation a line.
fn assert_kept(violations: &[String]) {
    assert!(violations.is_empty(), "\n{}\n", violations.join("\n"));
}

#[test]
fn the_tree_is_found() {
    let tree = tree();

    for path in [
        "src/lib.rs",
        "src/main.rs",
        "src/fs/layout.rs",
        "tests/it/guard.rs",
    ] {
        assert!(tree.iter().any(|file| file.path == path), "{path}");
    }
    assert!(
        tree.iter()
            .any(|file| file.is_in("migrations") && file.path.ends_with(".sql"))
    );
}

#[test]
fn rooms_name_only_the_rooms_below_them() {
    assert_kept(&layers::check(&tree()));
}

#[test]
fn one_path_attribute_mounts_the_doctor() {
    assert_kept(&rules::path_attributes(&tree()));
}

#[test]
fn legacy_words_are_said_only_by_doctor_and_tests() {
    assert_kept(&rules::legacy_words(&tree()));
}

#[test]
fn only_the_output_module_prints() {
    assert_kept(&rules::printing(&tree()));
}

#[test]
fn only_main_ends_the_process() {
    assert_kept(&rules::exits(&tree()));
}

#[test]
fn only_the_rooms_of_sql_name_its_crates() {
    assert_kept(&rules::sql_crates(&tree()));
}

#[test]
fn nothing_is_unsafe() {
    assert_kept(&rules::unsafe_code(&tree()));
}
