//! The trained models, named for what they label.

/// The files of one model directory.
#[derive(Clone, Copy)]
pub struct ModelFiles {
    /// What the model is called.
    pub name: &'static str,
    /// `config.json`
    pub config: &'static str,
    /// `labels.txt`
    pub labels: &'static str,
    /// `intents.txt`, if there is one
    pub intents: Option<&'static str>,
    /// `vocab.txt`
    pub vocabulary: &'static str,
    /// `pieces.txt`, if there is one
    pub pieces: Option<&'static str>,
    /// `model.safetensors`
    pub weights: &'static [u8],
}

/// The files of these folders of `models`.
macro_rules! models {
    ($($name:literal)*) => {
        [$(ModelFiles {
            name: $name,
            config: include_str!(concat!("../models/", $name, "/config.json")),
            labels: include_str!(concat!("../models/", $name, "/labels.txt")),
            intents: None,
            vocabulary: include_str!(concat!("../models/", $name, "/vocab.txt")),
            pieces: None,
            weights: include_bytes!(concat!("../models/", $name, "/model.safetensors")),
        }),*]
    };
}

/// The model with a pretrained reviser, which is a crate of its own for its size.
const SNIPS: ModelFiles = ModelFiles {
    name: "snips",
    config: tapir_snips::CONFIG,
    labels: tapir_snips::LABELS,
    intents: Some(tapir_snips::INTENTS),
    vocabulary: tapir_snips::VOCABULARY,
    pieces: Some(tapir_snips::PIECES),
    weights: tapir_snips::WEIGHTS,
};

static MODELS: [ModelFiles; 3] = {
    let [small, pos] = models!["snips-small" "pos"];
    [SNIPS, small, pos]
};

/// Every model, the default first. All share the word vectors [`VECTORS`](crate::VECTORS).
///
/// ```
/// let names: Vec<_> = tapir_models::models().iter().map(|model| model.name).collect();
/// assert_eq!(names, ["snips", "snips-small", "pos"]);
/// ```
pub fn models() -> &'static [ModelFiles] {
    &MODELS
}

/// The model of that name.
///
/// ```
/// let model = tapir_models::model("pos").expect("it ships");
/// assert!(model.config.contains(tapir_models::VECTORS.name));
/// assert_eq!(model.labels.lines().count(), 17);
/// assert!(tapir_models::model("chess").is_none());
/// ```
pub fn model(name: &str) -> Option<&'static ModelFiles> {
    MODELS.iter().find(|model| model.name == name)
}
