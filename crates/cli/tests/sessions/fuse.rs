//! A file system (FUSE, `linux/fuse.h`) with programs that can be executed, which does not answer when root
//! opens one.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use tracewing_testing::NOBODY;

const ROOT: u64 = 1;
/// Of requests.
const LOOKUP: u32 = 1;
const FORGET: u32 = 2;
const GETATTR: u32 = 3;
const OPEN: u32 = 14;
const READ: u32 = 15;
const STATFS: u32 = 17;
const RELEASE: u32 = 18;
const FLUSH: u32 = 25;
const INIT: u32 = 26;
const BATCH_FORGET: u32 = 42;

/// Bytes before a request's own, and of the longest request.
const HEADER: usize = 40;
const LONGEST: usize = 1 << 20;

/// Ends with its value: what waits for it is given an error then.
pub struct Fuse {
    place: PathBuf,
    hung: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
    server: Option<JoinHandle<()>>,
}

impl Fuse {
    /// Serves `programs` copies of a program, `p0`, `p1`, …, in a folder.
    pub fn serve(place: &Path, program: &Path, programs: u64) -> Self {
        let device = File::options().read(true).write(true).open("/dev/fuse").unwrap();
        let options = format!(
            "fd={},rootmode=40000,user_id={NOBODY},group_id={NOBODY},allow_other",
            device.as_raw_fd()
        );
        let options = std::ffi::CString::new(options).unwrap();
        mount("test", place, "fuse", MountFlags::NODEV | MountFlags::NOSUID, options.as_c_str()).unwrap();
        let (hung, is_over) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
        let served = Served { device, content: fs::read(program).unwrap(), programs, hung: hung.clone() };
        let end = is_over.clone();
        let server = std::thread::spawn(move || served.serve(&end));
        Self { place: place.to_owned(), hung, is_over, server: Some(server) }
    }

    /// Requests to open a file that are not answered.
    pub fn hung(&self) -> usize {
        self.hung.load(Ordering::Relaxed)
    }
}

impl Drop for Fuse {
    fn drop(&mut self) {
        let _ = unmount(&self.place, UnmountFlags::DETACH);
        self.is_over.store(true, Ordering::Relaxed);
        self.server.take().into_iter().for_each(|server| drop(server.join()));
    }
}

struct Served {
    device: File,
    content: Vec<u8>,
    programs: u64,
    hung: Arc<AtomicUsize>,
}

impl Served {
    fn serve(mut self, is_over: &AtomicBool) {
        let mut request = vec![0; LONGEST];
        let moment = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
        while !is_over.load(Ordering::Relaxed) {
            if poll(&mut [PollFd::new(&self.device, PollFlags::IN)], Some(&moment)) != Ok(1) {
                continue;
            }
            // It may have been withdrawn.
            let Ok(len) = self.device.read(&mut request) else { continue };
            self.answer(&request[..len]);
        }
    }

    fn answer(&mut self, request: &[u8]) {
        let u32_at = |at: usize| u32::from_ne_bytes(request[at..at + 4].try_into().unwrap());
        let u64_at = |at: usize| u64::from_ne_bytes(request[at..at + 8].try_into().unwrap());
        let (kind, number, node, user) = (u32_at(4), u64_at(8), u64_at(16), u32_at(24));
        let nothing: Result<Vec<u8>, i32> = Ok(Vec::new());
        let answer = match kind {
            FORGET | BATCH_FORGET => return,
            OPEN if user == 0 => {
                self.hung.fetch_add(1, Ordering::Relaxed);
                return;
            }
            INIT => Ok(words(&[7, 31, 1 << 16, 0, 0, 1 << 16, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0])),
            LOOKUP => self.found(&request[HEADER..]).map(|node| {
                let valid = [node, 0, 3600, 3600, 0];
                [wide(&valid), self.about(node)].concat()
            }),
            GETATTR => Ok([wide(&[3600, 0]), self.about(node)].concat()),
            OPEN => Ok(wide(&[0, 0])),
            READ => {
                let begin = self.content.len().min(u64_at(HEADER + 8) as usize);
                let end = self.content.len().min(begin + u32_at(HEADER + 16) as usize);
                Ok(self.content[begin..end].to_vec())
            }
            STATFS => Ok(vec![0; 80]),
            RELEASE | FLUSH => nothing,
            _ => Err(libc::ENOSYS),
        };
        let (error, bytes) = answer.map_or_else(|error| (-error, Vec::new()), |bytes| (0, bytes));
        let len = 16 + bytes.len() as u32;
        let header = [words(&[len, error as u32]), wide(&[number])].concat();
        let _ = self.device.write(&[header, bytes].concat());
    }

    /// The node of a file, by a name with a zero at its end.
    fn found(&self, name: &[u8]) -> Result<u64, i32> {
        let name = str::from_utf8(name).ok().and_then(|name| name.strip_prefix('p'));
        let number: Option<u64> = name.and_then(|name| name.trim_end_matches('\0').parse().ok());
        number.filter(|number| *number < self.programs).map(|number| ROOT + 1 + number).ok_or(libc::ENOENT)
    }

    /// `struct fuse_attr`.
    fn about(&self, node: u64) -> Vec<u8> {
        let (mode, size) = if node == ROOT { (0o40755, 0) } else { (0o100_755, self.content.len() as u64) };
        let times = [0; 3];
        [wide(&[node, size, size.div_ceil(512)]), wide(&times), words(&[0, 0, 0, mode, 1])]
            .concat()
            .into_iter()
            .chain(words(&[NOBODY, NOBODY, 0, 4096, 0]))
            .collect()
    }
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn wide(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}
