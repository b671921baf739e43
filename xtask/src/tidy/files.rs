//! The rule that files are written by `crates/files` alone, by descriptor: a call that names one by its path
//! follows links that another user has planted.

use super::{File, Finding};

/// Calls that make, change or remove a file by its path.
const CALLS: &[&str] = &[
    "File::create(",
    "File::create_new(",
    "File::options(",
    "OpenOptions::new(",
    "DirBuilder::new(",
    "fs::write(",
    "fs::copy(",
    "fs::rename(",
    "fs::hard_link(",
    "fs::create_dir(",
    "fs::create_dir_all(",
    "fs::remove_file(",
    "fs::remove_dir(",
    "fs::remove_dir_all(",
    "fs::set_permissions(",
];

/// Files that may, each with the reason.
const EXEMPT: &[(&str, &str)] = &[
    ("crates/files/", "the crate itself"),
    ("crates/testing/", "tests only"),
    ("crates/kernel/src/change.rs", "tracefs, in which only root writes"),
    ("crates/kernel/src/changer.rs", "instances of tracefs"),
    ("crates/session/src/socket.rs", "the socket's folder, which has rules of its own"),
];

pub(super) fn check(file: &File, findings: &mut Vec<Finding>) {
    for (number, line) in file.source(EXEMPT) {
        if let Some(call) = CALLS.iter().find(|call| names(&line.code, call)) {
            let message = format!(
                "`{call}…)` names a file by its path: use the crate `files`, which writes by descriptor"
            );
            findings.push(file.finding(number, message));
        }
    }
}

/// Whether code has a call, and not only one whose name ends so.
fn names(code: &str, call: &str) -> bool {
    code.match_indices(call).any(|(at, _)| !code[..at].ends_with(char::is_alphanumeric))
}

#[cfg(test)]
mod tests {
    use super::super::messages;

    const BODY: &str = "//! Head.\n\nfn f() { std::fs::write(\"a\", \"b\"); }\n";

    #[test]
    fn a_file_that_is_written_by_its_path_is_found() {
        let found = messages("crates/trace/src/a.rs", BODY);
        assert!(found.len() == 1 && found[0].contains("a.rs:3: `fs::write(…)`"), "{found:?}");
        let calls =
            ["File::create(p)", "fs::rename(a, b)", "fs::OpenOptions::new()", "fs::remove_dir_all(p)"];
        for call in calls {
            assert_eq!(
                messages("crates/cli/src/a.rs", &BODY.replace("fs::write(\"a\", \"b\")", call)).len(),
                1,
                "{call}"
            );
        }
    }

    #[test]
    fn tests_exempt_files_and_reading_are_not() {
        for path in
            ["crates/files/src/a.rs", "crates/cli/tests/a.rs", "xtask/src/a.rs", "crates/trace/src/tests.rs"]
        {
            assert!(messages(path, BODY).is_empty(), "{path}");
        }
        let tested = BODY.replace("fn f()", "#[cfg(test)]\nmod tests {\n    fn f()");
        assert_eq!(messages("crates/trace/src/a.rs", &tested), [""; 0]);
        assert!(
            messages("crates/trace/src/a.rs", "//! Head.\n\n// fs::write(a)\nfn f() { fs::read(a); }\n")
                .is_empty()
        );
    }
}
