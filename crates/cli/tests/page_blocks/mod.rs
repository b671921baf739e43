//! The code blocks of Markdown pages: what is run of them, what is not and why, and how what a command prints
//! is compared with what a page says that it prints.

use std::fmt::Write as _;

/// Marks a block that is not run, on the line before it: `<!-- not run: REASON -->`.
const NOT_RUN: &str = "<!-- not run: ";

/// The share of a line's words that a line of the output must have.
const WORDS: f64 = 0.7;

/// Words of a line from which on it is no row of a table.
const SENTENCE: usize = 4;

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
/// many. Which rows there are is the machine's business, and so is which buckets a histogram has.
pub fn missing<'a>(expected: &'a [String], printed: &[String]) -> Vec<&'a str> {
    let has_number = |line: &str| line.contains(|c: char| c.is_ascii_digit());
    let is_row = |line: &str| has_number(line) && words(line).len() < SENTENCE && !is_bucket(line);
    let of_printed: Vec<_> = printed.iter().map(|line| words(line)).collect();
    let has_like = |line: &str| {
        let wanted = words(line);
        wanted.is_empty() || of_printed.iter().any(|words| alike(&wanted, words))
    };
    let (rows, lines): (Vec<_>, Vec<_>) = expected.iter().map(String::as_str).partition(|line| is_row(line));
    let lines = lines.into_iter().filter(|line| !is_bucket(line));
    let (numbers, titles): (Vec<_>, Vec<_>) = lines.partition(|line| has_number(line));
    let mut missing: Vec<_> = titles.into_iter().filter(|line| !has_like(line)).collect();
    let unlike: Vec<_> = numbers.iter().copied().filter(|line| !has_like(line)).collect();
    if unlike.len() * 2 > numbers.len() {
        missing.extend(unlike);
    }
    if printed.iter().filter(|line| is_row(line)).count() * 2 < rows.len() {
        missing.extend(rows);
    }
    missing
}

/// Whether a line is a bucket of a histogram: it ends with a bar, or with a count of 0.
fn is_bucket(line: &str) -> bool {
    let has_bar = line.ends_with(|last| ('\u{2588}'..='\u{258f}').contains(&last));
    words(line).is_empty() && (has_bar || line.ends_with(" 0"))
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
    const WIDTH: usize = 118;
    let line = line.trim_end();
    if line.chars().count() <= WIDTH {
        return vec![line.to_owned()];
    }
    if !["tracewing: ", "error: "].iter().any(|start| line.starts_with(start)) {
        return vec![line.chars().take(WIDTH - 3).chain("...".chars()).collect()];
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
            lines.push(word.to_owned());
        }
    }
    lines
}
