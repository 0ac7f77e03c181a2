//! Everything for one task: reviser, first pass, controller and what teaches it, and the model of
//! them all.

mod policy;

use std::cell::OnceCell;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use burn::tensor::Device;
use serde::Serialize;
use tapir::{
    Affixes, Bytes, Calibration, Config, Encoder, FinalPass, Labels, Mode, Model, Parts, Precision,
    TensorWriter, Vocabulary, WordPieces, WordVectors,
};
use tapir_data::{
    Corpus, Example, Metric, Order, Random, Sentence, Split, Task, Text, VocabularyOptions,
    examples, fitting_tokenizer, intent_set, label_set, recombine, vocabulary, write_atomically,
};
use tapir_eval::{Choice, Constraint, Dataset, Sweep, calibrate, sweep};

use crate::checkpoint::read_report;
use crate::lessons::Lesson;
use crate::{
    ActionSource, ActionStats, Compute, Error, Lexicon, Objective, Optimisation, Preset, Progress,
    Result, ReviserSource, Spellings, Stage, StageName, StageReport, Validation, Weights, actions,
    derive_actions, evaluate,
};

/// Where things are, and what to do of it.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The folder of the corpus, if the task's own is not meant.
    pub data: Option<PathBuf>,
    /// Where checkpoints, metrics and the model go.
    pub out: PathBuf,
    /// Only these stages, where not all.
    pub stages: Option<Vec<StageName>>,
    /// A model whose reviser is taken instead of training one.
    pub reviser: Option<Model>,
    /// A checkpoint is written when this much time has passed since the last.
    pub checkpoint_every: Duration,
    /// Where to compute. The last bits of the weights depend on it.
    pub compute: Compute,
}

impl RunOptions {
    /// All stages into `out`, a checkpoint a minute.
    pub fn new(out: impl Into<PathBuf>) -> Self {
        Self {
            data: None,
            out: out.into(),
            stages: None,
            reviser: None,
            checkpoint_every: Duration::from_mins(1),
            compute: Compute::default(),
        }
    }
}

