//! `tapir report`: one page and Markdown tables from results files.

use std::fs;
use std::path::{Path, PathBuf};

use crate::measure::print;
use anyhow::{Context, Result, bail};
use clap::Args;
use tapir_eval::{Report as Page, Results, write_aside};

/// Make one self-contained HTML page and Markdown tables from results, the paper's figures beside them
#[derive(Args)]
#[command(after_help = "Examples:
  tapir report results --html docs/report.html --markdown docs/results.md
  tapir report results/snips-*.json            # Markdown on standard output")]
pub(crate) struct Report {
    /// Results files, or folders of them
    #[arg(required = true)]
    results: Vec<PathBuf>,
    /// Write the page here
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the Markdown here
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Text of your own for the head of the report, paragraphs apart by blank lines
    #[arg(long, value_name = "FILE")]
    notes: Option<PathBuf>,
}

impl Report {
    pub(crate) fn run(self) -> Result<()> {
        let mut files = Vec::new();
        for path in &self.results {
            if path.is_dir() { files.extend(folder(path)?) } else { files.push(path.clone()) }
        }
        let results = files.iter().map(|file| Results::open(file)).collect::<Result<Vec<_>, _>>()?;
        let notes = match &self.notes {
            Some(path) => fs::read_to_string(path).with_context(|| path.display().to_string())?,
            None => String::new(),
        };
        // All is read and made before anything is written.
        let report = Page::new(results, &notes)?;
        let (html, markdown) = (report.to_html(), report.to_markdown());
        if let Some(path) = &self.html {
            write_aside(path, html.as_bytes())?;
        }
        if let Some(path) = &self.markdown {
            write_aside(path, markdown.as_bytes())?;
        }
        if self.html.is_none() && self.markdown.is_none() {
            print(&markdown)?;
        }
        Ok(())
    }
}

/// The results files of a folder, by name.
fn folder(path: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(path).with_context(|| path.display().to_string())? {
        let file = entry.with_context(|| path.display().to_string())?.path();
        if file.extension().is_some_and(|extension| extension == "json") {
            files.push(file);
        }
    }
    if files.is_empty() {
        bail!("{}: no .json file in it; expected results that tapir wrote with --output", path.display());
    }
    files.sort();
    Ok(files)
}
