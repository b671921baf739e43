//! The rule that what is measured has a type: a field or parameter that is named as a stamp, a number of
//! cycles, a thread, a process, a CPU, a task, a lock, a place or a request is not a plain integer, but what
//! `tracewing-units` has.

use super::{File, Finding};

/// Names of such things, also as the last word of a longer name, and their types.
const NAMES: &[(&str, &str)] = &[
    ("stamp", "Timestamp or Cycles"),
    ("cycles", "Cycles"),
    ("tid", "Tid"),
    ("pid", "Pid"),
    ("cpu", "Cpu"),
    ("vtid", "Tid"),
    ("vpid", "Pid"),
    ("ppid", "Pid"),
    ("lwp", "Tid"),
    ("task", "Task"),
    ("timestamp", "Timestamp or Cycles"),
    ("lock", "LockAddress"),
    ("ticket", "Ticket"),
    ("caller", "Caller"),
    ("chain", "Chain"),
    ("span", "SpanNumber"),
];

/// Plain integers.
const PLAIN: &[&str] = &["u64", "i64", "u32", "i32"];

/// Files that may, each with the reason.
const EXEMPT: &[(&str, &str)] = &[
    ("crates/abi/", "what processes share has integers of fixed width"),
    ("crates/vocabulary/", "the declarations of events have the types that traces have"),
    ("crates/ring/src/lttng", "stamps as they are written"),
    ("crates/ring/src/publish/", "words that a sequence reads, and stamps as it writes them"),
    ("crates/ring/src/reader/check.rs", "stamps as they are found"),
    ("crates/tracewing/src/agent/first.rs", "a number in an event, or a mark in its place"),
    ("crates/tracewing/src/agent/made.rs", "a number in an event, or a mark in its place"),
    ("crates/ctf/src/decode/header.rs", "the low bits of a stamp"),
    ("crates/preload/src/", "addresses, as the C library gives them"),
    ("crates/tracewing/src/sync/", "addresses, as events are written"),
    ("crates/trace/src/info/", "CPU numbers of other tracers may have 64 bits"),
    ("crates/trace/src/stream/cursor", "CPU numbers of other tracers may have 64 bits"),
    ("crates/trace/src/stream/packet/head.rs", "CPU numbers of other tracers may have 64 bits"),
    ("crates/cli/src/recover.rs", "an argument, which is no negative number"),
];

pub(super) fn check(file: &File, findings: &mut Vec<Finding>) {
    for (number, line) in file.source(EXEMPT) {
        for (name, plain) in plain_integers(&line.code) {
            let is_it = |known: &str| {
                name.strip_suffix(known).is_some_and(|before| before.is_empty() || before.ends_with('_'))
            };
            if let Some((_, of)) = NAMES.iter().find(|(known, _)| is_it(known)) {
                let message = format!("`{name}` is a plain {plain}: `tracewing-units` has {of}");
                findings.push(file.finding(number, message));
            }
        }
    }
}

/// What is declared in a line with the type of a plain integer, perhaps borrowed or optional.
fn plain_integers(code: &str) -> impl Iterator<Item = (&str, &str)> {
    let is_part = |char: char| char.is_alphanumeric() || char == '_';
    code.match_indices(": ").filter_map(move |(at, _)| {
        let (before, after) = (&code[..at], &code[at + 2..]);
        let name = &before[before.rfind(|char| !is_part(char)).map_or(0, |last| last + 1)..];
        let of = after.trim_start_matches('&').trim_start_matches("mut ").trim_start_matches("Option<");
        let of = &of[..of.find(|char| !is_part(char)).unwrap_or(of.len())];
        PLAIN.contains(&of).then_some((name, of))
    })
}

#[cfg(test)]
mod tests {
    use super::super::messages;

    #[test]
    fn a_stamp_that_is_a_plain_integer_is_found() {
        for code in [
            "struct S {\n    stamp: u64,\n}",
            "fn f(first_stamp: Option<i64>) {}",
            "fn f(tid: i32) {}",
            "fn f(of: u8, cpu: &u32) {}",
        ] {
            let found = messages("crates/trace/src/a.rs", &format!("//! Head.\n\n{code}\n"));
            assert!(found.len() == 1 && found[0].contains("plain"), "{code}: {found:?}");
        }
    }

    #[test]
    fn types_other_names_and_what_processes_share_are_not() {
        for (path, code) in [
            ("crates/trace/src/a.rs", "fn f(stamp: Cycles, tid: Option<Tid>, count: u64, stamps: u64) {}"),
            ("crates/abi/src/a.rs", "struct S {\n    stamp: u64,\n}"),
            ("crates/trace/src/a.rs", "#[cfg(test)]\nmod tests {\n    fn f(stamp: u64) {}\n}"),
        ] {
            let found = messages(path, &format!("//! Head.\n\n{code}\n"));
            assert!(found.is_empty(), "{code}: {found:?}");
        }
    }
}
