//! The rule that functions of the crates and of `bench` fit on a screen. Those that do not yet are counted,
//! and the count may only fall.

use super::comments::tests_begin;
use super::{File, Finding, Tree};

/// Lines of a function, its signature included, that fit.
const MOST: usize = 60;

/// Functions that are longer: event paths of `ring`, its model, and the assembly of `abi` and `preload`.
const LONGER: usize = 5;

pub(super) fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    compare(long_functions(tree), LONGER, findings);
}

/// `allowed` is how many may be found.
fn compare(found: Vec<Finding>, allowed: usize, findings: &mut Vec<Finding>) {
    match found.len() {
        count if count > allowed => findings.extend(found),
        count if count < allowed => findings.push(Finding {
            path: "xtask/src/tidy/functions.rs".to_owned(),
            line: 1,
            message: format!("only {count} functions have more than {MOST} lines: lower `LONGER` to that"),
        }),
        _ => {}
    }
}

fn long_functions(tree: &Tree) -> Vec<Finding> {
    let is_code = |file: &&File| {
        file.is_rust()
            && (file.path.starts_with("crates/") || file.path.starts_with("bench/"))
            && file.path.contains("/src/")
            && !file.path.contains("/tests/")
            && !file.path.ends_with("tests.rs")
    };
    tree.files.values().filter(is_code).flat_map(of_file).collect()
}

fn of_file(file: &File) -> Vec<Finding> {
    // Other rules treat `bench` as they treat tests.
    let end = if file.path.starts_with("bench/") { file.lines.len() } else { tests_begin(file) };
    let lines = &file.lines[..end];
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(indent) = begins_function(&line.code) else { continue };
        // rustfmt puts the end of a body below its begin.
        let ends = |code: &str| code.trim_end() == format!("{}}}", " ".repeat(indent));
        let has_no_body =
            |code: &str| code.trim_end().ends_with(';') && !code.starts_with(&" ".repeat(indent + 1));
        let rest = lines[at..].iter().enumerate();
        let end = rest
            .map(|(count, line)| (count + 1, &line.code))
            .find(|(_, code)| ends(code) || has_no_body(code));
        if let Some((count, _)) = end.filter(|(count, code)| *count > MOST && ends(code)) {
            let message = format!("a function of {count} lines, more than {MOST}: split it by what it does");
            found.push(file.finding(at + 1, message));
        }
    }
    found
}

/// How far a line is indented that begins a function with a body of several lines.
fn begins_function(code: &str) -> Option<usize> {
    let words = code.trim_start();
    let before = words.split_once("fn ")?.0;
    let is_head = before.split_whitespace().all(|word| {
        matches!(word, "pub" | "const" | "unsafe" | "async" | "extern" | "\"\"")
            || word.starts_with("pub(")
            || word.ends_with(')')
    });
    let is_one_line = words.trim_end().ends_with('}');
    (is_head && !is_one_line).then(|| code.len() - words.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, lines: usize) -> Vec<String> {
        let body = "    call();\n".repeat(lines - 2);
        let text =
            format!("//! Head.\n\nimpl A {{\n    fn short() {{}}\n}}\n\npub(crate) fn f() {{\n{body}}}\n");
        long_functions(&Tree::of(&[(path, &text)])).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_function_that_is_too_long_is_found() {
        assert_eq!(found("crates/trace/src/a.rs", 60), [""; 0]);
        for path in ["crates/trace/src/a.rs", "bench/src/a.rs"] {
            let [found] = &found(path, 61)[..] else { panic!() };
            assert!(found.starts_with(&format!("{path}:7: a function of 61 lines")), "{found}");
        }
    }

    #[test]
    fn tests_and_tools_may_be_longer() {
        for path in ["crates/trace/src/tests.rs", "crates/cli/tests/a.rs", "xtask/src/a.rs"] {
            assert_eq!(found(path, 100), [""; 0], "{path}");
        }
    }

    #[test]
    fn the_count_may_only_fall() {
        let of = |count: usize, allowed| {
            let file = File::new("crates/trace/src/a.rs", "//! Head.\n");
            let mut findings = Vec::new();
            compare((0..count).map(|line| file.finding(line, "long")).collect(), allowed, &mut findings);
            findings.len()
        };
        assert_eq!([of(1, 1), of(0, 0), of(2, 1), of(0, 1)], [0, 0, 2, 1]);
    }
}
