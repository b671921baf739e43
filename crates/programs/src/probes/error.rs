//! The crate's one error type: why there can be no such probe, and what to do.

use std::io;
use std::path::PathBuf;

use super::fault::{FileFault, PlaceFault, RequestFault, ValueFault};

/// Why a probe cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It is not written as a probe is.
    #[error("`{text}` is no probe: {reason}")]
    Request {
        /// As it was given.
        text: String,
        /// What is wrong.
        reason: RequestFault,
    },
    /// There is no program or library of that name.
    #[error(
        "{name}: no such program, nor a library that the command or the dynamic linker knows; give its path"
    )]
    NoFile {
        /// As it was given.
        name: String,
    },
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// A file is no program for this machine.
    #[error("{}: {reason}", path.display())]
    NoObject {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        reason: FileFault,
    },
    /// There is no such function.
    #[error("{program} has no function {name}{hint}")]
    NoFunction {
        /// The program's or library's name.
        program: String,
        /// The function's.
        name: String,
        /// What there is, or why there is little.
        hint: String,
    },
    /// There are several.
    #[error("{program} has {} functions {name}; name one of them by its symbol or address:{}", list.len(), shown(list))]
    Ambiguous {
        /// The program's or library's name.
        program: String,
        /// The functions' name.
        name: String,
        /// Each with symbol and address.
        list: Vec<String>,
    },
    /// At that place there must be no probe.
    #[error("no probe can be at {place}: {reason}")]
    Forbidden {
        /// Program and function.
        place: String,
        /// Why.
        reason: PlaceFault,
    },
    /// A value cannot be had.
    #[error("{probe}: {argument} cannot be recorded: {reason}")]
    Argument {
        /// The probe.
        probe: String,
        /// The value.
        argument: String,
        /// Why.
        reason: ValueFault,
    },
    /// There is no such USDT probe.
    #[error("no USDT probe is named {name} in {program}{hint}")]
    NoUsdt {
        /// As it was asked for.
        name: String,
        /// Where it was looked for.
        program: String,
        /// What there is.
        hint: String,
    },
}

/// Most names that are listed.
const MOST: usize = 8;

fn shown(list: &[String]) -> String {
    let mut text: String = list.iter().take(MOST).map(|line| format!("\n  {line}")).collect();
    if list.len() > MOST {
        text.push_str("\n  ...");
    }
    text
}
