//! Which model it is: a digest of all that decides its answers.

use crate::word::Identity;
use crate::{Model, Parts};

impl Parts {
    /// A digest of configuration, labels, vocabulary, pieces, vectors and weights: 32 hexadecimal
    /// digits, the same for the same model wherever it is read. It tells models apart that a person
    /// gave one name; it is no protection against somebody who forges one.
    ///
    /// ```
    /// let parts = tapir::doctest::parts();
    /// let small = parts.quantize(tapir::Precision::Int8)?;
    /// assert_eq!(parts.digest(), tapir::doctest::parts().digest());
    /// assert_ne!(parts.digest(), small.digest());
    /// # Ok::<(), tapir::Error>(())
    /// ```
    pub fn digest(&self) -> String {
        let Self { config, labels, vocabulary, pieces, weights } = self;
        // A configuration is numbers and names, which JSON can always say.
        let config = serde_json::to_vec(config).unwrap_or_default();
        let (labels, words) = (labels.to_text(), vocabulary.to_text());
        let pieces = pieces.as_ref().map(crate::WordPieces::to_text).unwrap_or_default();
        let vectors = vocabulary.vectors().map(|vectors| vectors.bytes());
        let vectors = vectors.map_or(&[][..], |bytes| bytes);
        let files =
            [&config[..], labels.as_bytes(), words.as_bytes(), pieces.as_bytes(), vectors, weights];
        // Each file is an identity of its own, so that nothing moves from one to the next unseen.
        let digest = files.into_iter().map(Identity::of).fold(Identity::EMPTY, Identity::then);
        format!("{:032x}", digest.number())
    }
}

impl Model {
    /// Which model it is: see [`Parts::digest`].
    pub fn digest(&self) -> String {
        self.parts().digest()
    }
}
