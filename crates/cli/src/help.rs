//! Lays out help for the terminal's width: a line of two columns continues below its second column.
//!
//! clap would continue it below the indentation of the line, where the names are.

use crate::terminal;
use crate::wrap::wrapped;
use clap::Command;

/// Where standard output has no width: clap's own choice.
const WIDTH: usize = 100;

/// The command with its help laid out, and all of its subcommands'.
pub fn laid_out(command: Command) -> Command {
    let width = terminal::width().unwrap_or(WIDTH);
    lay_out(command, width).term_width(width)
}

fn lay_out(mut command: Command, width: usize) -> Command {
    if let Some(help) = command.get_after_help().map(|help| fit(&help.to_string(), width)) {
        command = command.after_help(help);
    }
    if let Some(help) = command.get_after_long_help().map(|help| fit(&help.to_string(), width)) {
        command = command.after_long_help(help);
    }
    command.mut_subcommands(|below| lay_out(below, width))
}

fn fit(help: &str, width: usize) -> String {
    help.lines().map(|line| hang(line, width)).collect::<Vec<_>>().join("\n")
}

/// One line, or several of which all but the first begin below its second column.
fn hang(line: &str, width: usize) -> String {
    let Some(column) = second_column(line).filter(|&column| column + 20 <= width) else {
        return line.to_owned();
    };
    let (first, rest) = line.split_at(column);
    format!("{first}{}", wrapped(rest, column, column, Some(width)))
}

/// Where the second column of an indented line begins, in bytes: after two spaces.
fn second_column(line: &str) -> Option<usize> {
    let names = line.strip_prefix("  ").filter(|line| !line.starts_with(' '))?;
    let gap = names.find("  ")?;
    let meaning = names[gap..].trim_start();
    (!meaning.is_empty()).then(|| line.len() - meaning.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_meaning_continues_below_its_beginning() {
        let line = "  state  in which it left: ready, asleep";
        assert_eq!(hang(line, 33), "  state  in which it left: ready,\n         asleep");
        assert_eq!(hang(line, 80), line);
        for same in
            ["no column in this line", "      an example's meaning, which clap wraps", "  a line of words"]
        {
            assert_eq!(hang(same, 12), same);
        }
    }
}
