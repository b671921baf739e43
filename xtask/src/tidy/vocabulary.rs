//! The rule that names are in one place: an event class, a field of one, or a key of a trace's environment
//! that `tracewing-vocabulary` declares is named nowhere else by a string, so that what reads it is found by
//! its type or its constant.
//!
//! Names of one plain word (`lock`, `domain`) mean much else, too. Of these, all count in code that
//! interprets events ([`INTERPRETERS`]), and elsewhere those that a line looks up ([`LOOK_UPS`]).

use super::{File, Finding};
use std::collections::BTreeSet;
use std::sync::LazyLock;
use tracewing_vocabulary::environment::{EXTRACT, KEYS, NOTE};
use tracewing_vocabulary::{Class, context, function, kernel, lock, own, profile, span, user_thread};

/// What the names of our own events begin with.
const STARTS: [&str; 5] = [user_thread::START, lock::START, function::START, profile::START, own::START];

/// Files that may, each with the reason.
const EXEMPT: &[(&str, &str)] = &[
    ("crates/vocabulary/", "the declarations"),
    ("crates/abi/src/first.rs", "an event that never reaches a recording"),
    ("crates/kernel/src/choose.rs", "the kernel's own names, with subsystems"),
    ("crates/kernel/src/lttng.rs", "the kernel's own names become those that the vocabulary has"),
    ("crates/session/src/preload.rs", "the kernel's own names, with subsystems"),
    ("crates/ctf/", "the languages of metadata have such words, and know no events"),
];

/// Code that interprets events: there a word that is a field's name means the field.
const INTERPRETERS: &[&str] = &[
    "crates/analysis/src/",
    "crates/index/src/",
    "crates/profile/src/",
    "crates/timeline/src/",
    "crates/trace/src/super_trace/",
];

/// Files of such code that name their own results by such words, each with what that is.
const OWN_WORDS: &[(&str, &str)] = &[
    ("crates/analysis/src/actor.rs", "the kinds of actors"),
    ("crates/analysis/src/critical_path/mod.rs", "what a step of a path is"),
    ("crates/analysis/src/locks/account.rs", "the kinds of locks"),
    ("crates/profile/src/unnamed.rs", "words of notices"),
    ("crates/timeline/src/state.rs", "states"),
    ("crates/trace/src/super_trace/column.rs", "columns of the super-trace"),
];

/// The code before a one-word name that is a field or a key.
const LOOK_UPS: &[&str] = &[
    "env(",
    "text_of(",
    ".with(",
    "Scope::Payload, ",
    "Scope::CommonContext, ",
    "(Scope::Context, ",
    "asks_for_context(",
    "variable.name == ",
    "Note::Unit(",
    "unit(Class::Sample, ",
    "ids: &[",
];

/// Names of fields, and of members of contexts.
static FIELDS: LazyLock<BTreeSet<&str>> = LazyLock::new(|| {
    let spans = span::Class::ALL.iter().map(|class| class.fields());
    let fields = Class::all().map(Class::fields).chain(spans).flatten();
    let names = fields.flat_map(|field| [Some(field.name), field.also]).flatten();
    names.chain(CONTEXTS.as_flattened().iter().copied()).chain(context::FLAGS).collect()
});

/// Contexts by which events are chosen.
const CONTEXTS: [[&str; 2]; 3] = [context::TID, context::PROCESS, context::CPU];

pub(super) fn check(file: &File, findings: &mut Vec<Finding>) {
    let texts: Vec<&str> = file.text.lines().collect();
    let interprets = INTERPRETERS.iter().any(|begin| file.path.starts_with(begin))
        && !OWN_WORDS.iter().any(|(path, _)| file.path == *path);
    for (number, line) in file.source(EXEMPT) {
        let text = texts.get(number - 1).copied().unwrap_or_default();
        for (before, literal) in literals(text).filter(|(_, literal)| line.strings.contains(*literal)) {
            // Names of an analysis's own results are not those of events.
            let interprets = interprets && !before.contains("serde(");
            let Some(what) = named(before, literal, interprets) else { continue };
            let message = format!("\"{literal}\" names {what}: use the name that `tracewing-vocabulary` has");
            findings.push(file.finding(number, message));
        }
    }
}

/// The string literals of a line, each with the code before it.
fn literals(line: &str) -> impl Iterator<Item = (&str, &str)> {
    let marks: Vec<usize> = line.match_indices('"').map(|(at, _)| at).collect();
    let pairs = marks.chunks_exact(2).map(move |pair| (&line[..pair[0]], &line[pair[0] + 1..pair[1]]));
    pairs.collect::<Vec<_>>().into_iter()
}

