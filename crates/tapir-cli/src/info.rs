//! `tapir info`: what a model is made of.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Result;
use serde_json::json;
use tapir::{Model, ReviserKind};

use crate::model::DEFAULT_MODEL;

/// Show what a model is made of
///
/// Example: tapir info runs/snips
#[derive(clap::Args)]
pub(crate) struct Info {
    /// A model that ships (snips, snips-small, pos), a training run, or the directory of a model
    /// [default: snips]
    #[arg(value_name = "NAME|DIR")]
    name: Option<PathBuf>,
    /// The same
    #[arg(long, value_name = "NAME|DIR", conflicts_with = "name")]
    model: Option<PathBuf>,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

impl Info {
    pub(crate) fn run(self) -> Result<()> {
        let model = Model::find(self.name.or(self.model).unwrap_or_else(|| DEFAULT_MODEL.into()))?;
        let text = if self.json { as_json(&model)? } else { as_text(&model) };
        std::io::stdout().write_all(text.as_bytes())?;
        Ok(())
    }
}

fn as_json(model: &Model) -> Result<String> {
    let (first_pass, reviser) = model.weight_bytes();
    let mut info = json!({
        "config": model.config(),
        "labels": model.labels().iter().collect::<Vec<_>>(),
        "words": model.vocabulary().len(),
        "ids": model.vocabulary().ids(),
        "file_bytes": model.parts().weights.len(),
        "first_pass_bytes": first_pass,
        "reviser_bytes": reviser,
        "kernels": tapir::kernels::isa().to_string(),
    });
    if let Some(pieces) = &model.parts().pieces {
        info["pieces"] = pieces.len().into();
    }
    Ok(serde_json::to_string_pretty(&info)? + "\n")
}

fn as_text(model: &Model) -> String {
    let config = model.config();
    let mut rows: Vec<(&str, String)> = Vec::new();
    if !config.task.is_empty() {
        rows.push(("task", config.task.clone()));
    }
    rows.push(("labels", model.labels().len().to_string()));
    let mut words = format!("{} trained", model.vocabulary().len());
    if let Some(vectors) = model.vocabulary().vectors() {
        let _ = write!(words, ", {} more with a pretrained vector", vectors.len());
    }
    rows.push(("words", words));
    if let Some(pieces) = &model.parts().pieces {
        rows.push(("pieces", pieces.len().to_string()));
    }
    rows.push(("threshold", config.threshold.to_string()));
    rows.push(("delay", config.delay.to_string()));
    if let Some(p) = &config.processor {
        rows.push(("processor", format!("LSTM, {}, hidden {}", layers(p.layers), p.hidden)));
    }
    if let Some(c) = &config.controller {
        rows.push((
            "controller",
            format!("LSTMN, {}, hidden {}, memory {}", layers(c.layers), c.hidden, c.memory),
        ));
    }
    if let Some(r) = &config.reviser {
        let kind = match r.kind {
            ReviserKind::Transformer => "Transformer",
            ReviserKind::LinearTransformer => "Linear Transformer",
            ReviserKind::Bert => "BERT",
        };
        let sizes =
            format!("hidden {}, feed-forward {}, {} heads", r.hidden, r.feed_forward, r.heads);
        rows.push(("reviser", format!("{kind}, {}, {sizes}", layers(r.layers))));
    }
    let (first_pass, reviser) = model.weight_bytes();
    let megabytes = |bytes: usize| format!("{:.1} MB", bytes as f64 / 1e6);
    rows.push(("file", megabytes(model.parts().weights.len())));
    rows.push((
        "per word",
        format!("{} of weights read, {} more to revise", megabytes(first_pass), megabytes(reviser)),
    ));
    rows.push(("kernels", tapir::kernels::isa().to_string()));
    rows.iter().fold(String::new(), |mut text, (name, value)| {
        let _ = writeln!(text, "{name:<11} {value}");
        text
    })
}

fn layers(n: usize) -> String {
    if n == 1 { "1 layer".to_owned() } else { format!("{n} layers") }
}
