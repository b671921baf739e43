//! docs/reference/events.md: every event that tracewing records by itself or interprets, with its readers.
//! Generated from the vocabulary and from the sources that name its types; `tidy` finds it out of date.

use super::{File, Finding, Tree};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use tracewing_vocabulary::{Class, Field, FieldKind};

/// Where the page is.
pub const PAGE: &str = "docs/reference/events.md";

const HEAD: &str = "\
# Events

This page lists the events that tracewing itself emits, and the events of the kernel that it interprets. It is generated from their declarations
(`crates/vocabulary`) and from the sources that read them: `cargo xtask events` writes it, and `cargo xtask tidy` fails if it is out of date.

Other events can be recorded too: those that your programs declare (`#[derive(Event)]`, `event!`), and any event of the kernel (`tracewing record
-k GLOB`). They are printed, counted and filtered, but no analysis interprets them. Kernel events have the same names and fields as in LTTng's
recordings, so recordings of both tracers are read alike.

A field in brackets may be missing in recordings of older versions or of other tracers. Numbers have no unit unless one is given.
";

/// The sections: what the names of modules are, and what they are about.
const SECTIONS: &[(&str, &str)] = &[
    ("user_thread", "Tasks and other user threads"),
    ("lock", "Locks"),
    ("function", "Functions"),
    ("profile", "Samples and counters"),
    ("own", "Threads of programs"),
    ("recorder", "Threads of programs, as the recorder has seen them"),
    ("kernel", "The kernel"),
];

/// What reads events, by where its sources are.
const READERS: &[(&str, &str)] = &[
    ("crates/trace/src/super_trace/", "super-trace"),
    ("crates/trace/src/info/", "`info`, `stats`"),
    ("crates/trace/src/rewrite/", "`convert`, `extract`"),
    ("crates/analysis/src/locks/", "`locks`"),
    ("crates/analysis/src/functions/", "`functions`"),
    ("crates/analysis/src/profile/", "`profile`"),
    ("crates/analysis/src/latency/", "`latency`"),
    ("crates/analysis/src/breakdown/", "`breakdown`"),
    ("crates/analysis/src/critical_path/", "`critical-path`"),
    ("crates/export/src/", "`export`"),
    ("crates/index/src/", "`view`"),
    ("crates/consumer/src/names.rs", "the recorder"),
    ("crates/kernel/src/stream.rs", "the recorder"),
];

pub(super) fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    let Some(page) = tree.files.get(PAGE) else { return };
    let text = text(tree);
    let differs = |(a, b): (&str, &str)| a != b;
    if page.text != text {
        let line = page.text.lines().zip(text.lines()).position(differs).map_or(1, |index| index + 1);
        findings.push(page.finding(line, "out of date: `cargo xtask events` writes it"));
    }
}

/// The page as it should be.
pub fn text(tree: &Tree) -> String {
    let mut out = HEAD.to_owned();
    for (module, title) in SECTIONS {
        let _ = write!(out, "\n## {title}\n");
        for class in Class::all().filter(|class| module_of(*class) == *module) {
            write_class(&mut out, class, &readers(tree, module, class));
        }
    }
    out
}

fn write_class(out: &mut String, class: Class, readers: &BTreeSet<&str>) {
    let read_by = match readers.len() {
        0 => "printed only".to_owned(),
        _ => format!("read by {}", readers.iter().copied().collect::<Vec<_>>().join(", ")),
    };
    let _ = write!(
        out,
        "\n### `{}`\n\n{} ({read_by}).\n",
        class.name(),
        joined(class.description()).trim_end_matches('.')
    );
    if !class.fields().is_empty() {
        let _ = write!(out, "\n| field | type | unit | meaning |\n|---|---|---|---|\n");
    }
    for field in class.fields() {
        let name =
            if field.is_optional { format!("[`{}`]", field.name) } else { format!("`{}`", field.name) };
        let description = joined(field.description);
        let _ = writeln!(
            out,
            "| {name} | {} | {} | {} |",
            kind(field),
            field.unit,
            description.trim_end_matches('.')
        );
    }
}

