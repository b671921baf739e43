//! docs/reference/messages.md: every message that tracewing prints, with its cause and what to do. The texts
//! are those in the sources; `messages.txt` groups them, and `tidy` finds a text that has no group, a group
//! without texts, and a page that is out of date.

use super::{Finding, Tree};
use anyhow::{Result, bail};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Where the page is.
pub const PAGE: &str = "docs/reference/messages.md";

const GROUPS: &str = include_str!("messages.txt");

const GROUPS_FILE: &str = "xtask/src/tidy/messages.txt";

const HEAD: &str = "\
# Messages

This page lists the errors, warnings and notes of all commands, with their causes and remedies. Errors begin with `error:` and end the command;
warnings and notes begin with `tracewing:` or `warning:`. Words in braces, and `…`, stand for values. The page is generated from the sources
and from `xtask/src/tidy/messages.txt`: `cargo xtask messages` writes it, and `cargo xtask tidy` fails if it is out of date.

To find a message, search this page for a part of it that has no numbers or paths. [Troubleshooting](../troubleshooting.md) is ordered by symptoms
instead.
";

/// The crates whose messages users see.
const CRATES: &[&str] = &[
    "crates/attach/src/",
    "crates/cli/src/",
    "crates/consumer/src/",
    "crates/ctf/src/",
    "crates/export/src/",
    "crates/files/src/",
    "crates/index/src/",
    "crates/kernel/src/",
    "crates/profile/src/",
    "crates/programs/src/",
    "crates/recover/src/",
    "crates/rules/src/",
    "crates/session/src/",
    "crates/trace/src/",
];

/// What a message is an argument of: macros, functions and attributes.
const PRINTERS: &[&str] = &[
    "#[error",
    "bail!",
    "anyhow!",
    "ensure!",
    "context",
    "with_context",
    "note",
    "warn",
    "warning",
    "print_warning",
    "Err",
    "ok_or",
    "ok_or_else",
];

/// Sources that put messages together for others to print: what they format are messages.
const MAKERS: &[&str] = &[
    "crates/cli/src/across.rs",
    "crates/cli/src/cuts.rs",
    "crates/cli/src/locks/remarks.rs",
    "crates/cli/src/no_result.rs",
    "crates/cli/src/parts.rs",
    "crates/cli/src/preloaded.rs",
    "crates/cli/src/tasks.rs",
    "crates/cli/src/tasks/warnings.rs",
    "crates/cli/src/session/status.rs",
    "crates/profile/src/unnamed.rs",
    "crates/session/src/join.rs",
    "crates/session/src/join/lists.rs",
    "crates/session/src/not_joined.rs",
    "crates/session/src/preload.rs",
    "crates/session/src/rules.rs",
    "crates/trace/src/open/missing.rs",
    "crates/trace/src/select/selection.rs",
];

/// Functions of this type take what a number is without.
const MISSING: &str = "MissingPart::";

/// Constants in a text that only change its look on terminals. Others have a value that is printed.
const STYLES: &[&str] = &["HEADER", "HELP", "NOTE", "WARNING"];

/// Messages that share cause and remedy.
struct Group<'t> {
    section: &'t str,
    title: &'t str,
    /// Beginnings of the paths of sources.
    files: Vec<&'t str>,
    /// Parts of texts, one of which must be there; none means all texts.
    texts: Vec<&'t str>,
    cause: &'t str,
    remedy: &'t str,
}

impl Group<'_> {
    fn has(&self, path: &str, text: &str) -> bool {
        self.files.iter().any(|file| path.starts_with(file))
            && (self.texts.is_empty() || self.texts.iter().any(|part| text.contains(part)))
    }
}

fn groups() -> Result<Vec<Group<'static>>> {
    let (mut groups, mut section) = (Vec::<Group<'_>>::new(), "");
    for (index, line) in GROUPS.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
        let (key, value) = line.split_once(' ').unwrap_or((line, ""));
        let group = groups.last_mut();
        match (key, group) {
            ("#", _) => section = value,
            ("##", _) => groups.push(Group {
                section,
                title: value,
                files: Vec::new(),
                texts: Vec::new(),
                cause: "",
                remedy: "",
            }),
            ("in", Some(group)) => group.files.extend(value.split(' ')),
            ("text", Some(group)) => group.texts.push(value),
            ("cause", Some(group)) => group.cause = value,
            ("remedy", Some(group)) => group.remedy = value,
            _ => bail!("{GROUPS_FILE}:{}: not a group, nor of one: {line}", index + 1),
        }
    }
    Ok(groups)
}

