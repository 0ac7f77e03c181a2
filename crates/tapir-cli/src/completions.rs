//! `tapir completions`: what a shell needs to complete commands, flags and their values.

use std::io::Write;

use anyhow::Result;
use clap_complete::Shell;

/// Print the completions of a shell
///
/// Examples:
///   tapir completions bash > ~/.local/share/bash-completion/completions/tapir
///   tapir completions zsh > ~/.zfunc/_tapir
///   tapir completions fish > ~/.config/fish/completions/tapir.fish
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Completions {
    /// Which shell
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self, mut program: clap::Command) -> Result<()> {
        // Made in memory first: `generate` panics where writing fails, and a closed pipe is no
        // reason to.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut program, "tapir", &mut script);
        std::io::stdout().write_all(&script)?;
        Ok(())
    }
}
