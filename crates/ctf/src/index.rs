//! LTTng's packet index files (`index/NAME.idx`, for the data stream file `NAME`): offset and time range of
//! each packet, so that a reader can seek without reading the packets.
//!
//! All numbers are big-endian. A file is a header and then entries:
//!
//! | bytes | header | | bytes | entry |
//! |---|---|---|---|---|
//! | 0..4 | magic 0xC1F1DCC1 | | 0..8 | packet's offset in the data stream, bytes |
//! | 4..8 | major version, 1 | | 8..16 | packet size, bits |
//! | 8..12 | minor version, 0 or 1 | | 16..24 | content size, bits |
//! | 12..16 | entry size in bytes | | 24..32 | begin stamp, cycles |
//! | | | | 32..40 | end stamp, cycles |
//! | | | | 40..48 | events discarded so far |
//! | | | | 48..56 | data stream class id |
//! | | | | 56..64 | (1.1) data stream instance id |
//! | | | | 64..72 | (1.1) packet sequence number |

use crate::magic::{INDEX_HEADER_SIZE, INDEX_MAGIC};
use crate::{Error, IndexFault};
use tracewing_units::Cycles;

/// First four bytes of an index file, big-endian.
pub const MAGIC: u32 = INDEX_MAGIC;
/// Size of the file header in bytes.
pub const HEADER_SIZE: usize = INDEX_HEADER_SIZE;
/// Size of an entry of version 1.0 in bytes.
pub const ENTRY_SIZE_1_0: usize = 56;
/// Size of an entry of version 1.1, the one written here, in bytes.
pub const ENTRY_SIZE: usize = 72;

/// One packet of a data stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Entry {
    /// Offset of the packet in the data stream, in bytes.
    pub offset: u64,
    /// Size of the packet in bits.
    pub packet_bits: u64,
    /// Size of its content in bits.
    pub content_bits: u64,
    /// Begin stamp.
    pub begin: Cycles,
    /// End stamp.
    pub end: Cycles,
    /// Events discarded in the data stream up to the end of this packet.
    pub discarded: u64,
    /// Data stream class id.
    pub stream_id: u64,
    /// Data stream instance id; not in version 1.0.
    pub stream_instance_id: Option<u64>,
    /// Packet sequence number; not in version 1.0.
    pub seq: Option<u64>,
}

/// The header of a version 1.1 file.
pub fn encode_header() -> [u8; HEADER_SIZE] {
    let mut bytes = [0; HEADER_SIZE];
    for (chunk, value) in bytes.chunks_exact_mut(4).zip([MAGIC, 1, 1, ENTRY_SIZE as u32]) {
        chunk.copy_from_slice(&value.to_be_bytes());
    }
    bytes
}

/// A version 1.1 entry; ids that are absent are written as 0.
pub fn encode_entry(entry: &Entry) -> [u8; ENTRY_SIZE] {
    let values = [
        entry.offset,
        entry.packet_bits,
        entry.content_bits,
        entry.begin.0,
        entry.end.0,
        entry.discarded,
        entry.stream_id,
        entry.stream_instance_id.unwrap_or(0),
        entry.seq.unwrap_or(0),
    ];
    let mut bytes = [0; ENTRY_SIZE];
    for (chunk, value) in bytes.chunks_exact_mut(8).zip(values) {
        chunk.copy_from_slice(&value.to_be_bytes());
    }
    bytes
}

/// The entries of an index file.
///
/// A last entry that is cut short (the writer is still at it) is left out.
///
/// # Errors
///
/// [`Error::Index`] where the magic or the version is not LTTng's, or the entry size cannot hold an entry of
/// that version.
pub fn decode(bytes: &[u8]) -> Result<impl Iterator<Item = Entry> + '_, Error> {
    let bad = |offset, fault| Error::Index { offset, fault };
    let Some((header, body)) = bytes.split_at_checked(HEADER_SIZE) else {
        return Err(bad(0, IndexFault::Short { there: bytes.len() }));
    };
    let word = |i: usize| u32::from_be_bytes([header[i], header[i + 1], header[i + 2], header[i + 3]]);
    let (magic, major, minor, size) = (word(0), word(4), word(8), word(12) as usize);
    if magic != MAGIC {
        return Err(bad(0, IndexFault::Magic(magic)));
    }
    if major != 1 {
        return Err(bad(4, IndexFault::Version { major, minor }));
    }
    let least = if minor == 0 { ENTRY_SIZE_1_0 } else { ENTRY_SIZE };
    if size < least {
        return Err(bad(12, IndexFault::EntrySize { size, minor, least }));
    }
    Ok(body.chunks_exact(size).map(move |entry| {
        let mut values = [0; ENTRY_SIZE / 8];
        for (value, chunk) in values.iter_mut().zip(entry[..least].chunks_exact(8)) {
            *value = chunk.iter().fold(0, |value, &byte| value << 8 | u64::from(byte));
        }
        let [offset, packet_bits, content_bits, begin, end, discarded, stream_id, instance, seq] = values;
        let newer = minor > 0;
        Entry {
            offset,
            packet_bits,
            content_bits,
            begin: Cycles(begin),
            end: Cycles(end),
            discarded,
            stream_id,
            stream_instance_id: newer.then_some(instance),
            seq: newer.then_some(seq),
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> Entry {
        Entry {
            offset: 4096,
            packet_bits: 32768,
            content_bits: 700,
            begin: Cycles(1),
            end: Cycles::MAX,
            discarded: 3,
            stream_id: 2,
            stream_instance_id: Some(7),
            seq: Some(9),
        }
    }

    #[test]
    fn round_trip_ignores_a_partial_last_entry() {
        let mut file = encode_header().to_vec();
        file.extend(encode_entry(&entry()));
        file.extend(encode_entry(&Entry { seq: Some(10), ..entry() }));
        file.extend([0; ENTRY_SIZE - 1]);
        let entries: Vec<_> = decode(&file).unwrap().collect();
        assert_eq!(entries, [entry(), Entry { seq: Some(10), ..entry() }]);
    }

    #[test]
    fn version_1_0_has_no_instance_id() {
        let mut file = encode_header().to_vec();
        file[11] = 0;
        file[15] = ENTRY_SIZE_1_0 as u8;
        file.extend(&encode_entry(&entry())[..ENTRY_SIZE_1_0]);
        let entries: Vec<_> = decode(&file).unwrap().collect();
        assert_eq!(entries, [Entry { stream_instance_id: None, seq: None, ..entry() }]);
    }

    #[test]
    fn refuses_what_is_no_index() {
        let fails = |file: &[u8]| decode(file).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(fails(&[0; 15]).contains("15 bytes"));
        assert!(fails(&[0; 16]).contains("not an LTTng index"));
        let mut header = encode_header();
        header[7] = 2;
        assert!(fails(&header).contains("version 2.1"));
        header[7] = 1;
        header[15] = 0;
        assert!(fails(&header).contains("entries of 0 bytes"));
    }
}
