//! Lenient access to a table of the file: what has the wrong shape is noted and counts as absent.

use toml::{Table, Value};

/// What was left out, by key and reason; never a value.
#[derive(Default)]
pub(super) struct Warnings(pub(super) Vec<String>);

impl Warnings {
    pub(super) fn add(&mut self, path: &str, reason: &str) {
        self.0.push(format!("{path}: {reason}"));
    }
}

/// A table of the file and the keys that lead to it.
pub(super) struct Section<'a> {
    pub(super) table: &'a Table,
    pub(super) path: String,
}

impl<'a> Section<'a> {
    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    /// Takes a value of one type; a value of another type gives a warning and counts as absent.
    pub(super) fn get<T>(
        &self,
        key: &str,
        wanted: &str,
        take: impl FnOnce(&'a Value) -> Option<T>,
        warnings: &mut Warnings,
    ) -> Option<T> {
        let taken = take(self.table.get(key)?);
        if taken.is_none() {
            warnings.add(&self.path_of(key), &format!("expected {wanted}"));
        }
        taken
    }

    pub(super) fn section(&self, key: &str, warnings: &mut Warnings) -> Option<Section<'a>> {
        let table = self.get(key, "a table", Value::as_table, warnings)?;
        Some(Section {
            table,
            path: self.path_of(key),
        })
    }

    pub(super) fn text(&self, key: &str, warnings: &mut Warnings) -> Option<String> {
        let text = self.get(key, "a text", Value::as_str, warnings)?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    pub(super) fn texts(&self, key: &str, warnings: &mut Warnings) -> Vec<String> {
        let list = self.get(key, "a list of texts", Value::as_array, warnings);
        let mut texts = Vec::new();
        for value in list.into_iter().flatten() {
            match value.as_str() {
                Some(text) => texts.push(text.to_owned()),
                None => warnings.add(&self.path_of(key), "an entry is not a text"),
            }
        }
        texts
    }
}
