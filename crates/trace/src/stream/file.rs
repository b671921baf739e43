//! A file of a data stream: where it is, when it begins, and the index of its packets.

use crate::stream::index_source::IndexSlot;
use crate::stream::packet::PacketFile;
use crate::stream::remark::Remarks;
use crate::{Error, NoTrace};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tracewing_ctf::decode::Decoder;
use tracewing_units::{Cpu, Timestamp};

/// A file of a data stream.
#[derive(Debug)]
pub(crate) struct StreamFile {
    pub(crate) path: PathBuf,
    /// Links out of this folder are not followed.
    pub(crate) root: Arc<Path>,
    /// When its first packet begins, in nanoseconds since the clock's origin.
    pub(crate) begin: Option<Timestamp>,
    /// The CPU of its first packet.
    pub(crate) cpu: Option<Cpu>,
    /// Whether its first packet's header could be read; otherwise its stream is unknown.
    pub(crate) is_known: bool,
    pub(crate) index: IndexSlot,
    pub(crate) remarks: Arc<Remarks>,
}

impl StreamFile {
    /// Reads the file from its beginning on.
    pub(crate) fn packets(&self, decoder: &Arc<Decoder>) -> PacketFile {
        PacketFile::new(self.path.clone(), self.root.clone(), decoder.clone())
            .with_remarks(self.remarks.clone())
    }

    /// Positions `packets`, which reads this file, so that it returns everything from `time` on.
    pub(crate) fn seek(&self, packets: &mut PacketFile, time: Timestamp) {
        if self.begin.map_or(time > Timestamp::MIN, |begin| begin < time) {
            self.index.seek(packets, time);
        }
    }
}

/// What the first packet of a file says about its stream.
pub(crate) struct FirstPacket {
    pub(crate) class_id: u64,
    pub(crate) instance_id: Option<u64>,
    /// Nanoseconds since the clock's origin.
    pub(crate) begin: Option<Timestamp>,
    pub(crate) cpu: Option<Cpu>,
}

/// Reads the first packet's header of a stream file.
pub(crate) fn first_packet(
    decoder: &Arc<Decoder>,
    path: &Path,
    root: &Arc<Path>,
) -> Result<FirstPacket, Error> {
    let mut file = PacketFile::new(path.to_owned(), root.clone(), decoder.clone());
    let head =
        file.head()?.ok_or_else(|| Error::NotATrace { path: path.to_owned(), cause: NoTrace::Empty })?;
    Ok(FirstPacket {
        class_id: head.class_id,
        instance_id: head.instance_id,
        begin: head.begin_ns,
        cpu: head.cpu.and_then(|cpu| u32::try_from(cpu).ok()).map(Cpu),
    })
}