/// What a run tells while it goes on.
pub enum Event<'a> {
    /// A stage was done before.
    Skipped(StageName),
    /// A stage begins, with so many sentences.
    Started(StageName, usize),
    /// The reviser has read some of the sentences that it teaches on.
    Lessons {
        /// So many.
        read: usize,
        /// Of so many.
        sentences: usize,
        /// In so many seconds.
        seconds: f64,
    },
    /// A batch or an epoch is done.
    Progress(&'a Progress),
    /// Actions were derived.
    Actions(&'a ActionStats),
    /// A stage is done.
    Finished(&'a StageReport),
}

/// What a run has made.
#[derive(Clone, Debug, Serialize)]
pub struct TrainedRun {
    /// The directory of the model; none while stages are missing.
    pub model: Option<PathBuf>,
    /// The stages that were run now.
    pub reports: Vec<StageReport>,
    /// All stages of the model, those of earlier calls included.
    pub stages: Vec<StageReport>,
    /// The threshold that was chosen on validation, and why.
    pub choice: Option<Choice>,
    /// Validation scores, where the model is complete and was not trained on that split.
    pub valid: Option<PassScores>,
    /// Test scores, where the model is complete.
    pub test: Option<PassScores>,
}

/// Scores of both passes and of the two together on a split.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PassScores {
    /// The restart-incremental reviser: the reference model.
    pub reviser: Validation,
    /// TAPIR: the policy's last word stands.
    pub tapir: Validation,
    /// The monotonic first pass.
    pub first_pass: Validation,
}

impl PassScores {
    /// What to do where revising does not pay: where the reviser, or the two passes together, are
    /// no better than the first pass alone, or where the limits of a choice hold them back.
    pub fn advice(&self, choice: Option<&Choice>) -> Option<String> {
        let [reviser, tapir, first_pass] =
            [self.reviser, self.tapir, self.first_pass].map(|pass| pass.score);
        if reviser.total_cmp(&first_pass).is_eq() {
            return Some(format!(
                "revising changes no score: reviser and first pass both have {reviser:.2}; the \
                 first pass alone (threshold 1) is as good, and costs less"
            ));
        }
        if reviser < first_pass {
            return Some(format!(
                "revising does not pay: the reviser scores {reviser:.2}, the first pass \
                 {first_pass:.2}. Train a reviser for longer, in a folder of its own (--out, with \
                 more epochs by --set training.reviser.epochs=N and, as many fewer as warm up, \
                 training.reviser.schedule.decay), on more sentences, or fine-tune a pretrained one \
                 (the presets pretrained/); a model that never revises (threshold 1) is the better \
                 one until then"
            ));
        }
        if tapir < first_pass {
            return Some(format!(
                "revising does not pay at this threshold: TAPIR scores {tapir:.2}, the first pass \
                 {first_pass:.2}, the reviser at every word {reviser:.2}. `tapir sweep MODEL TASK \
                 --choose within=0.3` finds a threshold on a validation split"
            ));
        }
        if let Some(Choice { constraint, below, .. }) = choice
            && (constraint.revisions.is_some() || constraint.overhead.is_some())
            && *below > constraint.within.unwrap_or_default() + 1.0
        {
            return Some(format!(
                "the limits of `choose` hold revising back: {below:.2} points are lost to them \
                 (reviser {reviser:.2}, TAPIR {tapir:.2}, first pass {first_pass:.2}). `tapir sweep \
                 MODEL TASK --choose within=0.5` finds a threshold without them"
            ));
        }
        self.tapir.revised.is_some_and(|share| share == 0.0).then(|| {
            format!(
                "the policy never revises: the first pass scores {first_pass:.2}, and the \
                 reviser's {reviser:.2} were not worth a revision"
            )
        })
    }
}

/// Sets the random numbers of recombined sentences apart from all others.
const RECOMBINED: u64 = 0x7265_636f_6d62;

/// A task, read and numbered.
struct TrainingRun<'a> {
    preset: &'a Preset,
    options: &'a RunOptions,
    task: Task,
    corpus: Corpus,
    labels: Labels,
    /// Those of the corpus, where they are learnt.
    intents: Option<Labels>,
    vocabulary: Vocabulary,
    vectors: Option<Arc<WordVectors>>,
    /// Those of a pretrained reviser.
    pieces: Option<WordPieces>,
    /// The whole model.
    config: Config,
    generator: Option<Config>,
    /// Sentences made of others' slots, on which the reviser teaches, too.
    recombined: Vec<Sentence>,
    /// Sentences without labels (what stands for them means nothing), on which it teaches, too.
    text: Vec<Sentence>,
    /// Sentences of other domains, without labels either: to learn from, and to judge by.
    outside: (Vec<Sentence>, Vec<Sentence>),
    /// What the reviser says of every sentence that it teaches on, once it was asked.
    lessons: OnceCell<Vec<Lesson>>,
    /// Spellings of the words that the first pass learns from, where it reads them.
    spellings: OnceCell<Spellings>,
}

/// Does every stage that is missing, then puts the model together and scores it. `on_event` ends a
/// stage by breaking.
pub fn train(
    preset: &Preset,
    options: &RunOptions,
    on_event: &mut dyn FnMut(Event) -> ControlFlow<()>,
) -> Result<TrainedRun> {
    let run = TrainingRun::open(preset, options)?;
    run.claim()?;
    if let Some(model) = &options.reviser {
        run.take_reviser(model)?;
    }
    let mut reports = Vec::new();
    for name in StageName::ALL {
        let wanted = match &options.stages {
            Some(stages) => stages.contains(&name),
            None => preset.actions.stages().contains(&name),
        };
        if !wanted {
            continue;
        }
        if run.result(name).exists() {
            _ = on_event(Event::Skipped(name));
            continue;
        }
        match name {
            StageName::Generator => reports.push(run.train_generator(on_event)?),
            StageName::Actions => run.derive_actions(on_event)?,
            StageName::Reviser => reports.push(run.train_reviser(on_event)?),
            StageName::FirstPass => reports.push(run.train_first_pass(on_event)?),
            StageName::Policy => reports.extend(run.train_policy(on_event)?),
        }
    }
    let last = run.last_stage();
    if ![StageName::Reviser, last].iter().all(|name| run.result(*name).exists()) {
        let stages = run.finished()?;
        return Ok(TrainedRun {
            model: None,
            reports,
            stages,
            choice: None,
            valid: None,
            test: None,
        });
    }
    let stages = run.finished()?;
    let first_pass = run.read_weights(last, &run.controlled_config())?;
    let mut parts = run.two_pass(&first_pass, StageName::Reviser.name())?;
    let json = |value: serde_json::Result<serde_json::Value>| value.unwrap_or_default();
    parts.config.provenance.insert("preset".into(), json(serde_json::to_value(preset)));
    parts.config.provenance.insert("stages".into(), json(serde_json::to_value(&stages)));
    let mut model = parts.clone().load()?;
    let choice = match preset.constraint()?.filter(|_| !preset.with_valid) {
        Some(constraint) => {
            let choice = run.choose(&model, &constraint)?;
            choice.note(&mut parts.config);
            model = parts.load()?;
            Some(choice)
        }
        None => None,
    };
    let scores = |model: &Model, split: &[Sentence]| -> Result<PassScores> {
        let score = |mode| evaluate(model, mode, split, run.task.score);
        Ok(PassScores {
            reviser: score(Mode::Restart)?,
            tapir: score(Mode::TwoPass)?,
            first_pass: score(Mode::FirstPass)?,
        })
    };
    let mut valid = None;
    if !preset.with_valid {
        let scores = scores(&model, &run.corpus.valid)?;
        let mut parts = model.parts().clone();
        if scores.reviser.score < scores.first_pass.score {
            parts.config.final_pass = FinalPass::Policy;
            model = parts.clone().load()?;
        }
        parts.config.calibration = run.calibrate(&model)?;
        model = parts.load()?;
        valid = Some(scores);
    }
    let folder = options.out.join("model");
    model.parts().replace(&folder)?;
    let test = Some(scores(&model, &run.corpus.test)?);
    Ok(TrainedRun { model: Some(folder), reports, stages, choice, valid, test })
}

