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

/// Where [`counts`] finds idioms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// Pages and comments, of which the rule refuses them.
    Prose,
    Names,
    /// String literals of sources: what programs print, and what tests expect.
    Strings,
}

/// Number of lines below these roots that have an idiom, by place and idiom, whether or not the rule covers
/// them.
pub(super) fn counts(tree: &Tree, roots: &[&str]) -> BTreeMap<(Place, &'static str), usize> {
    let mut counts = BTreeMap::new();
    let files =
        tree.files.values().filter(|file| covers(roots, &file.path) && !covers(GENERATED, &file.path));
    for file in files {
        let prose = idioms(file).into_iter().map(|(_, idiom, _)| (Place::Prose, idiom));
        let in_text = |place, text: String| {
            let has = IDIOMS.iter().filter(move |(idiom, _)| has_word(&text, idiom));
            has.map(move |(idiom, _)| (place, *idiom))
        };
        let in_code = file.lines.iter().flat_map(|line| {
            let names = in_text(Place::Names, words_of_names(&line.code));
            names.chain(in_text(Place::Strings, line.strings.to_lowercase()))
        });
        prose.chain(in_code).for_each(|found| *counts.entry(found).or_default() += 1);
    }
    counts
}

/// The words that identifiers consist of: `is_told` and `IsTold` are `is told`.
fn words_of_names(code: &str) -> String {
    let mut words = String::new();
    let mut last = ' ';
    for here in code.chars() {
        if here.is_uppercase() && last.is_lowercase() {
            words.push(' ');
        }
        words.push(if here == '_' { ' ' } else { here.to_ascii_lowercase() });
        last = here;
    }
    words
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
    use super::{IDIOMS, Place, counts};

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
    fn idioms_are_counted_in_pages_comments_names_and_strings_below_the_roots() {
        let tree = Tree::of(&[
            ("crates/a.rs", "//! Nobody is told.\n\nfn is_told(of: Who) { log(\"whoever\") }\n"),
            ("docs/a.md", "It goes on.\n"),
            ("xtask/a.rs", "//! Whoever.\n"),
        ]);
        let counts = counts(&tree, &["crates/", "docs/"]);
        let found: Vec<_> = counts.into_iter().collect();
        let prose = ["goes on", "nobody", "told"].map(|idiom| ((Place::Prose, idiom), 1));
        let names = ["told", "who"].map(|idiom| ((Place::Names, idiom), 1));
        let strings = [((Place::Strings, "whoever"), 1)];
        assert_eq!(found, [&prose[..], &names, &strings].concat());
    }
}
