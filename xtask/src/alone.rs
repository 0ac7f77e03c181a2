//! Every crate stands alone: it reads no file outside itself, and `cargo package` takes all that it
//! needs.

use std::fs;

use anyhow::{Context, Result, bail, ensure};

/// crates.io takes no larger ones, unless it is asked to.
const LARGEST_PACKAGE: u64 = 10 << 20;
/// The crate that it has to be asked for, and its own limit: an encoder cannot be smaller.
const LARGER_PACKAGE: (&str, u64) = ("tapir-snips-", 25 << 20);

/// What a crate says of itself.
const ABOUT: [&str; 4] = ["description", "keywords", "categories", "readme"];

/// What makes a path relative to the file that says it.
const INCLUDES: [&str; 3] = ["include_str!(", "include_bytes!(", "include!("];
/// What makes one relative to the crate.
const FOLDER: &str = "\"CARGO_MANIFEST_DIR\")";

/// No path in the source of a crate leaves the crate, and each says what it is.
pub(crate) fn check() -> Result<()> {
    println!("\n$ check that every crate stands alone");
    let crates = crate::root().join("crates");
    let mut outside = Vec::new();
    for entry in fs::read_dir(&crates).with_context(|| crates.display().to_string())? {
        let folder = entry?.path();
        let manifest = fs::read_to_string(folder.join("Cargo.toml"))?;
        for key in ABOUT {
            let is_there = manifest.lines().any(|line| line.starts_with(key));
            ensure!(is_there, "{}/Cargo.toml: lacks {key}", folder.display());
        }
        for file in crate::files(&folder)? {
            if fs::symlink_metadata(&file)?.is_symlink() {
                outside.push(format!("{}: is a symbolic link", file.display()));
            } else if file.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&file)?;
                // How many folders a path may go up.
                let depth = file.strip_prefix(&folder)?.components().count() - 1;
                for (line, path) in escapes(&text, depth) {
                    outside.push(format!("{}:{line}: {path}", file.display()));
                }
            }
        }
    }
    ensure!(outside.is_empty(), "paths that leave their crate:\n{}", outside.join("\n"));
    Ok(())
}

/// Packages every crate, as for crates.io, and weighs the packages. They are not built: all files
/// of a crate are in them but its tests and benchmarks, and the tests have built those.
pub(crate) fn package() -> Result<()> {
    let arguments = "package --workspace --exclude xtask --exclude tapir-python --no-verify \
                     --allow-dirty --quiet";
    crate::cargo(&arguments.split(' ').collect::<Vec<_>>())?;
    let folder = crate::target().join("package");
    for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "crate") {
            let size = fs::metadata(&path)?.len();
            println!("{:>9.1} kB  {}", size as f64 / 1e3, path.display());
            let (larger, limit) = LARGER_PACKAGE;
            let is_larger = path
                .file_name()
                .is_some_and(|name| name.to_str().is_some_and(|name| name.starts_with(larger)));
            let limit = if is_larger { limit } else { LARGEST_PACKAGE };
            if size > limit {
                bail!("{}: more than {limit} bytes", path.display());
            }
        }
    }
    Ok(())
}

/// The paths in a source that leave the crate, with their lines, in a file so many folders below
/// the crate's own.
fn escapes(text: &str, depth: usize) -> Vec<(usize, String)> {
    let places = INCLUDES.iter().map(|what| (*what, depth)).chain([(FOLDER, 0)]);
    let mut found = Vec::new();
    for (what, depth) in places {
        for (at, _) in text.match_indices(what) {
            // The first literal of what follows is the path, or the beginning of one.
            let statement = text[at + what.len()..].split(';').next().unwrap_or_default();
            let Some(path) = statement.split('"').nth(1) else { continue };
            if leaves(path, depth) {
                found.push((text[..at].lines().count(), path.to_owned()));
            }
        }
    }
    found
}

/// Does a path go up more than so many folders at any point?
fn leaves(path: &str, depth: usize) -> bool {
    let mut level = depth as isize;
    path.split('/').any(|part| {
        level += match part {
            ".." => -1,
            "" | "." => 0,
            _ => 1,
        };
        level < 0
    })
}

#[cfg(test)]
mod tests {
    use super::escapes;

    #[test]
    fn a_path_may_go_up_to_the_crate_and_no_further() {
        let page = r#"file(HTML, include_str!("../page/index.html"))"#;
        assert_eq!(escapes(page, 1), []);
        let model = r#"x;
            include_bytes!(concat!("../../../models/", $name));"#;
        assert_eq!(escapes(model, 1), [(2, "../../../models/".to_owned())]);
        let folder = r#"concat!(env!("CARGO_MANIFEST_DIR"), "/../../data");"#;
        assert_eq!(escapes(folder, 2), [(1, "/../../data".to_owned())]);
        let joined = r#"Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/../tests/parity");"#;
        assert_eq!(escapes(joined, 1), []);
    }
}
