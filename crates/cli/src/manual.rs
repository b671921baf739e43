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
    man.render_name_section(page)?;
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").replace('\\', "\\\\").replace('-', "\\-");
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
    if command.get_after_long_help().or(command.get_after_help()).is_some() {
        man.render_extra_section(page)?;
    }
    if command.get_version().is_some() {
        man.render_version_section(page)?;
    }
    Ok(())
}
