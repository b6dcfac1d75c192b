//! Pages of a listing.

use serde::{Deserialize, Serialize};

/// Most rows of one page.
pub const MAX_PAGE: u32 = 1_000;

/// Rows wanted, 1 to [`MAX_PAGE`]; larger wishes are cut, 0 counts as 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "u32", into = "u32")]
pub struct PageLimit(u32);

impl PageLimit {
    /// The rows of the page.
    #[must_use]
    pub fn rows(self) -> u32 {
        self.0
    }
}

impl From<u32> for PageLimit {
    fn from(rows: u32) -> Self {
        Self(rows.clamp(1, MAX_PAGE))
    }
}

impl From<PageLimit> for u32 {
    fn from(limit: PageLimit) -> Self {
        limit.0
    }
}

impl Default for PageLimit {
    fn default() -> Self {
        Self(100)
    }
}

/// Some rows, and where to go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page<T> {
    /// The rows, in the order of the listing.
    pub items: Vec<T>,
    /// Exclusive cursor for the next page; `None` at the end.
    pub next: Option<String>,
}

impl<T> Page<T> {
    /// A page of nothing.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            items: Vec::new(),
            next: None,
        }
    }

    /// Cuts `items` read with one row too many to `limit` and takes the cursor of the last kept.
    pub fn cut(mut items: Vec<T>, limit: PageLimit, cursor: impl Fn(&T) -> String) -> Self {
        let keep = limit.rows() as usize;
        let next = (items.len() > keep).then(|| cursor(&items[keep - 1]));
        items.truncate(keep);
        Self { items, next }
    }
}
