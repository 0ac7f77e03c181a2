//! The policy's own stage: taught by the reviser, on histories that it makes itself.

use std::ops::ControlFlow;
use std::time::Instant;

use tapir::{Mode, Model, Parts, Precision};
use tapir_data::Example;

use super::{Event, TrainingRun, expect};
use crate::lessons::{Lesson, lessons};
use crate::roll_in::{Guide, RollIn, roll_in};
use crate::{ActionStats, Error, Objective, Result, StageName, StageReport, Teaching, Weights};

impl TrainingRun<'_> {
    /// Trains the policy on sentences that were revised where it pays, then again and again on
    /// those that it has read itself, too.
    pub(super) fn train_policy(
        &self,
        on_event: &mut dyn FnMut(Event) -> ControlFlow<()>,
    ) -> Result<Vec<StageReport>> {
        let Some(training) = &self.preset.training.policy else {
            return Err(Error::invalid("training.policy", "missing; the stage policy needs it"));
        };
        let (name, objective) = (StageName::Policy, Objective::Policy);
        let config = self.controlled_config();
        expect(&self.result(StageName::FirstPass), "first-pass")?;
        let first_pass = self.read_weights(StageName::FirstPass, &self.first_pass_config())?;
        let mut weights =
            self.stage(name, objective, config.clone(), training, Vec::new()).new_weights();
        weights.take(&first_pass);
        let Teaching { rounds, folds, .. } = self.preset.teaching;
        let read = self.first_pass_examples(&self.taught_sentences(), &[])?;
        let own;
        let lessons = if folds == 1 {
            self.lessons(name, on_event)?
        } else {
            own = self.lessons_by_fold(&read, on_event)?;
            &own
        };
        let (mut examples, mut reports) = (Vec::new(), Vec::new());
        for round in 1..=rounds {
            let guide = if round == 1 { Guide::Reviser } else { Guide::Policy };
            let how = RollIn { guide, lasting: self.preset.teaching.lasting };
            let rolled = self.roll_in(&weights, &read, lessons, how)?;
            if round == 1 {
                let actions: Vec<_> = rolled.iter().map(|rolled| rolled.actions.clone()).collect();
                _ = on_event(Event::Actions(&ActionStats::of(&actions)));
            }
            examples.extend(rolled);
            let mut stage = self.stage(name, objective, config.clone(), training, examples);
            stage.file = part(round, rounds);
            stage.initial = Some(weights);
            stage.keep_last = true;
            let file = stage.file.clone();
            if stage.result().exists() {
                _ = on_event(Event::Skipped(name));
            } else {
                let validate = |weights: &Weights| {
                    let parts = self.two_pass(weights, StageName::Reviser.name())?;
                    self.validate(parts, Mode::TwoPass)
                };
                reports.push(Self::run(&stage, &validate, on_event)?);
            }
            examples = stage.examples;
            weights = self.read_weights_of(&file, &config)?;
        }
        Ok(reports)
    }

    /// What the reviser says of every sentence that it teaches on; `stage` needs it.
    pub(super) fn lessons(
        &self,
        stage: StageName,
        on_event: &mut dyn FnMut(Event) -> ControlFlow<()>,
    ) -> Result<&[Lesson]> {
        if let Some(lessons) = self.lessons.get() {
            return Ok(lessons);
        }
        let examples = self.examples(&self.taught_sentences(), &[])?;
        let examples: Vec<&Example> = examples.iter().collect();
        let made = self.lessons_of(StageName::Reviser.name(), &examples, stage, on_event)?;
        Ok(self.lessons.get_or_init(|| made))
    }

    /// What the reviser with these weights says of sentences.
    fn lessons_of(
        &self,
        reviser: &str,
        examples: &[&Example],
        stage: StageName,
        on_event: &mut dyn FnMut(Event) -> ControlFlow<()>,
    ) -> Result<Vec<Lesson>> {
        expect(&self.weights_file(reviser), "reviser")?;
        let config = self.reviser_config();
        let weights = self.read_weights_of(reviser, &config)?;
        let reviser = as_teacher(self.parts(&config, &[&weights])?)?;
        let since = Instant::now();
        let made = lessons(&reviser, examples, &mut |read| {
            let (sentences, seconds) = (examples.len(), since.elapsed().as_secs_f64());
            on_event(Event::Lessons { read, sentences, seconds })
        })?;
        made.ok_or(Error::Stopped { stage: stage.name(), epoch: 1 })
    }

    /// What is said of each sentence by a reviser that was trained on the other folds, which is
    /// trained if it is not there.
    fn lessons_by_fold(
        &self,
        examples: &[Example],
        on_event: &mut dyn FnMut(Event) -> ControlFlow<()>,
    ) -> Result<Vec<Lesson>> {
        let sentences = self.train_sentences();
        self.by_fold(examples.len(), |reviser, fold| {
            if !self.weights_file(reviser).exists() {
                let others = sentences.iter().enumerate();
                let others = others.filter(|(i, _)| fold.binary_search(i).is_err());
                let others: Vec<_> = others.map(|(_, sentence)| *sentence).collect();
                let mut stage = self.reviser_stage(&others)?;
                reviser.clone_into(&mut stage.file);
                let validate =
                    |weights: &Weights| self.validate(stage.parts(weights)?, Mode::Restart);
                Self::run(&stage, &validate, on_event)?;
            }
            let fold: Vec<&Example> = fold.iter().map(|i| &examples[*i]).collect();
            self.lessons_of(reviser, &fold, StageName::Policy, on_event)
        })
    }

    /// Reads sentences with these weights and the reviser of each one's lesson.
    fn roll_in(
        &self,
        weights: &Weights,
        examples: &[Example],
        lessons: &[Lesson],
        how: RollIn,
    ) -> Result<Vec<Example>> {
        self.by_fold(examples.len(), |reviser, fold| {
            let model = as_teacher(self.two_pass(weights, reviser)?)?;
            let (examples, lessons): (Vec<_>, Vec<_>) =
                fold.iter().map(|i| (&examples[*i], &lessons[*i])).unzip();
            roll_in(&model, &examples, &lessons, how)
        })
    }

    /// Does something with each fold, given the name of its reviser's weights and the places of its
    /// sentences; gives the results in the order of the sentences.
    fn by_fold<T>(
        &self,
        sentences: usize,
        mut each: impl FnMut(&str, &[usize]) -> Result<Vec<T>>,
    ) -> Result<Vec<T>> {
        let (folds, reviser) = (self.preset.teaching.folds, StageName::Reviser.name());
        let mut results: Vec<(usize, T)> = Vec::with_capacity(sentences);
        for fold in 0..folds {
            let name = match folds {
                1 => reviser.to_owned(),
                _ => format!("{reviser}-fold-{}", fold + 1),
            };
            let places: Vec<usize> = (fold..sentences).step_by(folds).collect();
            let made = each(&name, &places)?;
            results.extend(places.into_iter().zip(made));
        }
        results.sort_by_key(|(place, _)| *place);
        Ok(results.into_iter().map(|(_, result)| result).collect())
    }
}

/// What the files of a round of the policy are called: those of the last, as the stage.
pub(super) fn part(round: usize, rounds: usize) -> String {
    let name = StageName::Policy.name();
    if round < rounds { format!("{name}-{round}") } else { name.to_owned() }
}

/// A model that reads the training sentences. A pretrained encoder does it in int8, in half the
/// time: its labels are the same but for two in a thousand words.
fn as_teacher(parts: Parts) -> Result<Model> {
    Ok(if parts.config.reads_pieces() {
        parts.quantize(Precision::Int8)?.load()?
    } else {
        parts.load()?
    })
}
