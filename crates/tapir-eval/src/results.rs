//! `results/*.json`: what the commands measured, and what the report is made from.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tapir::{Model, ReviserKind};
use tapir_data::write_atomically;

use crate::{
    Against, Analysis, Bench, Choice, Dataset, Error, Evaluation, InDomainScores, Provenance,
    Result, StabilityScores, Sweep, Trace,
};

/// The version of the file that this build writes, and the only one that it reads.
pub const RESULTS_VERSION: u32 = 2;

/// What one command measured; parts that it does not measure are absent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Results {
    /// [`RESULTS_VERSION`]
    pub version: u32,
    /// The task's name.
    pub task: String,
    /// The split.
    pub split: String,
    /// The model.
    pub model: ModelInfo,
    /// The program that measured.
    pub provenance: Provenance,
    /// Metrics of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<Evaluation>,
    /// Metrics of the restart-incremental reference: its reviser at every word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<Evaluation>,
    /// Whether answers stay as often as the model says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stability: Option<StabilityScores>,
    /// How well the model tells what is not for it, by the text that is not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_domain: Vec<InDomainScores>,
    /// How far another model agrees, such as the same one in f32.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<Against>,
    /// Metrics by threshold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sweep: Option<Sweep>,
    /// The threshold that was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<Choice>,
    /// What the policy does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub analysis: Option<Analysis>,
    /// Speed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bench: Option<Bench>,
    /// Sentences to show.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traces: Vec<Trace>,
}

/// Which model it was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelInfo {
    /// The name of its directory.
    pub name: String,
    /// Its reviser.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reviser: Option<ReviserKind>,
    /// Its look-ahead.
    pub delay: usize,
    /// Its default threshold.
    pub threshold: f32,
    /// The seed and the preset that it was trained with, where its configuration says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<serde_json::Value>,
    /// Likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<serde_json::Value>,
    /// Trained numbers in it.
    pub parameters: usize,
}

impl ModelInfo {
    /// Describes the model in `folder`.
    pub fn of(model: &Model, folder: &Path) -> Self {
        let config = model.config();
        // `tapir train` leaves its model in RUN/model: the run is what it is known by.
        let run =
            folder.parent().filter(|run| folder.ends_with("model") && run.file_name().is_some());
        let folder = run.unwrap_or(folder);
        let name = folder
            .file_name()
            .map_or_else(|| folder.to_string_lossy(), |name| name.to_string_lossy());
        let tensors = config.tensors(model.labels().len(), model.vocabulary().len());
        Self {
            name: name.into_owned(),
            reviser: config.reviser.as_ref().map(|reviser| reviser.kind),
            delay: config.delay,
            threshold: config.threshold,
            seed: config.provenance.get("seed").cloned(),
            preset: config.provenance.get("preset").cloned(),
            parameters: tensors.iter().map(|(_, shape)| shape.iter().product::<usize>()).sum(),
        }
    }

    /// `TAPIR-Trf`, `TAPIR-LT (D1)`: what the paper's tables call it.
    pub fn title(&self) -> String {
        let kind = match self.reviser {
            Some(ReviserKind::Transformer) => "TAPIR-Trf",
            Some(ReviserKind::LinearTransformer) => "TAPIR-LT",
            Some(ReviserKind::Bert) => "TAPIR-BERT",
            None => "first pass",
        };
        if self.delay == 0 { kind.to_owned() } else { format!("{kind} (D{})", self.delay) }
    }
}

impl Results {
    /// Results without any part yet.
    pub fn new(dataset: &Dataset, model: ModelInfo, provenance: Provenance) -> Self {
        Self {
            version: RESULTS_VERSION,
            task: dataset.task.clone(),
            split: dataset.split.clone(),
            model,
            provenance,
            evaluation: None,
            reference: None,
            stability: None,
            in_domain: Vec::new(),
            against: None,
            sweep: None,
            choice: None,
            analysis: None,
            bench: None,
            traces: Vec::new(),
        }
    }

    /// Is this the text of a results file, of whatever version? Damaged ones count, so that opening
    /// them says what is wrong.
    pub fn is_one(text: &str) -> bool {
        serde_json::from_str::<serde_json::Value>(text).map_or(true, |value| {
            ["version", "model", "split"].iter().all(|key| value.get(key).is_some())
        })
    }

    /// Reads a results file.
    pub fn open(path: &Path) -> Result<Self> {
        // The version is looked at first, so that a newer file is named as such and not as an
        // unknown field.
        #[derive(Deserialize)]
        struct Version {
            version: Option<u32>,
        }
        let text = fs::read_to_string(path).map_err(|error| Error::results(path, error))?;
        let parse = |error: serde_json::Error| {
            Error::results(
                path,
                format!("{error}; expected a file that a tapir command wrote with --output"),
            )
        };
        let version: Version = serde_json::from_str(&text).map_err(parse)?;
        match version.version {
            Some(RESULTS_VERSION) => serde_json::from_str(&text).map_err(parse),
            Some(other) => Err(Error::results(
                path,
                format!(
                    "results version {other} is not known to this build, which reads version {RESULTS_VERSION}; \
                     measure again, or use the tapir that wrote it"
                ),
            )),
            None => {
                Err(Error::results(path, "no `version` field: is this a results file of tapir?"))
            }
        }
    }

    /// Notes the scores in the configuration of the model in `folder`, under `scores`.
    pub fn keep(&self, folder: &Path) -> Result<()> {
        let round = |value: f64| (value * 1e4).round() / 1e4;
        let row = |evaluation: &Evaluation| {
            let incremental = &evaluation.incremental;
            serde_json::json!({
                (evaluation.headline_name()): round(100.0 * evaluation.headline()),
                "edit_overhead": round(incremental.edit_overhead.mean),
                "correction_time": round(incremental.correction_time.mean),
                "relative_correctness": round(incremental.relative_correctness.mean),
                "revised": round(evaluation.actions.revise as f64 / evaluation.words.max(1) as f64),
                "threshold": evaluation.setting.threshold,
            })
        };
        let scores = serde_json::json!({
            "task": self.task,
            "split": self.split,
            "policy": self.evaluation.as_ref().map(row),
            "last_revision": self.reference.as_ref().map(row),
            "against": self.against,
        });
        tapir::amend(folder, |config| _ = config.provenance.insert("scores".to_owned(), scores))?;
        Ok(())
    }

    /// Writes a results file, whole or not at all. Missing folders are made.
    pub fn save(&self, path: &Path) -> Result<()> {
        let mut json =
            serde_json::to_vec_pretty(self).map_err(|error| Error::results(path, error))?;
        json.push(b'\n');
        Ok(write_atomically(path, &json)?)
    }

    /// Takes the parts of another file about the same model and split; of a part in both, the
    /// other's.
    pub(crate) fn merge(&mut self, other: Self) {
        let seconds = self.provenance.seconds + other.provenance.seconds;
        // The scores are what a reader looks the commit up for.
        if other.evaluation.is_some() {
            self.provenance = other.provenance;
        }
        self.provenance.seconds = seconds;
        self.evaluation = other.evaluation.or(self.evaluation.take());
        self.reference = other.reference.or(self.reference.take());
        self.stability = other.stability.or(self.stability.take());
        if !other.in_domain.is_empty() {
            self.in_domain = other.in_domain;
        }
        self.sweep = other.sweep.or(self.sweep.take());
        self.choice = other.choice.or(self.choice.take());
        self.analysis = other.analysis.or(self.analysis.take());
        self.bench = other.bench.or(self.bench.take());
        self.traces.extend(other.traces);
    }
}
