//! The examples in the help of commands: the lines under `Examples:` that call tracewing.

/// The command lines of a help text as a shell takes them, without what is said of them after two blanks.
pub fn examples(help: &str) -> Vec<String> {
    let help = help.replace(" \\\n    ", " ");
    let (_, examples) = help.split_once("Examples:\n").unwrap_or_default();
    let paragraph = examples.split("\n\n").next().unwrap_or_default();
    let lines = paragraph.lines().filter_map(|line| line.strip_prefix("  "));
    lines.filter(|line| line.starts_with("tracewing ")).map(|line| before_comment(line).to_owned()).collect()
}

/// A line up to two blanks that are in no quotes.
fn before_comment(line: &str) -> &str {
    let mut quote = None;
    for (at, c) in line.char_indices() {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            (None, ' ') if line[at..].starts_with("  ") => return &line[..at],
            _ => {}
        }
    }
    line
}
