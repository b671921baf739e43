//! The code blocks of Markdown pages: what is run of them, what is not and why, and how what a command prints
//! is compared with what a page says that it prints.

use std::fmt::Write as _;

/// Marks a block that is not run, on the line before it: `<!-- not run: REASON -->`.
const NOT_RUN: &str = "<!-- not run: ";

/// The share of a line's words that a line of the output must have.
const WORDS: f64 = 0.7;

/// Words of a line from which on it is no row of a table, unless it has so many columns.
const SENTENCE: usize = 4;
const COLUMNS: usize = 5;

/// Columns of a page's lines.
const WIDTH: usize = 118;

/// The end of a line that is cut.
const CUT: &str = "...";

/// Phrases of messages that a run prints or not, whatever the page shows.
const BY_CHANCE: [&str; 4] = [
    // Some kernels in virtual machines record no switch from the idle thread, on one CPU or on all.
    "no switch from the idle thread",
    // A machine with hardware counters has none to miss.
    "no hardware counters here",
    // Depends on what else the machine does.
    "other threads also appear",
    // Printed only if the state of a worker was unknown for part of the time.
    "more polls may be long or blocking",
];

/// What begins a command's input in the page, which ends with a line `END`.
const HERE_DOCUMENT: &str = "<<'END'";

/// A fenced block of code.
pub struct Block<'a> {
    /// Index of the first line of its content.
    pub begin: usize,
    pub lines: Vec<&'a str>,
    language: &'a str,
    not_run: bool,
}

/// A command of a page and what the page says that it prints.
#[derive(Debug, PartialEq)]
pub struct Step {
    pub command: String,
    pub output: Vec<String>,
}

/// The fenced blocks of a page.
pub fn blocks(page: &str) -> Vec<Block<'_>> {
    let (mut blocks, mut open, mut before) = (Vec::new(), None::<Block<'_>>, "");
    for (index, line) in page.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(language)) => {
                let not_run = before.starts_with(NOT_RUN) && before.len() > NOT_RUN.len() + 10;
                open = Some(Block { begin: index + 1, lines: Vec::new(), language, not_run });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => block.lines.push(line),
            (None, None) => before = line,
        }
    }
    blocks
}

impl Block<'_> {
    /// Whether it is run.
    pub fn runs(&self) -> bool {
        self.language == "console" && !self.not_run
    }

    /// Whether it shows commands with what they print, and neither runs nor says why not.
    pub fn is_unmarked(&self) -> bool {
        !self.runs() && !self.not_run && self.lines.iter().any(|line| line.starts_with("$ "))
    }

    /// The commands, each with what the page says that it prints.
    pub fn steps(&self) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::new();
        let (mut continues, mut document) = (false, false);
        for line in &self.lines {
            match (continues || document, line.strip_prefix("$ ")) {
                (false, Some(command)) => {
                    steps.push(Step { command: command.to_owned(), output: Vec::new() })
                }
                (true, _) => {
                    let step = steps.last_mut().expect("a line that continues has one before it");
                    let _ = write!(step.command, "\n{line}");
                }
                (false, None) => {
                    let step = steps.last_mut().expect("a console block begins with a command");
                    step.output.push((*line).to_owned());
                }
            }
            let is_command = continues || document || line.starts_with("$ ");
            document = is_command && (line.contains(HERE_DOCUMENT) || document && *line != "END");
            continues = is_command && line.ends_with('\\');
        }
        steps
    }
}

