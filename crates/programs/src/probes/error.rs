//! The module's error type: why a probe is impossible, and what to do.

use std::io;
use std::path::PathBuf;

use super::fault::{FileFault, PlaceFault, RequestFault, ValueFault};

/// Why a probe is impossible.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request is not written like a probe.
    #[error("`{text}` is not a probe: {reason}")]
    Request {
        /// The request as given.
        text: String,
        /// What is wrong with it.
        reason: RequestFault,
    },
    /// No program or library has this name.
    #[error(
        "{name}: no such program, nor a library that the command or the dynamic linker knows; give its path"
    )]
    NoFile {
        /// The name as given.
        name: String,
    },
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error that the system returned.
        source: io::Error,
    },
    /// A file is not a program for this machine.
    #[error("{}: {reason}", path.display())]
    NoObject {
        /// Path of the file.
        path: PathBuf,
        /// What the file is instead.
        reason: FileFault,
    },
    /// The function does not exist.
    #[error("{program} has no function {name}{hint}")]
    NoFunction {
        /// Name of the program or library.
        program: String,
        /// Name of the function.
        name: String,
        /// Similar names, or why there are few.
        hint: String,
    },
    /// Several functions have the name.
    #[error("{program} has {} functions {name}; name one of them by its symbol or address:{}", list.len(), shown(list))]
    Ambiguous {
        /// Name of the program or library.
        program: String,
        /// Name of the functions.
        name: String,
        /// Each function with symbol and address.
        list: Vec<String>,
    },
    /// A probe at that place is not allowed.
    #[error("cannot place a probe at {place}: {reason}")]
    Forbidden {
        /// Program and function.
        place: String,
        /// The reason.
        reason: PlaceFault,
    },
    /// A value cannot be recorded.
    #[error("{probe}: {argument} cannot be recorded: {reason}")]
    Argument {
        /// The probe as requested.
        probe: String,
        /// The value as requested.
        argument: String,
        /// The reason.
        reason: ValueFault,
    },
    /// The USDT probe does not exist.
    #[error("no USDT probe is named {name} in {program}{hint}")]
    NoUsdt {
        /// The name as given.
        name: String,
        /// The program that was searched.
        program: String,
        /// Probes that exist.
        hint: String,
    },
}

/// Maximum number of names in a list.
const MOST: usize = 8;

fn shown(list: &[String]) -> String {
    let mut text: String = list.iter().take(MOST).map(|line| format!("\n  {line}")).collect();
    if list.len() > MOST {
        text.push_str("\n  ...");
    }
    text
}
