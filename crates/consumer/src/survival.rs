//! Buffers in files, which survive the death of program and recorder: their folder, with everything that is
//! needed to read them.
//!
//! ```text
//! DIR/
//!   pid1234.buffer   a region, as programs and recorder map it; its header says shape, clock and real time
//!   classes          ids and descriptions of the event classes (abi::class_table), complete before an id is used
//!   tracewing.json   the recording's description, as in its trace folder
//! ```
//!
//! The files are allocated in full when they are created: on a full disk a hole would kill the writing
//! program. A recording also removes the files that it has created, once the content of the buffers is in its
//! trace. Unlike a memfd, a file can be shortened by any process that has it; a program that does so kills
//! the programs that share its buffers. The recorder survives it (`shortened`), and reports that the number
//! of lost events is unknown.

use std::path::Path;

use tracewing_abi::region::Geometry;
use tracewing_files::{Dir, Made};

use crate::Error;
use crate::description::{DESCRIPTION, Description};
use crate::memory::SharedMemory;

/// Name of the table of event classes.
pub const CLASSES: &str = "classes";
/// Suffix of buffer files.
pub const SUFFIX: &str = ".buffer";

/// A folder with the buffers of a recording.
#[derive(Debug, Clone)]
pub struct BufferFolder {
    dir: Dir,
    made: Made,
}

impl BufferFolder {
    /// Creates the folder, or takes over an empty one.
    ///
    /// # Errors
    /// [`Error::FolderNotEmpty`]: it may contain an earlier recording. Other errors: it cannot be created, or
    /// other users could change it.
    pub fn create(path: &Path) -> Result<Self, Error> {
        let (dir, made) = Dir::create(path).map_err(Error::folder(path))?;
        Ok(Self { dir, made })
    }

    /// The open folder of the buffers.
    pub fn dir(&self) -> &Dir {
        &self.dir
    }

    /// The path of the folder, as it was given.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Memory for a region.
    ///
    /// # Errors
    /// The disk has no room for it, or the file system cannot promise any.
    pub fn memory(&self, name: &str, geometry: Geometry) -> Result<SharedMemory, Error> {
        SharedMemory::in_file(&self.dir, &buffer(name), geometry)
    }

    ///
    /// # Errors
    /// It cannot be written.
    pub fn describe(&self, description: &Description) -> Result<(), Error> {
        description.write(&self.dir)
    }

    /// Removes a buffer whose content is completely in the trace.
    pub fn remove(&self, name: &str) {
        // If the removal fails, the file just remains.
        let _ = self.dir.remove(&buffer(name));
    }

    /// Removes everything that a recording has created, including the folder and its parents if they did not
    /// exist before.
    pub fn discard(&self) {
        let is_ours = |name: &&str| name.ends_with(SUFFIX) || [CLASSES, DESCRIPTION].contains(name);
        for name in self.dir.entries().unwrap_or_default() {
            let _ = name.to_str().filter(is_ours).map(|name| self.dir.remove(name));
        }
        self.made.remove_empty();
    }
}

fn buffer(name: &str) -> String {
    format!("{name}{SUFFIX}")
}
