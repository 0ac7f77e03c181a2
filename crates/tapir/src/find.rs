//! Models and word vectors by path or, where they ship in the program, by name. What is on disk
//! comes first: a name means what ships only where there is no file or model of that name.

use std::path::Path;

use crate::{Error, Model, Parts, Result, WordVectors};

impl Model {
    /// Opens a model directory, or the model of that name that ships in the program.
    ///
    /// ```
    /// # #[cfg(feature = "embedded")] {
    /// let model = tapir::Model::find("pos")?;
    /// assert_eq!(model.labels().len(), 17);
    /// # }
    /// let error = tapir::Model::find("no/such").unwrap_err();
    /// assert!(error.to_string().contains("no such directory"));
    /// # Ok::<(), tapir::Error>(())
    /// ```
    pub fn find(name: impl AsRef<Path>) -> Result<Self> {
        match shipped(name.as_ref()) {
            Some(parts) => parts?.load(),
            None => Self::open(&name).map_err(|error| with_names(error, name.as_ref())),
        }
    }
}

impl Parts {
    /// Reads a model directory, or the files of the model of that name that ships in the program.
    ///
    /// ```
    /// # #[cfg(feature = "embedded")]
    /// assert_eq!(tapir::Parts::find("snips")?.config.task, "snips");
    /// # Ok::<(), tapir::Error>(())
    /// ```
    pub fn find(name: impl AsRef<Path>) -> Result<Self> {
        match shipped(name.as_ref()) {
            Some(parts) => parts,
            None => Self::open(&name).map_err(|error| with_names(error, name.as_ref())),
        }
    }
}

impl WordVectors {
    /// Reads a file of word vectors, or takes those in the program if there is no such file and the
    /// name is theirs.
    ///
    /// ```
    /// # #[cfg(feature = "embedded")]
    /// assert_eq!(tapir::WordVectors::find("en_300d.tapirvec")?.dim(), 300);
    /// # Ok::<(), tapir::Error>(())
    /// ```
    pub fn find(name: impl AsRef<Path>) -> Result<Self> {
        let name = name.as_ref();
        #[cfg(feature = "embedded")]
        if !name.exists() && Self::is_embedded(name) {
            return Self::embedded();
        }
        Self::open(name)
    }
}

/// The model of that name in the program, unless a directory holds one.
#[cfg(feature = "embedded")]
fn shipped(name: &Path) -> Option<Result<Parts>> {
    let text = name.to_str().filter(|text| names().any(|name| name == *text))?;
    (!name.join("config.json").exists()).then(|| Parts::embedded_named(text))
}

#[cfg(not(feature = "embedded"))]
fn shipped(_: &Path) -> Option<Result<Parts>> {
    None
}

/// A mistyped name is not a mistyped directory: says which models ship.
fn with_names(error: Error, name: &Path) -> Error {
    let names: Vec<_> = names().collect();
    match error {
        Error::Invalid { file, reason } if !name.exists() && !names.is_empty() => {
            let names = names.join(", ");
            Error::invalid(file, format!("{reason}, or the name of one that ships: {names}"))
        }
        other => other,
    }
}

/// The names of the models in the program.
#[cfg(feature = "embedded")]
fn names() -> impl Iterator<Item = &'static str> {
    Model::embedded_names()
}

#[cfg(not(feature = "embedded"))]
fn names() -> impl Iterator<Item = &'static str> {
    std::iter::empty()
}
