//! Tables with aligned columns.

use milepost_core::base::visible::visible;

/// The alignment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// Returns the rows as lines, with two spaces between columns. Control characters in cells are shown as escapes. Every row has as
/// many cells as there are sides.
pub(crate) fn table(sides: &[Side], rows: &[Vec<String>]) -> String {
    let shown = |row: &Vec<String>| -> Vec<String> {
        let cells = row.iter();
        cells.map(|cell| visible(cell).into_owned()).collect()
    };
    let rows: Vec<Vec<String>> = rows.iter().map(shown).collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..sides.len()).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for ((cell, &side), &width) in row.iter().zip(sides).zip(&widths) {
            if width == 0 {
                continue;
            }
            let blanks = " ".repeat(width - cell.chars().count());
            match side {
                Side::Left => line.extend([cell, blanks.as_str(), "  "]),
                Side::Right => line.extend([blanks.as_str(), cell, "  "]),
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Formats a time in UTC, to the second: `2026-11-21 10:00:00Z`.
pub(crate) fn time(time: jiff::Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_cells() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let rows = [row(["1", "parse", ""]), row(["12", "é", ""])];
        let sides = [Side::Right, Side::Left, Side::Left];
        assert_eq!(table(&sides, &rows), " 1  parse\n12  é\n");
    }
}