/// Makes a folder that of a preset and corpus, or refuses one that is another's.
pub(crate) fn claim(preset: &Preset, options: &RunOptions) -> Result<()> {
    TrainingRun::open(preset, options)?.claim()
}

impl ActionSource {
    /// The stages that a model takes, in their order.
    fn stages(self) -> &'static [StageName] {
        use StageName::{Actions, FirstPass, Generator, Policy, Reviser};
        match self {
            Self::Generator => &[Generator, Actions, Reviser, FirstPass],
            Self::Reviser => &[Reviser, FirstPass, Policy],
        }
    }
}

impl<'a> TrainingRun<'a> {
    fn open(preset: &'a Preset, options: &'a RunOptions) -> Result<Self> {
        let mut task = Task::open(&preset.task)?;
        let mut corpus = task.load(options.data.as_deref())?;
        if preset.heard {
            if task.heard.is_some() && !task.has_valid() && !preset.with_valid {
                let reason = "`heard` needs a validation split of its own (`valid`): of one that \
                              is cut out of training, some sentences would be learnt from";
                return Err(Error::invalid(&task.name, reason));
            }
            corpus.train.extend(task.read_heard(options.data.as_deref())?);
        }
        task.scheme.check(&corpus)?;
        task.tokenizer.get_or_insert_with(|| fitting_tokenizer(&corpus));
        let judged = (!preset.with_valid).then_some(("validation", &corpus.valid));
        let splits = [("training", &corpus.train), ("test", &corpus.test)];
        for (name, split) in judged.into_iter().chain(splits) {
            if split.is_empty() {
                let reason = match corpus.too_long {
                    0 => format!("the {name} split has no sentence"),
                    long => format!(
                        "the {name} split has no sentence; {long} of the corpus are longer than \
                         `max_length`, {}",
                        task.max_length
                    ),
                };
                return Err(Error::invalid(&task.name, reason));
            }
        }
        if let Some((_, valid)) = judged.filter(|_| task.score == Metric::F1) {
            // Its F1 would be 0 whatever a model does, and the first epoch the best one.
            let mut labels = valid.iter().flat_map(|sentence| &sentence.labels);
            if labels.all(|label| *label == "O") {
                let reason = "the validation split has no span to judge F1 by; give it sentences \
                              that have some, or train without it (--set with_valid=true)";
                return Err(Error::invalid(&task.name, reason));
            }
        }
        let vectors = preset.words.vectors.as_deref().map(find_vectors).transpose()?.map(Arc::new);
        let labels = label_set(corpus.train_and_valid())?;
        // A corpus without any gives a model without them; one that has some must have all.
        let has_intents = corpus.train_and_valid().any(|sentence| sentence.intent.is_some());
        let intents = match preset.intents {
            weight if weight > 0.0 && has_intents => Some(intent_set(corpus.train_and_valid())?),
            _ => None,
        };
        let words =
            VocabularyOptions { min_count: preset.words.min_count, tuned: preset.words.tuned };
        let open = vectors.clone().filter(|_| preset.words.open);
        let vocabulary = vocabulary(&train_sentences(preset, &corpus), words, open)?;
        let dim = vectors.as_ref().map_or(300, |vectors| vectors.dim());
        let open = vocabulary.vectors().map(|vectors| preset.words.gain / vectors.scale());
        let name = open.and(preset.words.vectors.as_deref()).map(file_name);
        let gain = open.unwrap_or(1.0);
        // A reviser that is there brings its sizes and pieces.
        let (reviser, pieces) = match (&preset.reviser, &options.reviser) {
            (ReviserSource::New(sizes), _) => (Some(sizes.clone()), None),
            (ReviserSource::Pretrained(_), Some(model)) => {
                (model.config().reviser.clone(), model.parts().pieces.clone())
            }
            (ReviserSource::Pretrained(encoder), None) => {
                let Encoder { reviser, pieces, .. } = encoder.open()?;
                (Some(reviser), Some(pieces))
            }
        };
        let config = Config {
            intents: intents.as_ref().map_or(0, Labels::len),
            outside: intents.is_some() && !preset.outside.is_empty(),
            ..preset.config(&task, reviser, dim, name, gain)
        };
        config.validate("the model of the preset and its encoder")?;
        let generator = preset.generator_config(&task, dim, name, gain);
        let lessons = OnceCell::new();
        let sentences = train_sentences(preset, &corpus);
        let count = (preset.teaching.recombined * sentences.len() as f64).round() as usize;
        let mut random = Random::at(preset.seed, &[RECOMBINED]);
        let recombined = recombine(&sentences, count, &mut random);
        let text = match &preset.teaching.text {
            Some(path) => read_text(path, &task, &labels)?,
            None => Vec::new(),
        };
        let mut outside = (Vec::new(), Vec::new());
        for path in preset.outside.iter().filter(|_| config.outside) {
            for (i, sentence) in read_text(path, &task, &labels)?.into_iter().enumerate() {
                if i % 10 == 9 { outside.1.push(sentence) } else { outside.0.push(sentence) }
            }
        }
        Ok(Self {
            preset,
            options,
            task,
            corpus,
            labels,
            intents,
            vocabulary,
            vectors,
            pieces,
            config,
            generator,
            recombined,
            text,
            outside,
            lessons,
            spellings: OnceCell::new(),
        })
    }

