//! The rule that events are named in one place: a class that `tracewing-vocabulary` declares is named nowhere
//! else by a string, so that what reads it is found by its type.

use super::comments::tests_begin;
use super::{File, Finding};
use tracewing_vocabulary::{Class, function, lock, own, profile, user_thread};

/// What the names of our own events begin with.
const STARTS: [&str; 5] = [user_thread::START, lock::START, function::START, profile::START, own::START];

/// Files that may, each with the reason.
const EXEMPT: &[(&str, &str)] = &[
    ("crates/vocabulary/", "the declarations"),
    ("crates/abi/src/first.rs", "an event that never reaches a recording"),
    ("crates/tracewing/src/macros.rs", "a macro makes names of functions at compile time"),
    ("crates/kernel/src/choose.rs", "the kernel's own names, with subsystems"),
    ("crates/kernel/src/lttng.rs", "the kernel's own names become those that the vocabulary has"),
    ("crates/session/src/preload.rs", "the kernel's own names, with subsystems"),
];

pub(super) fn check(file: &File, findings: &mut Vec<Finding>) {
    let is_source = file.is_rust()
        && file.path.starts_with("crates/")
        && file.path.contains("/src/")
        && !file.path.contains("/tests")
        && !EXEMPT.iter().any(|(path, _)| file.path.starts_with(path));
    if !is_source {
        return;
    }
    let text = file.text.lines().zip(&file.lines);
    for (index, (text, line)) in text.enumerate().take(tests_begin(file)) {
        let literals = literals(text).filter(|literal| line.strings.contains(*literal));
        for literal in literals.filter(|literal| names_class(literal)) {
            let message =
                format!("\"{literal}\" names events: use the name that `tracewing-vocabulary` has for them");
            findings.push(file.finding(index + 1, message));
        }
    }
}

/// What stands between quotation marks on a line.
fn literals(line: &str) -> impl Iterator<Item = &str> {
    line.split('"').skip(1).step_by(2)
}

/// Whether a text is the name of a class, or a pattern for names of a provider's.
fn names_class(text: &str) -> bool {
    // Words that are names of events, and much else.
    let is_word = |text: &str| !text.contains(['_', ':']);
    let is_pattern = |text: &str| {
        let rest = STARTS.iter().find_map(|start| text.strip_prefix(start));
        rest.is_some_and(|rest| !rest.contains(|c: char| !(c.is_ascii_alphanumeric() || "_*:".contains(c))))
    };
    !is_word(text) && (Class::of_name(text).is_some() || is_pattern(text))
}

#[cfg(test)]
mod tests {
    use super::super::messages;

    #[test]
    fn names_of_events_are_found_outside_of_the_vocabulary() {
        for name in ["sched_switch", "lock:acquired", "user_thread:*", "tracewing:thread"] {
            let body = format!("//! Head.\n\nconst A: &str = \"{name}\";\n");
            let found = messages("crates/trace/src/a.rs", &body);
            assert!(found.len() == 1 && found[0].contains("a.rs:3:"), "{name}: {found:?}");
            for path in ["crates/vocabulary/src/a.rs", "crates/cli/tests/a.rs", "crates/trace/src/tests.rs"] {
                assert!(messages(path, &body).is_empty(), "{path}");
            }
        }
    }

    #[test]
    fn prose_comments_and_other_words_are_not() {
        for body in [
            "// \"sched_switch\"\n",
            "const A: &str = \"record lock:acquired\";\n",
            "const A: &str = \"wake\";\n",
        ] {
            let found = messages("crates/trace/src/a.rs", &format!("//! Head.\n\n{body}"));
            assert!(found.is_empty(), "{found:?}");
        }
    }
}
