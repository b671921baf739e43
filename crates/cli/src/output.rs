//! What all subcommands share: output that ends quietly when its reader goes away, and enough open files.

use crate::screen::{self, Form};
use crate::style::{ERROR, NOTE, WARNING};
use crate::terminal;
use crate::wrap::wrapped;
use anyhow::Error;
use rustix::process::{Resource, getrlimit, setrlimit};
use std::io::{ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use tracewing_analysis::Ran;
use tracewing_trace::Sink;

pub use tracewing_trace::{is_unsafe, shown};

/// Prints a line on standard error. Where that cannot be written, as its reader is gone or the disk full,
/// the line is lost, and all else continues.
macro_rules! say {
    ($($argument:tt)*) => {{
        let _ = ::std::io::Write::write_fmt(&mut $crate::screen::stderr($crate::screen::Form::Text), format_args!("{}\n", format_args!($($argument)*)));
    }};
}
pub(crate) use say;

/// The label of an interrupt; `interrupt` and `softirq` stand for unidentified ones.
pub fn interrupt(name: &str) -> String {
    match name {
        "interrupt" | "softirq" => name.to_owned(),
        _ => format!("interrupt {name}"),
    }
}

/// Why threads may have no times in an extract.
const LEFT_OUT: &str =
    "the extract has no events of their own, or nothing followed them, so times are unknown";

/// Says how many threads are not in a table: they appear in events of the table's threads, and have no
/// times, as they were not followed.
pub fn print_strangers(out: &mut impl Write, count: u64, ran: &Ran) -> std::io::Result<()> {
    let others = match (count, ran.is_part) {
        (0, _) => return Ok(()),
        (1, false) => {
            "1 other thread also appears, but was not followed, so its times are unknown; ".to_owned()
        }
        (_, false) => {
            format!("{count} other threads also appear, but were not followed, so their times are unknown; ")
        }
        (1, true) => format!("1 other thread also appears, but {LEFT_OUT}"),
        (_, true) => format!("{count} other threads also appear, but {LEFT_OUT}"),
    };
    print_note(out, &(others + if ran.is_part { "" } else { "--system-wide records all threads" }))
}

/// Prints a line below a table, broken between words where it is wider than the output.
pub fn print_note(out: &mut impl Write, line: &str) -> std::io::Result<()> {
    writeln!(out, "{NOTE}{}{NOTE:#}", wrapped(line, 0, INDENT, terminal::width()))
}

/// Prints a line of a result, broken between words where it is wider than the output. Its other lines are
/// indented by two more columns than the first, which is by `indent`.
pub fn print_broken(out: &mut impl Write, indent: usize, line: &str) -> std::io::Result<()> {
    writeln!(out, "{:indent$}{}", "", wrapped(line, indent, indent + INDENT, terminal::width()))
}

/// Columns by which the lines of a message are indented, except the first.
const INDENT: usize = 2;

/// Standard output and standard error; on a terminal, warnings come in colour.
pub struct Output {
    form: Form,
    lines: usize,
}

/// Maximum number of lines that are counted.
const COUNTED: usize = 2;

impl Output {
    /// For events in this form; warnings are text.
    pub fn new(form: Form) -> Self {
        Output { form, lines: 0 }
    }

    /// How many lines of events have been printed, up to two.
    pub fn lines(&self) -> usize {
        self.lines
    }
}

impl Sink for Output {
    fn events(&mut self, lines: &[u8]) -> std::io::Result<()> {
        let more = lines.iter().filter(|byte| **byte == b'\n').take(COUNTED - self.lines);
        self.lines += more.count();
        let mut stdout = screen::stdout(self.form);
        stdout.write_all(lines)?;
        stdout.flush()
    }

    fn warning(&mut self, line: &[u8]) -> std::io::Result<()> {
        let line = String::from_utf8_lossy(line);
        let lines: Vec<_> = line.trim_end().split('\n').map(shown).collect();
        let mut stderr = screen::stderr(Form::Text);
        writeln!(stderr, "{WARNING}{}{WARNING:#}", lines.join("\n"))?;
        stderr.flush()
    }
}

/// A regular noun for a count.
pub fn plural(count: u64, word: &str) -> String {
    if count == 1 { word.to_owned() } else { format!("{word}s") }
}

/// A count with its noun.
pub fn count_of(count: usize, word: &str) -> String {
    let ending = match count {
        1 => "",
        _ if word.ends_with(['s', 'h']) => "es",
        _ => "s",
    };
    format!("{count} {word}{ending}")
}

/// Prints an error and what caused it.
pub fn print_error(error: &Error) {
    let message = without_codes(&with_causes(error));
    say!("{ERROR}error{ERROR:#}: {}", message_lines(&message, "error: ".len()));
}

/// Prints what the user should know, on standard error.
pub fn print_warning(line: &str) {
    say!("{WARNING}tracewing{WARNING:#}: {}", message_lines(&without_codes(line), "tracewing: ".len()));
}

/// A message as it is printed after a label of `label` characters: each line that is wider than the output is
/// broken between words. Indented lines show text with a mark below it, and stay as they are.
fn message_lines(message: &str, label: usize) -> String {
    let width = terminal::error_width();
    let lines = message.split('\n').enumerate().map(|(index, line)| match line.starts_with(' ') {
        true => shown(line).into_owned(),
        false => wrapped(&shown(line), if index == 0 { label } else { 0 }, INDENT, width),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Warns of patterns that no event's name matches.
pub fn warn_of_unmatched(recording: &tracewing_trace::Recording, patterns: &[String]) {
    for pattern in patterns.iter().filter(|pattern| !recording.has_event(pattern)) {
        print_warning(&recording.no_event(pattern).to_string());
    }
}

/// Warns of missing parts of a recording, and of ignored parts of its metadata; and of what its readers will
/// find.
pub fn warn_of_missing(recording: &tracewing_trace::Recording) {
    recording.say_remarks(print_warning);
    recording.missing().iter().chain(recording.warnings()).for_each(|line| print_warning(line));
}

/// An error and its causes, without those that the text before them contains: most of our errors name
/// theirs.
fn with_causes(error: &Error) -> String {
    let mut message = error.to_string();
    // Whatever is read has a path in its error, so a bare answer of the system is about the output.
    if error.downcast_ref::<std::io::Error>().is_some_and(|bare| bare.to_string() == message) {
        message = format!("cannot write: {message}");
    }
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !message.contains(&cause) {
            message = format!("{message}: {cause}");
        }
    }
    message
}

/// A text without the numbers that follow the system's words: `No such file or directory (os error 2)`.
fn without_codes(text: &str) -> String {
    const CODE: &str = " (os error ";
    let mut parts = text.split(CODE);
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(')') {
            Some((code, rest)) if code.bytes().all(|byte| byte.is_ascii_digit()) => plain.push_str(rest),
            _ => plain.extend([CODE, part]),
        }
    }
    plain
}

/// A path, quoted for a shell, without characters that control a terminal.
pub fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    if text.contains(is_unsafe) {
        let escape = |byte: &u8| match byte {
            b'\\' | b'\'' => format!("\\{}", char::from(*byte)),
            b' '..=b'~' => char::from(*byte).to_string(),
            byte => format!("\\x{byte:02x}"),
        };
        return format!("$'{}'", path.as_os_str().as_bytes().iter().map(escape).collect::<String>());
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// Whether the reader of standard output went away, which is not an error.
pub fn is_broken_pipe(error: &Error) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
    })
}