    /// How the stages ended that are done; a reviser that was taken from elsewhere has no report.
    fn finished(&self) -> Result<Vec<StageReport>> {
        let rounds = self.preset.teaching.rounds;
        let parts = self.preset.actions.stages().iter().flat_map(|stage| {
            let earlier = if *stage == StageName::Policy { 1..rounds } else { 1..1 };
            earlier.map(|round| policy::part(round, rounds)).chain([stage.name().to_owned()])
        });
        let is_there = |part: &String| self.options.out.join(format!("{part}.json")).exists();
        parts.filter(is_there).map(|part| read_report(&self.options.out, &part)).collect()
    }

    /// Changes with everything that is learnt from: numbers of labels and words are those of a
    /// corpus, and mean something else in another one.
    fn digest(&self) -> String {
        let Corpus { train, valid, .. } = &self.corpus;
        let mut bytes = Vec::new();
        for sentences in [train, valid, &self.text, &self.outside.0] {
            for sentence in sentences {
                let words = sentence.words.iter().chain(&sentence.labels).chain(&sentence.intent);
                words.for_each(|word| bytes.extend(word.bytes().chain(*b"\t")));
                bytes.push(b'\n');
            }
            bytes.push(b'\n');
        }
        bytes.extend(self.pieces.as_ref().map(WordPieces::to_text).unwrap_or_default().bytes());
        format!("{:016x}\n", tapir::vectors::checksum(&bytes))
    }

    /// Makes the folder ours: one that holds the work of another preset or corpus is refused.
    fn claim(&self) -> Result<()> {
        let out = &self.options.out;
        std::fs::create_dir_all(out).map_err(|error| Error::io(out, error))?;
        let path = out.join("preset.toml");
        let mut preset = self.preset.clone();
        let text =
            toml::to_string(&preset).map_err(|error| Error::invalid(path.display(), error))?;
        if path.exists() {
            let old = std::fs::read_to_string(&path).map_err(|error| Error::io(&path, error))?;
            let mut old = Preset::parse(&old, &path.display().to_string(), &[])?;
            // Training longer is going on, not starting anew; and so is another threshold.
            for preset in [&mut preset, &mut old] {
                preset.training = preset.training.clone().without_epochs();
                preset.choose = None;
            }
            if old != preset {
                let reason =
                    "the folder holds the work of another preset; choose another one with --out";
                return Err(Error::invalid(path.display(), reason));
            }
        }
        let (corpus, digest) = (out.join("corpus.digest"), self.digest());
        if corpus.exists() {
            let old = std::fs::read(&corpus).map_err(|error| Error::io(&corpus, error))?;
            if old != digest.as_bytes() {
                let reason = "the folder holds work on another corpus or encoder, or on this one \
                              before it was changed; choose another one with --out";
                return Err(Error::invalid(corpus.display(), reason));
            }
        }
        write_atomically(&corpus, digest.as_bytes())?;
        Ok(write_atomically(&path, text.as_bytes())?)
    }

