//! `tapir tasks`, `tapir presets`: what ships in the program, to read and to copy.

use anyhow::{Result, bail};
use clap::Args;

use crate::terminal::print;

/// List the tasks that ship, or print one to make your own of it
#[derive(Args)]
#[command(after_help = "Examples:
  tapir tasks
  tapir tasks snips > my-task.toml")]
pub(crate) struct Tasks {
    /// The task to print
    name: Option<String>,
}

/// List the training presets that ship, or print one to make your own of it
#[derive(Args)]
#[command(after_help = "Examples:
  tapir presets
  tapir presets small/snips > my-preset.toml")]
pub(crate) struct Presets {
    /// The preset to print
    name: Option<String>,
}

impl Tasks {
    pub(crate) fn run(self) -> Result<()> {
        show(self.name.as_deref(), "task", tapir_models::tasks())
    }
}

impl Presets {
    pub(crate) fn run(self) -> Result<()> {
        show(self.name.as_deref(), "preset", tapir_models::presets())
    }
}

/// The text of one, or every name with the comment that its text begins with.
fn show(name: Option<&str>, what: &str, all: &[(&str, &str)]) -> Result<()> {
    let Some(name) = name else {
        let width = all.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let line = |(name, text): &(&str, &str)| {
            let about =
                text.lines().next().and_then(|line| line.strip_prefix("# ")).unwrap_or_default();
            format!("{name:<width$}  {about}").trim_end().to_owned() + "\n"
        };
        return print(&all.iter().map(line).collect::<String>());
    };
    match all.iter().find(|(known, _)| *known == name) {
        Some((_, text)) => print(text),
        None => bail!("there is no {what} `{name}`; `tapir {what}s` lists them"),
    }
}
