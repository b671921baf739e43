//! `tracewing man`: manual pages, made of the help of each command.

use anyhow::{Result, bail};
use clap::Command;
use clap_mangen::Man;
use std::io::{self, Write};
use std::process::ExitCode;

/// Prints the page of the command of `program` that these words name; without words, that of the program.
pub fn print(mut program: Command, words: &[String]) -> Result<ExitCode> {
    program.build();
    let mut command = &program;
    for word in words {
        let Some(below) = command.find_subcommand(word) else {
            bail!("there is no command `{}`", words.join(" "));
        };
        command = below;
    }
    // Into memory first: a write that fails is then one error, whatever has been written.
    let mut page = Vec::new();
    render(command, &mut page)?;
    io::stdout().write_all(&page)?;
    Ok(ExitCode::SUCCESS)
}

/// All sections. The synopsis is the usage of the help: clap_mangen's own one lists each option, without its
/// values.
fn render(command: &Command, page: &mut Vec<u8>) -> io::Result<()> {
    let man = Man::new(command.clone());
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