    /// Puts the reviser of a model where the stage of that name would leave one.
    fn take_reviser(&self, model: &Model) -> Result<()> {
        let refuse = |what: &str| {
            let reason = format!("its {what} differ from those of the preset and corpus");
            Err(Error::invalid("the model whose reviser is to be taken", reason))
        };
        let (theirs, ours) = (model.config(), &self.config);
        if theirs.reviser != ours.reviser || theirs.delay != ours.delay {
            return refuse("sizes");
        }
        // One that reads pieces of words has nothing to do with their rows.
        let sizes = |config: &Config| (config.embedding_dim, config.vector_gain.to_bits());
        let same = model.vocabulary().words().eq(self.vocabulary.words());
        if !ours.reads_pieces() && (!same || sizes(theirs) != sizes(ours)) {
            return refuse("words");
        }
        let texts = |pieces: &Option<WordPieces>| pieces.as_ref().map(WordPieces::to_text);
        if texts(&model.parts().pieces) != texts(&self.pieces) {
            return refuse("word pieces");
        }
        if !model.labels().iter().eq(self.labels.iter()) {
            return refuse("labels");
        }
        if model.intents() != self.intents.as_ref() {
            return refuse("intents");
        }
        let path = self.result(StageName::Reviser);
        let parts = model.parts().quantize(Precision::F32)?;
        let (labels, words) = (self.labels.len(), self.vocabulary.len());
        let config = self.reviser_config();
        let weights = Weights::read(&parts.weights, &config, labels, words, &Device::flex())?;
        let bytes = self.parts(&config, &[&weights])?.weights;
        if path.exists() {
            // What was taught by it is skipped.
            let old = std::fs::read(&path).map_err(|error| Error::io(&path, error))?;
            if old != *bytes {
                let reason = "another reviser is here already; choose another folder with --out";
                return Err(Error::invalid(path.display(), reason));
            }
            return Ok(());
        }
        Ok(write_atomically(&path, &bytes)?)
    }

    fn result(&self, name: StageName) -> PathBuf {
        match name {
            StageName::Actions => self.options.out.join("actions.tsv"),
            _ => self.weights_file(name.name()),
        }
    }

    fn weights_file(&self, name: &str) -> PathBuf {
        self.options.out.join(format!("{name}.safetensors"))
    }

    /// The stage that ends with processor and controller.
    fn last_stage(&self) -> StageName {
        match self.preset.actions {
            ActionSource::Generator => StageName::FirstPass,
            ActionSource::Reviser => StageName::Policy,
        }
    }

    fn train_sentences(&self) -> Vec<&Sentence> {
        train_sentences(self.preset, &self.corpus)
    }

    /// What the reviser teaches on.
    fn taught_sentences(&self) -> Vec<&Sentence> {
        let mut sentences = self.train_sentences();
        sentences.extend(&self.recombined);
        sentences.extend(&self.text);
        sentences
    }

    fn reviser_config(&self) -> Config {
        let mut config = Config { processor: None, controller: None, ..self.config.clone() };
        if config.reads_pieces() {
            // Nothing is left that reads word vectors.
            (config.embedding_dim, config.vectors) = (0, None);
        }
        config
    }

    /// The first pass as its stage trains it: with a controller where the actions are known before.
    fn first_pass_config(&self) -> Config {
        match self.preset.actions {
            ActionSource::Generator => self.controlled_config(),
            ActionSource::Reviser => Config { controller: None, ..self.controlled_config() },
        }
    }

    /// Processor and controller.
    fn controlled_config(&self) -> Config {
        Config { reviser: None, ..self.config.clone() }
    }

