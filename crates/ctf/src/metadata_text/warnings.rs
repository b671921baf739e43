//! What a reader of metadata should know of, though it is read.

use crate::Error;

/// More are only counted: hostile metadata could have millions.
const MOST: usize = 20;

/// The warnings of a metadata stream.
#[derive(Debug, Default)]
pub(crate) struct Warnings {
    lines: Vec<String>,
    more: u64,
}

impl Warnings {
    /// Whether another one is to be shown.
    pub(crate) fn has_room(&self) -> bool {
        self.lines.len() < MOST
    }

    /// Adds what an error would say, on one line.
    pub(crate) fn add(&mut self, error: Error) {
        self.lines.push(match error {
            Error::Metadata { line, column, fault, .. } => {
                format!("metadata, line {line}, column {column}: {fault}")
            }
            error => error.to_string(),
        });
    }

    /// Counts one that is not shown.
    pub(crate) fn count(&mut self) {
        self.more += 1;
    }

    pub(crate) fn lines(mut self) -> Vec<String> {
        if self.more > 0 {
            self.lines.push(format!("metadata: {} more warnings", self.more));
        }
        self.lines
    }
}
