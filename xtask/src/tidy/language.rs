//! The rule about the language of texts: idioms that stop a reader whose first language is English are
//! refused, each with a replacement. The folders and files that it covers are listed here.

use super::links::prose;
use super::text::has_word;
use super::{File, Finding, Tree};
use std::collections::BTreeMap;

/// Where the rule applies: files, or folders with a `/` at the end.
const ROOTS: &[&str] =
    &["README.md", "CONTRIBUTING.md", "docs/", "bench/", "crates/", "examples/", "fuzz/", "xtask/"];

/// Pages that programs write: their words are in the sources of those programs.
const GENERATED: &[&str] = &["docs/reference/columns.md", "docs/reference/events.md", "docs/reports/"];

/// Idioms, and what is better.
const IDIOMS: &[(&str, &str)] = &[
    ("who", "name the thread, task or program"),
    ("whom", "name the thread, task or program"),
    ("nobody", "nothing, no thread, unknown"),
    ("somebody", "a program, another thread"),
    ("whoever", "the thread that"),
    ("behind", "after, later than"),
    ("in front of", "before"),
    ("told", "reported, recorded"),
    ("tell", "report, record, show"),
    ("tells", "reports, records, shows"),
    ("telling", "reporting"),
    ("met", "seen"),
    ("beside these", "also"),
    ("beside", "next to, and, in addition to"),
    ("comes to an end", "ends, completes"),
    ("come to an end", "end, complete"),
    ("on its way", "in flight"),
    ("goes on", "continues"),
    ("go on", "continue"),
    ("goes for", "applies to"),
    ("counts as", "is treated as"),
    ("as good as", "is treated as"),
    ("for ever", "permanently"),
    ("at all times", "always"),
    ("wishes", "enables, asks for"),
];

pub(super) fn check(file: &File, findings: &mut Vec<Finding>) {
    if !covers(ROOTS, &file.path) || covers(GENERATED, &file.path) {
        return;
    }
    for (index, idiom, better) in idioms(file) {
        findings.push(file.finding(index + 1, format!("\"{idiom}\": {better}")));
    }
}

/// How many lines of prose and comments below these roots have each idiom, whether the rule covers them or
/// not.
pub(super) fn counts(tree: &Tree, roots: &[&str]) -> BTreeMap<&'static str, usize> {
    let mut counts: BTreeMap<_, _> = IDIOMS.iter().map(|(idiom, _)| (*idiom, 0)).collect();
    let files =
        tree.files.values().filter(|file| covers(roots, &file.path) && !covers(GENERATED, &file.path));
    for (_, idiom, _) in files.flat_map(idioms) {
        *counts.entry(idiom).or_default() += 1;
    }
    counts
}

/// The idioms in a page's prose, or in the comments of a source, with the index of their line.
fn idioms(file: &File) -> Vec<(usize, &'static str, &'static str)> {
    let lines: Vec<(usize, &str)> = if file.path.ends_with(".md") {
        prose(&file.text).collect()
    } else {
        file.lines.iter().map(|line| line.comment.as_str()).enumerate().collect()
    };
    let mut found = Vec::new();
    for (index, line) in lines {
        let line = without_code(line).to_lowercase();
        let has = IDIOMS.iter().filter(|(idiom, _)| has_word(&line, idiom));
        found.extend(has.map(|(idiom, better)| (index, *idiom, *better)));
    }
    found
}

fn covers(roots: &[&str], path: &str) -> bool {
    roots.iter().any(|root| if root.ends_with('/') { path.starts_with(root) } else { path == *root })
}

/// A line of prose without what is between back quotes, which is the word of a program.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}

#[cfg(test)]
mod tests {
    use super::super::{Tree, messages};
    use super::{IDIOMS, counts};

    #[test]
    fn every_idiom_is_found_in_the_book_and_nowhere_else() {
        for (idiom, better) in IDIOMS {
            let text = format!("Something {idiom}, then.\n");
            let found = messages("README.md", &text);
            let expected = format!("README.md:1: \"{idiom}\": {better}");
            assert!(found.contains(&expected), "{found:?}");
            assert!(messages("docs/how-to/page.md", &text).iter().any(|found| found.contains(idiom)));
            assert!(messages("docs/reports/page.md", &text).is_empty(), "{idiom}");
            assert!(messages("CHANGELOG.md", &text).is_empty(), "{idiom}");
        }
    }

    #[test]
    fn parts_of_words_and_code_are_not() {
        for text in ["The whole telltale goes online.", "The option `--who`.", "```\nwho\n```"] {
            assert!(messages("README.md", &format!("{text}\n")).is_empty(), "{text}");
        }
    }

    #[test]
    fn idioms_are_counted_in_pages_and_comments_below_the_roots() {
        let tree = Tree::of(&[
            ("crates/a.rs", "//! Nobody is told.\n\nconst A: &str = \"whoever\";\n"),
            ("docs/a.md", "It goes on.\n"),
            ("xtask/a.rs", "//! Whoever.\n"),
        ]);
        let counts = counts(&tree, &["crates/", "docs/"]);
        let found: Vec<_> = counts.into_iter().filter(|(_, count)| *count > 0).collect();
        assert_eq!(found, [("goes on", 1), ("nobody", 1), ("told", 1)]);
    }
}
