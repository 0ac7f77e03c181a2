//! Checkpoints: a stage that is killed goes on from the last one as if nothing had happened, to the
//! bit.
//!
//! Every random number of a batch is drawn from a generator for seed, epoch and batch, so that the
//! position is the whole random state.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use burn::tensor::Device;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
use serde::{Deserialize, Serialize};
use tapir_data::write_atomically;

use crate::weights::{tensor, values};
use crate::{AdamW, Error, Result, StageReport, Validation, Weights};

/// Where a stage stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Position {
    /// What it trains on what; another preset or corpus has another one.
    pub(crate) fingerprint: String,
    /// The current epoch, from 0.
    pub(crate) epoch: usize,
    /// The next batch of it.
    pub(crate) batch: usize,
    /// Loss so far in this epoch, and the words behind it.
    pub(crate) loss: f64,
    pub(crate) words: usize,
    /// Seconds of training so far, over all runs.
    pub(crate) seconds: f64,
    /// The epoch that is kept so far, and its validation score.
    pub(crate) kept: Option<(usize, Option<Validation>)>,
    /// The best validation score so far.
    pub(crate) best_score: Option<f64>,
    /// The epoch from which on the learning rate falls, where it had waited for that.
    #[serde(default)]
    pub(crate) fall_from: Option<usize>,
}

impl Position {
    /// Is an epoch with this validation score the one to keep? Of equals the later one has learnt
    /// more.
    pub(crate) fn is_best(&self, score: Option<f64>) -> bool {
        self.best_score.is_none_or(|best| score >= Some(best))
    }

    /// Have so many epochs brought no better validation score? While nothing is right yet, no score
    /// says whether anything is learnt.
    pub(crate) fn is_out_of(&self, patience: usize) -> bool {
        let kept = self.kept.map_or(0, |(epoch, _)| epoch + 1);
        let has_begun = self.best_score.is_some_and(|best| best > 0.0);
        has_begun && self.epoch.saturating_sub(kept) >= patience
    }
}

const POSITION: &str = "tapir.position";
const STEP: &str = "tapir.step";

