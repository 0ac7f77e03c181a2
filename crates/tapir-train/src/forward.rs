//! Forward runs outside training: what tests compare with the engine.

use burn::tensor::Device;
use tapir::Parts;
use tapir_data::Batch;

use crate::input::Words;
use crate::shard::forward;
use crate::weights::values;
use crate::{Dropout, Lexicon, Objective, Result, Spellings, Weights};

/// What a model's weights say of a batch, without dropout.
pub struct Logits {
    /// `[rows, labels]`
    pub labels: Vec<f32>,
    /// The policy's, `[rows]`, where there is one.
    pub policy: Option<Vec<f32>>,
    /// Those of intents, where the model knows any: the reviser's, `[sentences, intents]`, or the
    /// first pass's, `[rows, intents]`.
    pub intents: Option<Vec<f32>>,
}

/// Runs the component of an objective.
pub fn logits(
    parts: &Parts,
    spellings: Option<&Spellings>,
    objective: Objective,
    batch: &Batch,
) -> Result<Logits> {
    let device = Device::flex();
    let Parts { config, labels, vocabulary, weights, .. } = parts;
    let weights = Weights::read(weights, config, labels.len(), vocabulary.len(), &device)?;
    let lexicon = Lexicon { vocabulary, pieces: None, spellings };
    let words = Words::of(batch, lexicon, config, objective, &device);
    let mut leaves = weights.plain();
    // Word pieces are no rows of the first pass's words.
    let pass = if words.are_pieces() { "reviser." } else { "" };
    for (name, table) in weights.tables.iter().filter(|(name, _)| name.starts_with(pass)) {
        leaves.tensors.insert(name.clone(), words.rows(name, table, &device));
    }
    let outputs = forward(&leaves, config, objective, batch, &words, &mut Dropout::none(&device));
    Ok(Logits {
        labels: values(&outputs.logits),
        policy: outputs.policy.as_ref().map(values),
        intents: outputs.intents.as_ref().map(values),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tapir::{Affixes, Config, Labels, TensorWriter, Vocabulary};
    use tapir_data::{Example, Order, Revision, Totals};

    use super::*;
    use crate::shard::{Targets, gradients};

    const TARGETS: Targets = Targets { smoothing: 0.1, distillation: 0.3, intents: 0.7 };

    fn config(json: &str) -> Config {
        Config::from_json(&format!(r#"{{"version": 1, "embedding_dim": 6, {json}}}"#), "test")
            .unwrap()
    }

    /// Some revisions: of the memory's two entries, or of the first alone.
    fn revisions(steps: usize, seed: usize) -> Vec<Revision> {
        let revision = |step: usize| Revision {
            step,
            logits: (0..4 * 2.min(step + 1)).map(|i| ((i + step) % 5) as f32 / 4.0 - 0.4).collect(),
        };
        (0..steps).filter(|step| (step + seed).is_multiple_of(2)).map(revision).collect()
    }

    fn batch(order: Order) -> Batch {
        let example = |ids: &[u32], seed: usize| Example {
            ids: ids.to_vec(),
            // The last word is written as nothing, as a NULL token is.
            affixes: ids[1..].iter().map(|id| Affixes::of(&format!("Word-{}", id % 5))).collect(),
            labels: (0..ids.len())
                .map(|t| (t > 0 || seed > 0).then_some(((t + seed) % 4) as u16))
                .collect(),
            actions: (0..ids.len()).map(|t| (t + seed).is_multiple_of(3)).collect(),
            teacher: (0..ids.len() * 4).map(|i| ((i + seed) % 4) as f32 / 6.0).collect(),
            revisions: revisions(ids.len(), seed),
            intent: (seed != 1).then_some(seed as u16),
            ..Example::default()
        };
        let all =
            [example(&[3, 4, 5, 3, 6, 4], 0), example(&[5, 1, 2], 1), example(&[6, 6, 4, 7], 2)];
        let all: Vec<_> = all.iter().collect();
        Batch::new(&all, order, Totals { labels: 12, actions: 13, intents: 1 })
    }

    /// The same, some words of which are read by their spelling, where there are spellings.
    fn batch_of(lexicon: Lexicon, order: Order) -> Batch {
        let mut batch = batch(order);
        if let Some(spellings) = lexicon.spellings {
            for id in batch.ids.iter_mut().skip(1).step_by(3) {
                *id = spellings.unknown(*id);
            }
        }
        batch
    }

    /// The loss under weights in the form of a file, in f32.
    fn loss(config: &Config, lexicon: Lexicon, weights: &Weights, objective: Objective) -> f64 {
        let device = Device::flex().autodiff();
        let batch = batch_of(lexicon, objective.order());
        f64::from(
            gradients(weights, config, lexicon, objective, &batch, Dropout::none(&device), TARGETS)
                .loss,
        )
    }

    /// Every parameter's gradient against the central difference of the loss, along a direction of
    /// many and one by one.
    fn check(json: &str, objective: Objective) {
        check_config(&config(json), objective);
    }

    fn check_config(config: &Config, objective: Objective) {
        let vocabulary = Vocabulary::new(["a", "b", "c", "d", "e"]).unwrap();
        let spelled = config.processor.as_ref().and_then(|sizes| sizes.spelling);
        let spellings = spelled.map(|width| spellings(&vocabulary, width));
        let spellings = spellings.as_ref();
        let lexicon = Lexicon { vocabulary: &vocabulary, pieces: None, spellings };
        let device = Device::flex();
        let mut weights = Weights::new(config, 4, &vocabulary, None, 5, &device);
        // Biases and norms away from their special values.
        let mut random = tapir_data::Random::new(9);
        let shake = |values: &mut [f32], random: &mut tapir_data::Random| {
            values.iter_mut().for_each(|value| *value += (random.unit() as f32 - 0.5) * 0.3);
        };
        for tensor in weights.tensors.values_mut() {
            let mut changed = values(tensor);
            shake(&mut changed, &mut random);
            *tensor = crate::weights::tensor(changed, tensor.dims(), &device);
        }
        // Those of an encoder start at 0, which no norm likes.
        let tables = weights.tables.values_mut();
        tables.for_each(|table| shake(&mut table.values, &mut random));
        let batch = batch_of(lexicon, objective.order());
        let autodiff = device.clone().autodiff();
        let found = gradients(
            &weights,
            config,
            lexicon,
            objective,
            &batch,
            Dropout::none(&autodiff),
            TARGETS,
        );
        let mut all: BTreeMap<String, Vec<f32>> = found.dense.clone();
        for (name, (ids, gradient)) in &found.sparse {
            let table = &weights.tables[name];
            let mut dense = vec![0.0; table.values.len()];
            for (id, row) in ids.iter().zip(gradient.chunks_exact(table.width)) {
                dense[*id as usize * table.width..][..table.width].copy_from_slice(row);
            }
            all.insert(name.clone(), dense);
        }
        for (name, gradient) in all {
            let mut smooth = 0;
            for _ in 0..8 {
                // A random direction each time; its derivative is its product with the gradient.
                let direction: Vec<f32> =
                    gradient.iter().map(|_| if random.unit() < 0.5 { 1.0 } else { -1.0 }).collect();
                let expected: f64 = gradient
                    .iter()
                    .zip(&direction)
                    .map(|(g, d)| f64::from(*g) * f64::from(*d))
                    .sum();
                let h = 2e-3 / (gradient.len() as f32).sqrt();
                let mut at = |sign: f32| {
                    let moved = |values: &[f32]| -> Vec<f32> {
                        values.iter().zip(&direction).map(|(v, d)| v + sign * h * d).collect()
                    };
                    let (tensor, table) =
                        (weights.tensors.get(&name).cloned(), weights.tables.get(&name).cloned());
                    if let Some(tensor) = &tensor {
                        let changed =
                            crate::weights::tensor(moved(&values(tensor)), tensor.dims(), &device);
                        weights.tensors.insert(name.clone(), changed);
                    }
                    if let Some(table) = &table {
                        let changed =
                            crate::TrainedRows { values: moved(&table.values), ..table.clone() };
                        weights.tables.insert(name.clone(), changed);
                    }
                    let loss = loss(config, lexicon, &weights, objective);
                    tensor.map(|tensor| weights.tensors.insert(name.clone(), tensor));
                    table.map(|table| weights.tables.insert(name.clone(), table));
                    loss
                };
                let (up, here, down) = (at(1.0), at(0.0), at(-1.0));
                let (ahead, behind) = ((up - here) / f64::from(h), (here - down) / f64::from(h));
                // The two sides differ where the step crosses the kink of a ReLU: no derivative is
                // to be had there.
                if (ahead - behind).abs() > 0.01 {
                    continue;
                }
                smooth += 1;
                let difference = f64::midpoint(ahead, behind);
                let tolerance = 2e-3 + 0.02 * expected.abs() + (ahead - behind).abs() / 2.0;
                assert!(
                    (difference - expected).abs() <= tolerance,
                    "{name}: the gradient says {expected}, the difference {difference}"
                );
            }
            assert!(smooth >= 2, "{name}: only {smooth} of 8 steps were smooth");
        }
        // Every tensor of the configuration takes part, but for the score's bias, which cancels in
        // the softmax.
        for name in weights.tensors.keys().filter(|name| !name.ends_with("score.bias")) {
            let frozen = objective == Objective::Policy && name.starts_with("processor.");
            assert_eq!(found.dense.contains_key(name), !frozen, "the gradient of {name}");
        }
    }

    /// Those of the words of the vocabulary, each a piece.
    fn spellings(vocabulary: &Vocabulary, width: usize) -> Spellings {
        let names: Vec<String> = vocabulary.words().skip(3).map(str::to_owned).collect();
        let special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"].map(str::to_owned);
        let pieces = tapir::WordPieces::new(special.iter().chain(&names)).unwrap();
        let values = (0..pieces.len() * width).map(|i| (i * 7 % 11) as f32 / 8.0 - 0.6).collect();
        let table = crate::TrainedRows { width, values };
        let words = names.iter().map(|name| name.as_str().into()).collect();
        let example = Example { words, ..Example::default() };
        let rules = tapir::PieceRules::default();
        Spellings::new(&[example], vocabulary, (&pieces, &rules, 9), &table)
    }

    #[test]
    fn gradients_of_the_transformer_reviser_are_differences() {
        let json = r#""reviser": {"kind": "transformer", "layers": 2, "hidden": 8, "feed_forward": 12, "heads": 2}"#;
        check(json, Objective::Reviser);
        check(&format!("\"intents\": 3, {json}"), Objective::Reviser);
        check(&json.replace("\"heads\": 2", "\"heads\": 2, \"affixes\": 5"), Objective::Reviser);
    }

    #[test]
    fn gradients_of_the_linear_reviser_are_differences() {
        let json = r#""reviser": {"kind": "linear-transformer", "layers": 2, "hidden": 8, "feed_forward": 12, "heads": 2}"#;
        check(json, Objective::Reviser);
    }

    /// The ids of the batch are taken for word pieces.
    #[test]
    fn gradients_of_a_pretrained_reviser_are_differences() {
        for activation in ["gelu", "gelu-tanh", "relu"] {
            let json = format!(
                r#""processor": {{"layers": 1, "hidden": 5}}, "reviser": {{"kind": "bert",
                "layers": 2, "hidden": 8, "feed_forward": 12, "heads": 2, "bert": {{"pieces": 9,
                "positions": 8, "epsilon": 1e-5, "activation": "{activation}", "rules": {{"clean": true, "split_chinese": true,
                "strip_accents": true, "lowercase": true, "longest": 100}}}}}}"#
            );
            let mut config = config(&json);
            (config.processor, config.embedding_dim, config.intents) = (None, 0, 3);
            check_config(&config, Objective::Reviser);
        }
    }

    /// Words in pieces, of several lengths, as the engine reads them.
    #[test]
    fn a_pretrained_reviser_agrees_with_the_engine() {
        let parts = tapir::doctest::pretrained();
        let texts = ["play zithers by miles ?", "jazz", "davis ? zither"];
        let (vocabulary, pieces) = (&parts.vocabulary, parts.pieces.as_ref());
        let lexicon = Lexicon { vocabulary, pieces, spellings: None };
        let example = |text: &str| {
            let words: Vec<_> = text.split(' ').map(Into::into).collect();
            let labels = vec![Some(0); words.len()];
            let example = Example { words, labels, ..Example::default() };
            lexicon.as_pieces(&example, &parts.config).unwrap()
        };
        let examples = texts.map(example);
        let examples: Vec<&Example> = examples.iter().collect();
        let batch =
            Batch::new(&examples, Order::Sentence, Totals { labels: 1, actions: 1, intents: 1 });
        let Logits { labels: ours, .. } = logits(&parts, None, Objective::Reviser, &batch).unwrap();
        let model = parts.clone().load().unwrap();
        let labels = parts.labels.len();
        let mut compared = 0;
        for (b, text) in texts.iter().enumerate() {
            let options = tapir::SessionOptions::new().mode(tapir::Mode::Restart);
            let mut session = model.session_with(options).unwrap();
            text.split(' ').for_each(|word| _ = session.push(word).unwrap());
            let firsts = (0..batch.length).filter(|t| batch.labels[b * batch.length + t][1] > 0.0);
            for (word, t) in firsts.enumerate() {
                let ours = &ours[(b * batch.length + t) * labels..][..labels];
                for (a, b) in ours.iter().zip(session.step_logits(word).unwrap()) {
                    assert!((a - b).abs() < 1e-5, "{text}, word {word}: {a} is not {b}");
                    compared += 1;
                }
            }
        }
        assert_eq!(compared, 9 * labels);
    }

    #[test]
    fn gradients_of_the_action_generator_are_differences() {
        let json = r#""reviser": {"kind": "linear-transformer", "layers": 1, "hidden": 8, "feed_forward": 12, "heads": 4}"#;
        check(json, Objective::Generator);
    }

    #[test]
    fn gradients_of_first_pass_memory_controller_and_policy_are_differences() {
        let json = r#""processor": {"layers": 2, "hidden": 5, "projection": 7},
            "controller": {"layers": 2, "hidden": 4, "memory": 2}"#;
        check(json, Objective::FirstPass);
        let json = json.replace("memory\": 2", "memory\": 2, \"inputs\": [\"output\", \"state\"]");
        check(&json, Objective::FirstPass);
        check(&json, Objective::Policy);
        for json in [&*json, &json.replace(", \"projection\": 7", "")] {
            let mut config = config(json);
            config.processor.as_mut().unwrap().spelling = Some(6);
            (config.intents, config.outside) = (3, true);
            check_config(&config, Objective::FirstPass);
            config.processor.as_mut().unwrap().affixes = Some(5);
            check_config(&config, Objective::FirstPass);
        }
    }

    /// Words that the vocabulary has not, each by its own pieces, as the engine reads them.
    #[test]
    fn a_first_pass_that_reads_spellings_agrees_with_the_engine() {
        let Parts { mut config, labels, vocabulary, pieces, .. } = tapir::doctest::pretrained();
        config.controller = None;
        config.processor.as_mut().unwrap().affixes = Some(7);
        let parts = Parts { pieces, ..Parts::random(config, labels, vocabulary, 7).unwrap() };
        let words = ["play", "zithers", "by", "zither", "?", "zithers"];
        let ids = words.iter().map(|word| parts.vocabulary.id(word)).collect();
        let mut example = Example {
            ids,
            words: words.map(Into::into).to_vec(),
            affixes: words.map(Affixes::of).to_vec(),
            labels: vec![Some(0); words.len()],
            ..Example::default()
        };
        let (labels, device) = (parts.labels.len(), Device::flex());
        let weights =
            Weights::read(&parts.weights, &parts.config, labels, parts.vocabulary.len(), &device)
                .unwrap();
        let bert = parts.config.reviser.as_ref().unwrap().bert.as_ref().unwrap();
        let split = (parts.pieces.as_ref().unwrap(), &bert.rules, bert.most_of_a_word(0));
        let examples = std::slice::from_ref(&example);
        let spellings = Spellings::new(examples, &parts.vocabulary, split, weights.pieces());
        spellings.spell(&mut example);
        let batch =
            Batch::new(&[&example], Order::Time, Totals { labels: 1, actions: 1, intents: 1 });
        let Logits { labels: ours, .. } =
            logits(&parts, Some(&spellings), Objective::FirstPass, &batch).unwrap();
        let model = parts.load().unwrap();
        let options = tapir::SessionOptions::new().mode(tapir::Mode::FirstPass);
        let mut session = model.session_with(options).unwrap();
        for (word, ours) in words.iter().zip(ours.chunks_exact(labels)) {
            session.push(word).unwrap();
            let step = session.words() - 1;
            for (a, b) in ours.iter().zip(session.step_logits(step).unwrap()) {
                assert!((a - b).abs() < 1e-5, "{word}: {a} is not {b}");
            }
        }
        // Two unknown words have one row, and are two words to it.
        let answer = |word: &str| {
            let mut session = model.session_with(options).unwrap();
            session.push(word).unwrap();
            session.step_logits(0).unwrap().to_vec()
        };
        assert_ne!(answer("zither"), answer("zithers"));
    }

    /// A reviser that reads how words are written, unknown ones too, as the engine does; a NULL token
    /// of a delayed model is written as nothing.
    #[test]
    fn a_reviser_that_reads_affixes_agrees_with_the_engine() {
        for delay in 0..2 {
            let Parts { mut config, labels, vocabulary, .. } = tapir::doctest::parts();
            (config.processor, config.controller, config.delay) = (None, None, delay);
            config.reviser.as_mut().unwrap().affixes = Some(7);
            let parts = Parts::random(config, labels, vocabulary, 7).unwrap();
            let words = ["play", "Zithers", "by", "zither", "?", "Zithers"];
            let null = std::iter::repeat_n(Vocabulary::NULL, delay);
            let ids = words.iter().map(|word| parts.vocabulary.id(word)).chain(null).collect();
            let example = Example {
                ids,
                affixes: words.map(Affixes::of).to_vec(),
                labels: vec![None; words.len() + delay],
                ..Example::default()
            };
            let totals = Totals { labels: 1, actions: 1, intents: 1 };
            let batch = Batch::new(&[&example], Order::Sentence, totals);
            let Logits { labels: ours, .. } =
                logits(&parts, None, Objective::Reviser, &batch).unwrap();
            let labels = parts.labels.len();
            let model = parts.load().unwrap();
            let options = tapir::SessionOptions::new().mode(tapir::Mode::Restart);
            let mut session = model.session_with(options).unwrap();
            words.iter().for_each(|word| _ = session.push(word).unwrap());
            session.finish().unwrap();
            for (step, ours) in ours.chunks_exact(labels).enumerate() {
                for (a, b) in ours.iter().zip(session.step_logits(step).unwrap()) {
                    assert!((a - b).abs() < 1e-5, "delay {delay}, step {step}: {a} is not {b}");
                }
            }
        }
    }

    #[test]
    fn weights_survive_the_way_to_disk_and_back() {
        let config = config(
            r#""processor": {"layers": 2, "hidden": 5}, "controller": {"layers": 2, "hidden": 4, "memory": 2},
               "reviser": {"kind": "transformer", "layers": 1, "hidden": 8, "feed_forward": 12, "heads": 2}"#,
        );
        let vocabulary = Vocabulary::new(["a", "b"]).unwrap();
        let labels = Labels::new(["O", "B", "I"]).unwrap();
        let weights = Weights::new(&config, 3, &vocabulary, None, 1, &Device::flex());
        let bytes = |weights: &Weights| {
            let mut writer = TensorWriter::default();
            weights.write(&mut writer).unwrap();
            writer.to_bytes().unwrap()
        };
        let file = bytes(&weights);
        let again = Weights::read(&file, &config, 3, vocabulary.len(), &Device::flex()).unwrap();
        assert_eq!(bytes(&again), file);
        let parts =
            Parts { config, labels, intents: None, vocabulary, pieces: None, weights: file.into() };
        parts.load().unwrap();
    }
}
