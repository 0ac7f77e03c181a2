//! Which model it is: a digest of all that decides its answers.

use crate::word::Identity;
use crate::{Model, Parts};

impl Parts {
    /// A digest of configuration, labels, intents, vocabulary, pieces, vectors and weights: 32
    /// hexadecimal digits, the same for the same model wherever it is read. It tells models apart that a person
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
        let Self { config, labels, intents, vocabulary, pieces, weights } = self;
        // A configuration is numbers and names, which JSON can always say.
        let config = serde_json::to_vec(config).unwrap_or_default();
        let (labels, words) = (labels.to_text(), vocabulary.to_text());
        let intents = intents.as_ref().map(crate::Labels::to_text).unwrap_or_default();
        let pieces = pieces.as_ref().map(crate::WordPieces::to_text).unwrap_or_default();
        let vectors = vocabulary.vectors().map(|vectors| vectors.bytes());
        let vectors = vectors.map_or(&[][..], |bytes| bytes);
        let texts = [&labels, &intents, &words, &pieces].map(String::as_bytes);
        let files = [&config[..]].into_iter().chain(texts).chain([vectors, weights]);
        // Each file is an identity of its own, so that nothing moves from one to the next unseen.
        let digest = files.map(Identity::of).fold(Identity::EMPTY, Identity::then);
        format!("{:032x}", digest.number())
    }
}

impl Model {
    /// Which model it is: see [`Parts::digest`].
    pub fn digest(&self) -> String {
        self.parts().digest()
    }
}
