//! What the report is made of: results by task and model, and sections of tables and figures.

use tapir::ReviserKind;

use crate::paper::{PAPER, Paper, paper};
use crate::{Error, Result, Results, Table};

/// All results, merged by task, split and model.
#[derive(Clone, Debug)]
pub struct Report {
    pub(super) entries: Vec<Results>,
    pub(super) notes: String,
}

/// A part of the report: the same text and tables in both forms, figures only on the page.
#[derive(Default)]
pub(super) struct Section {
    pub(super) title: &'static str,
    pub(super) text: String,
    pub(super) parts: Vec<Part>,
}

pub(super) enum Part {
    Heading(String),
    Table(Table),
    /// Side by side, with a line on how to read them.
    Figures(String, Vec<String>),
    /// Shown on demand on the page, under a heading in the Markdown.
    Folded(String, Table),
    /// Shown on demand on the page, left out of the Markdown.
    Details(String, Table),
    Note(String),
}

impl Report {
    /// Merges results. `notes` is text of the user's own for the head of the report, paragraphs
    /// apart by blank lines.
    pub fn new(results: impl IntoIterator<Item = Results>, notes: &str) -> Result<Self> {
        let mut entries: Vec<Results> = Vec::new();
        for result in results {
            let same = |entry: &&mut Results| {
                (&entry.task, &entry.split) == (&result.task, &result.split)
                    && entry.model.name == result.model.name
                    && entry.model.title() == result.model.title()
            };
            match entries.iter_mut().find(same) {
                Some(entry) => entry.merge(result),
                None => entries.push(result),
            }
        }
        if entries.is_empty() {
            return Err(Error::Empty { what: "the list of results".to_owned() });
        }
        // The paper's order of tasks, then its order of models; tasks of the user's own come last, and
        // so do models that the paper has not: those with a pretrained reviser, and those whose policy
        // was trained once more, on the generator's actions.
        let place = |entry: &Results| {
            PAPER.iter().position(|p| p.task == entry.task).unwrap_or(PAPER.len())
        };
        let kind = |entry: &Results| {
            let kinds = [ReviserKind::LinearTransformer, ReviserKind::Bert];
            let kind = kinds.iter().position(|kind| entry.model.reviser == Some(*kind));
            (kind, entry.model.delay, entry.model.name.ends_with("-generator"))
        };
        entries.sort_by(|a, b| {
            let (first, second) = ((place(a), &a.task), (place(b), &b.task));
            (first, &b.split, kind(a), &a.model.name).cmp(&(
                second,
                &a.split,
                kind(b),
                &b.model.name,
            ))
        });
        Ok(Self { entries, notes: notes.trim().to_owned() })
    }

    /// Results with the name of their row: task and model.
    pub(super) fn named(&self) -> impl Iterator<Item = (String, &Results)> {
        self.entries.iter().map(|entry| (self.row(entry), entry))
    }

    /// Task and model; also the run, where a task has several models that are called the same.
    pub(super) fn row(&self, entry: &Results) -> String {
        let row = format!("{}, {}", task_title(entry), entry.model.title());
        if self.alone(entry) { row } else { format!("{row} ({})", entry.model.name) }
    }

    /// The same in a word or two, for figures: `SNIPS`, `SNIPS LT D1`, or the run's name.
    pub(super) fn short(&self, entry: &Results) -> String {
        if !self.alone(entry) {
            return entry.model.name.clone();
        }
        let linear = entry.model.reviser == Some(ReviserKind::LinearTransformer);
        let delay = match entry.model.delay {
            0 => String::new(),
            delay => format!(" D{delay}"),
        };
        format!("{}{}{delay}", task_title(entry), if linear { " LT" } else { "" })
    }

    /// Is it the only model of its task that is called so?
    fn alone(&self, entry: &Results) -> bool {
        let same = |other: &&Results| {
            task_title(other) == task_title(entry) && other.model.title() == entry.model.title()
        };
        self.entries.iter().filter(same).count() == 1
    }

    /// Results by the title of their task.
    pub(super) fn by_task(&self) -> Vec<(String, Vec<&Results>)> {
        let mut groups: Vec<(String, Vec<&Results>)> = Vec::new();
        for entry in &self.entries {
            let name = task_title(entry);
            match groups.last_mut().filter(|(last, _)| *last == name) {
                Some((_, group)) => group.push(entry),
                None => groups.push((name, vec![entry])),
            }
        }
        groups
    }
}

/// The paper's name for the task; other splits than test are named.
fn task_title(entry: &Results) -> String {
    let title = paper(&entry.task).map_or(entry.task.as_str(), |paper| paper.title);
    if entry.split == "test" || entry.split.is_empty() {
        title.to_owned()
    } else {
        format!("{title} ({})", entry.split)
    }
}

/// The paper's figures, which are those of the test split.
pub(super) fn theirs(entry: &Results) -> Option<&'static Paper> {
    paper(&entry.task).filter(|_| entry.split == "test")
}
