//! Published figures, to stand beside ours: those of the paper's tables, and those that its authors
//! later published about the revisions of the same models.

use tapir::ReviserKind;

/// EO, CT and RC; for delayed models EO and RC are those with the delay.
pub type Triple = [f64; 3];

/// Shares of steps that recomputed and of recomputations that were active; then R-pertinence,
/// A-pertinence, R-appropriateness, A-appropriateness and R-effective-pertinence, all against the
/// final output.
pub type RevisionFigures = [f64; 7];

/// What is published for one task.
#[derive(Clone, Copy, Debug)]
pub struct Paper {
    /// The name of the task file.
    pub task: &'static str,
    /// The name in the paper's tables.
    pub title: &'static str,
    /// Scores of full test sentences (table "non-incremental performance"): reference, then Trf and
    /// LT with delays 0, 1, 2.
    pub reference: f64,
    /// Trf with delays 0, 1, 2.
    pub transformer: [f64; 3],
    /// LT with delays 0, 1, 2.
    pub linear: [f64; 3],
    /// Sentences a second: reference, Trf, LT.
    pub speed: [f64; 3],
    /// EO, CT, RC of the reference without delay.
    pub reference_incremental: Triple,
    /// EOΔ1, EOΔ2, RCΔ1, RCΔ2 of the reference.
    pub reference_ahead: [f64; 4],
    /// EO, CT, RC of Trf with delays 0, 1, 2.
    pub transformer_incremental: [Triple; 3],
    /// EO, CT, RC of LT with delays 0, 1, 2.
    pub linear_incremental: [Triple; 3],
    /// Overall REVISE; R∩C/R; W∩I/W; R∩C/C; W∩I/I. Their complements follow.
    pub policy: [f64; 5],
    /// EO, CT, RC and score of Trf for thresholds 0 to 1 in tenths.
    pub sweep: [[f64; 4]; 11],
    /// Millions of parameters (table "number of parameters for each model"): reference, Trf, LT.
    pub parameters: [f64; 3],
    /// Revisions of the reference, Trf and LT, without delay.
    ///
    /// From Madureira, Kahardipraja and Schlangen, *The Road to Quality is Paved with Good
    /// Revisions* (SIGDIAL 2023), which has three of the tasks. The digits are those of its
    /// repository, `briemadu/inc-eval-revisions`, file `analysis-tapir.ipynb`.
    pub revisions: Option<[RevisionFigures; 3]>,
}

impl Paper {
    /// Trf's or LT's of figures that come as reference, Trf, LT.
    pub(crate) fn of_kind<T: Copy>(figures: [T; 3], kind: Option<ReviserKind>) -> Option<T> {
        let [_, transformer, linear] = figures;
        match kind? {
            ReviserKind::Transformer => Some(transformer),
            ReviserKind::LinearTransformer => Some(linear),
            ReviserKind::Bert => None,
        }
    }
}

/// The paper's figures for a task, by the name of its task file.
///
/// ```
/// assert_eq!(tapir_eval::paper("snips").map(|paper| paper.reference), Some(91.05));
/// assert!(tapir_eval::paper("my-own").is_none());
/// ```
pub fn paper(task: &str) -> Option<&'static Paper> {
    PAPER.iter().find(|paper| paper.task == task)
}

