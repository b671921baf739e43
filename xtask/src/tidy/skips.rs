//! The rule that tests skip through `tracewing_testing::skip` alone, which fails in CI without a cause. A
//! test that only prints that it skips could stop testing unnoticed.

use super::{File, Finding};

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

#[cfg(test)]
mod tests {
    use super::super::messages;

    #[test]
    fn a_test_that_skips_by_itself_is_found() {
        let body = "//! Head.\n\nfn f() {\n    return eprintln!(\"skipped: no root\");\n}\n";
        let found = messages("crates/cli/tests/a.rs", body);
        assert!(found.len() == 1 && found[0].contains("a.rs:4: a test that skips"), "{found:?}");
        assert!(messages("crates/testing/src/a.rs", body).is_empty());
        assert!(messages("crates/cli/tests/a.rs", &body.replace("skipped: ", "lost: ")).is_empty());
    }
}
