//! Programs and libraries as files, together as the dynamic linker would see them: a symbol that one refers
//! to is looked up in all of them.

use std::collections::HashSet;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tracewing_files::open_regular;

use super::object_file::{Bytes, ObjectFile, Pointer};
use super::search::Search;
use super::{Error, Image, Object, Place};
use crate::elf::ElfFault;

/// Maximum number of libraries to search for.
const MOST_LIBRARIES: usize = 1024;

/// A set of files that are loaded together.
#[derive(Default)]
pub struct Files {
    objects: Vec<Object>,
    files: Vec<ObjectFile>,
    missing: Vec<String>,
    /// Device and inode of each file.
    identities: Vec<(u64, u64)>,
}

impl Files {
    /// Opens programs, libraries and plug-ins, and those of their shared libraries that are found where the
    /// dynamic linker looks for them. Each file is opened once.
    ///
    /// # Errors
    /// One of the given files cannot be read or is not a program; libraries with that problem are only left
    /// out.
    pub fn open(paths: &[impl AsRef<Path>]) -> Result<Self, Error> {
        let mut files = Self::default();
        for path in paths {
            files.add(path.as_ref())?;
        }
        files.add_libraries();
        Ok(files)
    }

    /// A program that is open already, whose path that was; and its shared libraries, as above.
    ///
    /// # Errors
    /// It is not a program.
    pub fn of(path: &Path, file: File) -> Result<Self, Error> {
        let mut files = Self::default();
        files.add_open(path, file)?;
        files.add_libraries();
        Ok(files)
    }

    fn add_libraries(&mut self) {
        let search = Search::of_this_machine();
        let mut known = HashSet::new();
        let mut next = 0;
        while let Some(file) = self.files.get(next) {
            let user = PathBuf::from(&self.objects[next].name);
            let run_path = file.run_path();
            for name in file.needed() {
                if known.len() == MOST_LIBRARIES || !known.insert(name.clone()) {
                    continue;
                }
                let mut candidates = search.candidates(&name, run_path.as_deref(), &user).into_iter();
                if !candidates.any(|path| self.add(&path).is_ok()) {
                    self.missing.push(name);
                }
            }
            next += 1;
        }
    }

    /// Treats bytes in memory as a file of that name.
    ///
    /// # Errors
    /// The reason why the bytes are not an object.
    pub fn from_bytes(name: &str, bytes: Box<dyn Bytes>) -> Result<Self, Error> {
        let mut files = Self::default();
        files.push(name.to_owned(), bytes)?;
        Ok(files)
    }

    /// Needed libraries that were not found.
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    fn add(&mut self, path: &Path) -> Result<(), Error> {
        let failed = |source| Error::File { action: "read", path: path.to_owned(), source };
        let file = open_regular(path).map_err(|error| match error.kind() {
            ErrorKind::InvalidInput => {
                Error::NoObject { name: path.display().to_string(), reason: ElfFault::NotAFile }
            }
            _ => failed(error),
        })?;
        self.add_open(path, file)
    }

    fn add_open(&mut self, path: &Path, file: File) -> Result<(), Error> {
        let failed = |source| Error::File { action: "read", path: path.to_owned(), source };
        let metadata = file.metadata().map_err(failed)?;
        let identity = (metadata.dev(), metadata.ino());
        if self.identities.contains(&identity) {
            return Ok(());
        }
        self.identities.push(identity);
        self.push(path.display().to_string(), Box::new(file))
    }

    fn push(&mut self, name: String, bytes: Box<dyn Bytes>) -> Result<(), Error> {
        let file = ObjectFile::new(bytes).map_err(|reason| Error::NoObject { name: name.clone(), reason })?;
        self.objects.push(Object { name, elf: file.elf().clone(), bias: 0 });
        self.files.push(file);
        Ok(())
    }
}

impl Image for Files {
    fn objects(&self) -> &[Object] {
        &self.objects
    }

    fn read(&self, at: Place, into: &mut [u8]) -> Option<()> {
        self.files.get(at.object)?.read(at.address, into)
    }

    fn pointer(&self, at: Place) -> Option<Place> {
        match self.files.get(at.object)?.pointer(at.address)? {
            Pointer::Here(address) => Some(Place { address, ..at }),
            Pointer::Elsewhere(name, addend) => {
                let owners = self.files.iter().enumerate();
                let mut found = owners.filter_map(|(object, file)| Some((object, file.symbol(&name)?)));
                let (object, address) = found.next()?;
                Some(Place { object, address: address.wrapping_add_signed(addend) })
            }
        }
    }
}
