//! `tracewing man`: manual pages, made of the help of each command.

use anyhow::{Result, bail};
use clap::Command;
use std::io::Write;
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
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    std::io::stdout().write_all(&page)?;
    Ok(ExitCode::SUCCESS)
}
