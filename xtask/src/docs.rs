//! What the documents promise: their commands run in an empty folder, with the built program alone,
//! and print what is shown.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

const DOCUMENTS: [&str; 7] = [
    "README.md",
    "docs/guide.md",
    "docs/data.md",
    "docs/protocol.md",
    "docs/serve.md",
    "docs/evaluation.md",
    "docs/training.md",
];

/// Commands begin with one of these; other blocks are output, code or layout.
const PROGRAMS: [&str; 7] = ["tapir", "printf", "cat", "curl", "cargo", "python", "pip"];

/// What is not run, and why. Each is the beginning of a command.
const EXEMPT: [(&str, &str); 17] = [
    ("cargo ", "builds: CI itself runs them"),
    ("pip ", "installs from a registry"),
    ("python ", "needs a package from a registry; crates/tapir-serve/tests run the same messages"),
    ("tapir live", "needs a terminal; its tests have one"),
    ("tapir vectors build", "needs vectors of the reader's own"),
    ("tapir vectors prune", "needs vectors of the reader's own"),
    ("tapir eval runs/snips", "takes long"),
    ("tapir sweep runs/snips", "takes long"),
    ("tapir analyze runs/snips", "takes long"),
    ("tapir bench", "takes long"),
    (
        "tapir calibrate runs/snips",
        "needs a run that takes long; tests/measure.rs calibrates a model",
    ),
    ("tapir trace runs/snips", "needs a run that takes long"),
    (
        "tapir train pretrained",
        "needs an encoder from a registry; tapir-train's tests fine-tune one",
    ),
    ("tapir report", "needs results that take long"),
    ("tapir serve --certificate", "needs a certificate of the reader's own"),
    ("tapir serve --model runs", "needs a run that takes long"),
    ("curl -X POST localhost:8642/admin", "needs that server"),
];

/// The README's first command builds the program and runs it. CI has built it already, and what it
/// prints is shown further down.
const FIRST_COMMAND: &str = "    cargo run --release -p tapir-cli --no-default-features -- ";

/// A command of a document, and what it prints there; nothing is known of one that is only named.
struct Step {
    line: usize,
    command: String,
    shown: Option<Vec<String>>,
}

/// Runs every command of the documents.
pub(crate) fn test() -> Result<()> {
    println!("\n$ run the commands of the documents");
    let program = crate::target()
        .join("debug")
        .canonicalize()
        .context("the tests build the program first")?;
    let mut failures = String::new();
    for document in DOCUMENTS {
        let text = fs::read_to_string(crate::root().join(document))?;
        let folder = std::env::temp_dir().join(format!("tapir-docs-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        prepare(&folder)?;
        let mut sandbox = Sandbox { folder, path: program.clone(), server: None };
        let (mut run, mut exempt) = (0, 0);
        for step in steps(&text) {
            if EXEMPT.iter().any(|(start, _)| step.command.starts_with(start)) {
                exempt += 1;
                continue;
            }
            run += 1;
            if let Err(error) = sandbox.run(&step) {
                let _ =
                    writeln!(failures, "{document}:{}: {}\n{error:#}\n", step.line, step.command);
            }
        }
        if let Some(arguments) = text.lines().find_map(|line| line.strip_prefix(FIRST_COMMAND)) {
            let command = format!("tapir {arguments}");
            run += 1;
            if let Err(error) = sandbox.run_first(&command, &text) {
                let _ = writeln!(failures, "{document}: {command}\n{error:#}\n");
            }
        }
        println!("{document}: {run} commands, {exempt} exempt");
        sandbox.stop();
        let _ = fs::remove_dir_all(&sandbox.folder);
    }
    ensure!(failures.is_empty(), "documents promise what does not happen:\n{failures}");
    Ok(())
}

/// What a reader has: a text, a corpus as the guide describes it, and a fine-tuned encoder.
fn prepare(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder.join("shop"))?;
    fs::write(folder.join("notes.txt"), "play some jazz\nbook a table in boston\n")?;
    fs::write(folder.join("sentences.txt"), "play some jazz\n\nis it raining\n")?;
    let items = ["apples", "pears", "milk", "bread", "rice", "eggs", "tea", "plums"];
    let quantities = ["two pounds", "a litre", "some", "three bags", "a box"];
    let mut corpus = String::new();
    for (i, item) in items.iter().enumerate() {
        for quantity in &quantities[i % 2..] {
            for (j, word) in quantity.split(' ').enumerate() {
                let _ = writeln!(corpus, "{word}\t{}-quantity", if j == 0 { "B" } else { "I" });
            }
            let _ = writeln!(corpus, "of\tO\n{item}\tB-item\n");
        }
    }
    fs::write(folder.join("shop/train.tsv"), &corpus)?;
    fs::write(folder.join("shop/test.tsv"), &corpus)?;
    let encoder = crate::root().join("crates/tapir/tests/parity-bert/bert_a");
    fs::create_dir(folder.join("my-bert"))?;
    for file in ["config.json", "model.safetensors", "tokenizer.json"] {
        fs::copy(encoder.join(file), folder.join("my-bert").join(file))?;
    }
    Ok(())
}

/// The commands of a document: those behind `$ ` with their output, and those of blocks that hold
/// nothing but commands.
fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut fenced = false;
    // Does the line belong to a command that goes on?
    let mut continued = false;
    for (line, text) in (1..).zip(text.lines()) {
        if text.starts_with("```") {
            fenced = !fenced;
        }
        let Some(text) = text.strip_prefix("    ").filter(|_| !fenced) else {
            // Shown output ends with its block.
            if let Some(shown) = steps.last_mut().and_then(|step| step.shown.as_mut())
                && text.trim().is_empty()
            {
                shown.push(String::new());
                continue;
            }
            steps.push(Step { line, command: String::new(), shown: None });
            continue;
        };
        let goes_on = |text: &str| text.ends_with('|') || text.ends_with('\\');
        if continued {
            if let Some(step) = steps.last_mut() {
                step.command.extend(["\n", text]);
            }
            continued = goes_on(text);
        } else if let Some(command) = text.strip_prefix("$ ") {
            steps.push(Step { line, command: command.to_owned(), shown: Some(Vec::new()) });
            continued = goes_on(command);
        } else if let Some(shown) = steps.last_mut().and_then(|step| step.shown.as_mut()) {
            shown.push(text.to_owned());
        } else if PROGRAMS.iter().any(|program| text.starts_with(&format!("{program} "))) {
            steps.push(Step { line, command: text.to_owned(), shown: None });
            continued = goes_on(text);
        }
    }
    steps.retain(|step| !step.command.is_empty());
    steps
}