pub(super) fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    let Some(page) = tree.files.get(PAGE) else { return };
    let mut found = |line, message: String| findings.push(page.finding(line, message));
    let (text, lacks) = match text(tree) {
        Ok(made) => made,
        Err(error) => return found(1, error.to_string()),
    };
    lacks.into_iter().for_each(|lack| found(1, lack));
    if page.text != text {
        let differs = |(a, b): (&str, &str)| a != b;
        let line = page.text.lines().zip(text.lines()).position(differs).map_or(1, |index| index + 1);
        found(line, "out of date: `cargo xtask messages` writes it".to_owned());
    }
}

/// The page as it should be, and what it lacks.
pub fn text(tree: &Tree) -> Result<(String, Vec<String>)> {
    let groups = groups()?;
    let mut texts = vec![BTreeSet::new(); groups.len()];
    let mut lacks = Vec::new();
    let sources = tree.files.values().filter(|file| CRATES.iter().any(|of| file.path.starts_with(of)));
    for file in sources.filter(|file| file.is_rust() && !file.path.ends_with("tests.rs")) {
        for message in messages(&file.text, MAKERS.contains(&file.path.as_str())) {
            match groups.iter().position(|group| group.has(&file.path, &message)) {
                Some(group) => drop(texts[group].insert(message)),
                None => lacks.push(format!("{}: no group in {GROUPS_FILE} has \"{message}\"", file.path)),
            }
        }
    }
    let (mut out, mut section) = (HEAD.to_owned(), "");
    for (group, texts) in groups.iter().zip(&texts) {
        if texts.is_empty() || group.cause.is_empty() || group.remedy.is_empty() {
            lacks.push(format!("{GROUPS_FILE}: \"{}\" has no text, no cause or no remedy", group.title));
        }
        if group.section != section {
            section = group.section;
            let _ = write!(out, "\n## {section}\n");
        }
        let _ =
            write!(out, "\n### {}\n\nCause: {}\n\nRemedy: {}\n\n", group.title, group.cause, group.remedy);
        for text in texts {
            let _ = writeln!(out, "- `{text}`");
        }
    }
    Ok((out, lacks))
}

/// The messages in a source, as the page shows them.
fn messages(source: &str, is_maker: bool) -> Vec<String> {
    let source = source.find("#[cfg(test)]\nmod ").map_or(source, |end| &source[..end]);
    let mut scanner =
        Scanner { rest: source, is_maker, open: Vec::new(), word: String::new(), found: Vec::new() };
    while scanner.step() {}
    scanner.found
}

/// Goes through a source and keeps the string literals in arguments of what prints messages.
struct Scanner<'s> {
    rest: &'s str,
    /// Whether what is formatted is a message.
    is_maker: bool,
    /// For each open bracket, whether what is in it is a message.
    open: Vec<bool>,
    /// The word before the present place.
    word: String,
    found: Vec<String>,
}

impl<'s> Scanner<'s> {
    fn step(&mut self) -> bool {
        let Some(first) = self.rest.chars().next() else { return false };
        match first {
            '/' if self.rest.starts_with("//") => self.skip(self.rest.find('\n').unwrap_or(self.rest.len())),
            '/' if self.rest.starts_with("/*") => {
                self.skip(self.rest.find("*/").map_or(self.rest.len(), |end| end + 2));
            }
            '"' => self.literal(),
            '\'' => self.skip(character(self.rest)),
            '(' | '[' | '{' => {
                let is_inside = self.open.last().is_some_and(|is_message| *is_message);
                let word = self.word.rsplit("::").next().unwrap_or_default();
                let makes = self.is_maker && ["format!", "write!", "writeln!"].contains(&word);
                let prints = PRINTERS.contains(&word) || makes || self.word.contains(MISSING);
                self.open.push(first == '(' && prints || is_inside);
                self.word = if first == '[' { "#[".to_owned() } else { String::new() };
                self.skip(1);
            }
            ')' | ']' | '}' => {
                self.open.pop();
                self.word.clear();
                self.skip(1);
            }
            _ if first.is_alphanumeric() || "_!:#".contains(first) => {
                self.word.push(first);
                self.skip(first.len_utf8());
            }
            _ => {
                self.word.clear();
                self.skip(first.len_utf8());
            }
        }
        true
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = &self.rest[bytes..];
    }