/// Allows as many open files as the system lets us have: every stream is one.
pub fn raise_file_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // With fewer files, a trace of fewer streams still opens.
    let _ = setrlimit(Resource::Nofile, limit);
}

#[cfg(test)]
mod tests {
    use super::{quoted, with_causes, without_codes};
    use std::path::Path;

    #[test]
    fn an_error_names_each_cause_once() {
        let cause = std::io::Error::other("no room");
        let named = tracewing_programs::image::Error::Process { pid: tracewing_units::Pid(1), source: cause };
        assert_eq!(with_causes(&named.into()).matches("no room").count(), 1);
        let unnamed = anyhow::anyhow!("no room").context("cannot write");
        assert_eq!(with_causes(&unnamed), "cannot write: no room");
        let bare = std::io::Error::other("no room");
        assert_eq!(with_causes(&bare.into()), "cannot write: no room");
    }

    #[test]
    fn the_system_s_words_are_without_numbers() {
        let text = "a: No such file or directory (os error 2), b: denied (os error 13); done";
        assert_eq!(without_codes(text), "a: No such file or directory, b: denied; done");
        for other in ["(os error 2)", "a (os error x)", "a (os error 2", "a (os error "] {
            assert_eq!(without_codes(other), other);
        }
    }

    #[test]
    fn a_shell_takes_a_path_as_one_word() {
        let cases = [
            ("T-1", "T-1"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
            ("a\u{9b}'", "$'a\\xc2\\x9b\\''"),
        ];
        for (path, word) in cases {
            assert_eq!(quoted(Path::new(path)), word);
        }
    }
}
