//! Output that gets its name when it is complete: until then it is a hidden file in the same folder, which is
//! removed if it is never completed.

use crate::{Error, UsageFault};
use std::ffi::OsString;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use tracewing_files::{Dir, OutputFile};

/// A folder or file that is being written.
#[derive(Debug)]
pub struct Unfinished {
    /// The folder in which it lies, its name there while it is written, and the one that it is to have.
    parent: Dir,
    hidden: String,
    name: OsString,
    finished: bool,
}

impl Unfinished {
    /// A folder that is to be at `place`, where nothing may be.
    ///
    /// # Errors
    /// Something is there, or it cannot be made.
    pub fn folder(place: &Path) -> Result<(Self, Dir), Error> {
        let unfinished = Unfinished::next_to(place)?;
        let made = unfinished.parent.make(&unfinished.hidden);
        made.map_err(|error| unfinished.taken(error)).map(|dir| (unfinished.begun(), dir))
    }

    /// A file that is to be at `place`, where nothing may be but a pipe or device: that is written as it is,
    /// and never unfinished.
    ///
    /// # Errors
    /// As [`Unfinished::folder`].
    pub fn file(place: &Path) -> Result<(Option<Self>, File), Error> {
        if let Some(stream) = OutputFile::stream(place).map_err(Error::io(place))? {
            return Ok((None, stream));
        }
        let unfinished = Unfinished::next_to(place)?;
        let made = unfinished.parent.create_file(&unfinished.hidden);
        made.map_err(|error| unfinished.taken(error)).map(|file| (Some(unfinished.begun()), file))
    }

    /// Nothing is made yet, so nothing goes away.
    fn next_to(place: &Path) -> Result<Self, Error> {
        let named = place.file_name().and_then(|name| Some((name.to_owned(), name.to_str()?)));
        let Some((name, text)) = named else {
            return Err(UsageFault::NoName(place.to_owned()).into());
        };
        let hidden = format!(".{text}.unfinished");
        let folder = place.parent().unwrap_or(Path::new(""));
        let parent = Dir::parent(folder).map_err(Error::io(place))?;
        let unfinished = Unfinished { parent, hidden, name, finished: true };
        unfinished.check_free()?;
        Ok(unfinished)
    }

    fn begun(mut self) -> Self {
        self.finished = false;
        self
    }

    /// Moves it to its name.
    ///
    /// # Errors
    /// The name exists by now, or the file cannot be renamed.
    pub fn finish(mut self) -> Result<(), Error> {
        // An empty folder that came meanwhile would be replaced.
        self.check_free()?;
        self.parent.rename(&self.hidden, &self.name).map_err(Error::io(&self.place()))?;
        self.finished = true;
        Ok(())
    }

    fn place(&self) -> PathBuf {
        self.parent.path().join(&self.name)
    }

    fn check_free(&self) -> Result<(), Error> {
        if self.parent.has(&self.name) {
            return Err(UsageFault::Exists(self.place()).into());
        }
        Ok(())
    }

    fn taken(&self, error: std::io::Error) -> Error {
        let path = self.parent.path().join(&self.hidden);
        match error.kind() {
            ErrorKind::AlreadyExists => UsageFault::Unfinished(path).into(),
            _ => Error::io(&path)(error),
        }
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.finished {
            // What cannot be removed stays hidden, and the next conversion says so.
            let _ = self.parent.remove(&self.hidden).or_else(|_| self.parent.remove_all(&self.hidden));
        }
    }
}
