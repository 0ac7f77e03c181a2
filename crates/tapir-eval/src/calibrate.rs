//! Fits what a model says of its own answers: will they stay, and is the utterance for it at all?

use rayon::prelude::*;
use tapir::{Calibration, Evidence, Logistic, Mode, Model, Scheme, Session, SessionOptions, Span};

use crate::logistic::fit;
use crate::{Dataset, GoldSentence, Result};

/// What a session holds after a step, and what it knows of it.
pub(crate) struct Observed {
    pub(crate) labels: Vec<u16>,
    pub(crate) spans: Vec<Span>,
    pub(crate) intent: Option<u16>,
    pub(crate) evidence: Evidence,
}

/// An utterance as a user hears of it: after each word, and at the end.
pub(crate) struct Followed {
    pub(crate) steps: Vec<Observed>,
    pub(crate) end: Observed,
    /// The step from which on each word's label stays.
    stays_from: Vec<usize>,
}

impl Followed {
    /// Reads words one by one, as sessions do unless they are told otherwise.
    pub(crate) fn read(model: &Model, words: &[String]) -> Result<Self> {
        let mut session = model.session_with(SessionOptions::new().undo(0))?;
        let mut steps = Vec::with_capacity(words.len());
        for word in words {
            session.push(word)?;
            steps.push(Observed::of(&session));
        }
        session.finish()?;
        let end = Observed::of(&session);
        let labels = end.labels.iter().enumerate();
        let stays_from = labels.map(|(word, label)| {
            let differs = |observed: &Observed| observed.labels.get(word) != Some(label);
            steps.iter().rposition(differs).map_or(0, |step| step + 1)
        });
        let stays_from = stays_from.collect();
        Ok(Self { steps, end, stays_from })
    }

    pub(crate) fn read_all<'a>(
        model: &Model,
        sentences: impl IntoParallelIterator<Item = &'a [String], Iter: IndexedParallelIterator>,
    ) -> Result<Vec<Self>> {
        sentences.into_par_iter().map(|words| Self::read(model, words)).collect()
    }

    /// Does what holds after `step` hold after all that follow, and at the end?
    fn stays(&self, step: usize, holds: impl Fn(&Observed) -> bool) -> bool {
        self.steps[step..].iter().chain([&self.end]).all(holds)
    }

    /// Does the label of a word stay from a step on?
    pub(crate) fn label_stays(&self, step: usize, word: usize) -> bool {
        self.stays_from.get(word).is_some_and(|from| step >= *from)
    }

    /// Does a span stay as it is?
    pub(crate) fn span_stays(&self, step: usize, span: &Span) -> bool {
        self.stays(step, |observed| observed.spans.contains(span))
    }

    /// Does the intent stay?
    pub(crate) fn intent_stays(&self, step: usize) -> bool {
        let intent = self.steps[step].intent;
        self.stays(step, |observed| observed.intent == intent)
    }
}

impl Observed {
    fn of(session: &Session) -> Self {
        let plain = session.model().config().scheme == Scheme::Plain;
        Self {
            labels: session.label_ids().to_vec(),
            spans: if plain { Vec::new() } else { session.spans() },
            intent: session.intent_id(),
            evidence: session.evidence(),
        }
    }

    /// The spans, and what their stability is made of: see [`Calibration::spans`].
    pub(crate) fn span_evidence(&self, labels: &Logistic<7>) -> Vec<(&Span, [f32; 3])> {
        let log_odds: Vec<f32> =
            self.evidence.labels.iter().map(|evidence| labels.log_odds(evidence)).collect();
        let evidence = |span: &Span| {
            let words = &log_odds[span.start..(span.end + 1).min(log_odds.len())];
            Evidence::of_span(words.iter().copied(), span.end == log_odds.len())
        };
        self.spans.iter().map(|span| (span, evidence(span))).collect()
    }
}