/// All seven tasks, in the paper's order.
pub(crate) const PAPER: [Paper; 7] = [
    Paper {
        task: "snips",
        title: "SNIPS",
        reference: 91.05,
        transformer: [88.57, 90.47, 89.45],
        linear: [85.95, 88.07, 87.28],
        speed: [1.103, 4.958, 8.983],
        reference_incremental: [0.181, 0.1, 0.75],
        reference_ahead: [0.081, 0.046, 0.887, 0.933],
        transformer_incremental: [
            [0.074, 0.055, 0.876],
            [0.046, 0.034, 0.919],
            [0.049, 0.03, 0.922],
        ],
        linear_incremental: [[0.081, 0.058, 0.866], [0.057, 0.042, 0.899], [0.053, 0.036, 0.905]],
        policy: [0.214, 0.606, 0.117, 0.158, 0.521],
        sweep: [
            [0.181, 0.1, 0.75, 0.911],
            [0.102, 0.062, 0.863, 0.905],
            [0.092, 0.059, 0.868, 0.903],
            [0.086, 0.058, 0.87, 0.895],
            [0.079, 0.056, 0.875, 0.888],
            [0.074, 0.055, 0.876, 0.886],
            [0.065, 0.053, 0.878, 0.887],
            [0.055, 0.046, 0.895, 0.875],
            [0.045, 0.041, 0.906, 0.864],
            [0.028, 0.028, 0.934, 0.849],
            [0.0, 0.0, 1.0, 0.814],
        ],
        parameters: [16.2, 38.7, 29.7],
        revisions: Some([
            [1.0, 0.212, 0.943, 0.93, 0.784, 0.984, 0.822],
            [0.214, 0.337, 0.871, 0.92, 0.458, 0.989, 0.749],
            [0.203, 0.394, 0.867, 0.911, 0.458, 0.987, 0.724],
        ]),
    },
    Paper {
        task: "arw",
        title: "ARW",
        reference: 95.63,
        transformer: [93.35, 95.17, 95.15],
        linear: [92.84, 93.65, 94.5],
        speed: [2.339, 8.734, 5.959],
        reference_incremental: [0.079, 0.041, 0.906],
        reference_ahead: [0.017, 0.008, 0.977, 0.989],
        transformer_incremental: [
            [0.032, 0.019, 0.95],
            [0.012, 0.008, 0.983],
            [0.007, 0.004, 0.989],
        ],
        linear_incremental: [[0.031, 0.019, 0.948], [0.016, 0.01, 0.973], [0.019, 0.012, 0.972]],
        policy: [0.198, 0.741, 0.04, 0.16, 0.385],
        sweep: [
            [0.079, 0.041, 0.906, 0.956],
            [0.043, 0.022, 0.944, 0.95],
            [0.039, 0.021, 0.945, 0.946],
            [0.037, 0.02, 0.947, 0.941],
            [0.034, 0.02, 0.948, 0.936],
            [0.032, 0.019, 0.95, 0.934],
            [0.03, 0.018, 0.952, 0.93],
            [0.027, 0.017, 0.953, 0.926],
            [0.024, 0.015, 0.956, 0.918],
            [0.019, 0.013, 0.962, 0.908],
            [0.0, 0.0, 1.0, 0.894],
        ],
        parameters: [4.4, 13.6, 30.7],
        revisions: None,
    },
    Paper {
        task: "movie",
        title: "Movie",
        reference: 83.98,
        transformer: [82.85, 83.26, 82.95],
        linear: [81.4, 83.16, 82.21],
        speed: [0.927, 3.52, 3.432],
        reference_incremental: [0.311, 0.215, 0.549],
        reference_ahead: [0.205, 0.107, 0.705, 0.852],
        transformer_incremental: [
            [0.079, 0.049, 0.895],
            [0.043, 0.028, 0.93],
            [0.033, 0.021, 0.944],
        ],
        linear_incremental: [[0.084, 0.053, 0.889], [0.069, 0.041, 0.906], [0.053, 0.033, 0.922]],
        policy: [0.271, 0.655, 0.075, 0.209, 0.37],
        sweep: [
            [0.311, 0.215, 0.549, 0.84],
            [0.109, 0.066, 0.873, 0.838],
            [0.097, 0.059, 0.881, 0.835],
            [0.09, 0.055, 0.886, 0.832],
            [0.083, 0.051, 0.891, 0.829],
            [0.079, 0.049, 0.895, 0.828],
            [0.074, 0.046, 0.9, 0.826],
            [0.068, 0.043, 0.904, 0.822],
            [0.06, 0.038, 0.914, 0.817],
            [0.049, 0.034, 0.925, 0.804],
            [0.0, 0.0, 1.0, 0.768],
        ],
        parameters: [7.2, 21.0, 25.7],
        revisions: None,
    },
    Paper {
        task: "conll-ner",
        title: "NER",
        reference: 78.25,
        transformer: [74.13, 76.85, 78.04],
        linear: [73.12, 73.79, 75.75],
        speed: [0.675, 4.465, 4.502],
        reference_incremental: [0.08, 0.057, 0.873],
        reference_ahead: [0.038, 0.023, 0.928, 0.949],
        transformer_incremental: [
            [0.023, 0.018, 0.931],
            [0.017, 0.015, 0.95],
            [0.016, 0.011, 0.954],
        ],
        linear_incremental: [[0.026, 0.019, 0.933], [0.016, 0.012, 0.959], [0.017, 0.014, 0.947]],
        policy: [0.104, 0.654, 0.101, 0.078, 0.716],
        sweep: [
            [0.08, 0.057, 0.873, 0.783],
            [0.04, 0.035, 0.903, 0.761],
            [0.032, 0.026, 0.918, 0.747],
            [0.029, 0.022, 0.925, 0.742],
            [0.025, 0.02, 0.929, 0.742],
            [0.023, 0.018, 0.931, 0.741],
            [0.022, 0.016, 0.935, 0.742],
            [0.021, 0.015, 0.938, 0.743],
            [0.019, 0.014, 0.943, 0.742],
            [0.016, 0.012, 0.949, 0.739],
            [0.0, 0.0, 1.0, 0.7],
        ],
        parameters: [16.7, 44.7, 43.7],
        revisions: Some([
            [1.0, 0.078, 0.847, 0.926, 0.491, 0.986, 0.767],
            [0.104, 0.254, 0.899, 0.914, 0.221, 0.997, 0.821],
            [0.138, 0.202, 0.87, 0.92, 0.238, 0.996, 0.788],
        ]),
    },
    Paper {
        task: "conll-chunk",
        title: "Chunk",
        reference: 88.35,
        transformer: [86.85, 87.48, 87.52],
        linear: [85.03, 86.43, 85.79],
        speed: [0.688, 2.714, 1.912],
        reference_incremental: [0.063, 0.026, 0.885],
        reference_ahead: [0.035, 0.027, 0.921, 0.934],
        transformer_incremental: [
            [0.036, 0.016, 0.905],
            [0.028, 0.014, 0.92],
            [0.026, 0.013, 0.926],
        ],
        linear_incremental: [[0.062, 0.026, 0.864], [0.036, 0.019, 0.905], [0.041, 0.019, 0.901]],
        policy: [0.227, 0.65, 0.168, 0.187, 0.619],
        sweep: [
            [0.063, 0.026, 0.885, 0.883],
            [0.054, 0.022, 0.89, 0.878],
            [0.048, 0.02, 0.895, 0.875],
            [0.043, 0.018, 0.9, 0.873],
            [0.039, 0.016, 0.903, 0.871],
            [0.036, 0.016, 0.905, 0.869],
            [0.033, 0.015, 0.908, 0.868],
            [0.031, 0.014, 0.907, 0.867],
            [0.028, 0.013, 0.911, 0.868],
            [0.025, 0.012, 0.914, 0.866],
            [0.0, 0.0, 1.0, 0.833],
        ],
        parameters: [16.7, 44.1, 45.2],
        revisions: None,
    },
    Paper {
        task: "conll-pos",
        title: "PoS",
        reference: 92.28,
        transformer: [91.32, 91.35, 91.49],
        linear: [90.9, 90.83, 90.65],
        speed: [0.672, 4.111, 7.4],
        reference_incremental: [0.122, 0.072, 0.788],
        reference_ahead: [0.066, 0.05, 0.859, 0.885],
        transformer_incremental: [
            [0.042, 0.032, 0.863],
            [0.033, 0.025, 0.89],
            [0.037, 0.027, 0.884],
        ],
        linear_incremental: [[0.037, 0.028, 0.871], [0.031, 0.023, 0.898], [0.034, 0.026, 0.89]],
        policy: [0.134, 0.523, 0.234, 0.096, 0.761],
        sweep: [
            [0.122, 0.072, 0.788, 0.923],
            [0.085, 0.057, 0.816, 0.916],
            [0.069, 0.047, 0.827, 0.916],
            [0.059, 0.043, 0.836, 0.915],
            [0.05, 0.037, 0.85, 0.914],
            [0.042, 0.032, 0.863, 0.913],
            [0.035, 0.028, 0.878, 0.912],
            [0.029, 0.024, 0.893, 0.912],
            [0.023, 0.02, 0.91, 0.911],
            [0.016, 0.015, 0.934, 0.909],
            [0.0, 0.0, 1.0, 0.904],
        ],
        parameters: [16.7, 42.0, 33.8],
        revisions: None,
    },
    Paper {
        task: "ewt",
        title: "EWT",
        reference: 92.14,
        transformer: [90.84, 92.0, 91.95],
        linear: [90.2, 91.34, 90.93],
        speed: [0.819, 3.659, 3.122],
        reference_incremental: [0.137, 0.076, 0.796],
        reference_ahead: [0.049, 0.028, 0.907, 0.936],
        transformer_incremental: [
            [0.053, 0.033, 0.855],
            [0.033, 0.023, 0.907],
            [0.034, 0.024, 0.905],
        ],
        linear_incremental: [[0.073, 0.046, 0.818], [0.041, 0.03, 0.888], [0.036, 0.024, 0.895]],
        policy: [0.202, 0.578, 0.257, 0.165, 0.706],
        sweep: [
            [0.137, 0.076, 0.796, 0.921],
            [0.085, 0.049, 0.824, 0.915],
            [0.075, 0.044, 0.83, 0.913],
            [0.066, 0.04, 0.84, 0.912],
            [0.059, 0.036, 0.848, 0.91],
            [0.053, 0.033, 0.855, 0.908],
            [0.049, 0.031, 0.861, 0.908],
            [0.045, 0.029, 0.868, 0.907],
            [0.04, 0.026, 0.877, 0.906],
            [0.035, 0.025, 0.885, 0.904],
            [0.0, 0.0, 1.0, 0.88],
        ],
        parameters: [12.5, 34.7, 38.9],
        revisions: Some([
            [1.0, 0.193, 0.916, 0.899, 0.684, 0.978, 0.813],
            [0.202, 0.341, 0.938, 0.806, 0.264, 0.994, 0.873],
            [0.245, 0.396, 0.908, 0.769, 0.297, 0.987, 0.802],
        ]),
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper's tables repeat some figures: a slip of the pen in one of them would show.
    #[test]
    fn the_tables_agree_with_each_other() {
        for paper in &PAPER {
            let [first, half] = [paper.sweep[0], paper.sweep[5]];
            assert_eq!(first[..3], paper.reference_incremental, "{}", paper.task);
            assert_eq!(half[..3], paper.transformer_incremental[0], "{}", paper.task);
            assert!((100.0 * first[3] - paper.reference).abs() < 0.06, "{}", paper.task);
            assert!((100.0 * half[3] - paper.transformer[0]).abs() < 0.06, "{}", paper.task);
            assert_eq!(paper.sweep[10][..3], [0.0, 0.0, 1.0]);
            if let Some([reference, transformer, _]) = paper.revisions {
                assert_eq!(
                    (reference[0], transformer[0]),
                    (1.0, paper.policy[0]),
                    "{}",
                    paper.task
                );
            }
        }
    }

    #[test]
    fn the_tasks_are_those_that_ship_in_their_order() {
        assert!(PAPER.iter().map(|paper| paper.task).eq(tapir_data::Task::shipped()));
    }
}