    fn stage(
        &self,
        name: StageName,
        objective: Objective,
        config: Config,
        training: &'a Optimisation,
        examples: Vec<Example>,
    ) -> Stage<'_> {
        let words = &self.preset.words;
        let pretrained = self.vectors.as_deref().filter(|_| !words.open || words.tuned > 0);
        Stage {
            name,
            file: name.name().to_owned(),
            initial: None,
            distillation: 0.0,
            sparse: words.sparse,
            objective,
            config,
            training,
            examples,
            labels: &self.labels,
            intents: (self.intents.as_ref(), self.preset.intents),
            lexicon: Lexicon {
                vocabulary: &self.vocabulary,
                pieces: self.pieces.as_ref(),
                spellings: self.spellings.get().filter(|_| objective.order() == Order::Time),
            },
            pretrained: pretrained.map(|vectors| (vectors, self.preset.words.gain)),
            seed: self.preset.seed,
            shards: self.preset.shards,
            compute: self.options.compute,
            untuned: self.preset.words.untuned,
            folder: &self.options.out,
            checkpoint_every: self.options.checkpoint_every,
            keep_last: objective == Objective::Generator || self.preset.with_valid,
            is_validated: !self.preset.with_valid,
        }
    }

    /// Sentences to learn from. `actions` has a list for each, or is empty.
    fn examples(&self, sentences: &[&Sentence], actions: &[Vec<bool>]) -> Result<Vec<Example>> {
        let delay = self.config.delay;
        let mut examples = examples(sentences, actions, &self.vocabulary, &self.labels, delay)?;
        if self.config.reads_affixes() {
            for example in &mut examples {
                example.affixes = example.words.iter().map(|word| Affixes::of(word)).collect();
            }
        }
        if let Some(intents) = &self.intents {
            for (example, sentence) in examples.iter_mut().zip(sentences) {
                example.intent = sentence.intent.as_ref().and_then(|intent| intents.id(intent));
            }
        }
        Ok(examples)
    }

    /// Tells the last examples, those of other domains, from the others: nothing is learnt from them
    /// but that they are that.
    fn mark_outside(&self, examples: &mut [Example]) {
        let first = examples.len() - self.outside.0.len();
        for example in &mut examples[first..] {
            example.labels.fill(None);
            example.intent = Some(self.config.intents as u16);
        }
    }

    /// Sentences for the first pass to learn from: unknown words by their spelling, where it reads
    /// that.
    fn first_pass_examples(
        &self,
        sentences: &[&Sentence],
        actions: &[Vec<bool>],
    ) -> Result<Vec<Example>> {
        let mut examples = self.examples(sentences, actions)?;
        if let Some(spellings) = self.spellings(&examples)? {
            examples.iter_mut().for_each(|example| spellings.spell(example));
        }
        Ok(examples)
    }

    /// Spellings of all words of these sentences, by the pieces of the trained reviser; none where
    /// the first pass reads none.
    fn spellings(&self, examples: &[Example]) -> Result<Option<&Spellings>> {
        let spelling = self.config.processor.as_ref().and_then(|sizes| sizes.spelling);
        let bert = self.config.reviser.as_ref().and_then(|sizes| sizes.bert.as_ref());
        let (Some(_), Some(bert), Some(pieces)) = (spelling, bert, &self.pieces) else {
            return Ok(None);
        };
        if self.spellings.get().is_none() {
            expect(&self.result(StageName::Reviser), "reviser")?;
            let reviser = self.read_weights(StageName::Reviser, &self.reviser_config())?;
            let split = (pieces, &bert.rules, bert.most_of_a_word(self.config.delay));
            let made = Spellings::new(examples, &self.vocabulary, split, reviser.pieces());
            _ = self.spellings.set(made);
        }
        Ok(self.spellings.get())
    }

    fn run(
        stage: &Stage,
        validate: crate::stage::Validate,
        on_event: &mut dyn FnMut(Event) -> ControlFlow<()>,
    ) -> Result<StageReport> {
        _ = on_event(Event::Started(stage.name, stage.examples.len()));
        let report = stage.run(validate, &mut |progress| on_event(Event::Progress(progress)))?;
        _ = on_event(Event::Finished(&report));
        Ok(report)
    }

    fn train_generator(
        &self,
        on_event: &mut dyn FnMut(Event) -> ControlFlow<()>,
    ) -> Result<StageReport> {
        let (Some(training), Some(config)) = (&self.preset.training.generator, &self.generator)
        else {
            return Err(self.no_generator());
        };
        let (name, objective) = (StageName::Generator, Objective::Generator);
        // It has no delay: actions are derived for words and shifted later.
        let sentences = self.train_sentences();
        let examples = examples(&sentences, &[], &self.vocabulary, &self.labels, config.delay)?;
        let stage = self.stage(name, objective, config.clone(), training, examples);
        let validate = |weights: &Weights| self.validate(stage.parts(weights)?, Mode::Restart);
        Self::run(&stage, &validate, on_event)
    }

    fn no_generator(&self) -> Error {
        let reason = "has no generator; add the tables `generator` and `training.generator`";
        Error::invalid(format!("the preset of {}", self.preset.task), reason)
    }

    fn derive_actions(&self, on_event: &mut dyn FnMut(Event) -> ControlFlow<()>) -> Result<()> {
        let config = self.generator.as_ref().ok_or_else(|| self.no_generator())?;
        expect(&self.result(StageName::Generator), "generator")?;
        let weights = self.read_weights(StageName::Generator, config)?;
        let generator = self.parts(config, &[&weights])?.load()?;
        let sentences = self.train_sentences();
        _ = on_event(Event::Started(StageName::Actions, sentences.len()));
        let actions = derive_actions(&generator, &sentences)?;
        actions::write(&self.result(StageName::Actions), &sentences, &actions)?;
        _ = on_event(Event::Actions(&ActionStats::of(&actions)));
        Ok(())
    }

    fn train_reviser(
        &self,
        on_event: &mut dyn FnMut(Event) -> ControlFlow<()>,
    ) -> Result<StageReport> {
        let stage = self.reviser_stage(&self.train_sentences())?;
        let validate = |weights: &Weights| self.validate(stage.parts(weights)?, Mode::Restart);
        Self::run(&stage, &validate, on_event)
    }

    fn reviser_stage(&self, sentences: &[&Sentence]) -> Result<Stage<'_>> {
        let training = &self.preset.training.reviser;
        let (name, objective) = (StageName::Reviser, Objective::Reviser);
        let outside = &self.outside.0;
        let all: Vec<_> = sentences.iter().copied().chain(outside).collect();
        let mut examples = self.examples(&all, &[])?;
        self.mark_outside(&mut examples);
        let mut stage = self.stage(name, objective, self.reviser_config(), training, examples);
        if let ReviserSource::Pretrained(encoder) = &self.preset.reviser {
            let mut weights = stage.new_weights();
            weights.start_from(&encoder.open()?.tensors, &self.options.compute.device());
            stage.initial = Some(weights);
        }
        Ok(stage)
    }

    fn train_first_pass(
        &self,
        on_event: &mut dyn FnMut(Event) -> ControlFlow<()>,
    ) -> Result<StageReport> {
        let (mut sentences, actions) = match self.preset.actions {
            ActionSource::Generator => {
                let (actions, sentences) =
                    (self.result(StageName::Actions), self.train_sentences());
                expect(&actions, "generator and actions")?;
                let actions = actions::read(&actions, &sentences)?;
                (sentences, actions)
            }
            ActionSource::Reviser => (self.taught_sentences(), Vec::new()),
        };
        let training = &self.preset.training.first_pass;
        let (name, objective) = (StageName::FirstPass, Objective::FirstPass);
        let labelled = sentences.len() - self.text.len();
        sentences.extend(&self.outside.0);
        let mut examples = self.first_pass_examples(&sentences, &actions)?;
        self.mark_outside(&mut examples);
        let distillation = self.preset.teaching.distillation;
        if distillation > 0.0 {
            for (example, lesson) in examples.iter_mut().zip(self.lessons(name, on_event)?) {
                example.teacher.clone_from(&lesson.newest);
            }
        }
        if !self.text.is_empty() {
            let lessons = self.lessons(name, on_event)?;
            for (example, lesson) in examples.iter_mut().zip(lessons).skip(labelled) {
                let said = lesson.labels.last().into_iter().flatten().map(|label| Some(*label));
                let delay = std::iter::repeat_n(None, self.config.delay);
                example.labels = delay.chain(said).collect();
            }
        }
        let mut stage = self.stage(name, objective, self.first_pass_config(), training, examples);
        stage.distillation = distillation;
        let validate = |weights: &Weights| {
            let controlled = self.preset.actions == ActionSource::Generator;
            if controlled && self.result(StageName::Reviser).exists() {
                let reviser = StageName::Reviser.name();
                self.validate(self.two_pass(weights, reviser)?, Mode::TwoPass)
            } else if stage.lexicon.spellings.is_some() {
                // It reads the reviser's word pieces.
                let reviser = self.read_weights(StageName::Reviser, &self.reviser_config())?;
                let config = Config { controller: None, ..self.config.clone() };
                self.validate(self.parts(&config, &[&reviser, weights])?, Mode::FirstPass)
            } else {
                self.validate(stage.parts(weights)?, Mode::FirstPass)
            }
        };
        Self::run(&stage, &validate, on_event)
    }

    /// The threshold that is best on validation.
    fn choose(&self, model: &Model, constraint: &Constraint) -> Result<Choice> {
        let dataset = Dataset::new(model, &self.task, &self.corpus, Split::Valid)?;
        let records = sweep(model, &dataset, &tapir_eval::fine_thresholds(), || ())?;
        Ok(constraint.choose(&Sweep::of(model, &dataset, &records))?)
    }

    /// How far its answers can be trusted.
    fn calibrate(&self, model: &Model) -> Result<Calibration> {
        let dataset = Dataset::new(model, &self.task, &self.corpus, Split::Valid)?;
        let words = |sentence: &Sentence| sentence.words.iter().map(Text::to_string).collect();
        let outside: Vec<Vec<String>> = self.outside.1.iter().map(words).collect();
        Ok(calibrate(model, &dataset, &outside)?)
    }

    /// The validation score of a model.
    fn validate(&self, parts: Parts, mode: Mode) -> Result<Validation> {
        let model = Model::from_parts(parts)?;
        evaluate(&model, mode, &self.corpus.valid, self.task.score)
    }

    fn read_weights(&self, name: StageName, config: &Config) -> Result<Weights> {
        self.read_weights_of(name.name(), config)
    }

    fn read_weights_of(&self, name: &str, config: &Config) -> Result<Weights> {
        let path = self.weights_file(name);
        let bytes = std::fs::read(&path).map_err(|error| Error::io(&path, error))?;
        Weights::read(&bytes, config, self.labels.len(), self.vocabulary.len(), &Device::flex())
    }

    /// The whole model: a trained reviser, by the name of its weights, and this first pass.
    fn two_pass(&self, first_pass: &Weights, reviser: &str) -> Result<Parts> {
        let reviser = self.read_weights_of(reviser, &self.reviser_config())?;
        self.parts(&self.config, &[&reviser, first_pass])
    }

    fn parts(&self, config: &Config, weights: &[&Weights]) -> Result<Parts> {
        let mut writer = TensorWriter::default();
        for weights in weights {
            weights.write(&mut writer)?;
        }
        Ok(Parts {
            config: config.clone(),
            labels: self.labels.clone(),
            intents: self.intents.clone().filter(|_| config.intents > 0),
            vocabulary: words_of(config, &self.vocabulary)?,
            pieces: self.pieces.clone().filter(|_| config.reads_pieces()),
            weights: Bytes::from(writer.to_bytes()?),
        })
    }
}

