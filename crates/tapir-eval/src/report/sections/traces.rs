//! Sentences, step by step.

use super::super::Report;
use super::super::document::{Part, Section};
use crate::trace::LEGEND;

impl Report {
    pub(super) fn traces(&self) -> Section {
        let mut parts = Vec::new();
        for (name, entry) in self.named() {
            for trace in &entry.traces {
                let which = if trace.sentence > 0 {
                    format!(", sentence {}", trace.sentence)
                } else {
                    String::new()
                };
                parts.push(Part::Heading(format!("{name}{which}")));
                let figure = format!("<div class=\"scroll\">{}</div>", trace.to_svg(false));
                parts.push(Part::Figures(String::new(), vec![figure]));
            }
        }
        Section { title: "Sentences, step by step", text: LEGEND.to_owned(), parts }
    }
}
