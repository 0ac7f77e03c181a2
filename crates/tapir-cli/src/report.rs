//! `tapir report`: one page and Markdown tables from results files.

use std::fs;
use std::path::{Path, PathBuf};

use crate::terminal::print;
use anyhow::{Context, Result, bail};
use clap::Args;
use tapir_data::write_atomically;
use tapir_eval::{Report as Page, Results};

/// Make one self-contained HTML page and Markdown tables from results, the paper's figures beside
/// them
#[derive(Args)]
#[command(after_help = "Examples:
  tapir report results --html docs/report.html --markdown docs/results.md
  tapir report results/snips-trf               # Markdown on standard output")]
pub(crate) struct Report {
    /// Results files, or folders of them, such as results or results/snips-trf
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
            if path.is_dir() { files.extend(in_folder(path)?) } else { files.push(path.clone()) }
        }
        let results =
            files.iter().map(|file| Results::open(file)).collect::<Result<Vec<_>, _>>()?;
        let notes = match &self.notes {
            Some(path) => fs::read_to_string(path).with_context(|| path.display().to_string())?,
            None => String::new(),
        };
        // All is read and made before anything is written.
        let report = Page::new(results, &notes)?;
        let (html, markdown) = (report.to_html(), report.to_markdown());
        if let Some(path) = &self.html {
            write_atomically(path, html.as_bytes())?;
        }
        if let Some(path) = &self.markdown {
            write_atomically(path, markdown.as_bytes())?;
        }
        if self.html.is_none() && self.markdown.is_none() {
            print(&markdown)?;
        }
        Ok(())
    }
}

/// The results files of a folder and of those in it, by name. Other JSON, such as what a training
/// run or a benchmark of the server wrote, is passed over, and that is said.
fn in_folder(path: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    collect(path, &mut files)?;
    if files.is_empty() {
        let reason = "no results in it; expected files that tapir wrote with --output";
        bail!("{}: {reason}", path.display());
    }
    files.sort();
    Ok(files)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry.with_context(|| folder.display().to_string())?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "json") {
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            if Results::is_one(&text) {
                files.push(path);
            } else {
                eprintln!("{}: passed over: it holds no measures of a model", path.display());
            }
        }
    }
    Ok(())
}
