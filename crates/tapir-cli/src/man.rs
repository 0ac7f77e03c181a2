//! `tapir man`: the manual.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap_mangen::Man as Page;

/// Print the manual page, or write a page for every command
///
/// Examples:
///   tapir man | man -l -
///   tapir man -o ~/.local/share/man/man1
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Man {
    /// Write tapir.1 and a page for every command to this folder
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Man {
    pub(crate) fn run(self, program: clap::Command) -> Result<()> {
        let Some(dir) = self.out else {
            let mut page = Vec::new();
            Page::new(program).render(&mut page)?;
            std::io::stdout().write_all(&page)?;
            return Ok(());
        };
        let place = || dir.display().to_string();
        std::fs::create_dir_all(&dir).with_context(place)?;
        clap_mangen::generate_to(program, &dir).with_context(place)
    }
}
