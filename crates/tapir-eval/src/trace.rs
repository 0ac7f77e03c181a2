//! The paper's qualitative figure: a row per time step, edited labels marked, wrong ones coloured.

use std::fmt::Write;

use serde::{Deserialize, Serialize};
use tapir::Action;

use crate::style::{STYLE, page};
use crate::table::escape;
use crate::{Dataset, Record};

/// One sentence as a model read it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// Which sentence of its split, counted from 1; 0 for a text of the user's own.
    pub sentence: usize,
    /// The words.
    pub words: Vec<String>,
    /// Gold labels, where there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gold: Option<Vec<String>>,
    /// What happened at each step, those of a delay included.
    pub steps: Vec<Step>,
}

/// One time step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// WRITE or REVISE.
    pub action: Action,
    /// The policy value behind it.
    pub policy: Option<f32>,
    /// The output buffer after the step.
    pub cells: Vec<Cell>,
}

/// One label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// The label.
    pub label: String,
    /// The label before, if this step changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    /// What the first pass said of the newest word, if the revision at once said otherwise (a
    /// right-frontier edit).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_pass: Option<String>,
    /// Does it differ from the final output?
    pub wrong: bool,
}

impl Cell {
    /// For plain text: edited and wrong by marks, not by colour.
    fn text(&self) -> String {
        let wrong = if self.wrong { "✗" } else { "" };
        format!("{}{}{wrong}", self.mark(), self.label)
    }

    fn mark(&self) -> &'static str {
        match (&self.old, &self.first_pass) {
            (Some(_), _) => "◆",
            (None, Some(_)) => "◇",
            (None, None) => "",
        }
    }
}

impl Trace {
    /// The trace of the sentence with this index (from 0); none if there is no such sentence.
    pub fn of(dataset: &Dataset, record: &Record, index: usize, with_gold: bool) -> Option<Self> {
        let (example, run) = (dataset.examples.get(index)?, record.runs.get(index)?);
        let last = run.outputs.last();
        let name = |id: u16| dataset.labels[usize::from(id)].clone();
        let steps =
            run.actions.iter().zip(&run.policy).enumerate().map(|(step, (action, policy))| {
                // A delayed model has labelled nothing in its first steps.
                let shown = (step + 1).saturating_sub(record.setting.delay);
                let (now, before) = match shown {
                    0 => (&[][..], &[][..]),
                    1 => (run.outputs.at(0), &[][..]),
                    n => (run.outputs.at(n - 1), run.outputs.at(n - 2)),
                };
                let first_pass = run.provisional.get(step).copied().flatten();
                let cells = now.iter().enumerate().map(|(word, &label)| Cell {
                    label: name(label),
                    old: before.get(word).filter(|old| **old != label).map(|old| name(*old)),
                    first_pass: first_pass
                        .filter(|first| word + 1 == now.len() && *first != label)
                        .map(name),
                    wrong: last[word] != label,
                });
                Step { action: *action, policy: *policy, cells: cells.collect() }
            });
        Some(Self {
            sentence: index + 1,
            words: example.words.clone(),
            gold: with_gold.then(|| example.gold.iter().map(|label| name(*label)).collect()),
            steps: steps.collect(),
        })
    }

    /// So many telling sentences: edited on the way, right in the end, short enough to read; the
    /// most edited first.
    pub fn pick(dataset: &Dataset, record: &Record, count: usize) -> Vec<Self> {
        const SHORT: std::ops::RangeInclusive<usize> = 4..=12;
        let short =
            (0..record.runs.len()).filter(|&i| SHORT.contains(&record.runs[i].outputs.len()));
        let mut traces: Vec<Self> = short
            .filter_map(|i| Self::of(dataset, record, i, true))
            .filter(|trace| trace.edits() > 0)
            .collect();
        traces.sort_by_key(|trace| {
            (!trace.right(), std::cmp::Reverse(trace.edits()), trace.sentence)
        });
        traces.truncate(count);
        traces
    }

    /// How many labels were changed after they were given.
    pub fn edits(&self) -> usize {
        self.steps.iter().flat_map(|step| &step.cells).filter(|cell| cell.old.is_some()).count()
    }

    /// Is the final output the gold one?
    pub fn right(&self) -> bool {
        let last = self.steps.last().map(|step| step.cells.iter().map(|cell| cell.label.as_str()));
        match (last, &self.gold) {
            (Some(last), Some(gold)) => last.eq(gold.iter().map(String::as_str)),
            _ => false,
        }
    }

    /// For a terminal of `width` columns; a wide sentence is shown in parts, one below the other.
    pub fn to_text(&self, width: usize, colour: bool) -> String {
        let rows: Vec<Vec<String>> =
            self.steps.iter().map(|step| step.cells.iter().map(Cell::text).collect()).collect();
        let columns = 0..self.words.len();
        let widths: Vec<usize> = columns
            .map(|column| {
                let cells = rows.iter().filter_map(|row| row.get(column));
                let gold = self.gold.iter().filter_map(|gold| gold.get(column));
                let all = cells.chain(gold).chain(self.words.get(column));
                all.map(|text| text.chars().count()).max().unwrap_or(0)
            })
            .collect();
        let mut text = String::new();
        let mut start = 0;
        while start < widths.len() {
            let mut end = start;
            let mut used = 19; // step, action and policy value
            while end < widths.len() && (end == start || used + widths[end] + 2 <= width) {
                used += widths[end] + 2;
                end += 1;
            }
            self.part(&mut text, &rows, &widths, start..end, colour);
            start = end;
            if start < widths.len() {
                text.push('\n');
            }
        }
        text
    }