/// Fits the calibration of a model on sentences that it was not trained on, and, if it learnt what
/// is not for it, on sentences of other domains.
///
/// ```
/// # let model = tapir::Model::from_parts(tapir::doctest::parts())?;
/// use tapir_eval::{Dataset, calibrate};
/// let sentence = tapir_data::Sentence::new(["play", "some", "jazz"], ["O", "O", "B-genre"]);
/// let calibration = calibrate(&model, &Dataset::of(&model, &[sentence])?, &[])?;
/// assert!(calibration.labels.is_some() && calibration.intent.is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn calibrate(model: &Model, dataset: &Dataset, outside: &[Vec<String>]) -> Result<Calibration> {
    // First what answers themselves depend on.
    let (evidence, model) = &fit_evidence(model, dataset)?;
    let words = dataset.examples.par_iter().map(|example| &example.words[..]);
    let followed = Followed::read_all(model, words)?;
    let (mut features, mut outcomes) = (Vec::new(), Vec::new());
    for utterance in &followed {
        for (step, observed) in utterance.steps.iter().enumerate() {
            for (word, evidence) in observed.evidence.labels.iter().enumerate() {
                features.push(*evidence);
                outcomes.push(utterance.label_stays(step, word));
            }
        }
    }
    let labels = Logistic(fit(&features, &outcomes));
    let (mut features, mut outcomes) = (Vec::new(), Vec::new());
    let (mut intents, mut kept) = (Vec::new(), Vec::new());
    for utterance in &followed {
        for (step, observed) in utterance.steps.iter().enumerate() {
            for (span, evidence) in observed.span_evidence(&labels) {
                features.push(evidence);
                outcomes.push(utterance.span_stays(step, span));
            }
            if let Some(evidence) = observed.evidence.intent {
                intents.push(evidence);
                kept.push(utterance.intent_stays(step));
            }
        }
    }
    let mut calibration =
        Calibration { labels: Some(labels), evidence: *evidence, ..Calibration::default() };
    calibration.spans = (!features.is_empty()).then(|| Logistic(fit(&features, &outcomes)));
    calibration.intent = (!intents.is_empty()).then(|| Logistic(fit(&intents, &kept)));
    if model.config().outside && !outside.is_empty() {
        let others = Followed::read_all(model, outside.par_iter().map(|words| &words[..]))?;
        let (mut features, mut outcomes) = (Vec::new(), Vec::new());
        for (utterances, inside) in [(&followed, true), (&others, false)] {
            let steps = utterances.iter().flat_map(|utterance| &utterance.steps);
            for evidence in steps.filter_map(|observed| observed.evidence.in_domain) {
                features.push([1.0, evidence]);
                outcomes.push(inside);
            }
        }
        calibration.in_domain = Some(Logistic(fit(&features, &outcomes)));
    }
    Ok(calibration)
}

/// How much the first pass's evidence for the intent is to count: what is right at most steps, and
/// of equals the greatest; and the model with it. None if there are no intents to be right.
fn fit_evidence(model: &Model, dataset: &Dataset) -> Result<(Option<f32>, Model)> {
    const TRIED: [f32; 5] = [1.0, 0.75, 0.5, 0.25, 0.125];
    let combines = model.default_mode() == Mode::TwoPass && model.intents().is_some();
    if !combines || dataset.examples.iter().all(|example| example.intent.is_none()) {
        return Ok((None, model.clone()));
    }
    let mut best: Option<(usize, f32, Model)> = None;
    for evidence in TRIED {
        let mut parts = model.parts().clone();
        parts.config.calibration.evidence = Some(evidence);
        let model = parts.load()?;
        let right = dataset.examples.par_iter().map(|example| right_steps(&model, example));
        let right = right.collect::<Result<Vec<_>>>()?.iter().sum();
        if best.as_ref().is_none_or(|(most, ..)| right > *most) {
            best = Some((right, evidence, model));
        }
    }
    let (_, evidence, model) = best.expect("some are tried");
    Ok((Some(evidence), model))
}

/// After how many words of an utterance its intent is right.
fn right_steps(model: &Model, example: &GoldSentence) -> Result<usize> {
    let mut session = model.session_with(SessionOptions::new().undo(0))?;
    let intent = example.intent.as_deref().and_then(|intent| model.intents()?.id(intent));
    let mut right = 0;
    for word in &example.words {
        session.push(word)?;
        right += usize::from(intent.is_some() && session.intent_id() == intent);
    }
    Ok(right)
}
