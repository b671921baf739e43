//! Runs cases of the Common Trace Format's conformance: a folder of field cases and whole traces, each with
//! what a reference reader says of it.

mod differs;
mod field_text;
mod fields;
mod traces;

use anyhow::{Context, Result, bail, ensure};
use std::path::{Path, PathBuf};

/// Options of `cargo xtask conformance`.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Folder with fields/NAME/{trace,expect}, traces/VERSION/{succeed,fail}/NAME and expect/
    folder: PathBuf,

    /// Run only the cases whose names contain this
    #[arg(long, value_name = "PART")]
    filter: Option<String>,
}

/// A case by its path in the folder, and what finds out whether it agrees.
struct Case {
    name: String,
    run: Box<dyn Fn() -> Result<()>>,
}

/// Runs every case; fails, after the last one, if any disagrees.
pub fn run(options: &Options) -> Result<()> {
    let mut cases = fields::cases(&options.folder.join("fields"))?;
    cases.extend(traces::cases(&options.folder)?);
    if let Some(part) = &options.filter {
        cases.retain(|case| case.name.contains(part.as_str()));
    }
    ensure!(!cases.is_empty(), "{} has no cases", options.folder.display());
    let (mut passed, mut differ, mut wrong) = (0, 0, 0);
    for case in &cases {
        match ((case.run)(), differs::reason(&case.name)) {
            (Ok(()), None) => passed += 1,
            (Ok(()), Some(_)) => {
                wrong += 1;
                println!("{}: it agrees, but is listed as one that differs", case.name);
            }
            (Err(_), Some(reason)) => {
                differ += 1;
                println!("{}: differs: {reason}", case.name);
            }
            (Err(error), None) => {
                wrong += 1;
                println!("{}: {error:#}", case.name);
            }
        }
    }
    println!("passed {passed} of {}, and {differ} differ for a reason", cases.len());
    ensure!(wrong == 0, "{wrong} cases disagree");
    Ok(())
}

/// Runs the cases in folders next to the project, which only some machines have.
pub fn shared() -> Result<()> {
    for name in ["ctf-conformance", "ctf-testsuite"] {
        let folder = crate::root()?.join("../shared").join(name);
        if folder.is_dir() {
            run(&Options { folder, filter: None })?;
        } else {
            println!("skipped: there is no ../shared/{name}");
        }
    }
    Ok(())
}

/// The folders in `folder`, in order; none if it is not there.
fn folders(folder: &Path) -> Result<Vec<PathBuf>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let entries = std::fs::read_dir(folder).with_context(|| format!("{}", folder.display()))?;
    let mut folders = Vec::new();
    for entry in entries {
        folders.push(entry.with_context(|| format!("{}", folder.display()))?.path());
    }
    folders.retain(|path| path.is_dir());
    folders.sort();
    Ok(folders)
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Words of the reference's messages, and words of ours for the same cause.
const CAUSES: [(&str, &[&str]); 4] = [
    ("insufficient data", &["beyond the end", "without end", "no room"]),
    ("no variant field option", &["no option"]),
    ("same byte order", &["byte order"]),
    ("oversized", &["oversized"]),
];

/// Checks that a message names the place, and the cause that the reference names.
fn fits(message: &str, reference: &str) -> Result<()> {
    let (lower, reference) = (message.to_lowercase(), reference.to_lowercase());
    let Some((_, ours)) = CAUSES.iter().find(|(theirs, _)| reference.contains(theirs)) else {
        bail!("no words of ours are known for `{}`: {message}", reference.trim());
    };
    ensure!(
        ours.iter().any(|words| lower.contains(words)),
        "refused for another cause than `{}`: {message}",
        reference.trim()
    );
    ensure!(lower.contains("(at byte "), "the message has no place: {message}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_cases() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/ctf/tests/cases");
        run(&Options { folder, filter: None }).unwrap();
    }

    #[test]
    fn another_cause_does_not_fit() {
        let reference = "unsupported oversized (more than 64 bits of data) variable-length integer field";
        assert!(fits("an oversized integer (at byte 0, bit 1)", reference).is_ok());
        assert!(fits("an oversized integer", reference).is_err(), "without a place");
        assert!(fits("a string without end (at byte 0, bit 1)", reference).is_err());
        assert!(fits("a string without end (at byte 0, bit 1)", "Insufficient data in file").is_ok());
        assert!(fits("anything (at byte 0, bit 1)", "a cause that is not known").is_err());
    }
}