/// A doc comment as one line.
fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn kind(field: &Field) -> String {
    match field.kind {
        FieldKind::Unsigned(bits) if field.is_address => format!("unsigned, {bits} bits, in hexadecimal"),
        FieldKind::Unsigned(bits) => format!("unsigned, {bits} bits"),
        FieldKind::Signed(bits) => format!("signed, {bits} bits"),
        FieldKind::Boolean => "yes or no".to_owned(),
        FieldKind::Text => "text".to_owned(),
        FieldKind::Numbers => "list of addresses".to_owned(),
        FieldKind::Enumeration(labels) => {
            labels.iter().map(|(_, label)| *label).collect::<Vec<_>>().join(", ")
        }
    }
}

/// The module that declares a class, and the name of its type there.
fn module_of(class: Class) -> &'static str {
    match class {
        Class::UserThread(_) => "user_thread",
        Class::Lock(_) => "lock",
        Class::Function(_) => "function",
        Class::Profile(_) => "profile",
        Class::Own(_) => "own",
        Class::Recorder(_) => "recorder",
        Class::Kernel(_) => "kernel",
    }
}

fn type_of(class: Class) -> String {
    match class {
        Class::UserThread(class) => format!("{class:?}"),
        Class::Lock(class) => format!("{class:?}"),
        Class::Function(class) => format!("{class:?}"),
        Class::Profile(class) => format!("{class:?}"),
        Class::Own(class) => format!("{class:?}"),
        Class::Recorder(class) => format!("{class:?}"),
        Class::Kernel(class) => format!("{class:?}"),
    }
}

/// The sources that name the type of a class.
fn readers(tree: &Tree, module: &str, class: Class) -> BTreeSet<&'static str> {
    let name = type_of(class);
    let place = |file: &File| {
        READERS.iter().find(|(place, _)| file.path.starts_with(place)).map(|(_, reader)| *reader)
    };
    // What costs nothing comes first: most files are no readers.
    let files = tree.files.values().filter_map(|file| Some((file, place(file)?)));
    files.filter(|(file, _)| reads(file, module, &name)).map(|(_, place)| place).collect()
}

fn reads(file: &File, module: &str, name: &str) -> bool {
    let paths = [format!("{module}::{name}"), format!("{module}::Class::{name}")];
    let imports = format!("vocabulary::{module}::");
    file.lines.iter().filter(|line| line.code.contains(name)).any(|line| {
        paths.iter().any(|path| has_word(&line.code, path))
            || line.code.contains(&imports) && has_word(&line.code, name)
            || has_word(&line.code, &format!("Class::{name}")) && imports_classes(file, module)
            || line.code.contains(&format!("use {module}::Class::")) && has_word(&line.code, name)
            || line.code.contains(" => ") && has_word(&line.code, name) && imports_all(file, module)
    })
}

/// Whether a file calls the module's enumeration of classes `Class`.
fn imports_classes(file: &File, module: &str) -> bool {
    let start = format!("vocabulary::{module}::");
    file.lines.iter().any(|line| line.code.contains(&start) && has_word(&line.code, "Class"))
}

fn imports_all(file: &File, module: &str) -> bool {
    let all = format!("use {module}::Class::*");
    file.lines.iter().any(|line| line.code.contains(&all))
}

/// Whether code has a word, and not only a part of a longer one.
fn has_word(code: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word)
        .any(|(at, _)| !code[..at].ends_with(is_part) && !code[at + word.len()..].starts_with(is_part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_is_found_by_the_types_that_it_names() {
        let path = "crates/analysis/src/locks/event.rs";
        let tree = Tree::of(&[(
            path,
            "//! Head.\n\nfn f() { let lock::Acquired { lock, .. } = of.read(event); }\n",
        )]);
        let page = text(&tree);
        assert!(page.contains("The thread acquired the lock (read by `locks`)"), "{page}");
        assert!(page.contains("(printed only)"), "{page}");
    }

    #[test]
    fn a_page_that_is_out_of_date_is_found() {
        let mut findings = Vec::new();
        check(&Tree::of(&[(PAGE, "# Events\n\nold\n")]), &mut findings);
        assert!(findings.len() == 1 && findings[0].line == 3, "{findings:?}");
        findings.clear();
        let right = text(&Tree::of(&[]));
        check(&Tree::of(&[(PAGE, &right)]), &mut findings);
        assert!(findings.is_empty(), "{findings:?}");
    }
}
