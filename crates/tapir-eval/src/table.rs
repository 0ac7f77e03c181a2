//! One table, shown as text on a terminal, as Markdown, and as HTML.

use std::fmt::Write;

/// A table. Columns of numbers are set to the right, columns of words to the left.
///
/// ```
/// let mut table = tapir_eval::Table::new(["", "EO", "RC"]);
/// table.row(["TAPIR", "0.074", "0.876"]);
/// assert_eq!(table.to_markdown(), "|  | EO | RC |\n| --- | ---: | ---: |\n| TAPIR | 0.074 | 0.876 |\n");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Table {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns.
    pub fn new<T: Into<String>>(header: impl IntoIterator<Item = T>) -> Self {
        Self { header: header.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// Adds a row; missing cells are empty, surplus ones are dropped.
    pub fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        let mut cells: Vec<String> = cells.into_iter().map(Into::into).collect();
        cells.resize(self.header.len(), String::new());
        self.rows.push(cells);
    }

    /// Is there no row?
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Does a column hold numbers only? The first is always text: it names the row.
    fn numeric(&self, column: usize) -> bool {
        let number = |cell: &String| {
            cell.trim_start_matches('*')
                .starts_with(|c: char| c.is_ascii_digit() || "–-.".contains(c))
        };
        column > 0
            && self.rows.iter().map(|row| &row[column]).all(|cell| cell.is_empty() || number(cell))
    }

    /// Aligned columns for a terminal.
    pub fn to_text(&self) -> String {
        let lines = || std::iter::once(&self.header).chain(&self.rows);
        let widths: Vec<usize> = (0..self.header.len())
            .map(|column| lines().map(|line| line[column].chars().count()).max().unwrap_or(0))
            .collect();
        let mut text = String::new();
        for line in lines() {
            let mut row = String::new();
            for (column, (cell, width)) in line.iter().zip(&widths).enumerate() {
                let pad = " ".repeat(width - cell.chars().count());
                let gap = if column == 0 { "" } else { "  " };
                let (left, right) =
                    if self.numeric(column) { (pad.as_str(), "") } else { ("", pad.as_str()) };
                row.extend([gap, left, cell, right]);
            }
            text += row.trim_end();
            text.push('\n');
        }
        text
    }

    /// A Markdown table.
    pub fn to_markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let mut text = line(&self.header);
        let rule = |column: usize| if self.numeric(column) { "---:" } else { "---" }.to_owned();
        text += &line(&(0..self.header.len()).map(rule).collect::<Vec<_>>());
        self.rows.iter().for_each(|row| text += &line(row));
        text
    }

    /// An HTML table; a cell within `**` is set bold, as Markdown does.
    pub fn to_html(&self) -> String {
        let mut html = String::from("<div class=\"scroll\"><table><thead><tr>");
        let class = |column: usize| if self.numeric(column) { "" } else { " class=\"t\"" };
        for (column, cell) in self.header.iter().enumerate() {
            let _ = write!(html, "<th{}>{}</th>", class(column), escape(cell));
        }
        html += "</tr></thead><tbody>";
        for row in &self.rows {
            html += "<tr>";
            for (column, cell) in row.iter().enumerate() {
                let class = class(column);
                let bold = cell.strip_prefix("**").and_then(|rest| rest.strip_suffix("**"));
                let _ = match bold {
                    Some(cell) => write!(html, "<td{class}><b>{}</b></td>", escape(cell)),
                    None => write!(html, "<td{class}>{}</td>", escape(cell)),
                };
            }
            html += "</tr>";
        }
        html + "</tbody></table></div>\n"
    }
}

/// Text for HTML and SVG.
pub(crate) fn escape(text: &str) -> String {
    text.replace(is_illegal, "\u{fffd}")
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// What XML may not have, not even escaped: control characters but tab and ends of lines, and two
/// that are none. A figure with one would not be shown.
fn is_illegal(c: char) -> bool {
    matches!(c, '\0'..='\x08' | '\x0b' | '\x0c' | '\x0e'..='\x1f' | '\u{fffe}' | '\u{ffff}')
}

/// A share of 1 as the paper writes it.
pub(crate) fn share(value: f64) -> String {
    format!("{value:.3}")
}

/// A share, or a dash where there is nothing to take a share of.
pub(crate) fn maybe(value: Option<f64>) -> String {
    value.map_or("–".to_owned(), share)
}

/// A threshold: tenths as the paper writes them, others in full.
pub(crate) fn tau(threshold: f32) -> String {
    let tenths = threshold * 10.0;
    if (tenths - tenths.round()).abs() < 1e-4 {
        format!("{threshold:.1}")
    } else {
        threshold.to_string()
    }
}

/// A score in points of 100.
pub(crate) fn points(value: f64) -> String {
    format!("{:.2}", 100.0 * value)
}
