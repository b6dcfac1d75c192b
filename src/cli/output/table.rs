//! Tables without borders, and lists of names and values.

use std::fmt::Display;

use comfy_table::{
    Attribute, Cell, CellAlignment, ColumnConstraint, ContentArrangement, Row, Width, presets,
};

use super::text::{lines, one_line};
use super::{BOLD, PLAIN};

/// A word longer than this may be cut on a terminal after all.
const MAX_WORD_WIDTH: u16 = 40;
/// A column of text keeps at least this much of a narrow terminal.
const MIN_TEXT_WIDTH: u16 = 12;
/// What any column keeps when nothing else helps.
const MIN_WIDTH: u16 = 4;
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
    is_minor: bool,
}

impl Column {
    fn new(name: &'static str, kind: Kind) -> Self {
        Self {
            name,
            kind,
            is_minor: false,
        }
    }

    /// Holds names and other short words, which a terminal shows whole.
    pub(crate) fn word(name: &'static str) -> Self {
        Self::new(name, Kind::Word)
    }

    /// Holds numbers and sizes.
    pub(crate) fn number(name: &'static str) -> Self {
        Self::new(name, Kind::Number)
    }

    /// Holds text of any length, which a narrow terminal cuts with `…`.
    pub(crate) fn text(name: &'static str) -> Self {
        Self::new(name, Kind::Text)
    }

    /// Left out where a terminal is too narrow for all columns.
    pub(crate) fn minor(mut self) -> Self {
        self.is_minor = true;
        self
    }

    /// The least width it is useful with.
    fn need(self, content: u16) -> u16 {
        if self.kind != Kind::Text && content <= MAX_WORD_WIDTH {
            content
        } else {
            content.min(MIN_TEXT_WIDTH)
        }
    }
}

/// Rows under a header. Cells are made harmless when they are shown.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    names: Vec<String>,
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub(crate) fn new(columns: &[Column]) -> Self {
        Self {
            names: columns
                .iter()
                .map(|column| column.name.to_uppercase())
                .collect(),
            columns: columns.to_vec(),
            rows: Vec::new(),
        }
    }

    /// A table without rows, of text under names that somebody else gave.
    pub(crate) fn of_text(names: &[String]) -> Self {
        Self {
            names: names.iter().map(|name| one_line(name)).collect(),
            columns: vec![Column::text(""); names.len()],
            rows: Vec::new(),
        }
    }

    /// Adds a row whose number of cells is known late: one a column.
    pub(crate) fn row_of(&mut self, cells: impl Iterator<Item = String>) {
        self.rows.push(cells.map(|cell| one_line(&cell)).collect());
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
            .names
            .iter()
            .map(|name| Cell::new(name).add_attribute(Attribute::Bold));
        table.set_header(one_high(names));
        for row in &self.rows {
            table.add_row(one_high(row.iter().map(Cell::new)));
        }
        let contents = table.column_max_content_widths();
        let needs = match width {
            Some(width) => {
                table
                    .set_content_arrangement(ContentArrangement::Dynamic)
                    .set_width(width);
                self.fit(width, &contents)
            }
            None => {
                table.set_content_arrangement(ContentArrangement::Disabled);
                contents.iter().map(|&content| Some(content)).collect()
            }
        };
        for (index, &need) in needs.iter().enumerate() {
            let is_last = needs[index + 1..].iter().all(Option::is_none);
            if let Some(laid_out) = table.column_mut(index) {
                self.columns[index].lay_out(laid_out, need, contents[index], is_last);
            }
        }
        let mut text = table.trim_fmt();
        text.push('\n');
        text
    }

    /// The least width of each column on a terminal; `None` for one that is left out.
    fn fit(&self, width: u16, contents: &[u16]) -> Vec<Option<u16>> {
        let mut needs: Vec<Option<u16>> = self
            .columns
            .iter()
            .zip(contents)
            .map(|(column, &content)| Some(column.need(content)))
            .collect();
        let is_too_wide = |needs: &[Option<u16>]| {
            let shown = needs.iter().flatten();
            let total: u32 = shown.map(|&need| u32::from(need + GAP)).sum();
            total > u32::from(width + GAP)
        };
        let minor = (0..needs.len())
            .rev()
            .filter(|&at| self.columns[at].is_minor);
        for at in minor {
            if !is_too_wide(&needs) {
                break;
            }
            needs[at] = None;
        }
        if is_too_wide(&needs) {
            let least = |need: &mut Option<u16>| *need = need.map(|need| need.min(MIN_WIDTH));
            needs.iter_mut().for_each(least);
        }
        needs
    }
}

impl Column {
    fn lay_out(
        self,
        column: &mut comfy_table::Column,
        need: Option<u16>,
        content: u16,
        is_last: bool,
    ) {
        let gap = if is_last { 0 } else { GAP };
        column.set_padding((0, gap));
        // Cut where the room ends, not at the last blank before.
        column.set_delimiter('\0');
        if self.kind == Kind::Number {
            column.set_cell_alignment(CellAlignment::Right);
        }
        column.set_constraint(match need {
            None => ColumnConstraint::Hidden,
            Some(need) if need >= content => ColumnConstraint::ContentWidth,
            Some(need) => ColumnConstraint::LowerBoundary(Width::Fixed(need + gap)),
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
    fn a_narrow_terminal_loses_minor_columns_first_and_is_never_overrun() {
        let mut table = Table::new(&[
            Column::word("id"),
            Column::number("size").minor(),
            Column::word("updated"),
            Column::text("title"),
        ]);
        for id in ["a", "世界"] {
            let (size, time) = ("12.0 KiB", "2026-11-30T16:42:28Z");
            table.row([id, size, time, &"long ".repeat(9)].map(str::to_owned));
        }

        for width in 24..90 {
            let text = table.render(Some(width), false);
            let narrow = |line: &str| {
                let wide = line.chars().filter(|c| !c.is_ascii() && *c != '…').count();
                line.chars().count() + wide <= usize::from(width)
            };
            assert!(text.lines().all(narrow), "{width}:\n{text}");
            assert_eq!(text.contains("SIZE"), width >= 50, "{width}:\n{text}");
            assert_eq!(text.contains("16:42:28Z"), width >= 40, "{width}:\n{text}");
        }
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