    /// A string literal, of which the quotation mark is next.
    fn literal(&mut self) {
        let hashes = self.word.strip_prefix('r').filter(|of| of.chars().all(|mark| mark == '#'));
        let (content, length) = match hashes.filter(|_| self.word.starts_with('r')) {
            Some(hashes) => {
                let end = format!("\"{hashes}");
                let length = self.rest[1..].find(&end).map_or(self.rest.len(), |at| at + 1 + end.len());
                (self.rest[1..length.saturating_sub(end.len()).max(1)].to_owned(), length)
            }
            None => unescaped(&self.rest[1..]),
        };
        self.skip(length.min(self.rest.len()));
        self.word.clear();
        if self.open.last().is_some_and(|is_message| *is_message) {
            self.found.extend(shown(&content));
        }
    }
}

/// The length of a character literal or a lifetime's mark.
fn character(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), Some((at, escaped))) => {
            rest[at + escaped.len_utf8()..].find('\'').map_or(1, |end| at + escaped.len_utf8() + end + 1)
        }
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 1,
    }
}

/// The content of a literal up to its quotation mark, and its length with both marks.
fn unescaped(text: &str) -> (String, usize) {
    let (mut content, mut chars) = (String::new(), text.char_indices().peekable());
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return (content, at + 2),
            '\\' => match chars.next() {
                Some((_, '\n')) => while chars.next_if(|(_, char)| char.is_whitespace()).is_some() {},
                Some((_, 'n')) => content.push(' '),
                Some((_, escaped)) => content.push(escaped),
                None => break,
            },
            char => content.push(char),
        }
    }
    (content, text.len() + 1)
}

/// A text as the page shows it; nothing if it is no message of at least two words.
fn shown(content: &str) -> Option<String> {
    let content = content.replace("{{", "\u{1}").replace("}}", "\u{2}");
    let (mut text, mut rest) = (String::new(), content.trim());
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let (value, after) = after.split_once('}')?;
        let name = value.split([':', '(', '.']).next().unwrap_or_default();
        let is_constant = name.starts_with(|first: char| first.is_ascii_uppercase());
        match name {
            _ if STYLES.contains(&name) => {}
            "" => text.push('…'),
            name if is_constant || name.bytes().all(|byte| byte.is_ascii_digit()) => text.push('…'),
            name => drop(write!(text, "{{{name}}}")),
        }
        rest = after;
    }
    text.push_str(rest);
    let text = text.replace('\u{1}', "{").replace('\u{2}', "}").replace('`', "'");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let words = text
        .split(' ')
        .filter(|word| word.chars().all(|char| char.is_alphabetic() || ",:;.'-".contains(char)));
    (words.count() >= 2).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_what_printers_get() {
        let source = r##"
            /// bail!("not a message at all")
            #[error("cannot read {path}: {source:?}")]
            fn a<'a>(x: &'a str) -> char { call("not printed by anything"); '"' }
            fn b() { bail!(
                "the value {} is \
                 too large", x); }
            fn c() { note(format!("thread {tid} of {0} was lost", f("a b c"))); }
            fn d() { x.with_context(|| format!(r#"cannot open "{}" for it"#, y)) }
            const E: MissingPart = MissingPart::calls("`user` is not known here");
            fn e() { bail!("{NOTE}longer than {LONGEST} bytes{NOTE:#}") }
            #[cfg(test)]
            mod tests { bail!("this is in a test") }
        "##;
        let source = source.replace("            ", "");
        assert_eq!(
            messages(&source, false),
            [
                "cannot read {path}: {source}",
                "the value … is too large",
                "thread {tid} of … was lost",
                "a b c",
                "cannot open \"…\" for it",
                "'user' is not known here",
                "longer than … bytes",
            ]
        );
    }

    #[test]
    fn all_that_a_maker_formats_is_a_message() {
        let source = "fn a() { write!(f, \"no library {0} here\", x) }";
        assert_eq!(messages(source, true), ["no library … here"]);
        assert!(messages(source, false).is_empty());
    }

    #[test]
    fn every_group_can_be_read() {
        assert!(groups().unwrap().iter().all(|group| !group.files.is_empty() && !group.section.is_empty()));
    }
}
