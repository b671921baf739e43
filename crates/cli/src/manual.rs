//! `tracewing man`: manual pages, made of the help of each command.

use anyhow::{Result, bail};
use clap::Command;
use clap_mangen::Man;
use std::io::{self, IsTerminal, Write};
use std::process::{self, ExitCode, Stdio};

/// Prints the page of the command of `program` that these words name; without words, that of the program.
pub fn print(mut program: Command, words: &[String]) -> Result<ExitCode> {
    program.build();
    let mut command = &program;
    for word in words {
        let Some(below) = find(command, word) else {
            bail!("there is no command `{}`", words.join(" "));
        };
        command = below;
    }
    // Into memory first: a write that fails is then one error, whatever has been written.
    let mut page = Vec::new();
    render(command, &mut page)?;
    if !(io::stdout().is_terminal() && is_shown(&page)?) {
        io::stdout().write_all(&page)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The command below `command` that a word names; `session-create` names one of two levels, as the file of
/// its page does.
fn find<'c>(command: &'c Command, word: &str) -> Option<&'c Command> {
    command.get_subcommands().find_map(|below| match word.strip_prefix(below.get_name())? {
        "" => Some(below),
        rest => find(below, rest.strip_prefix('-')?),
    })
}

/// Has `man` show a page; false if this machine has no `man`, or one that cannot.
fn is_shown(page: &[u8]) -> io::Result<bool> {
    let mut man = match process::Command::new("man").args(["-l", "-"]).stdin(Stdio::piped()).spawn() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        man => man?,
    };
    let written = man.stdin.take().map_or(Ok(()), |mut to| to.write_all(page));
    let has_shown = man.wait()?.success();
    match written {
        // Its reader has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(has_shown),
        written => written.map(|()| has_shown),
    }
}

/// All sections. The synopsis is the usage of the help: clap_mangen's own one lists each option, without its
/// values.
fn render(command: &Command, page: &mut Vec<u8>) -> io::Result<()> {
    let man = Man::new(command.clone()).source(concat!("tracewing ", env!("CARGO_PKG_VERSION")));
    man.render_title(page)?;
    writeln!(page, ".nh")?;
    man.render_name_section(page)?;
    let usage = command.clone().render_usage().to_string();
    let usage = escaped(usage.trim_start_matches("Usage: "));
    writeln!(page, ".SH SYNOPSIS\n.nf")?;
    for line in usage.lines() {
        writeln!(page, "{}", line.trim())?;
    }
    writeln!(page, ".fi")?;
    man.render_description_section(page)?;
    man.render_options_section(page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(page)?;
    }
    if let Some(text) = command.get_after_long_help().or(command.get_after_help()) {
        extra(&text.to_string(), page)?;
    }
    if command.get_version().is_some() {
        man.render_version_section(page)?;
    }
    Ok(())
}

/// The text after the options in the help: a section for each heading, such as `Examples:`. Indented lines
/// are commands or tables, and stay as they are.
fn extra(text: &str, page: &mut Vec<u8>) -> io::Result<()> {
    let heading =
        |line: &str| Some(line.strip_suffix(':')?.to_uppercase()).filter(|name| !name.contains(' '));
    if text.lines().next().and_then(heading).is_none() {
        writeln!(page, ".SH NOTES")?;
    }
    let mut was_indented = false;
    for line in text.lines() {
        let is_indented = line.starts_with("  ");
        if is_indented != was_indented {
            writeln!(page, "{}", if is_indented { ".nf" } else { ".fi" })?;
        }
        was_indented = is_indented;
        match heading(line) {
            Some(name) => writeln!(page, ".SH {name}")?,
            None if line.is_empty() => writeln!(page)?,
            // Without the mark, a point or an apostrophe at the beginning is a command.
            None => writeln!(page, "\\&{}", escaped(line))?,
        }
    }
    if was_indented {
        writeln!(page, ".fi")?;
    }
    Ok(())
}

/// A text as roff has it: hyphens can be copied as they are.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}
