//! The rules about a file's text: a head that says what the file does, a readable length, no unfinished work,
//! no path of a particular machine.

use super::{File, Finding};

/// Above this a file does more than one job, or is a table.
const LONGEST: usize = 800;

/// Longer files, each with the reason why it may be.
const LONGER: &[(&str, &str)] = &[];

/// Words in code or comments which mean that something is not finished.
const OPEN_WORDS: &[&str] = &["FIXME", "XXX", "TODO"];

/// Macros that may not stay.
const OPEN_MACROS: &[&str] = &["todo!", "unimplemented!", "dbg!"];

/// What stands where a text is still to be written.
const PLACEHOLDERS: &[&str] = &["(to be written)", "\"to be written\""];

/// Beginnings of paths that exist on one machine only.
const MACHINE_PATHS: &[&str] = &["/home/", "/root/", "/work/", "/Users/", "/tmp/tw"];

/// The rules themselves have to name what they forbid.
const RULES: &str = "xtask/src/tidy/";

pub(super) fn check(file: &File, findings: &mut Vec<Finding>) {
    length(file, findings);
    if file.is_rust() {
        head(file, findings);
        left_open(file, findings);
    }
    if !file.path.starts_with(RULES) {
        placeholders_and_machine_paths(file, findings);
    }
}

fn head(file: &File, findings: &mut Vec<Finding>) {
    let first = file.text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    if first.trim_start_matches("//!").trim().is_empty() || !first.starts_with("//!") {
        findings.push(file.finding(1, "begin with `//!`: what the file does and what it leaves to others"));
    }
}

fn length(file: &File, findings: &mut Vec<Finding>) {
    let lines = file.text.lines().count();
    let prose = file.path.ends_with(".md");
    if lines > LONGEST && !prose && !LONGER.iter().any(|(path, _)| *path == file.path) {
        let message = format!("{lines} lines: split it, or list it with its reason (at most {LONGEST})");
        findings.push(file.finding(LONGEST + 1, message));
    }
}

fn left_open(file: &File, findings: &mut Vec<Finding>) {
    for (index, line) in file.lines.iter().enumerate() {
        let in_either = |word: &&&str| has_word(&line.code, word) || has_word(&line.comment, word);
        let word = OPEN_WORDS.iter().find(in_either);
        let found = word.or_else(|| OPEN_MACROS.iter().find(|name| has_word(&line.code, name)));
        if let Some(found) = found {
            findings.push(file.finding(index + 1, format!("`{found}` left in the code")));
        }
    }
}

fn placeholders_and_machine_paths(file: &File, findings: &mut Vec<Finding>) {
    for (index, line) in file.text.lines().enumerate() {
        if let Some(path) = MACHINE_PATHS.iter().find(|path| line.contains(**path)) {
            findings.push(file.finding(index + 1, format!("`{path}…` is a path of one machine")));
        }
        if let Some(placeholder) = PLACEHOLDERS.iter().find(|placeholder| line.contains(**placeholder)) {
            findings.push(file.finding(index + 1, format!("{placeholder} was never replaced")));
        }
    }
}

/// Whether a text contains a word with no letter or digit before or after it.
pub(super) fn has_word(text: &str, word: &str) -> bool {
    let part_of_word = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let next = text[at + word.len()..].chars().next();
        !before.is_some_and(part_of_word) && !next.is_some_and(part_of_word)
    })
}

#[cfg(test)]
mod tests {
    use super::super::messages;

    /// The only message for a Rust file with a good head and this body.
    fn only(body: &str) -> String {
        let found = messages("a.rs", &format!("//! Head.\n{body}\n"));
        assert_eq!(found.len(), 1, "{found:?}");
        found.into_iter().next().unwrap_or_default()
    }

    #[test]
    fn a_file_without_a_head_is_found() {
        assert!(messages("a.rs", "fn f() {}\n")[0].starts_with("a.rs:1: begin with"));
        assert!(messages("a.rs", "//!\nfn f() {}\n")[0].starts_with("a.rs:1: begin with"));
    }

    #[test]
    fn a_long_file_is_found_and_prose_may_be_long() {
        let long = format!("//! Head.\n{}", "fn f() {}\n".repeat(800));
        assert!(messages("a.rs", &long)[0].contains("801 lines"));
        assert!(messages("a.rs", long.trim_end_matches("fn f() {}\n")).is_empty());
        assert!(messages("a.md", &"line\n".repeat(900)).is_empty());
    }

    #[test]
    fn what_is_left_open_is_found_in_code_and_comments_but_not_in_strings() {
        assert!(only("fn f() { todo!() }").contains("a.rs:2: `todo!`"));
        assert!(only("fn f() { unimplemented!(\"later\") }").contains("unimplemented!"));
        assert!(only("fn f() { dbg!(1); }").contains("dbg!"));
        assert!(only("// FIXME: wrong").contains("FIXME"));
        assert!(only("// XXX").contains("XXX"));
        assert!(messages("a.rs", "//! Head.\nconst T: &str = \"/tmp/fileXXXXXX XXX\";\n").is_empty());
    }

    #[test]
    fn paths_of_a_machine_and_placeholders_are_found_everywhere() {
        assert!(only("const P: &str = \"/home/me/trace\";").contains("/home/"));
        assert!(messages("README.md", "see /root/notes\n")[0].contains("/root/"));
        assert!(messages("Cargo.toml", "description = \"to be written\"\n")[0].contains("never replaced"));
    }
}
