//! What was run.

use super::super::Report;
use super::super::document::{Part, Section};
use crate::paper::{Paper, paper};
use crate::{Results, Table};

impl Report {
    pub(super) fn runs(&self) -> Section {
        let mut table = Table::new([
            "model",
            "task",
            "split",
            "sentences",
            "τ",
            "parameters",
            "sizes",
            "seed",
            "commit",
            "seconds",
        ]);
        for entry in &self.entries {
            let count = entry.evaluation.as_ref().map(|evaluation| evaluation.sentences);
            let preset = entry.model.preset.as_ref();
            let seed = entry.model.seed.as_ref().or_else(|| preset?.get("seed"));
            table.row([
                format!("{} ({})", entry.model.title(), entry.model.name),
                entry.task.clone(),
                entry.split.clone(),
                count.map_or("–".to_owned(), |count| count.to_string()),
                format!(
                    "{:.2}",
                    entry
                        .evaluation
                        .as_ref()
                        .map_or(entry.model.threshold, |e| e.setting.threshold)
                ),
                parameters(entry),
                preset.and_then(sizes).unwrap_or_else(|| "–".to_owned()),
                seed.map_or("–".to_owned(), ToString::to_string),
                entry.provenance.to_string(),
                format!("{:.1}", entry.provenance.seconds),
            ]);
        }
        let text = "Every figure below comes from these models. Sizes are those of LSTM, controller and reviser (layers × self-attention / feed-forward); the time is that of measuring.".to_owned();
        Section { title: "What was run", text, parts: vec![Part::Table(table)] }
    }
}

/// Ours and those of the paper's model for the task, in millions.
fn parameters(entry: &Results) -> String {
    let ours = format!("{:.2} M", entry.model.parameters as f64 / 1e6);
    let theirs = paper(&entry.task).and_then(|p| Paper::of_kind(p.parameters, entry.model.reviser));
    theirs.map_or(ours.clone(), |theirs| format!("{ours} ({theirs:.1} M)"))
}

/// LSTM, controller and reviser (layers × hidden / feed-forward, or the encoder's name) of a preset.
fn sizes(preset: &serde_json::Value) -> Option<String> {
    let (processor, controller, reviser) =
        (preset.get("processor")?, preset.get("controller")?, preset.get("reviser")?);
    let reviser = match reviser.get("pretrained").and_then(|encoder| encoder.as_str()) {
        Some(encoder) => encoder.rsplit('/').next().unwrap_or(encoder).to_owned(),
        None => format!(
            "{} × {} / {}",
            reviser.get("layers")?,
            reviser.get("hidden")?,
            reviser.get("feed_forward")?
        ),
    };
    Some(format!("{} · {} · {reviser}", processor.get("hidden")?, controller.get("hidden")?))
}
