//! The folder that a recording with buffers in files leaves (`tracewing record --buffers-in`): its files as
//! memory, and their contents as a trace folder.

use std::cell::Cell;
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tracewing_consumer::description::DESCRIPTION;
use tracewing_consumer::folder::Folder;
use tracewing_consumer::identity::random_uuid;
use tracewing_consumer::survival::{CLASSES, SUFFIX};
use tracewing_files::{Refused, Tree};
use tracewing_programs::image::{AddressSpace, Mapping, Memory};

use crate::region::Region;
use crate::trace::{Part, Trace};
use crate::{Classes, Error, Recovered};

/// Largest description that is accepted, bytes.
const LARGEST_DESCRIPTION: u64 = 64 << 20;
/// Distance of two files in the address space assigned to them; larger than any region.
const DISTANCE: u64 = 1 << 56;

/// The buffer folder of a recording. Its files are its memory.
pub struct BufferFolder {
    path: PathBuf,
    files: Vec<(File, u64)>,
    mappings: Vec<Mapping>,
    names: Vec<String>,
    is_live: bool,
    /// Whether a file could not be read where it should be.
    failed: Cell<bool>,
}

/// The part of a recording to recover.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Selection {
    /// The events that its trace folder lacks. For a flight recorder, everything that is left.
    #[default]
    Unwritten,
    /// Everything that is still in its buffers.
    All,
}

