//! Reads the command line. Errors show it without characters that could control the terminal, and without a
//! usage: most commands have so many options that the error would be lost in it.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Parser};
use std::ffi::OsString;
use std::io::Write;
use tracewing_trace::shown;

use crate::defaults::{self, Given};
use crate::help;
use crate::output::{print_error, say};
use crate::screen::{self, Form};
use crate::style::HEADER;

/// The command line, with the defaults of the user's configuration file; ends the process if it is wrong or
/// only asks for help.
pub fn parse<P: Parser>() -> P {
    let given = defaults::add(&P::command(), std::env::args_os().collect()).unwrap_or_else(|error| {
        print_error(&error);
        std::process::exit(WRONG)
    });
    P::try_parse_from(&given.words).unwrap_or_else(|error| explain::<P>(given, &error))
}

/// The exit code for wrong arguments.
const WRONG: i32 = 2;

fn explain<P: Parser>(given: Given, error: &clap::Error) -> ! {
    if let Some(file) = &given.by {
        say!("with the options in {}:", shown(&file.to_string_lossy()));
    }
    let escaped: Vec<_> =
        given.words.iter().map(|text| OsString::from(shown(&text.to_string_lossy()).into_owned())).collect();
    let called = called(&P::command(), &escaped, error);
    // The escaped arguments usually have the same error. If not, it is printed without colours, since
    // arguments could contain some.
    let text = match help::laid_out(P::command()).try_get_matches_from(escaped) {
        Err(same) if is_help(same.kind()) => same.exit(),
        Err(same) => same.render().ansi().to_string(),
        Ok(_) => error.render().to_string().lines().map(|line| shown(line).into_owned() + "\n").collect(),
    };
    // Where standard error is gone, there is no place to report that.
    let _ = writeln!(
        screen::stderr(Form::Text),
        "{}\n\nFor more: {HEADER}{called} --help{HEADER:#}",
        without_usage(&text)
    );
    std::process::exit(error.exit_code())
}

/// Whether what clap prints is no error, but help that was asked for, or that lists the commands.
fn is_help(kind: ErrorKind) -> bool {
    use ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion};
    matches!(kind, DisplayHelp | DisplayHelpOnMissingArgumentOrSubcommand | DisplayVersion)
}

/// The command that the words call, as far as there is such a command. What follows a misspelt one names
/// none.
fn called(program: &Command, words: &[OsString], error: &clap::Error) -> String {
    let (mut command, mut name) = (program, program.get_name().to_owned());
    let unknown = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(word)) => shown(word).into_owned(),
        _ => "--".to_owned(),
    };
    for word in words.iter().skip(1).take_while(|word| *word != "--" && *word != unknown.as_str()) {
        if let Some(below) = command.find_subcommand(word) {
            command = below;
            name = format!("{name} {}", below.get_name());
        }
    }
    name
}

/// An error in clap's words, without its usage and its hint, which names no command.
fn without_usage(text: &str) -> String {
    let is_kept = |paragraph: &&str| {
        let plain = anstream::adapter::strip_str(paragraph).to_string();
        !["Usage:", "For more information"].iter().any(|start| plain.starts_with(start))
    };
    text.trim_end().split("\n\n").filter(is_kept).collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cli;
    use clap::CommandFactory;

    /// What is printed of the error that a command line has.
    fn said(line: &str) -> String {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let error = Cli::command().try_get_matches_from(&words).expect_err("it is wrong");
        assert!(!is_help(error.kind()), "{line}");
        let text = without_usage(&error.render().ansi().to_string());
        format!("{}\n{}", anstream::adapter::strip_str(&text), called(&Cli::command(), &words, &error))
    }

    #[test]
    fn errors_are_short_and_name_the_command() {
        for (line, expected) in [
            ("tracewing record --nonsense", "error: unexpected argument '--nonsense' found\n"),
            ("tracewing sched latency --nonsense", "\ntracewing sched latency"),
            ("tracewing lsit", "\ntracewing"),
            ("tracewing lsit profile", "\ntracewing"),
            ("tracewing list --format xml t", "[possible values: text, json, csv]\ntracewing list"),
            ("tracewing list --profil t", "tip:"),
            ("tracewing latency t", "required arguments were not provided"),
            ("tracewing record --quiet --quiet=x -- list", "\ntracewing record"),
        ] {
            let said = said(line);
            let is_end = expected.starts_with('\n');
            assert!(
                if is_end { said.ends_with(expected) } else { said.contains(expected) },
                "{line}: {said}"
            );
            assert!(!said.contains("Usage:") && !said.contains("For more information"), "{line}: {said}");
            assert!(said.lines().count() <= 7, "{line}: {said}");
        }
    }
}
