//! Writes a kernel trace's folder: `metadata`, `channel_N`, `index/channel_N.idx`.
//!
//! A stream's files appear with its first packet. A packet that cannot be written completely, or not its index entry,
//! is cut off again, so that what is on disk is a good trace at any time.

use crate::error::Error;
use crate::stream::{Packet, Sink};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tracewing_ctf::index::{Entry, encode_entry, encode_header};

/// A trace folder being written.
#[derive(Debug)]
pub struct KernelTrace {
    dir: PathBuf,
    streams: BTreeMap<u32, (Growing, Growing)>,
}

impl KernelTrace {
    /// Makes the folder `dir`, which may be there but must hold no trace, and writes its metadata.
    pub fn create(dir: &Path, metadata: &str) -> Result<Self, Error> {
        let write = |path: &Path, source| Error::Write { path: path.to_owned(), source };
        let index = dir.join("index");
        fs::create_dir_all(&index).map_err(|e| write(&index, e))?;
        let path = dir.join("metadata");
        let file = File::create_new(&path).and_then(|mut file| file.write_all(metadata.as_bytes()));
        file.map_err(|e| write(&path, e))?;
        Ok(Self { dir: dir.to_owned(), streams: BTreeMap::new() })
    }
}

impl Sink for KernelTrace {
    type Error = Error;

    fn packet(&mut self, cpu: u32, packet: &Packet<'_>) -> Result<(), Error> {
        let (channel, index) = match self.streams.entry(cpu) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => {
                let channel = Growing::create(self.dir.join(format!("channel_{cpu}")))?;
                let mut index = Growing::create(self.dir.join(format!("index/channel_{cpu}.idx")))?;
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
    fn create(path: PathBuf) -> Result<Self, Error> {
        // Appending, so that after a cut the next piece follows what is left.
        match OpenOptions::new().append(true).create_new(true).open(&path) {
            Ok(file) => Ok(Self { path, file, len: 0 }),
            Err(source) => Err(Error::Write { path, source }),
        }
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        match self.file.write_all(bytes) {
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
    use std::process::Command;

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
        let mut trace = KernelTrace::create(dir.path(), "/* CTF 1.8 */\n").unwrap();
        trace.packet(3, &packet(&[1; 100], 0)).unwrap();
        trace.packet(3, &packet(&[2; 50], 1)).unwrap();
        let channel = fs::read(dir.path().join("channel_3")).unwrap();
        assert_eq!(channel, [vec![1; 100], vec![2; 50]].concat());
        let index = fs::read(dir.path().join("index/channel_3.idx")).unwrap();
        assert_eq!(index.len(), 16 + 2 * 72);
        assert_eq!(index[16 + 72..16 + 80], 100u64.to_be_bytes());
        let error = KernelTrace::create(dir.path(), "").unwrap_err().to_string();
        assert!(error.contains("metadata"), "{error}");
    }

    #[test]
    fn a_full_disk_leaves_whole_packets() {
        let dir = tempfile::tempdir().unwrap();
        let mount = |args: &[&str]| Command::new(args[0]).args(&args[1..]).arg(dir.path()).status();
        if !matches!(mount(&["mount", "-t", "tmpfs", "-o", "size=64k", "none"]), Ok(status) if status.success())
        {
            eprintln!("skipped: a full disk needs root, to mount a small tmpfs");
            return;
        }
        let mut trace = KernelTrace::create(&dir.path().join("kernel"), "x").unwrap();
        let mut written = 0;
        let error = loop {
            match trace.packet(0, &packet(&[9; 10_000], written)) {
                Ok(()) => written += 1,
                Err(error) => break error,
            }
        };
        assert!(error.to_string().contains("channel_0: No space left on device"), "{error}");
        let len = |name: &str| fs::metadata(dir.path().join("kernel").join(name)).unwrap().len();
        assert!(written > 0);
        assert_eq!(len("channel_0"), written * 10_000);
        assert_eq!(len("index/channel_0.idx"), 16 + 72 * written);
        drop(trace);
        assert!(mount(&["umount"]).unwrap().success());
    }
}