impl BufferFolder {
    /// Opens the buffers in a folder.
    ///
    /// # Errors
    /// The folder contains none ([`Error::NoBuffers`]), or they cannot be opened.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let mut this = Self {
            path: path.to_owned(),
            files: Vec::new(),
            mappings: Vec::new(),
            names: Vec::new(),
            is_live: false,
            failed: Cell::new(false),
        };
        let tree = Tree::open(path).map_err(Error::file("read", path))?;
        let mut names = Vec::new();
        for entry in fs::read_dir(path).map_err(Error::file("read", path))? {
            names.extend(entry.map_err(Error::file("read", path))?.file_name().into_string());
        }
        names.sort();
        for file in &names {
            if let Some(name) = file.strip_suffix(SUFFIX) {
                this.add(&tree, file, name)?;
            }
        }
        if this.names.is_empty() {
            return Err(Error::NoBuffers(path.to_owned()));
        }
        if names.iter().any(|name| name == CLASSES) {
            this.add(&tree, CLASSES, CLASSES)?;
        }
        Ok(this)
    }

    fn add(&mut self, tree: &Tree, file: &str, name: &str) -> Result<(), Error> {
        let path = self.path.join(file);
        let file = match tree.file(Path::new(file)) {
            // Not a buffer.
            Err(error) if Refused::of(&error) == Some(Refused::NotAFile) => return Ok(()),
            opened => opened.map_err(Error::file("open", &path))?,
        };
        let size = file.metadata().map_err(Error::file("read", &path))?.len();
        // Addresses of one file must not extend into the next one's.
        if size >= DISTANCE || self.files.len() >= 255 {
            return Ok(());
        }
        if name != CLASSES {
            self.names.push(name.to_owned());
            self.is_live |= has_writers(&file);
        }
        let start = self.files.len() as u64 * DISTANCE;
        let name = Some(path.display().to_string());
        self.mappings.push(Mapping { start, size, name, ..Mapping::default() });
        self.files.push((file, size));
        Ok(())
    }

    /// Whether a process still has a buffer mapped, and may write to it.
    pub fn is_live(&self) -> bool {
        self.is_live
    }

    /// Writes the selected part as a complete trace folder. `folder` must not exist, or must be empty.
    ///
    /// # Errors
    /// The folder cannot be written, or none of the files is a valid buffer.
    pub fn write_trace(&self, folder: &Path, selection: Selection) -> Result<Recovered, Error> {
        let mut recovered = Recovered::default();
        let (mut regions, mut faults) = (Vec::new(), Vec::new());
        for (mapping, name) in self.mappings.iter().zip(&self.names) {
            match Region::open(self, mapping.start, mapping.size) {
                Ok(region) => regions.push((name, region)),
                Err(fault) => faults.push((format!("{name}{SUFFIX}"), fault)),
            }
        }
        let Some((_, first)) = regions.first() else {
            return Err(Error::NoRegionIn { path: self.path.clone(), faults });
        };
        recovered.damages.extend(faults.iter().map(|(name, fault)| format!("{name}: {fault}")));
        let description = self.description();
        // A flight recorder has written no trace.
        let is_flight = description.get("trace_folder").is_none();
        let selection = if is_flight { Selection::All } else { selection };
        // With the UUID of the recording it would be treated as a part of that trace.
        let uuid = random_uuid().map_err(Error::file("read", Path::new("/dev/urandom")))?;
        let output = Folder::create(folder)?;
        let mut classes = Classes::find(self, first.recording());
        for (_, region) in regions.iter().filter(|(_, region)| region.recording() == first.recording()) {
            let buffers = region.cpus().filter_map(|cpu| region.buffer(cpu));
            buffers.for_each(|buffer| classes.learn(&buffer));
        }
        let mut streams = Vec::new();
        {
            let mut trace = Trace::create(output.user(), uuid, first, &classes, &mut recovered)?;
            for (name, region) in &regions {
                if region.recording() != first.recording() {
                    trace.damaged(format!("{name}{SUFFIX}: of another recording"));
                    continue;
                }
                for cpu in region.cpus() {
                    let stream = format!("{name}_{cpu}");
                    match region.buffer(cpu) {
                        None => trace.damaged(format!("{stream}: the file ends before it")),
                        Some(buffer) => {
                            let part = if selection == Selection::All { Part::All } else { Part::Unreleased };
                            streams.extend(trace.add(&buffer, stream, part)?);
                        }
                    }
                }
            }
        }
        if self.failed.get() {
            recovered.damages.push("a part of the files could not be read".to_owned());
        }
        self.describe(&output, description, &streams, &recovered)?;
        Ok(recovered)
    }

    /// The recording's description; empty if there is none.
    fn description(&self) -> Value {
        let read = || {
            let file = Tree::open(&self.path).ok()?.file(Path::new(DESCRIPTION)).ok()?;
            let mut text = Vec::new();
            file.take(LARGEST_DESCRIPTION + 1).read_to_end(&mut text).ok()?;
            Some(text).filter(|text| text.len() as u64 <= LARGEST_DESCRIPTION)
        };
        let value = read().and_then(|text| serde_json::from_slice::<Value>(&text).ok());
        value.filter(Value::is_object).unwrap_or_else(|| json!({}))
    }

    fn describe(
        &self,
        output: &Folder,
        mut description: Value,
        streams: &[crate::trace::Written],
        recovered: &Recovered,
    ) -> Result<(), Error> {
        description["state"] = "recovered".into();
        description["user_streams"] = streams
            .iter()
            .map(|stream| {
                json!({
                    "name": stream.name,
                    "cpu": stream.cpu,
                    "events": stream.events,
                    "packets": stream.packets,
                    "bytes": stream.bytes,
                    "lost_events": stream.lost,
                })
            })
            .collect();
        description["notes"] = recovered.damages.iter().map(String::as_str).collect();
        let text = serde_json::to_vec_pretty(&description).map_err(std::io::Error::from);
        let written = text.and_then(|text| output.dir().replace(DESCRIPTION, &text));
        written.map_err(Error::file("write", &output.path().join(DESCRIPTION)))
    }

    /// The trace folder of the recording, from its description.
    pub fn trace_folder(&self) -> Option<PathBuf> {
        Some(self.description().get("trace_folder")?.as_str()?.into())
    }
}

impl Memory for BufferFolder {
    fn read(&self, address: u64, len: usize) -> Option<Vec<u8>> {
        let (file, size) = self.files.get(usize::try_from(address / DISTANCE).ok()?)?;
        let offset = address % DISTANCE;
        if offset.checked_add(len as u64)? > *size {
            return None;
        }
        let mut bytes = vec![0; len];
        match file.read_exact_at(&mut bytes, offset) {
            Ok(()) => Some(bytes),
            Err(_) => {
                self.failed.set(true);
                None
            }
        }
    }

    fn is_live(&self) -> bool {
        self.is_live
    }
}

impl AddressSpace for BufferFolder {
    fn mappings(&self) -> &[Mapping] {
        &self.mappings
    }
}

/// Whether a process has the file open or mapped for writing: the kernel then refuses a lease (fcntl(2),
/// `F_SETLEASE`). If it cannot say, the answer is no.
fn has_writers(file: &File) -> bool {
    let set = |lease: libc::c_int| {
        // SAFETY: a separate descriptor and an integer.
        unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, lease) }
    };
    if set(libc::F_RDLCK) == 0 {
        set(libc::F_UNLCK);
        return false;
    }
    std::io::Error::last_os_error().raw_os_error() == Some(libc::EAGAIN)
}