/// A folder of its own, the program, and a server while one runs.
struct Sandbox {
    folder: PathBuf,
    path: PathBuf,
    server: Option<Child>,
}

impl Sandbox {
    fn command(&self, text: &str) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("bash");
        command.args(["-o", "pipefail", "-c", text]).current_dir(&self.folder);
        command.env("PATH", format!("{}:{path}", self.path.display())).env("COLUMNS", "100");
        command.env("NO_COLOR", "1").env("TAPIR_LOG", "warn").stdin(Stdio::null());
        command
    }

    fn run(&mut self, step: &Step) -> Result<()> {
        let printed = if step.command.starts_with("tapir serve") {
            self.serve(&step.command)?
        } else {
            // What is asked of a server needs one, wherever in a document it stands.
            if step.command.contains("localhost:8642") && self.server.is_none() {
                self.serve("tapir serve")?;
            }
            let output = self.command(&step.command).stderr(Stdio::piped()).output()?;
            if !output.status.success() {
                bail!("failed: {}", String::from_utf8_lossy(&output.stderr));
            }
            let text = if output.stdout.is_empty() { output.stderr } else { output.stdout };
            String::from_utf8_lossy(&text).into_owned()
        };
        let Some(shown) = &step.shown else { return Ok(()) };
        let mut shown: Vec<&str> = shown.iter().map(String::as_str).collect();
        while shown.last().is_some_and(|line| line.is_empty()) {
            shown.pop();
        }
        if shown.is_empty() {
            return Ok(());
        }
        compare(&shown, &printed.lines().collect::<Vec<_>>())
    }

    /// Runs a command that prints lines that the document shows somewhere, in that order.
    fn run_first(&self, command: &str, document: &str) -> Result<()> {
        let output = self.command(command).output()?;
        let mut shown = document.lines();
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let expected = format!("    {}", line.trim_end());
            let is_end = line.starts_with("(end)");
            ensure!(
                line.is_empty() || is_end || shown.any(|shown| shown == expected),
                "printed, and not shown: {line}"
            );
        }
        ensure!(output.status.success(), "failed");
        Ok(())
    }

    /// Starts a server in the place of the one before; gives what it says.
    fn serve(&mut self, command: &str) -> Result<String> {
        self.stop();
        let mut child = self.command(&format!("exec {command}")).stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().context("no output")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        self.server = Some(child);
        Ok(line)
    }

    fn stop(&mut self) {
        if let Some(mut server) = self.server.take() {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Is what is shown what was printed? `…` stands for anything to the end of its line, and by itself for
/// all lines that follow. The last digits of fractions depend on the machine.
fn compare(shown: &[&str], printed: &[&str]) -> Result<()> {
    for (i, line) in shown.iter().enumerate() {
        if line.trim() == "…" {
            return Ok(());
        }
        let printed = rounded(printed.get(i).copied().unwrap_or("(nothing)"));
        let line = rounded(line);
        let same = match line.split_once('…') {
            Some((start, _)) => printed.starts_with(start),
            None => printed.trim_end() == line.trim_end(),
        };
        ensure!(same, "shown:   {line}\nprinted: {printed}");
    }
    ensure!(printed.len() <= shown.len(), "printed, and not shown: {}", printed[shown.len()]);
    Ok(())
}

/// Cuts fractions after two digits.
fn rounded(text: &str) -> String {
    let mut out = String::new();
    // Digits since a point that follows a digit.
    let mut fraction: Option<usize> = None;
    let mut last = ' ';
    for c in text.chars() {
        fraction = match fraction {
            Some(digits) if c.is_ascii_digit() => Some(digits + 1),
            _ if c == '.' && last.is_ascii_digit() => Some(0),
            _ => None,
        };
        if fraction.is_none_or(|digits| digits <= 2) {
            out.push(c);
        }
        last = c;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_with_what_they_print() {
        let text = "Text.\n\n    $ tapir a |\n        tapir b\n    out\n\n    tapir c\n\nMore.\n\n    tapir d\n    layout\n";
        let steps = steps(text);
        let commands: Vec<_> = steps.iter().map(|step| step.command.as_str()).collect();
        assert_eq!(commands, ["tapir a |\n    tapir b", "tapir d"]);
        assert_eq!(steps[0].shown.as_ref().unwrap(), &["out", "", "tapir c", ""]);
        assert_eq!(steps[1].line, 11);
    }

    #[test]
    fn output_is_compared_but_for_its_last_digits() {
        assert!(compare(&["a 0.12345", "…"], &["a 0.12999", "b", "c"]).is_ok());
        assert!(compare(&["a …"], &["a bc"]).is_ok());
        assert!(compare(&["a"], &["b"]).is_err());
        assert!(compare(&["a"], &["a", "b"]).is_err());
        assert!(compare(&["a", "b"], &["a"]).is_err());
    }
}
