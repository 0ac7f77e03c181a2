//! What is known of the terminal, and how to print to it.

use std::io::{Write, stdout};

use anyhow::Result;

/// Prints; a reader that has seen enough, such as `head`, is no fault.
pub(crate) fn print(text: &str) -> Result<()> {
    match stdout().write_all(text.as_bytes()).and_then(|()| stdout().flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        result => Ok(result?),
    }
}

/// Columns of the terminal; `COLUMNS` where there is none, or plenty.
pub(crate) fn width() -> usize {
    let asked = || std::env::var("COLUMNS").ok()?.parse().ok();
    let terminal = console::Term::stdout().size_checked().map(|(_, columns)| usize::from(columns));
    terminal.or_else(asked).unwrap_or(200)
}

/// May the output be coloured?
#[cfg(feature = "eval")]
pub(crate) fn colour() -> bool {
    std::io::IsTerminal::is_terminal(&stdout())
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