/// What a literal names that the vocabulary declares; `interprets` if one word is enough.
fn named(before: &str, literal: &str, interprets: bool) -> Option<&'static str> {
    let is_meant =
        interprets || literal.contains('_') || LOOK_UPS.iter().any(|start| before.ends_with(start));
    if names_class(literal) {
        Some("events")
    } else if span::Class::of_name(literal).is_some() {
        Some("events of spans")
    } else if CONTEXTS.iter().any(|[_, other]| literal == *other) {
        Some("a context of events")
    } else if literal.strip_prefix(NOTE).is_some_and(|rest| rest.starts_with('{')) {
        Some("a note on an event class")
    } else if is_meant && (KEYS.contains(&literal) || literal == EXTRACT) {
        Some("a key of a trace's environment")
    } else if is_meant && FIELDS.contains(literal) {
        Some("a field of events")
    } else {
        None
    }
}

/// Whether a text is the name of a class, or a pattern for names of a provider's.
fn names_class(text: &str) -> bool {
    // Words that are names of events, and much else.
    let is_word = |text: &str| !text.contains(['_', ':']);
    let is_pattern = |text: &str| {
        let rest = STARTS.iter().find_map(|start| text.strip_prefix(start));
        rest.is_some_and(|rest| !rest.contains(|c: char| !(c.is_ascii_alphanumeric() || "_*:".contains(c))))
    };
    !is_word(text) && (Class::of_name(text).is_some() || is_pattern(text) || text == kernel::SCHEDULER_GLOB)
}

#[cfg(test)]
mod tests {
    use super::super::messages;

    #[test]
    fn names_of_events_are_found_outside_of_the_vocabulary() {
        for name in ["sched_switch", "sched_*", "lock:acquired", "user_thread:*", "tracewing:thread"] {
            let body = format!("//! Head.\n\nconst A: &str = \"{name}\";\n");
            let found = messages("crates/trace/src/a.rs", &body);
            assert!(found.len() == 1 && found[0].contains("a.rs:3:"), "{name}: {found:?}");
            for path in ["crates/vocabulary/src/a.rs", "crates/cli/tests/a.rs", "crates/trace/src/tests.rs"] {
                assert!(messages(path, &body).is_empty(), "{path}");
            }
        }
    }

    #[test]
    fn fields_keys_and_notes_are_found() {
        for (code, what) in [
            ("event.text(\"prev_comm\")", "a field of events"),
            ("event.field(Scope::Payload, \"lock\")", "a field of events"),
            ("class.with(\"tid\", number())", "a field of events"),
            ("trace.class().env(\"domain\")", "a key of a trace's environment"),
            ("trace.set_env(\"scope\", \"system\")", "a key of a trace's environment"),
            ("[(\"tracer_name\", name)]", "a key of a trace's environment"),
            ("concat!(name, \"_begin\")", "events of spans"),
            ("ids: &[\"span\"]", "a field of events"),
            ("trace.set_env(Note::Unit(\"period\"), unit)", "a field of events"),
            ("predicate.asks_for_context(\"tid\")", "a field of events"),
            ("[\"vtid\"].contains(name)", "a context of events"),
            ("variable.name == \"cpu\"", "a field of events"),
            ("format!(\"event_{id}_print\")", "a note on an event class"),
        ] {
            let body = format!("//! Head.\n\nfn f() {{ {code} }}\n");
            let found = messages("crates/trace/src/a.rs", &body);
            assert!(found.len() == 1 && found[0].contains(what), "{code}: {found:?}");
            assert!(messages("crates/ctf/src/a.rs", &body).is_empty(), "{code}");
        }
    }

    #[test]
    fn one_word_is_enough_in_code_that_interprets_events() {
        let body = "//! Head.\n\nfn f() { self.number(\"barrier\") }\n";
        for (path, count) in [
            ("crates/trace/src/super_trace/adapter/a.rs", 1),
            ("crates/analysis/src/locks/account.rs", 0),
            ("crates/cli/src/a.rs", 0),
        ] {
            assert_eq!(messages(path, body).len(), count, "{path}");
        }
    }

    #[test]
    fn prose_comments_and_other_words_are_not() {
        for body in [
            "const A: &str = \"lock\";\n",
            "const A: [&str; 2] = [\"domain\", \"scope\"];\n",
            "const A: &str = \"event_rules\";\n",
            "// \"sched_switch\"\n",
            "const A: &str = \"record lock:acquired\";\n",
            "const A: &str = \"wake\";\n",
        ] {
            let found = messages("crates/trace/src/a.rs", &format!("//! Head.\n\n{body}"));
            assert!(found.is_empty(), "{found:?}");
        }
    }
}
