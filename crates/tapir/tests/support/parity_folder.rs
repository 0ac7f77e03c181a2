//! Where recorded outputs are: in the folder that `TAPIR_PARITY_DIR` names, or in our own copies.

use std::path::{Path, PathBuf};

/// What `find` finds in the folder that `TAPIR_PARITY_DIR` names or, where that has none of its
/// kind, in `tests/OWN` of the crate: a folder need not hold outputs of every kind.
pub(crate) fn with<T>(own: &str, find: impl Fn(&Path) -> Option<T>) -> T {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let own = package.join("tests").join(own);
    let named = std::env::var_os("TAPIR_PARITY_DIR").map(|dir| {
        // Cargo runs tests in the folder of their crate, people name one from the repository's.
        let places = [PathBuf::from(&dir), package.join("../..").join(&dir)];
        let place = places.into_iter().find(|place| place.is_dir());
        place.unwrap_or_else(|| panic!("TAPIR_PARITY_DIR names no folder: {}", dir.display()))
    });
    for folder in named.iter().chain([&own]) {
        if let Some(found) = find(folder) {
            println!("recorded outputs of {}", folder.display());
            return found;
        }
    }
    panic!("no recorded outputs in {}", own.display())
}

/// Are there as many recorded cases as our own copies have, or any at all where a folder was named?
#[allow(dead_code)] // not every test file counts
pub(crate) fn are_enough(cases: usize, own: usize) -> bool {
    cases >= if std::env::var_os("TAPIR_PARITY_DIR").is_some() { 1 } else { own }
}
