//! Writes a kernel trace's folder: `metadata`, `channel_N`, `index/channel_N.idx`.
//!
//! A stream's files appear with its first packet. A packet that cannot be written completely, or not its index entry,
//! is cut off again, so that what is on disk is a good trace at any time.

use crate::error::Error;
use crate::stream::{Packet, Sink};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use tracewing_ctf::index::{Entry, encode_entry, encode_header};
use tracewing_files::Dir;

/// A trace folder being written.
#[derive(Debug)]
pub struct KernelTrace {
    dir: Dir,
    index: Dir,
    streams: BTreeMap<u32, (Growing, Growing)>,
}

impl KernelTrace {
    /// Makes the folder `name` in `parent` and writes the trace's metadata. Where that cannot be written, none of it is left.
    pub fn create(parent: &Dir, name: &str, metadata: &str) -> Result<Self, Error> {
        let failed = |path: PathBuf| move |source| Error::Write { path, source };
        let dir = parent.make(name).map_err(failed(parent.path().join(name)))?;
        let index = dir.make("index").map_err(failed(dir.path().join("index")));
        let written = index.and_then(|index| {
            // Under its name only when it is complete: who finds a trace can read it.
            let metadata = dir.replace("metadata", metadata.as_bytes());
            metadata.map(|()| index).map_err(failed(dir.path().join("metadata")))
        });
        let index = written.inspect_err(|_| drop(parent.remove_all(name)))?;
        Ok(Self { dir, index, streams: BTreeMap::new() })
    }
}

impl Sink for KernelTrace {
    type Error = Error;

    fn packet(&mut self, cpu: u32, packet: &Packet<'_>) -> Result<(), Error> {
        let (channel, index) = match self.streams.entry(cpu) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => {
                let channel = Growing::create(&self.dir, format!("channel_{cpu}"))?;
                let mut index = Growing::create(&self.index, format!("channel_{cpu}.idx"))?;
                index.append(&encode_header())?;
                entry.insert((channel, index))
            }
        };
        let offset = channel.len;
        channel.append(packet.bytes)?;
        let entry = Entry { offset, ..packet.entry };
        index.append(&encode_entry(&entry)).inspect_err(|_| channel.cut(offset))
    }
}

/// A file that only grows by whole pieces.
#[derive(Debug)]
struct Growing {
    path: PathBuf,
    file: File,
    len: u64,
}

impl Growing {
    fn create(dir: &Dir, name: String) -> Result<Self, Error> {
        let path = dir.path().join(&name);
        match dir.create_file(name) {
            Ok(file) => Ok(Self { path, file, len: 0 }),
            Err(source) => Err(Error::Write { path, source }),
        }
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        match self.file.write_all_at(bytes, self.len) {
            Ok(()) => {
                self.len += bytes.len() as u64;
                Ok(())
            }
            Err(source) => {
                self.cut(self.len);
                Err(self.error(source))
            }
        }
    }

    /// Takes back what stands behind `len`. A file that cannot be cut keeps a torn last packet, which readers report.
    fn cut(&mut self, len: u64) {
        if self.file.set_len(len).is_ok() {
            self.len = len;
        }
    }

    fn error(&self, source: io::Error) -> Error {
        Error::Write { path: self.path.clone(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
    use std::ffi::CString;
    use std::fs;
    use std::path::Path;

    fn packet(bytes: &[u8], seq: u64) -> Packet<'_> {
        let bits = bytes.len() as u64 * 8;
        Packet {
            bytes,
            entry: Entry { packet_bits: bits, content_bits: bits, seq: Some(seq), ..Entry::default() },
        }
    }

    #[test]
    fn files_grow_by_packets_and_a_second_trace_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (parent, _) = Dir::create(dir.path()).unwrap();
        let mut trace = KernelTrace::create(&parent, "kernel", "/* CTF 1.8 */\n").unwrap();
        trace.packet(3, &packet(&[1; 100], 0)).unwrap();
        trace.packet(3, &packet(&[2; 50], 1)).unwrap();
        let channel = fs::read(dir.path().join("kernel/channel_3")).unwrap();
        assert_eq!(channel, [vec![1; 100], vec![2; 50]].concat());
        let index = fs::read(dir.path().join("kernel/index/channel_3.idx")).unwrap();
        assert_eq!(index.len(), 16 + 2 * 72);
        assert_eq!(index[16 + 72..16 + 80], 100u64.to_be_bytes());
        let error = KernelTrace::create(&parent, "kernel", "").unwrap_err().to_string();
        assert!(error.contains("kernel"), "{error}");
    }

    /// A file system of some pages of 4 KiB, unmounted when dropped.
    struct SmallDisk<'a>(&'a Path);

    impl<'a> SmallDisk<'a> {
        fn mount(dir: &'a Path, pages: u32) -> Option<Self> {
            let options = CString::new(format!("size={}k", pages * 4)).unwrap();
            match mount("none", dir, "tmpfs", MountFlags::empty(), Some(options.as_c_str())) {
                Ok(()) => Some(Self(dir)),
                Err(errno) => {
                    eprintln!("skipped: cannot mount a small disk: {errno}");
                    None
                }
            }
        }
    }

    impl Drop for SmallDisk<'_> {
        fn drop(&mut self) {
            let _ = unmount(self.0, UnmountFlags::DETACH);
        }
    }

    /// Writes packets until the disk is full: they are there with all their index entries, and nothing else.
    fn fill(pages: u32, packet_size: usize) -> Option<(u64, String)> {
        let dir = tempfile::tempdir().unwrap();
        let _disk = SmallDisk::mount(dir.path(), pages)?;
        let mut trace = KernelTrace::create(&Dir::parent(dir.path()).unwrap(), "kernel", "x").unwrap();
        let mut written = 0;
        let error = loop {
            match trace.packet(0, &packet(&vec![9; packet_size], written)) {
                Ok(()) => written += 1,
                Err(error) => break error.to_string(),
            }
        };
        let len = |name: &str| fs::metadata(dir.path().join("kernel").join(name)).unwrap().len();
        assert_eq!(len("channel_0"), written * packet_size as u64);
        assert_eq!(len("index/channel_0.idx"), 16 + 72 * written);
        Some((written, error))
    }

    #[test]
    fn metadata_for_which_there_is_no_room_leaves_no_trace() {
        let dir = tempfile::tempdir().unwrap();
        let Some(_disk) = SmallDisk::mount(dir.path(), 4) else { return };
        let trace = dir.path().join("kernel");
        let error = KernelTrace::create(&Dir::parent(dir.path()).unwrap(), "kernel", &"x".repeat(5 * 4096))
            .unwrap_err()
            .to_string();
        assert!(error.contains("metadata: No space left on device"), "{error}");
        assert!(!trace.exists());
    }

    #[test]
    fn a_full_disk_leaves_whole_packets() {
        let Some((written, error)) = fill(16, 10_000) else { return };
        assert!(written > 0);
        assert!(error.contains("channel_0: No space left on device"), "{error}");
    }

    #[test]
    fn a_packet_whose_index_entry_does_not_fit_is_cut_off() {
        // 56 entries fill the index's first page; the 57th packet takes the last page of the disk.
        let Some((written, error)) = fill(1 + 1 + 57, 4096) else { return };
        assert_eq!(written, 56);
        assert!(error.contains("channel_0.idx: No space left on device"), "{error}");
    }
}