/// What is missing in an output that a page says is there: lines without a number that have no like;
/// sentences with numbers if less than half of them have one; rows of tables if there are less than half as
/// many. Which rows there are is the machine's business, and so is which buckets a histogram has, and whether
/// what is printed [`BY_CHANCE`] is. Messages are compared as a whole, wherever they are wrapped.
pub fn missing(expected: &[String], printed: &[String]) -> Vec<String> {
    let (mut expected, printed) = (unwrapped(expected), unwrapped(printed));
    expected.retain(|line| !BY_CHANCE.iter().any(|phrase| line.contains(phrase)));
    let has_number = |line: &str| line.contains(|c: char| c.is_ascii_digit());
    let is_row = |line: &str| {
        has_number(line) && !is_bucket(line) && (words(line).len() < SENTENCE || columns(line) >= COLUMNS)
    };
    let of_printed: Vec<_> = printed.iter().map(|line| words(line)).collect();
    let has_like = |line: &str| {
        let wanted = words(line);
        wanted.is_empty() || of_printed.iter().any(|words| alike(&wanted, words))
    };
    let (rows, lines): (Vec<_>, Vec<_>) = expected.into_iter().partition(|line| is_row(line));
    let lines = lines.into_iter().filter(|line| !is_bucket(line));
    let (numbers, titles): (Vec<_>, Vec<_>) = lines.partition(|line| has_number(line));
    let mut missing: Vec<_> = titles.into_iter().filter(|line| !has_like(line)).collect();
    let of_numbers = numbers.len();
    let unlike: Vec<_> = numbers.into_iter().filter(|line| !has_like(line)).collect();
    if unlike.len() * 2 > of_numbers {
        missing.extend(unlike);
    }
    if printed.iter().filter(|line| is_row(line)).count() * 2 < rows.len() {
        missing.extend(rows);
    }
    missing
}

/// The lines, with each message that was wrapped in one line again. A line continues the one before it if it
/// is indented, and its first word had no room there; a row of a table has more than one blank between its
/// columns.
fn unwrapped(lines: &[String]) -> Vec<String> {
    let mut whole: Vec<String> = Vec::new();
    let mut before = 0;
    for line in lines {
        let text = line.trim_start();
        let first = text.split(' ').next().unwrap_or_default().chars().count();
        let is_row = text.contains("  ") || text.len() == line.len();
        match whole.last_mut().filter(|last| !is_row && !last.ends_with(CUT) && before + 1 + first > WIDTH) {
            Some(message) => {
                message.push(' ');
                message.push_str(text);
            }
            None => whole.push(line.clone()),
        }
        before = line.chars().count();
    }
    whole
}

/// Whether a line is a bucket of a histogram: it ends with a bar, or with a count of 0.
fn is_bucket(line: &str) -> bool {
    let has_bar = line.ends_with(|last| ('\u{2588}'..='\u{258f}').contains(&last));
    words(line).is_empty() && (has_bar || line.ends_with(" 0"))
}

/// Number of parts of a line that are two blanks or more apart.
fn columns(line: &str) -> usize {
    line.split("  ").filter(|part| !part.trim().is_empty()).count()
}

/// Whether a line has most of the words of another one.
fn alike(wanted: &[String], words: &[String]) -> bool {
    let found = wanted.iter().filter(|word| words.contains(word)).count();
    found as f64 >= wanted.len() as f64 * WORDS
}

/// The words of a line: without numbers, units of them, and bars.
fn words(line: &str) -> Vec<String> {
    const UNITS: [&str; 9] = ["ns", "µs", "ms", "s", "KiB", "MiB", "GiB", "B", "-"];
    let words = line.split(|c: char| !(c.is_alphanumeric() || "_-:%$".contains(c)));
    let words = words.filter(|word| word.chars().any(|c| c.is_alphanumeric() || c == '%'));
    words
        .filter(|word| !word.contains(|c: char| c.is_ascii_digit()) && !UNITS.contains(word))
        .map(str::to_owned)
        .collect()
}

/// A line as pages have it, without blanks at its end: where it is wider than a screen, messages are wrapped
/// and all else is cut.
pub fn fit(line: &str) -> Vec<String> {
    let line = line.trim_end();
    if line.chars().count() <= WIDTH {
        return vec![line.to_owned()];
    }
    if !["tracewing: ", "error: "].iter().any(|start| line.starts_with(start)) {
        return vec![line.chars().take(WIDTH - CUT.len()).chain(CUT.chars()).collect()];
    }
    let mut lines = vec![String::new()];
    for word in line.split(' ') {
        let last = lines.last_mut().expect("there is one from the start");
        if last.is_empty() {
            last.push_str(word);
        } else if last.chars().count() + word.chars().count() < WIDTH {
            last.push(' ');
            last.push_str(word);
        } else {
            lines.push(format!("  {word}"));
        }
    }
    lines
}
