//! The rules about comments that code must have: `SAFETY` at unsafe code, a partner named at every atomic
//! ordering stronger than relaxed.

use super::lexer::Line;
use super::text::has_word;
use super::{File, Finding};

/// Orderings that publish to, or synchronise with, a partner, which must be named.
const STRONG: &[&str] = &["Acquire", "Release", "AcqRel", "SeqCst"];

/// Folders and files that hold only tests or measurements.
const TEST_PLACES: &[&str] = &["tests/", "benches/", "tests.rs", "bench/"];

pub(super) fn check(file: &File, findings: &mut Vec<Finding>) {
    let tests_begin = tests_begin(file);
    for (index, line) in file.lines.iter().enumerate() {
        if is_unsafe_code(&line.code) && !is_justified(&file.lines, index) {
            findings
                .push(file.finding(index + 1, "`unsafe` without a `SAFETY` (or `# Safety`) comment near it"));
        }
        let strong = STRONG.iter().find(|ordering| names_ordering(&line.code, ordering));
        if let Some(ordering) = strong
            && index < tests_begin
            && !is_commented(&file.lines, index)
        {
            let message = format!("`{ordering}` without a comment on it or above it that names its partner");
            findings.push(file.finding(index + 1, message));
        }
    }
}

/// The first line that is only for tests: nothing but tests follows `#[cfg(test)]` on a module at a file's
/// end.
pub(super) fn tests_begin(file: &File) -> usize {
    let in_test_place = TEST_PLACES.iter().any(|place| {
        if place.ends_with('/') {
            file.path.starts_with(place) || file.path.contains(&format!("/{place}"))
        } else {
            file.path.ends_with(&format!("/{place}"))
        }
    });
    if in_test_place {
        return 0;
    }
    let is_test_module = |index: usize| {
        file.lines[index].code.trim() == "#[cfg(test)]"
            && file.lines[index + 1..]
                .iter()
                .find(|line| !line.code.trim().is_empty() && !line.code.trim().starts_with("#["))
                .is_some_and(|line| has_word(&line.code, "mod") && line.code.ends_with('{'))
    };
    (0..file.lines.len()).find(|index| is_test_module(*index)).unwrap_or(file.lines.len())
}

/// Unsafe blocks, functions and implementations; not function pointer types, attributes, and blocks of
/// foreign declarations, whose uses are unsafe themselves.
fn is_unsafe_code(code: &str) -> bool {
    code.match_indices("unsafe").any(|(at, _)| {
        let (before, after) = (&code[..at], &code[at + "unsafe".len()..]);
        let part_of_word = |c: char| c.is_alphanumeric() || c == '_';
        let alone = !before.ends_with(part_of_word) && !after.starts_with(part_of_word);
        let following = after.trim_start();
        let opens =
            ["{", "impl", "extern"].iter().any(|start| following.starts_with(start)) || following.is_empty();
        let declares = following.strip_prefix("fn").is_some_and(|rest| rest.starts_with(' '));
        let pointer = following.starts_with("extern") && following.contains("fn(");
        let foreign =
            following.starts_with("extern") && !following.contains("fn ") && following.ends_with('{');
        alone && (opens || declares) && !pointer && !foreign
    })
}

/// Whether `SAFETY` is within the ten lines above, on the line, or on the two after it. A declaration's `#
/// Safety` section may be anywhere in the comment above it.
fn is_justified(lines: &[Line], index: usize) -> bool {
    let near = &lines[index.saturating_sub(10)..(index + 3).min(lines.len())];
    let mentions = |line: &Line| line.comment.contains("SAFETY") || line.comment.contains("# Safety");
    let comment_above = lines[..index]
        .iter()
        .rev()
        .take_while(|line| line.is_comment() || line.code.trim_start().starts_with("#["));
    near.iter().any(mentions) || comment_above.into_iter().any(mentions)
}

fn names_ordering(code: &str, ordering: &str) -> bool {
    has_word(code, ordering)
        && !code.trim_start().starts_with("use ")
        && !code.trim_start().starts_with("pub use ")
}

/// A comment on the line, within its statement, or directly above its statement.
fn is_commented(lines: &[Line], index: usize) -> bool {
    if !lines[index].comment.is_empty() {
        return true;
    }
    for line in lines[..index].iter().rev() {
        if line.is_comment() {
            return true;
        }
        let code = line.code.trim_end();
        if code.is_empty() || code.ends_with([';', '{', '}']) {
            return false;
        }
        if !line.comment.is_empty() {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::super::messages;

    fn of(body: &str) -> Vec<String> {
        messages("a.rs", &format!("//! Head.\n{body}\n"))
    }

    #[test]
    fn unsafe_code_needs_a_reason() {
        assert!(of("fn f() { unsafe { g() } }")[0].contains("a.rs:2: `unsafe`"));
        assert!(of("unsafe impl Send for A {}")[0].contains("SAFETY"));
        assert!(of("unsafe extern \"C\" fn f() {}")[0].contains("SAFETY"));
        assert!(of("/// Does.\npub unsafe fn f() {}")[0].contains("a.rs:3"));
        assert!(of("// SAFETY: g has no conditions.\nfn f() { unsafe { g() } }").is_empty());
        assert!(of("/// Does.\n///\n/// # Safety\n/// None.\n#[inline]\npub unsafe fn f() {}").is_empty());
    }

    #[test]
    fn unsafe_in_types_attributes_and_strings_needs_none() {
        assert!(of("type F = unsafe fn(u8);").is_empty());
        assert!(of("type F = unsafe extern \"C\" fn(u8);").is_empty());
        assert!(of("unsafe extern \"C\" {\n    fn f();\n}").is_empty());
        assert!(of("#[unsafe(no_mangle)]\nfn f() {}").is_empty());
        assert!(of("const A: &str = \"unsafe { }\"; // unsafe { }").is_empty());
    }

    #[test]
    fn a_strong_ordering_names_its_partner() {
        assert!(of("fn f() {\n    a.load(Ordering::Acquire);\n}")[0].contains("a.rs:3: `Acquire`"));
        assert!(of("fn f() {\n    // other\n    b();\n    a.load(Acquire);\n}")[0].contains("a.rs:5"));
        assert!(of("fn f() {\n    a.load(Relaxed);\n}").is_empty());
        assert!(of("fn f() {\n    // Pairs with g's release.\n    a.load(Acquire);\n}").is_empty());
        assert!(of("fn f() {\n    a.load(Acquire); // pairs with g's release\n}").is_empty());
        assert!(
            of("fn f() {\n    // With g.\n    a.swap(\n        1,\n        AcqRel,\n    );\n}").is_empty()
        );
        assert!(of("use core::sync::atomic::Ordering::{Acquire, Release};").is_empty());
    }

    #[test]
    fn tests_may_order_as_they_like() {
        let body = "fn f() {\n    a.load(SeqCst);\n}";
        assert!(of(&format!("#[cfg(test)]\nmod tests {{\n{body}\n}}")).is_empty());
        assert!(messages("crates/a/tests/b.rs", &format!("//! Head.\n{body}")).is_empty());
        assert_eq!(of(&format!("#[cfg(test)]\nmod tests;\n{body}")).len(), 1);
    }
}
