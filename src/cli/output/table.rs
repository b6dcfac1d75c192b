//! Tables without borders, and lists of names and values.

use std::fmt::Display;

use comfy_table::{
    Attribute, Cell, CellAlignment, ColumnConstraint, ContentArrangement, Row, Width, presets,
};

use super::text::{lines, one_line};
use super::{BOLD, PLAIN};

/// A word longer than this may be cut on a terminal after all.
const MAX_WORD_WIDTH: usize = 40;
/// A column of text keeps at least this much of a narrow terminal.
const MIN_TEXT_WIDTH: u16 = 12;
/// Blanks between columns.
const GAP: u16 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Word,
    Number,
    Text,
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    name: &'static str,
    kind: Kind,
}

impl Column {
    /// Holds names and other short words, which a terminal shows whole.
    pub(crate) fn word(name: &'static str) -> Self {
        let kind = Kind::Word;
        Self { name, kind }
    }

    /// Holds numbers and sizes.
    pub(crate) fn number(name: &'static str) -> Self {
        let kind = Kind::Number;
        Self { name, kind }
    }

    /// Holds text of any length, which a narrow terminal cuts with `…`.
    pub(crate) fn text(name: &'static str) -> Self {
        let kind = Kind::Text;
        Self { name, kind }
    }
}

/// Rows under a header. Cells are made harmless when they are shown.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub(crate) fn new(columns: &[Column]) -> Self {
        Self {
            columns: columns.to_vec(),
            rows: Vec::new(),
        }
    }

    /// Adds a row: one cell a column.
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        debug_assert_eq!(N, self.columns.len(), "a cell a column");
        self.rows
            .push(cells.iter().map(|cell| one_line(cell)).collect());
    }

    /// The table as text; cut to `width` where there is one.
    pub(super) fn render(&self, width: Option<u16>, has_colour: bool) -> String {
        let mut table = comfy_table::Table::new();
        table.load_style(presets::NOTHING).force_no_tty();
        if has_colour {
            table.enforce_styling();
        }
        let names = self
            .columns
            .iter()
            .map(|column| Cell::new(column.name.to_uppercase()).add_attribute(Attribute::Bold));
        table.set_header(one_high(names));
        for row in &self.rows {
            table.add_row(one_high(row.iter().map(Cell::new)));
        }
        match width {
            Some(width) => table
                .set_content_arrangement(ContentArrangement::Dynamic)
                .set_width(width),
            None => table.set_content_arrangement(ContentArrangement::Disabled),
        };
        for (index, column) in self.columns.iter().enumerate() {
            self.arrange(index, column, &mut table);
        }
        let mut text = table.trim_fmt();
        text.push('\n');
        text
    }

    fn arrange(&self, index: usize, column: &Column, table: &mut comfy_table::Table) {
        let is_last = index + 1 == self.columns.len();
        let longest = self.rows.iter().map(|row| row[index].chars().count()).max();
        let Some(laid_out) = table.column_mut(index) else {
            return;
        };
        laid_out.set_padding((0, if is_last { 0 } else { GAP }));
        // Cut where the room ends, not at the last blank before.
        laid_out.set_delimiter('\0');
        if column.kind == Kind::Number {
            laid_out.set_cell_alignment(CellAlignment::Right);
        }
        let is_whole = column.kind != Kind::Text && longest.unwrap_or(0) <= MAX_WORD_WIDTH;
        laid_out.set_constraint(if is_whole {
            ColumnConstraint::ContentWidth
        } else {
            ColumnConstraint::LowerBoundary(Width::Fixed(MIN_TEXT_WIDTH))
        });
    }
}

fn one_high(cells: impl Iterator<Item = Cell>) -> Row {
    let mut row = Row::from(cells);
    row.max_height(1);
    row
}

/// The width of the terminal behind stdout, if it tells.
pub(super) fn screen_width() -> Option<u16> {
    comfy_table::Table::new().width()
}

/// Names and values, one pair a line. Values are made harmless when they are shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields(Vec<(&'static str, String)>);

impl Fields {
    /// Without pairs.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a pair.
    pub(crate) fn add(mut self, name: &'static str, value: impl Display) -> Self {
        self.0.push((name, value.to_string()));
        self
    }

    pub(super) fn render(&self, has_colour: bool) -> String {
        let width = self.0.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let (on, off) = if has_colour { (BOLD, PLAIN) } else { ("", "") };
        let mut text = String::new();
        for (name, value) in &self.0 {
            let indented = lines(value).replace('\n', &format!("\n{:width$}  ", ""));
            text.push_str(&format!("{on}{name:width$}{off}  {indented}\n"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Table {
        let mut table = Table::new(&[
            Column::word("id"),
            Column::number("messages"),
            Column::text("title"),
        ]);
        table.row([
            "a1".to_owned(),
            "7".to_owned(),
            "a long title about lanterns, tides and what the harbour master said".to_owned(),
        ]);
        table.row(["b22".to_owned(), "1234".to_owned(), "two\nlines".to_owned()]);
        table
    }

    #[test]
    fn a_pipe_gets_whole_aligned_columns() {
        assert_eq!(
            sample().render(None, false),
            "ID   MESSAGES  TITLE\n\
             a1          7  a long title about lanterns, tides and what the harbour master said\n\
             b22      1234  two\\nlines\n"
        );
    }

    #[test]
    fn a_terminal_gets_lines_that_fit() {
        let text = sample().render(Some(40), false);

        assert!(
            text.lines().all(|line| line.chars().count() <= 40),
            "{text}"
        );
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(
            text.contains('…') && text.contains("a long title about"),
            "{text}"
        );
    }

    #[test]
    fn colour_is_only_on_demand() {
        assert!(!sample().render(Some(60), false).contains('\x1b'));
        assert!(sample().render(Some(60), true).contains('\x1b'));
    }

    #[test]
    fn fields_stand_under_each_other() {
        let fields = Fields::new().add("id", "x").add("status", "a\nb\x1b");

        assert_eq!(
            fields.render(false),
            "id      x\nstatus  a\n        b\\u{1b}\n"
        );
    }
}
