//! Output that gets its name when it is complete: until then it is hidden beside its place, and goes away where that
//! never comes.

use crate::Error;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A folder or file that is being written.
#[derive(Debug)]
pub struct Unfinished {
    /// Where it lies now.
    path: PathBuf,
    /// Where it is to lie.
    place: PathBuf,
    finished: bool,
}

impl Unfinished {
    /// A folder that is to be at `place`, where nothing may be.
    ///
    /// # Errors
    /// Something is there, or it cannot be made.
    pub fn folder(place: &Path) -> Result<Self, Error> {
        let unfinished = Unfinished::beside(place)?;
        fs::create_dir(&unfinished).map_err(|error| taken(&unfinished, error))?;
        Ok(Unfinished { path: unfinished, place: place.to_owned(), finished: false })
    }

    /// A file that is to be at `place`, where nothing may be.
    ///
    /// # Errors
    /// As [`Unfinished::folder`].
    pub fn file(place: &Path) -> Result<(Self, File), Error> {
        let unfinished = Unfinished::beside(place)?;
        let file = File::create_new(&unfinished).map_err(|error| taken(&unfinished, error))?;
        Ok((Unfinished { path: unfinished, place: place.to_owned(), finished: false }, file))
    }

    fn beside(place: &Path) -> Result<PathBuf, Error> {
        check_free(place)?;
        let Some(name) = place.file_name() else {
            return Err(Error::Usage(format!("{} names no new file or folder", place.display())));
        };
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(".unfinished");
        Ok(place.with_file_name(hidden))
    }

    /// Where it lies while it is written.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives it its name.
    ///
    /// # Errors
    /// Something is there meanwhile, or it cannot be renamed.
    pub fn finish(mut self) -> Result<(), Error> {
        // An empty folder that came meanwhile would be replaced.
        check_free(&self.place)?;
        fs::rename(&self.path, &self.place).map_err(Error::io(&self.place))?;
        self.finished = true;
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.finished {
            // What cannot be removed stays hidden, and the next conversion says so.
            let _ =
                if self.path.is_dir() { fs::remove_dir_all(&self.path) } else { fs::remove_file(&self.path) };
        }
    }
}

fn check_free(place: &Path) -> Result<(), Error> {
    match place.symlink_metadata() {
        Ok(_) => Err(Error::Usage(format!("{} exists; give a path where nothing is yet", place.display()))),
        Err(_) => Ok(()),
    }
}

fn taken(path: &Path, error: std::io::Error) -> Error {
    match error.kind() {
        ErrorKind::AlreadyExists => Error::Usage(format!(
            "{} exists: another conversion is writing it, or one was killed; remove it if none is",
            path.display()
        )),
        _ => Error::io(path)(error),
    }
}
