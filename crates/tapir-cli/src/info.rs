//! `tapir info`: what a model directory holds.

/// Show what a model directory holds
#[derive(clap::Args)]
pub(crate) struct Info {
    /// The model directory
    model: std::path::PathBuf,
}

impl Info {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        anyhow::bail!("{}: not a model directory", self.model.display())
    }
}
