//! The rule that tests skip through `tracewing_testing::skip` alone, which fails in CI without a cause. A
//! test that only prints that it skips could stop testing unnoticed. And the rule that causes that hold on
//! every machine are given only by the tests that `tracewing_testing` lists for them.

use super::{File, Finding, Tree};
use std::collections::BTreeSet;
use tracewing_testing::LISTED;

/// What a test prints that skips without it.
const WORDS: &str = "skipped: ";

/// Where that is printed for all.
const PLACE: &str = "crates/testing/";

pub(super) fn check(file: &File, findings: &mut Vec<Finding>) {
    if !file.path.starts_with("crates/") || file.path.starts_with(PLACE) {
        return;
    }
    for (index, line) in file.lines.iter().enumerate() {
        if line.code.contains("println!") && line.strings.starts_with(WORDS) {
            let message = "a test that skips calls `tracewing_testing::skip`, which checks the cause in CI";
            findings.push(file.finding(index + 1, message));
        }
    }
}

/// The list of tests for each cause.
const LIST: &str = "crates/testing/src/skip.rs";

/// What is before the name of a cause that holds on every machine.
const GIVEN: &str = "Cause::Listed(\"";

/// Compares the causes that tests give with the list.
pub(super) fn check_listed(tree: &Tree, findings: &mut Vec<Finding>) {
    let Some(list) = tree.files.get(LIST) else { return };
    let mut unused: BTreeSet<_> = LISTED.iter().flat_map(|cause| places(cause.name)).collect();
    for file in tree.files.values().filter(|file| !file.path.starts_with(PLACE)) {
        for (line, cause, function) in given(file) {
            let place = (cause, file.path.as_str(), function);
            if !places(cause).any(|listed| listed == place) {
                let message = format!("`{function}` may not skip for \"{cause}\": {LIST} does not list it");
                findings.push(file.finding(line, message));
            }
            unused.remove(&place);
        }
    }
    for (cause, path, function) in unused {
        let message = format!("`{function}` in {path} does not skip for \"{cause}\"");
        findings.push(list.finding(1, message));
    }
}

/// The listed places of a cause, each with the cause.
fn places(cause: &str) -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let listed = LISTED.iter().filter(move |listed| listed.name == cause);
    listed.flat_map(|listed| listed.places.iter().map(|(path, function)| (listed.name, *path, *function)))
}

/// The causes that a file gives: line, cause, and function.
fn given(file: &File) -> Vec<(usize, &str, &str)> {
    let (mut function, mut found) = ("", Vec::new());
    for (index, (line, text)) in file.lines.iter().zip(file.text.lines()).enumerate() {
        function = function_of(text).filter(|_| line.code.contains("fn ")).unwrap_or(function);
        let cause = text.split_once(GIVEN).and_then(|(_, rest)| rest.split('"').next());
        if let Some(cause) = cause.filter(|_| line.code.contains("Listed(")) {
            found.push((index + 1, cause, function));
        }
    }
    found
}

/// The name of the function that a line begins.
fn function_of(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("fn ")?;
    let is_item = before.split_whitespace().all(|word| word.starts_with("pub") || word == "unsafe");
    let end = after.find(|c: char| !(c.is_alphanumeric() || c == '_'))?;
    Some(&after[..end]).filter(|name| is_item && !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::messages;
    use super::*;

    #[test]
    fn a_cause_that_always_holds_is_for_listed_tests() {
        let path = "crates/cli/tests/profile/ends.rs";
        let found = |function: &str, cause: &str| {
            let body =
                format!("//! Head.\n\nfn {function}() {{\n    skip(Cause::Listed(\"{cause}\"), 1);\n}}\n");
            let mut findings = Vec::new();
            check_listed(&Tree::of(&[(LIST, ""), (path, &body)]), &mut findings);
            let here = findings.iter().map(ToString::to_string);
            here.filter(|finding| finding.contains("lost_samples") || finding.starts_with(path))
                .collect::<Vec<_>>()
        };
        assert_eq!(found("lost_samples_are_counted", "no loss"), [""; 0]);
        let other = found("another_test", "no loss");
        assert!(other.len() == 2 && other[0].contains("ends.rs:4: `another_test` may not skip"), "{other:?}");
        assert!(other[1].contains("`lost_samples_are_counted` in crates"), "{other:?}");
        assert_eq!(found("lost_samples_are_counted", "large disk").len(), 2);
    }

    #[test]
    fn a_test_that_skips_by_itself_is_found() {
        let body = "//! Head.\n\nfn f() {\n    return eprintln!(\"skipped: no root\");\n}\n";
        let found = messages("crates/cli/tests/a.rs", body);
        assert!(found.len() == 1 && found[0].contains("a.rs:4: a test that skips"), "{found:?}");
        assert!(messages("crates/testing/src/a.rs", body).is_empty());
        assert!(messages("crates/cli/tests/a.rs", &body.replace("skipped: ", "lost: ")).is_empty());
    }
}
