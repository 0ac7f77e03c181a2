//! What a model is evaluated on: the sentences of one split, checked against the model before
//! anything runs.

use std::collections::{BTreeSet, HashMap};

use serde::{Deserialize, Serialize};
use tapir::{Model, Scheme};
use tapir_data::{Corpus, Sentence, Split, Task, Text};

use crate::{Error, Result};

/// The sentences of a split, with gold labels as ids.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dataset {
    /// The task's name.
    pub task: String,
    /// The split's name.
    pub split: String,
    /// How labels make spans.
    pub scheme: Scheme,
    /// How results are scored.
    pub score: tapir_data::Metric,
    /// Labels by id: the model's own, then those of the split that it does not know and so never
    /// gets right.
    pub labels: Vec<String>,
    /// How many of the labels are the model's.
    pub known: usize,
    /// The sentences.
    pub examples: Vec<GoldSentence>,
}

/// One sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoldSentence {
    /// Its words.
    pub words: Vec<String>,
    /// The gold label of each word.
    pub gold: Vec<u16>,
    /// What it is about, where the corpus says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<String>,
}

impl Dataset {
    /// Takes a split of a task's corpus for a model.
    ///
    /// An error if the split is empty, if the model lacks a label of the training split (it is a
    /// model of another task), or if a sentence is longer than the model reads. A label that occurs
    /// only in the split itself is no fault of the model: it is kept, and counts as wrong.
    pub fn new(model: &Model, task: &Task, corpus: &Corpus, split: Split) -> Result<Self> {
        let known = model.labels();
        let trained: BTreeSet<&str> =
            corpus.train.iter().flat_map(|sentence| &sentence.labels).map(Text::as_str).collect();
        let missing: Vec<&str> =
            trained.into_iter().filter(|label| known.id(label).is_none()).collect();
        if !missing.is_empty() {
            let examples: Vec<String> =
                missing.iter().take(3).map(|label| format!("`{label}`")).collect();
            let trained = match model.config().task.as_str() {
                "" => "a task that it does not name".to_owned(),
                name => format!("`{name}`"),
            };
            return Err(Error::Labels {
                task: task.name.clone(),
                trained,
                count: missing.len(),
                examples: examples.join(", "),
            });
        }
        let sentences = corpus.split(split);
        if sentences.is_empty() {
            return Err(Error::Empty {
                what: format!("the {} split of {}", split.name(), task.name),
            });
        }
        let mut dataset = Self::of(model, sentences)?;
        (dataset.task, dataset.split) = (task.name.clone(), split.name().to_owned());
        (dataset.scheme, dataset.score) = (task.scheme.of_model(), task.score);
        Ok(dataset)
    }

    /// Takes any sentences for a model; task, scheme and score are the model's own.
    ///
    /// ```
    /// # let model = tapir::Model::from_parts(tapir::doctest::parts())?;
    /// let sentence = tapir_data::Sentence::new(["play", "jazz"], ["O", "B-genre"]);
    /// let dataset = tapir_eval::Dataset::of(&model, &[sentence])?;
    /// assert_eq!(dataset.words(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of(model: &Model, sentences: &[Sentence]) -> Result<Self> {
        if sentences.is_empty() {
            return Err(Error::Empty { what: "the list of sentences".to_owned() });
        }
        let config = model.config();
        let mut labels: Vec<String> = model.labels().iter().map(ToString::to_string).collect();
        let known = labels.len();
        let mut ids: HashMap<String, u16> =
            labels.iter().enumerate().map(|(id, label)| (label.clone(), id as u16)).collect();
        let mut examples = Vec::with_capacity(sentences.len());
        for (i, sentence) in sentences.iter().enumerate() {
            if sentence.len() + config.delay > config.max_length {
                return Err(Error::TooLong {
                    sentence: i + 1,
                    words: sentence.len(),
                    limit: config.max_length,
                });
            }
            let gold = sentence.labels.iter().map(|label| {
                *ids.entry(label.to_string()).or_insert_with(|| {
                    labels.push(label.to_string());
                    (labels.len() - 1) as u16
                })
            });
            let gold = gold.collect();
            examples.push(GoldSentence {
                words: sentence.words.iter().map(ToString::to_string).collect(),
                gold,
                intent: sentence.intent.as_ref().map(ToString::to_string),
            });
        }
        let score = match config.scheme {
            Scheme::Iob => tapir_data::Metric::F1,
            Scheme::Plain => tapir_data::Metric::Accuracy,
        };
        Ok(Self {
            task: config.task.clone(),
            split: String::new(),
            scheme: config.scheme,
            score,
            labels,
            known,
            examples,
        })
    }

    /// Keeps the first `count` sentences: a quick look at a large split.
    pub fn truncate(&mut self, count: usize) -> Result<()> {
        self.examples.truncate(count);
        if self.examples.is_empty() {
            return Err(Error::Empty { what: "a split cut to 0 sentences".to_owned() });
        }
        Ok(())
    }

    /// How many words there are.
    pub fn words(&self) -> usize {
        self.examples.iter().map(|example| example.words.len()).sum()
    }

    /// Labels of the split that the model does not know.
    pub fn unknown_labels(&self) -> &[String] {
        &self.labels[self.known..]
    }

    /// `F1` or `accuracy`: what the paper's tables show for the task.
    pub fn score_name(&self) -> &'static str {
        match self.score {
            tapir_data::Metric::F1 => "F1",
            tapir_data::Metric::Accuracy => "accuracy",
        }
    }

    /// The names of label ids.
    pub fn names(&self, ids: &[u16]) -> Vec<&str> {
        ids.iter().map(|id| self.labels[usize::from(*id)].as_str()).collect()
    }
}
