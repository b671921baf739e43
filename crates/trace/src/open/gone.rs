//! Traces of which only the recording's description is left: their folders are gone.

use crate::stream::losses::Losses;
use std::path::PathBuf;

/// A trace whose folder is gone.
#[derive(Debug, Clone)]
pub struct GoneTrace {
    /// Its name, as [`Trace::name`](crate::Trace::name) has it for traces that are there.
    pub name: String,
    /// Where the recording's list says that it was.
    pub folder: PathBuf,
    /// Its streams, by the names of their files.
    pub streams: Vec<GoneStream>,
}

/// A stream of a trace whose folder is gone.
#[derive(Debug, Clone, Copy)]
pub struct GoneStream {
    /// The id of its data stream class.
    pub class: u64,
    /// Its number among the trace's streams: nothing shows what id it had.
    pub id: u64,
    /// All that it held, and what it had lost itself.
    pub lost: Losses,
}

impl GoneTrace {
    /// The name of its folder.
    pub(crate) fn folder_name(&self) -> String {
        self.folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

impl GoneStream {
    pub(crate) fn label(&self) -> String {
        format!("{}:{}", self.class, self.id)
    }
}
