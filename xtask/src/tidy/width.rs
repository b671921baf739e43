//! The rule that comments are as wide as code: rustfmt keeps the one, this the other.

use super::{File, Finding};

/// rustfmt's `max_width`, in columns.
const WIDTH: usize = 110;

pub(super) fn check(file: &File, findings: &mut Vec<Finding>) {
    if !file.is_rust() {
        return;
    }
    let mut in_example = false;
    for (index, (text, line)) in file.text.lines().zip(&file.lines).enumerate() {
        let words = line.comment.trim_start_matches(['/', '!']).trim();
        if line.is_comment() && words.starts_with("```") {
            in_example = !in_example;
        }
        in_example &= line.is_comment();
        let has_shape = in_example || words.starts_with('|') || !words.contains(' ');
        if line.is_comment() && !has_shape && text.chars().count() > WIDTH {
            findings
                .push(file.finding(index + 1, format!("a comment of more than {WIDTH} columns: wrap it")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::messages;

    #[test]
    fn a_comment_wider_than_code_may_be_is_found() {
        let long = "word ".repeat(22);
        for mark in ["///", "//!", "//"] {
            let found =
                messages("crates/trace/src/a.rs", &format!("//! Head.\n\n{mark} {long}\nfn f() {{}}\n"));
            assert!(found.len() == 1 && found[0].contains("a.rs:3:"), "{mark}: {found:?}");
        }
    }

    #[test]
    fn tables_examples_and_single_words_may_be_wider() {
        let long = "word ".repeat(22);
        let word = "w".repeat(120);
        for text in [format!("| {long} |"), format!("```text\n/// {long}\n/// ```"), word] {
            let found = messages("crates/trace/src/a.rs", &format!("//! Head.\n\n/// {text}\nfn f() {{}}\n"));
            assert!(found.is_empty(), "{found:?}");
        }
    }
}
