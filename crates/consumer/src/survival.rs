//! Buffers in files, so that they survive the death of program and recorder: the folder with them, and with what is needed to
//! make sense of them.
//!
//! ```text
//! DIR/
//!   uid0.buffer      a region, as programs and recorder map it; its header says shape, clock and real time
//!   classes          ids and descriptions of the event classes (abi::class_table), complete before an id is used
//!   tracewing.json   the recording's description, as in its trace folder
//! ```
//!
//! The files are allocated in full when they are made: on a full disk a hole would kill whoever writes into it. What a
//! recording has made it also removes, once all that was in the buffers is in its trace. Unlike a memfd, a file can be
//! shortened by whoever it was passed to; a program that does so kills those who share its buffers, and the recorder.

use std::fs;
use std::path::{Path, PathBuf};

use tracewing_abi::region::Geometry;

use crate::Error;
use crate::classes::replace;
use crate::folder::{DESCRIPTION, Description, create_empty};
use crate::memory::SharedMemory;

/// Name of the table of event classes.
pub const CLASSES: &str = "classes";
/// How names of buffers end.
pub const SUFFIX: &str = ".buffer";

/// A folder with the buffers of a recording.
#[derive(Debug, Clone)]
pub struct BufferFolder {
    path: PathBuf,
    was_there: bool,
}

impl BufferFolder {
    /// Makes the folder, or takes an empty one.
    ///
    /// # Errors
    /// [`Error::FolderNotEmpty`]: it may hold what a recording has left; or it cannot be made.
    pub fn create(path: &Path) -> Result<Self, Error> {
        let was_there = path.is_dir();
        create_empty(path)?;
        Ok(Self { path: path.to_owned(), was_there })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the table of event classes belongs.
    pub fn classes(&self) -> PathBuf {
        self.path.join(CLASSES)
    }

    /// Memory for a region.
    ///
    /// # Errors
    /// The disk has no room for it, or the file system cannot promise any.
    pub fn memory(&self, name: &str, geometry: Geometry) -> Result<SharedMemory, Error> {
        SharedMemory::in_file(&self.buffer(name), geometry)
    }

    /// Writes the recording's description.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn describe(&self, description: &Description) -> Result<(), Error> {
        replace(&self.path.join(DESCRIPTION), &description.to_json(&self.path)?)
    }

    /// Removes a buffer of which all is in the trace.
    pub fn remove(&self, name: &str) {
        // What cannot be removed is still there for whoever wants it.
        let _ = fs::remove_file(self.buffer(name));
    }

    /// Removes all that a recording has made, and the folder if it was not there before.
    pub fn discard(&self) {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let is_ours = |name: &str| name.ends_with(SUFFIX) || [CLASSES, DESCRIPTION].contains(&name);
        for entry in entries.filter(|entry| entry.file_name().to_str().is_some_and(is_ours)) {
            let _ = fs::remove_file(entry.path());
        }
        if !self.was_there {
            let _ = fs::remove_dir(&self.path);
        }
    }

    fn buffer(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}{SUFFIX}"))
    }
}
