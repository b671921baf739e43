//! Writes a kernel trace's folder: `metadata`, `channel_N`, `index/channel_N.idx`. A stream's files appear
//! with its first packet.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use tracewing_ctf::model::Uuid;
use tracewing_files::Dir;
use tracewing_streams::{PacketTimes, Stream, TraceDir};
use tracewing_units::Cpu;

use crate::error::Error;
use crate::stream::Sink;

/// A trace folder being written.
#[derive(Debug)]
pub(crate) struct KernelTrace {
    dir: TraceDir,
    uuid: Uuid,
    streams: BTreeMap<Cpu, Stream>,
}

impl KernelTrace {
    /// Makes the folder `name` in `parent` and writes the trace's metadata. Where that cannot be written,
    /// none of it is left.
    pub(crate) fn create(parent: &Dir, name: &str, uuid: Uuid, metadata: &str) -> Result<Self, Error> {
        let dir = TraceDir::create(parent, name, metadata)?;
        Ok(Self { dir, uuid, streams: BTreeMap::new() })
    }
}

impl Sink for KernelTrace {
    type Error = Error;

    fn packet(&mut self, cpu: Cpu, events: &[u8], times: PacketTimes) -> Result<(), Error> {
        let stream = match self.streams.entry(cpu) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let name = format!("channel_{cpu}");
                entry.insert(Stream::create(&self.dir, &name, self.uuid, cpu.0.into(), cpu)?)
            }
        };
        Ok(stream.write(events, times)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
    use std::ffi::CString;
    use std::fs;
    use std::path::Path;
    use tracewing_ctf::write::PACKET_HEADER_SIZE;
    use tracewing_units::Cycles;

    fn trace(parent: &Dir, metadata: &str) -> Result<KernelTrace, Error> {
        KernelTrace::create(parent, "kernel", [7; 16], metadata)
    }

    /// Writes events that make a packet of this size.
    fn write(trace: &mut KernelTrace, cpu: Cpu, size: usize) -> Result<(), Error> {
        trace.packet(cpu, &vec![9; size - PACKET_HEADER_SIZE], PacketTimes::empty(Cycles(5), 0, 0))
    }

    #[test]
    fn files_grow_by_packets_and_a_second_trace_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (parent, _) = Dir::create(dir.path()).unwrap();
        let mut written = trace(&parent, "/* CTF 1.8 */\n").unwrap();
        write(&mut written, Cpu(3), 100).unwrap();
        write(&mut written, Cpu(3), 150).unwrap();
        let channel = fs::read(dir.path().join("kernel/channel_3")).unwrap();
        assert_eq!((channel.len(), &channel[84..100], &channel[184..]), (250, &[9; 16][..], &[9; 66][..]));
        let index = fs::read(dir.path().join("kernel/index/channel_3.idx")).unwrap();
        assert_eq!(index.len(), 16 + 2 * 72);
        assert_eq!(index[16 + 72..16 + 80], 100u64.to_be_bytes());
        let error = trace(&parent, "").unwrap_err().to_string();
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
                    tracewing_testing::skip(
                        tracewing_testing::Cause::Root,
                        format_args!("cannot mount a small disk: {errno}"),
                    );
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
        let mut trace = trace(&Dir::parent(dir.path()).unwrap(), "x").unwrap();
        let mut written = 0;
        let error = loop {
            match write(&mut trace, Cpu(0), packet_size) {
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
        let error = trace(&Dir::parent(dir.path()).unwrap(), &"x".repeat(5 * 4096)).unwrap_err().to_string();
        assert!(error.contains("metadata: No space left on device"), "{error}");
        assert!(!dir.path().join("kernel").exists());
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
