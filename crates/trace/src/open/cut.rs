//! Streams that were cut off at the end of a packet: nothing in the file shows that, but LTTng's index next
//! to it lists more packets.

use crate::open::recording::Recording;
use crate::stream::cursor::{Lost, LostKind};
use crate::stream::index_source::{Beyond, beyond_end};

/// Learns whether a stream was cut off so.
pub(super) fn learn(recording: &mut Recording, at: usize) {
    let stream = &recording.streams()[at];
    // If another one of several files is cut off, sequence numbers show it.
    let Some(file) = stream.files.last().filter(|file| file.begin.is_some()) else { return };
    let mut packets = recording.reader(stream, file, false);
    let Some(Beyond { packets: count, bytes: gone, range, size }) = beyond_end(&mut packets) else { return };
    let bytes = size.saturating_add(gone);
    let line = format!("{}: {gone} of its {bytes} bytes are missing", file.path.display());
    recording.missing.push(line);
    recording.add_lost(at, Lost { kind: LostKind::Packets, count: Some(count), range });
}
