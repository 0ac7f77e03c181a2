//! `tapir live`: labels while you type. The terminal is here; what keys do is in `state`, what is
//! seen in `view`.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event;

mod state;
mod view;

use state::LiveState;

/// How soon a signal is noticed while no key is pressed.
const PATIENCE: Duration = Duration::from_millis(100);

/// Type, and watch labels appear and change
///
/// Each word is labelled when you finish it with a space. Backspace takes words back, enter ends
/// the sentence, the arrow keys change the threshold, esc leaves.
#[derive(clap::Args)]
pub(crate) struct Live {
    #[command(flatten)]
    model: crate::model::Choice,
}

impl Live {
    pub(crate) fn run(self) -> Result<()> {
        if !(std::io::stdin().is_terminal() && std::io::stdout().is_terminal()) {
            bail!(
                "live needs a terminal to type in; `tapir tag` and `tapir stream` work with files and pipes"
            );
        }
        let model = self.model.open()?;
        let threshold = self.model.threshold().unwrap_or(model.config().threshold);
        let mut state = LiveState::new(model, threshold)?;
        let killed = Arc::new(AtomicBool::new(false));
        let endings = [
            signal_hook::consts::SIGTERM,
            #[cfg(unix)]
            signal_hook::consts::SIGHUP,
        ];
        for signal in endings {
            signal_hook::flag::register(signal, killed.clone())
                .context("cannot watch for signals")?;
        }
        // From here on a panic restores the terminal, too: `init` sees to it.
        let result = ratatui::try_init()
            .and_then(|mut terminal| converse(&mut terminal, &mut state, &killed));
        ratatui::restore();
        result.context("the terminal")
    }
}

/// Draws and reads keys until the person leaves or the process is told to end.
fn converse(
    terminal: &mut DefaultTerminal,
    state: &mut LiveState,
    killed: &AtomicBool,
) -> std::io::Result<()> {
    while !state.left() && !killed.load(Ordering::Relaxed) {
        terminal.draw(|frame| view::draw(state, frame))?;
        // All keys that are there, then one picture: pasted text is not drawn letter by letter.
        let mut wait = PATIENCE;
        while !state.left() && event::poll(wait)? {
            if let event::Event::Key(key) = event::read()? {
                state.key(key);
            }
            wait = Duration::ZERO;
        }
    }
    Ok(())
}
