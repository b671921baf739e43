//! A trace's folder: metadata, streams, and the folder of indexes.

use tracewing_files::Dir;

use crate::Error;

/// The folder of a trace, and the one of indexes in it.
#[derive(Debug, Clone)]
pub struct TraceDir {
    pub(crate) trace: Dir,
    pub(crate) index: Dir,
}

impl TraceDir {
    /// The trace in this folder; creates the folder of indexes in it.
    ///
    /// # Errors
    /// The folder of indexes exists already, or cannot be created.
    pub fn new(trace: &Dir) -> Result<Self, Error> {
        let index = trace.make("index").map_err(Error::file("create", &trace.path().join("index")))?;
        Ok(Self { trace: trace.clone(), index })
    }

    /// Creates the folder `name` in `parent`, with the complete metadata of its trace. If that fails, the
    /// folder is removed again.
    ///
    /// # Errors
    /// The folder exists, or something cannot be created or written.
    pub fn create(parent: &Dir, name: &str, metadata: &str) -> Result<Self, Error> {
        let folder = parent.make(name).map_err(Error::file("create", &parent.path().join(name)))?;
        let made = Self::new(&folder).and_then(|this| {
            // It gets its name only when it is complete: a trace that is found can be read.
            let written = folder.replace("metadata", metadata.as_bytes());
            written.map(|()| this).map_err(Error::file("write", &folder.path().join("metadata")))
        });
        made.inspect_err(|_| drop(parent.remove_all(name)))
    }
}
