//! The rule that documentation names no file which is not there: paths in back quotes and Markdown links, in
//! `*.md` and in Rust comments.

use super::{File, Finding, Tree};

/// A path ending in one of these is a claim about this project's files. (C files are not: sources of the
/// kernel and of other tracers are cited by their paths.)
const CHECKED_ENDINGS: &[&str] = &[".rs", ".md"];

/// Folders at the root whose paths are checked whatever they end in.
const CHECKED_FOLDERS: &[&str] =
    &["crates/", "xtask/", "bench/", "docs/", "examples/", ".ci/", "fuzz/", "models/"];

pub(super) fn check(file: &File, tree: &Tree, findings: &mut Vec<Finding>) {
    if file.path.ends_with(".md") {
        let mut fenced = false;
        for (index, line) in file.text.lines().enumerate() {
            if line.trim_start().starts_with("```") {
                fenced = !fenced;
            } else if !fenced {
                report(file, tree, index, line, findings);
            }
        }
    } else {
        for (index, line) in file.lines.iter().enumerate() {
            report(file, tree, index, &line.comment, findings);
        }
    }
}

fn report(file: &File, tree: &Tree, index: usize, text: &str, findings: &mut Vec<Finding>) {
    for reference in quoted(text).chain(linked(text)).filter(|reference| is_claim(reference)) {
        if !tree.has(reference) {
            findings.push(file.finding(index + 1, format!("`{reference}` names no file of this project")));
        }
    }
}

/// What stands between single back quotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The targets of Markdown links, without their anchors.
fn linked(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next())
}

fn is_claim(reference: &str) -> bool {
    let plain = reference.chars().all(|c| c.is_ascii_alphanumeric() || "._-/".contains(c));
    let elsewhere = reference.starts_with("../") || reference.starts_with('/');
    let named =
        CHECKED_ENDINGS.iter().any(|ending| reference.len() > ending.len() && reference.ends_with(ending))
            || CHECKED_FOLDERS.iter().any(|folder| reference.starts_with(folder));
    plain && named && !elsewhere
}

#[cfg(test)]
mod tests {
    use super::super::{Tree, check};

    fn of(path: &str, text: &str) -> Vec<String> {
        let tree = Tree::of(&[(path, text), ("crates/ring/src/reader.rs", "//! Head.\n")]);
        check(&tree).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_file_that_is_gone_is_found() {
        assert!(of("README.md", "See `writer.rs`.\n")[0].contains("README.md:1: `writer.rs`"));
        assert!(of("README.md", "See [it](docs/writer.md#begin).\n")[0].contains("docs/writer.md"));
        assert!(of("a.rs", "//! Leaves the rest to `src/writer.rs`.\n")[0].contains("src/writer.rs"));
        assert!(of("a.rs", "//! Head.\n// See `crates/rang`.\n")[0].contains("a.rs:2"));
    }

    #[test]
    fn files_that_are_there_and_other_things_are_not() {
        assert!(of("README.md", "See `reader.rs` and [it](crates/ring/src/reader.rs#L1).\n").is_empty());
        assert!(
            of("README.md", "`kernel/trace/ring_buffer.c`, `*.rs`, `../shared/design/ring.md`, `.rs`\n")
                .is_empty()
        );
        assert!(of("README.md", "```\n`gone.rs`\n```\n").is_empty());
        assert!(of("a.rs", "//! Head.\nconst A: &str = \"`gone.rs`\";\n").is_empty());
    }
}