/// Writes a checkpoint aside and renames it: there is always a whole one.
pub(crate) fn save(
    path: &Path,
    weights: &Weights,
    adamw: &AdamW,
    position: &Position,
) -> Result<()> {
    let mut arrays: BTreeMap<String, (Vec<usize>, Vec<u8>)> = BTreeMap::new();
    let bytes =
        |values: &[f32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    for (name, tensor) in &weights.tensors {
        arrays.insert(format!("w.{name}"), (tensor.dims().to_vec(), bytes(&values(tensor))));
    }
    for (name, table) in &weights.tables {
        arrays.insert(format!("w.{name}"), (vec![table.values.len()], bytes(&table.values)));
    }
    for (name, moments) in &adamw.moments {
        for (i, moment) in moments.iter().enumerate() {
            arrays.insert(format!("m{i}.{name}"), (vec![moment.len()], bytes(moment)));
        }
    }
    for (name, average) in &adamw.average {
        arrays.insert(format!("a.{name}"), (vec![average.len()], bytes(average)));
    }
    let invalid = |error: String| Error::invalid(path.display(), error);
    let json = serde_json::to_string(position).map_err(|error| invalid(error.to_string()))?;
    let about =
        HashMap::from([(POSITION.to_owned(), json), (STEP.to_owned(), adamw.step.to_string())]);
    let views: Vec<_> = arrays
        .iter()
        .map(|(name, (shape, bytes))| {
            Ok((name, TensorView::new(Dtype::F32, shape.clone(), bytes)?))
        })
        .collect::<Result<_, safetensors::SafeTensorError>>()
        .map_err(|error| invalid(error.to_string()))?;
    let bytes =
        safetensors::serialize(views, Some(about)).map_err(|error| invalid(error.to_string()))?;
    Ok(write_atomically(path, &bytes)?)
}

/// How a finished part of a stage ended.
pub(crate) fn read_report(folder: &Path, part: &str) -> Result<StageReport> {
    let path = folder.join(format!("{part}.json"));
    let bytes = std::fs::read(&path).map_err(|error| Error::io(&path, error))?;
    serde_json::from_slice(&bytes).map_err(|error| Error::invalid(path.display(), error))
}

/// Reads a checkpoint into `weights` and `adamw`; one of another preset or corpus is an error.
pub(crate) fn load(
    path: &Path,
    weights: &mut Weights,
    adamw: &mut AdamW,
    fingerprint: &str,
    device: &Device,
) -> Result<Position> {
    let bytes = std::fs::read(path).map_err(|error| Error::io(path, error))?;
    let invalid = |reason: String| {
        Error::invalid(
            path.display(),
            format!("{reason}; delete the file to train this stage anew"),
        )
    };
    let broken =
        |error: safetensors::SafeTensorError| invalid(format!("not a whole checkpoint ({error})"));
    // It also refuses a header that lies, which the next line would not.
    let (_, metadata) = tapir::read_header(&bytes).map_err(broken)?;
    let file = SafeTensors::deserialize(&bytes).map_err(broken)?;
    let about = metadata.metadata().clone().unwrap_or_default();
    let position = about.get(POSITION).and_then(|json| serde_json::from_str::<Position>(json).ok());
    let position = position.ok_or_else(|| invalid("not a checkpoint of this program".into()))?;
    if position.fingerprint != fingerprint {
        return Err(invalid("a checkpoint of another preset, seed or corpus".into()));
    }
    let read = |name: &str, count: usize| -> Result<Vec<f32>> {
        let view = file.tensor(name).map_err(|error| invalid(error.to_string()))?;
        let values: Vec<f32> =
            view.data().as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
        if values.len() == count {
            Ok(values)
        } else {
            Err(invalid(format!("`{name}` has another size")))
        }
    };
    for (name, weight) in &mut weights.tensors {
        let shape = weight.dims();
        *weight = tensor(read(&format!("w.{name}"), shape[0] * shape[1])?, shape, device);
    }
    for (name, table) in &mut weights.tables {
        table.values = read(&format!("w.{name}"), table.values.len())?;
    }
    let sizes = |prefix: &str| -> Vec<(String, usize)> {
        let size = |(name, view): (&str, TensorView)| {
            Some((name.strip_prefix(prefix)?.to_owned(), view.data().len() / 4))
        };
        file.iter().filter_map(size).collect()
    };
    adamw.average.clear();
    for (name, size) in sizes("a.") {
        adamw.average.insert(name.clone(), read(&format!("a.{name}"), size)?);
    }
    adamw.moments.clear();
    for (name, size) in sizes("m0.") {
        let moments = [read(&format!("m0.{name}"), size)?, read(&format!("m1.{name}"), size)?];
        adamw.moments.insert(name, moments);
    }
    adamw.step = about.get(STEP).and_then(|step| step.parse().ok()).unwrap_or_default();
    Ok(position)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spans that are rare have an F1 of 0 for epochs, in which much is learnt.
    #[test]
    fn patience_begins_with_the_first_score_and_ties_are_progress() {
        let mut position = Position::default();
        let (mut kept, mut ended) = (0, None);
        for (epoch, score) in [0.0, 0.0, 0.0, 20.0, 40.0, 40.0, 39.0, 38.0, 50.0].iter().enumerate()
        {
            if ended.is_none() && position.is_out_of(2) {
                ended = Some(epoch);
            }
            if ended.is_none() && position.is_best(Some(*score)) {
                position.kept = Some((epoch, None));
                kept = epoch;
            }
            position.best_score = position.best_score.into_iter().chain([*score]).reduce(f64::max);
            position.epoch += 1;
        }
        assert_eq!((kept, ended), (5, Some(8)));
    }

    /// An epoch that ties with the best one must not be better than it after a resumption.
    #[test]
    fn a_score_is_read_back_to_the_bit() {
        for right in 1..2_000 {
            let best_score = Some(100.0 * f64::from(right) / 2_003.0);
            let position = Position { best_score, ..Position::default() };
            let json = serde_json::to_string(&position).unwrap();
            assert_eq!(serde_json::from_str::<Position>(&json).unwrap(), position);
        }
    }
}