/// The vocabulary of a part of the model: none where it reads only word pieces.
pub(crate) fn words_of(config: &Config, vocabulary: &Vocabulary) -> Result<Vocabulary> {
    match config.embedding_dim {
        0 => Ok(Vocabulary::new::<&str>([])?),
        _ => Ok(vocabulary.clone()),
    }
}

/// An error where what another stage makes is missing.
fn expect(file: &Path, stages: &str) -> Result<()> {
    if file.exists() {
        return Ok(());
    }
    Err(Error::invalid(file.display(), format!("missing; run the stage {stages} first")))
}

/// What is trained on: the training split, and the validation split where the preset says so.
fn train_sentences<'a>(preset: &Preset, corpus: &'a Corpus) -> Vec<&'a Sentence> {
    let valid = if preset.with_valid { corpus.valid.as_slice() } else { &[] };
    corpus.train.iter().chain(valid).filter(|sentence| !sentence.is_empty()).collect()
}

/// The sentences of a plain text in the task's words, without labels.
fn read_text(name: &str, task: &Task, labels: &Labels) -> Result<Vec<Sentence>> {
    let nothing = labels.get(0);
    let sentence = |words: Vec<String>| {
        let labels = words.iter().map(|_| nothing.to_string()).collect::<Vec<_>>();
        Sentence::new(words, labels)
    };
    let tokenizer = task.tokenizer.unwrap_or_default();
    let sentences = tapir_data::read_text(name, tokenizer, task.max_length)?;
    Ok(sentences.into_iter().map(sentence).collect())
}

/// A file of vectors, or those in the program.
fn find_vectors(name: &str) -> Result<WordVectors> {
    let shipped = tapir_models::VECTORS.name;
    if !Path::new(name).exists() && name != shipped {
        let reason = format!(
            "no such file; {shipped} is in the program, --set words.vectors=PATH names another"
        );
        return Err(Error::invalid(name, reason));
    }
    Ok(WordVectors::find(name)?)
}

fn file_name(path: &str) -> &str {
    Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or(path)
}
