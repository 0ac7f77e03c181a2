//! Models and word vectors by path or, where they ship in the program, by name. What is on disk
//! comes first: a name means what ships only where there is no file, model or training run of that
//! name.

use std::path::Path;

use crate::store::is_model_or_run;
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
        match Self::find_shipped(&name) {
            Some(name) => embedded(name)?.load(),
            None => Self::open(&name).map_err(|error| with_names(error, name.as_ref())),
        }
    }

    /// The name of the model in the program that [`find`](Self::find) gives; none where it opens
    /// what is on disk.
    ///
    /// ```
    /// # #[cfg(feature = "embedded")]
    /// assert_eq!(tapir::Model::find_shipped("pos"), Some("pos"));
    /// assert_eq!(tapir::Model::find_shipped("runs/pos"), None);
    /// ```
    pub fn find_shipped(name: impl AsRef<Path>) -> Option<&'static str> {
        let name = name.as_ref();
        let shipped = names().find(|shipped| name == Path::new(shipped))?;
        (!is_model_or_run(name)).then_some(shipped)
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
        match Model::find_shipped(&name) {
            Some(name) => embedded(name),
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

/// The model of that name in the program.
#[cfg(feature = "embedded")]
fn embedded(name: &str) -> Result<Parts> {
    Parts::embedded_named(name)
}

#[cfg(not(feature = "embedded"))]
fn embedded(name: &str) -> Result<Parts> {
    Parts::open(name)
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

#[cfg(all(test, feature = "embedded"))]
mod tests {
    use super::*;

    #[test]
    fn what_is_on_disk_comes_first() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        assert!(!is_model_or_run(&at("pos")));
        std::fs::create_dir(at("pos")).unwrap();
        assert!(!is_model_or_run(&at("pos")), "a folder of something else");
        let parts = crate::doctest::parts();
        std::fs::remove_dir(at("pos")).unwrap();
        parts.save(at("pos")).unwrap();
        assert!(is_model_or_run(&at("pos")));
        std::fs::create_dir(at("run")).unwrap();
        std::fs::write(at("run").join("preset.toml"), "").unwrap();
        assert!(is_model_or_run(&at("run")), "a run that is not done");
        std::fs::remove_file(at("run").join("preset.toml")).unwrap();
        parts.save(at("run").join("model")).unwrap();
        assert!(is_model_or_run(&at("run")), "a run");
    }
}
