//! The sections of the report, a file each, in the order in which they are shown.

mod agreement;
mod incremental;
mod policy;
mod revisions;
mod runs;
mod scores;
mod settled;
mod speed;
mod streaming;
mod thresholds;
mod traces;
mod trade_off;

use super::Report;
use super::document::Section;
use crate::table::{maybe, points};
use crate::{Incremental, Summary};

impl Report {
    pub(super) fn sections(&self) -> Vec<Section> {
        let all = [
            self.runs(),
            self.scores(),
            self.incremental(),
            self.speed(),
            self.streaming(),
            self.policy(),
            self.revisions(),
            self.thresholds(),
            self.trade_off(),
            self.agreement(),
            self.settled(),
            self.traces(),
        ];
        all.into_iter().filter(|section| !section.parts.is_empty()).collect()
    }
}

fn means(incremental: &Incremental) -> [f64; 3] {
    [
        incremental.edit_overhead.mean,
        incremental.correction_time.mean,
        incremental.relative_correctness.mean,
    ]
}

/// The mean of values that are all there.
fn mean(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    values.collect::<Option<Vec<f64>>>().map(|values| Summary::of(values).mean)
}

/// `ours (theirs)`, points of 100.
fn beside(ours: Option<f64>, theirs: Option<f64>) -> String {
    match (ours, theirs) {
        (Some(ours), Some(theirs)) => format!("{} ({theirs:.2})", points(ours)),
        (Some(ours), None) => points(ours),
        (None, Some(theirs)) => format!("– ({theirs:.2})"),
        (None, None) => "–".to_owned(),
    }
}

/// `ours (theirs)`, shares of 1.
fn cell(ours: impl Into<Option<f64>>, theirs: Option<f64>) -> String {
    let ours = maybe(ours.into());
    theirs.map_or(ours.clone(), |theirs| format!("{ours} ({theirs:.3})"))
}
