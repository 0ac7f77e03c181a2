//! The report as a page and as Markdown.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::Report;
use super::document::Part;
use crate::style::page;
use crate::table::escape;

const TITLE: &str = "TAPIR, evaluated";

impl Report {
    /// A self-contained HTML page.
    pub fn to_html(&self) -> String {
        let mut body = format!("<h1>{TITLE}</h1>\n");
        for paragraph in self.paragraphs() {
            let _ = writeln!(body, "<p>{}</p>", escape(&paragraph));
        }
        let sections = self.sections();
        body += "<nav>";
        for (i, section) in sections.iter().enumerate() {
            let _ = writeln!(body, "<a href=\"#s{i}\">{}</a>", escape(section.title));
        }
        body += "</nav>\n";
        for (i, section) in sections.iter().enumerate() {
            let _ = writeln!(
                body,
                "<h2 id=\"s{i}\">{}</h2>\n<p>{}</p>",
                escape(section.title),
                section.text
            );
            for part in &section.parts {
                let html = match part {
                    Part::Heading(text) => format!("<h3>{}</h3>\n", escape(text)),
                    Part::Table(table) => table.to_html(),
                    Part::Figures(note, figures) => format!(
                        "<div class=\"figures\">{}</div>\n<p class=\"note\">{note}</p>\n",
                        figures.concat()
                    ),
                    Part::Folded(name, table) | Part::Details(name, table) => {
                        format!(
                            "<details><summary>{}</summary>{}</details>\n",
                            escape(name),
                            table.to_html()
                        )
                    }
                    Part::Note(text) => format!("<p class=\"note\">{}</p>\n", escape(text)),
                };
                body += &html;
            }
        }
        page(TITLE, &body)
    }

    /// The same tables in Markdown.
    pub fn to_markdown(&self) -> String {
        let mut text = format!("# {TITLE}\n");
        for paragraph in self.paragraphs() {
            let _ = write!(text, "\n{}\n", wrap(&paragraph));
        }
        for section in self.sections() {
            let parts: Vec<String> = section
                .parts
                .iter()
                .filter_map(|part| match part {
                    Part::Heading(title) => Some(format!("### {title}\n")),
                    Part::Table(table) => Some(table.to_markdown()),
                    Part::Folded(title, table) => {
                        Some(format!("### {title}\n\n{}", table.to_markdown()))
                    }
                    Part::Note(note) => Some(wrap(note) + "\n"),
                    Part::Figures(..) | Part::Details(..) => None,
                })
                .collect();
            if parts.iter().any(|part| part.contains('|')) {
                let _ = write!(
                    text,
                    "\n## {}\n\n{}\n\n{}",
                    section.title,
                    wrap(&plain(&section.text)),
                    parts.join("\n")
                );
            }
        }
        text
    }

    fn paragraphs(&self) -> impl Iterator<Item = String> {
        let tasks = self.entries.iter().map(|entry| &entry.task).collect::<BTreeSet<_>>();
        let count = tasks.len();
        let head = format!(
            "{} on {count} {}, measured by the commands of tapir. Figures in brackets are the paper's \
             (Kahardipraja, Madureira, Schlangen: TAPIR, Findings of ACL 2023).",
            if self.entries.len() == 1 {
                "One model".to_owned()
            } else {
                format!("{} models", self.entries.len())
            },
            if count == 1 { "task" } else { "tasks" },
        );
        let notes = self.notes.split("\n\n").map(|text| text.trim().to_owned());
        std::iter::once(head).chain(notes.filter(|text| !text.is_empty()))
    }
}

/// Text in lines of at most 100 columns.
fn wrap(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.len() - 1;
        let line = &mut lines[last];
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= 100 {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.join("\n")
}

/// Text without the few tags that the sections use.
fn plain(text: &str) -> String {
    let mut out = text.replace("<b>", "**").replace("</b>", "**");
    for tag in ["<span class=\"wrong\">", "</span>"] {
        out = out.replace(tag, "");
    }
    out
}
