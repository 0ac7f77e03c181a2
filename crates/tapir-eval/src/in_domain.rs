//! Does a model know what is not for it?

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use tapir::{Intent, Model, SessionOptions};

use crate::f1::ratio;
use crate::{Dataset, Result};

/// How well a model tells its own sentences from others, by
/// [`Session::in_domain`](tapir::Session::in_domain) at the end of each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InDomainScores {
    /// What the others are.
    pub outside: String,
    /// How many they are.
    pub sentences: usize,
    /// Area under the curve: the probability that one of the model's sentences gets a higher value
    /// than one of the others.
    pub area: f64,
    /// The share of the model's sentences below 0.5.
    pub refused: f64,
    /// The share of the others at or above 0.5.
    pub taken: f64,
}

impl InDomainScores {
    /// None if the model did not learn what is not for it.
    pub fn of(
        model: &Model,
        dataset: &Dataset,
        outside: &str,
        others: &[Vec<String>],
    ) -> Result<Option<Self>> {
        if !model.config().outside {
            return Ok(None);
        }
        let value = |words: &Vec<String>| -> Result<Option<f32>> {
            let mut session = model.session_with(SessionOptions::new().undo(0))?;
            session.update(words)?;
            session.finish()?;
            Ok(session.in_domain())
        };
        let own = dataset.examples.par_iter().map(|example| value(&example.words));
        let own: Vec<f32> = own.filter_map(Result::transpose).collect::<Result<_>>()?;
        let others = others.par_iter().map(value).filter_map(Result::transpose);
        let others: Vec<f32> = others.collect::<Result<_>>()?;
        let below = |values: &[f32]| {
            values.iter().filter(|value| **value < Intent::LEAST_IN_DOMAIN).count()
        };
        Ok(Some(Self {
            outside: outside.to_owned(),
            sentences: others.len(),
            area: area(&own, &others),
            refused: ratio(below(&own), own.len()),
            taken: ratio(others.len() - below(&others), others.len()),
        }))
    }
}

/// The share of pairs in which the first is greater; equal ones count half.
fn area(greater: &[f32], less: &[f32]) -> f64 {
    let mut less = less.to_vec();
    less.sort_by(f32::total_cmp);
    let won = greater.iter().map(|value| {
        let below = less.partition_point(|other| other < value);
        let not_above = less.partition_point(|other| other <= value);
        (below + not_above) as f64 / 2.0
    });
    won.sum::<f64>() / (greater.len() * less.len()).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_area_is_the_share_of_pairs_in_order() {
        assert!((area(&[0.9, 0.8], &[0.1, 0.2]) - 1.0).abs() < 1e-9);
        assert!((area(&[0.5], &[0.5, 0.4, 0.6, 0.7]) - 0.375).abs() < 1e-9);
    }
}
