//! The trace folder, and `tracewing.json` in it: how the recording was made and what it amounts to.
//!
//! The file is written when the recording begins, so that a folder whose recorder was killed still says what it is, and
//! again, in place of the first, when it ends.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{FallocateFlags, Mode, OFlags, fallocate, open};
use serde::Serialize;

use crate::Error;
use crate::classes::replace;
use crate::clock::{Calibration, TraceClock};
use crate::drain::{LossRange, OverwrittenRange, StreamSummary};

/// Version of the description's shape.
pub const FORMAT: u32 = 1;
/// Name of the description in the trace folder.
pub const DESCRIPTION: &str = "tracewing.json";

/// Room kept for the description that is written when the recording ends, bytes.
const RESERVE: u64 = 64 << 10;

/// A trace folder.
#[derive(Debug, Clone)]
pub struct Folder {
    path: PathBuf,
    /// Itself and its parents, as far as they were not there before, the innermost first.
    made: Vec<PathBuf>,
    /// A file without a name, given up for the description if the disk is full.
    reserve: Arc<Mutex<Option<File>>>,
    /// Locked as long as the recording is being made, so that readers can tell a recorder that works from one that was
    /// killed.
    _lock: Arc<File>,
}

impl Folder {
    /// Makes the folder, its parents, and `user` in it. An empty folder is taken as it is.
    ///
    /// # Errors
    /// [`Error::FolderNotEmpty`]; or it cannot be made.
    pub fn create(path: &Path) -> Result<Self, Error> {
        let made = create_empty(path)?;
        let lock = File::open(path).map_err(Error::file("open", path))?;
        // Not every file system has locks. There a killed recorder is not noticed.
        let _ = lock.try_lock();
        let reserve = Arc::new(Mutex::new(reserve(path)));
        let this = Self { path: path.to_owned(), made, reserve, _lock: Arc::new(lock) };
        let user = this.user();
        match fs::create_dir(&user) {
            Ok(()) => Ok(this),
            Err(error) => {
                this.discard();
                Err(Error::file("create", &user)(error))
            }
        }
    }

    /// Takes back what was made for a recording that did not begin: all traces in the folder, which was empty, its description,
    /// and the folder and its parents, if they were not there before. What others have put into it stays.
    pub fn discard(self) {
        let _ = fs::remove_file(self.path.join(DESCRIPTION));
        for trace in [self.user(), self.kernel(), self.profile()] {
            let _ = fs::remove_dir_all(trace);
        }
        remove_empty(&self.made);
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The user trace's folder.
    pub fn user(&self) -> PathBuf {
        self.path.join("user")
    }

    /// The kernel trace's folder, which only a kernel recorder makes.
    pub fn kernel(&self) -> PathBuf {
        self.path.join("kernel")
    }

    /// The folder of the trace of samples, which only a recorder of samples makes.
    pub fn profile(&self) -> PathBuf {
        self.path.join("profile")
    }

    /// Writes `tracewing.json`.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn describe(&self, description: &Description) -> Result<(), Error> {
        let path = self.path.join(DESCRIPTION);
        let text = description.to_json(&path)?;
        match replace(&path, &text) {
            Err(error) if error.is_disk_full() => {
                let reserve = self.reserve.lock().unwrap_or_else(PoisonError::into_inner).take();
                drop(reserve.ok_or(error)?);
                replace(&path, &text)
            }
            result => result,
        }
    }
}

/// Makes a folder and its parents, or takes an empty one as it is. Gives those that were not there before, the innermost first.
///
/// # Errors
/// [`Error::FolderNotEmpty`]; or it cannot be made.
pub fn create_empty(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let is_missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
    let made: Vec<PathBuf> = path.ancestors().take_while(is_missing).map(Path::to_owned).collect();
    if let Err(error) = fs::create_dir_all(path) {
        remove_empty(&made);
        return Err(Error::file("create", path)(error));
    }
    check_free(path).map(|()| made)
}

/// Looks whether a folder may be put here: nothing is there, or an empty folder.
///
/// # Errors
/// [`Error::FolderNotEmpty`]; or it cannot be read.
pub fn check_free(path: &Path) -> Result<(), Error> {
    match fs::read_dir(path).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Error::FolderNotEmpty(path.to_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::file("read", path)(error)),
    }
}

/// Removes folders, the innermost first, as far as nothing is in them.
pub fn remove_empty(folders: &[PathBuf]) {
    for folder in folders {
        let _ = fs::remove_dir(folder);
    }
}

/// Takes [`RESERVE`] bytes of the disk, where its file system can do that.
fn reserve(folder: &Path) -> Option<File> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = open(folder, flags, Mode::RUSR | Mode::WUSR).ok()?;
    fallocate(&file, FallocateFlags::empty(), 0, RESERVE).ok()?;
    Some(file.into())
}

/// How a recording ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Not yet, or the recorder was killed.
    Recording,
    /// As it should.
    Complete,
    /// Before its time, because a file could not be written.
    CutShort,
}