    fn part(
        &self,
        text: &mut String,
        rows: &[Vec<String>],
        widths: &[usize],
        columns: std::ops::Range<usize>,
        colour: bool,
    ) {
        let mut line = |head: String, cells: &mut dyn Iterator<Item = (String, usize, &str)>| {
            let mut row = head;
            for (cell, width, ansi) in cells {
                let pad = " ".repeat(width.saturating_sub(cell.chars().count()));
                let end = if ansi.is_empty() { "" } else { "\u{1b}[0m" };
                let _ = write!(row, "  {ansi}{cell}{end}{pad}");
            }
            text.push_str(row.trim_end());
            text.push('\n');
        };
        let range = columns.clone();
        line(
            format!("{:>3}  {:<6}  {:>6}", "t", "action", "policy"),
            &mut range
                .map(|i| (self.words[i].clone(), widths[i], if colour { "\u{1b}[1m" } else { "" })),
        );
        for (t, (step, row)) in self.steps.iter().zip(rows).enumerate() {
            let policy = step.policy.map_or("–".to_owned(), |value| format!("{value:.3}"));
            let head = format!("{:>3}  {:<6}  {policy:>6}", t + 1, name(step.action));
            let range = columns.start..columns.end.min(row.len());
            line(
                head,
                &mut range.map(|i| {
                    let ansi = match (colour, step.cells[i].wrong, step.cells[i].old.is_some()) {
                        (true, true, _) => "\u{1b}[31m",
                        (true, false, true) => "\u{1b}[1m",
                        _ => "",
                    };
                    (row[i].clone(), widths[i], ansi)
                }),
            );
        }
        if let Some(gold) = &self.gold {
            let range = columns.start..columns.end.min(gold.len());
            line(format!("{:<19}", "gold"), &mut range.map(|i| (gold[i].clone(), widths[i], "")));
        }
    }

    /// An SVG figure; with `alone` it carries its own colours, otherwise it takes those of the page
    /// around it.
    pub fn to_svg(&self, alone: bool) -> String {
        const ROW: f64 = 34.0;
        const LEFT: f64 = 158.0;
        // 7.3 pixels a character of the 12-pixel monospaced font, and room for the mark.
        let wide = |text: &str| text.chars().count() as f64 * 7.3;
        let mut x = vec![LEFT];
        for word in 0..self.words.len() {
            let cells = self.steps.iter().filter_map(|step| step.cells.get(word));
            let old = cells
                .clone()
                .flat_map(|cell| cell.old.iter().chain(&cell.first_pass))
                .map(|old| 0.8 * wide(old));
            let gold = self.gold.iter().filter_map(|gold| gold.get(word));
            let labels = cells.map(|cell| &cell.label).chain(gold).map(|label| wide(label));
            let widest = labels.chain(old).fold(wide(&self.words[word]), f64::max);
            x.push(x[word] + widest + 26.0);
        }
        let rows = self.steps.len() + usize::from(self.gold.is_some());
        let (width, height) = (x[self.words.len()] + 4.0, ROW * (rows as f64 + 1.0) + 12.0);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"trace\" viewBox=\"0 0 {width:.0} {height:.0}\" \
             width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\" aria-label=\"{}\">",
            escape(&format!("Labels of “{}” at every step", self.words.join(" "))),
        );
        if alone {
            let _ = write!(
                svg,
                "<style>{STYLE}</style><rect class=\"paper\" width=\"100%\" height=\"100%\"/>"
            );
        }
        let mut put = |x: f64, y: f64, class: &str, text: &str| {
            let _ = write!(
                svg,
                "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"{class}\">{}</text>",
                escape(text)
            );
        };
        put(8.0, 22.0, "dim", "t");
        put(34.0, 22.0, "dim", "action");
        put(98.0, 22.0, "dim", "policy");
        for (word, x) in self.words.iter().zip(&x) {
            put(x + 12.0, 22.0, "word", word);
        }
        for (t, step) in self.steps.iter().enumerate() {
            let y = ROW * (t as f64 + 1.0) + 22.0;
            put(8.0, y, "dim", &(t + 1).to_string());
            let class = if step.action == Action::Revise { "revise" } else { "mono" };
            put(34.0, y, class, name(step.action));
            put(
                98.0,
                y,
                "mono",
                &step.policy.map_or("–".to_owned(), |value| format!("{value:.3}")),
            );
            for (cell, x) in step.cells.iter().zip(&x) {
                if let Some(old) = cell.old.as_ref().or(cell.first_pass.as_ref()) {
                    put(x - 1.0, y, if cell.wrong { "wrong" } else { "mark" }, cell.mark());
                    put(x + 12.0, y - 13.0, "old", old);
                }
                put(x + 12.0, y, if cell.wrong { "wrong" } else { "mono" }, &cell.label);
            }
        }
        if let Some(gold) = &self.gold {
            let y = ROW * (self.steps.len() as f64 + 1.0) + 22.0;
            put(8.0, y, "dim", "gold");
            for (label, x) in gold.iter().zip(&x) {
                put(x + 12.0, y, "dim", label);
            }
        }
        svg + "</svg>\n"
    }

    /// A page of its own.
    pub fn to_html(&self) -> String {
        let title = escape(&self.words.join(" "));
        page(
            "Trace",
            &format!(
                "<h1>{title}</h1><p>{LEGEND}</p><div class=\"scroll\">{}</div>",
                self.to_svg(false)
            ),
        )
    }
}

/// What the marks mean.
pub(crate) const LEGEND: &str = "A row per time step, the newest word last. <b>◆</b> marks a label that the step changed, with \
     the old one above it; <b>◇</b> a newest word on which the revision overruled the first pass, whose label stands above it. \
     Labels in <span class=\"wrong\">red italics</span> differ from the final output.";

fn name(action: Action) -> &'static str {
    match action {
        Action::Write => "WRITE",
        Action::Revise => "REVISE",
    }
}