/// The content of `tracewing.json`.
#[derive(Debug, Clone, Serialize)]
pub struct Description {
    /// [`FORMAT`].
    pub format: u32,
    /// Version of tracewing.
    pub version: String,
    /// How it ended.
    pub state: State,
    /// The recorded command; empty for a program that records itself.
    pub command: Vec<String>,
    /// The machine.
    pub host: Host,
    /// The clock of all streams.
    pub clock: ClockDescription,
    /// The buffers of user events.
    pub buffers: BufferDescription,
    /// Event rules of the user trace when it began, as the options by which they are given; none means every event.
    pub event_rules: Vec<String>,
    /// Major classes of user events that were on when it began; nothing means all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub majors: Option<String>,
    /// The options by which more was asked for than events of programs that have such, and of the kernel: `--locks`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub asked_for: Vec<String>,
    /// What was changed while it ran.
    pub changes: Vec<ChangeDescription>,
    /// Programs that joined.
    pub processes: Vec<ProcessDescription>,
    /// User streams.
    pub user_streams: Vec<StreamSummary>,
    /// Kernel streams.
    pub kernel_streams: Vec<StreamSummary>,
    /// Streams of samples.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub profile_streams: Vec<StreamSummary>,
    /// What was lost, and when.
    pub losses: Vec<LossRange>,
    /// Sub-buffers that were overwritten before they were read, and when.
    pub overwritten: Vec<OverwrittenRange>,
    /// What the user was told besides.
    pub notes: Vec<String>,
    /// Set beside buffers in files: the folder that the recording wrote its trace to, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_folder: Option<String>,
    /// Set in a snapshot of a flight recorder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<SnapshotDescription>,
}

/// A change of a running recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChangeDescription {
    /// When it was asked for, cycles.
    pub time: u64,
    /// What: the command and its options.
    pub what: String,
}

/// Which snapshot it is, and why it was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SnapshotDescription {
    /// Counted from 1.
    pub number: u64,
    /// What asked for it.
    pub reason: String,
    /// When it was begun, cycles: everything emitted before is in it, as far as the buffers still hold it.
    pub taken: u64,
}

impl Description {
    /// The file's content.
    pub(crate) fn to_json(&self, path: &Path) -> Result<Vec<u8>, Error> {
        let mut text =
            serde_json::to_vec_pretty(self).map_err(|error| Error::file("write", path)(error.into()))?;
        text.push(b'\n');
        Ok(text)
    }

    /// What can be said when a recording begins.
    pub fn new(clock: &TraceClock, begin: Calibration, buffers: BufferDescription) -> Self {
        Self {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            state: State::Recording,
            command: Vec::new(),
            host: Host::this(),
            clock: ClockDescription {
                name: clock.name(),
                frequency: clock.frequency(),
                begin,
                stopped: None,
                end: None,
            },
            buffers,
            event_rules: Vec::new(),
            majors: None,
            asked_for: Vec::new(),
            changes: Vec::new(),
            processes: Vec::new(),
            user_streams: Vec::new(),
            kernel_streams: Vec::new(),
            profile_streams: Vec::new(),
            losses: Vec::new(),
            overwritten: Vec::new(),
            notes: Vec::new(),
            trace_folder: None,
            snapshot: None,
        }
    }
}

/// The machine that was recorded.
#[derive(Debug, Clone, Serialize)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// `Linux` and its release.
    pub kernel: String,
    /// `x86_64`.
    pub machine: String,
    /// CPU buffers: one per CPU that can ever be online.
    pub cpus: usize,
}

impl Host {
    /// The machine that this runs on.
    pub fn this() -> Self {
        let system = rustix::system::uname();
        let text = |value: &std::ffi::CStr| value.to_string_lossy().into_owned();
        Self {
            name: text(system.nodename()),
            kernel: format!("{} {}", text(system.sysname()), text(system.release())),
            machine: text(system.machine()),
            cpus: crate::memory::possible_cpus(),
        }
    }
}

/// The clock and what real time it showed.
#[derive(Debug, Clone, Serialize)]
pub struct ClockDescription {
    /// `tsc` or `monotonic`.
    pub name: &'static str,
    /// Hz.
    pub frequency: u64,
    /// At the recording's begin; the metadata's offset comes from it.
    pub begin: Calibration,
    /// When it stopped, cycles: until then nothing is missing behind the last event. A snapshot says when it was taken.
    pub stopped: Option<u64>,
    /// At its end: how far the clocks had drifted apart.
    pub end: Option<Calibration>,
}

/// The buffers of user events.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct BufferDescription {
    /// Bytes.
    pub sub_buffer_bytes: usize,
    /// Per CPU.
    pub sub_buffers: usize,
    /// Whether every process has its own, or the processes of a user share them.
    pub per_process: bool,
    /// Whether full buffers lose their oldest sub-buffer, or the new event.
    pub overwrite: bool,
    /// An event is on disk at most so long after it was emitted, milliseconds; nothing for a flight recorder.
    pub flush_ms: Option<u64>,
}

/// A program that joined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProcessDescription {
    /// Process id.
    pub pid: u32,
    /// User id.
    pub uid: u32,
    /// Name of its main thread.
    pub name: String,
    /// Its executable.
    pub executable: String,
    /// When it joined, cycles.
    pub joined: u64,
}

impl ProcessDescription {
    /// A living process, as `/proc` tells; names are empty where it does not.
    pub fn of(pid: u32, uid: u32, joined: u64) -> Self {
        let process = PathBuf::from(format!("/proc/{pid}"));
        let name = fs::read_to_string(process.join("comm")).unwrap_or_default();
        let executable = fs::read_link(process.join("exe")).unwrap_or_default();
        Self {
            pid,
            uid,
            name: name.trim_end_matches('\n').to_owned(),
            executable: executable.to_string_lossy().into_owned(),
            joined,
        }
    }
}
