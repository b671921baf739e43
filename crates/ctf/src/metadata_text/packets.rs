//! Takes the text out of a metadata stream that is cut into packets (specification 1.8.3, section 7.1).
//!
//! CTF 2 does not specify how metadata is cut into packets; producers that do so (LTTng, babeltrace2) use the
//! same packets, with version 2.0 in their headers.

use crate::magic::{METADATA_PACKET_HEADER_SIZE as HEADER_SIZE, METADATA_PACKET_MAGIC as MAGIC};
use crate::model::ByteOrder;
use crate::{Error, MetadataPacketFault as Fault};

/// What metadata packets hold.
pub(super) struct Contents {
    /// The contents of all packets, concatenated.
    pub(super) text: Vec<u8>,
    /// The version in their headers, major and minor.
    pub(super) version: (u8, u8),
    /// The byte order of their headers.
    pub(super) order: ByteOrder,
    /// What is to be said of the bytes after the last one, if there are some.
    pub(super) rest: Option<Error>,
}

/// What the packets of a metadata stream hold; `None` if it is not cut into packets.
pub(super) fn contents(bytes: &[u8]) -> Option<Result<Contents, Error>> {
    let magic = *bytes.first_chunk()?;
    match (u32::from_le_bytes(magic), u32::from_be_bytes(magic)) {
        (MAGIC, _) => Some(unpack(bytes, ByteOrder::Little)),
        (_, MAGIC) => Some(unpack(bytes, ByteOrder::Big)),
        _ => None,
    }
}

fn unpack(bytes: &[u8], order: ByteOrder) -> Result<Contents, Error> {
    let number = match order {
        ByteOrder::Little => u32::from_le_bytes,
        ByteOrder::Big => u32::from_be_bytes,
    };
    let mut text = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    let (mut uuid, mut first_version) = (None, None);
    let mut ignored = None;
    while !rest.is_empty() {
        let offset = bytes.len() - rest.len();
        let bad = |at: usize, fault| Err(Error::MetadataPacket { offset: (offset + at) as u64, fault });
        if offset > 0 && !has_packets(rest, bytes) {
            let fault = Fault::Ignored(rest.len());
            ignored = Some(Error::MetadataPacket { offset: offset as u64, fault });
            break;
        }
        if rest.len() < HEADER_SIZE {
            return bad(0, Fault::Short(rest.len()));
        }
        let word = |at: usize| number([rest[at], rest[at + 1], rest[at + 2], rest[at + 3]]);
        if word(0) != MAGIC {
            return bad(0, Fault::Magic(word(0)));
        }
        if *uuid.get_or_insert(&rest[4..20]) != &rest[4..20] {
            return bad(4, Fault::OtherUuid);
        }
        let (content, packet) = ((word(24) / 8) as usize, (word(28) / 8) as usize);
        if word(24) % 8 != 0 || content < HEADER_SIZE {
            return bad(24, Fault::Content(word(24)));
        }
        if word(28) % 8 != 0 || packet < content {
            return bad(28, Fault::Size { packet: word(28), content: word(24) });
        }
        if content > rest.len() {
            return bad(24, Fault::CutShort { content, there: rest.len() });
        }
        for (at, what) in [(32, "compression"), (33, "encryption"), (34, "checksum")] {
            if rest[at] != 0 {
                return bad(at, Fault::Scheme { what, scheme: rest[at] });
            }
        }
        let version = (rest[35], rest[36]);
        if !matches!(version, (1, 8) | (2, 0)) {
            return bad(35, Fault::Version { major: version.0, minor: version.1 });
        }
        if *first_version.get_or_insert(version) != version {
            return bad(35, Fault::OtherVersion);
        }
        text.extend_from_slice(&rest[HEADER_SIZE..content]);
        rest = &rest[packet.min(rest.len())..];
    }
    Ok(Contents { text, version: first_version.unwrap_or((1, 8)), order, rest: ignored })
}

/// Whether the bytes after a packet, of a stream that begins with `first`, are packets, maybe damaged ones:
/// the first of them has its magic number or UUID, or a later one has both. One may also be too short for its
/// header.
fn has_packets(rest: &[u8], first: &[u8]) -> bool {
    const UUID_END: usize = 20;
    let begin = &first[..UUID_END];
    let is_zero = || rest.iter().all(|byte| *byte == 0);
    rest.starts_with(&begin[..4])
        || rest.get(4..UUID_END).is_some_and(|uuid| *uuid == begin[4..] && !is_zero())
        || rest.windows(UUID_END).any(|bytes| bytes == begin)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> Result<Vec<u8>, Error> {
        contents(bytes).unwrap().map(|contents| contents.text)
    }

    fn packet(content: &[u8], padding: usize, bytes: fn(u32) -> [u8; 4]) -> Vec<u8> {
        let mut packet = bytes(MAGIC).to_vec();
        packet.extend(*b"0123456789abcdef");
        packet.extend(bytes(0));
        packet.extend(bytes((HEADER_SIZE + content.len()) as u32 * 8));
        packet.extend(bytes((HEADER_SIZE + content.len() + padding) as u32 * 8));
        packet.extend([0, 0, 0, 1, 8]);
        packet.extend(content);
        packet.resize(packet.len() + padding, b'#');
        packet
    }

    #[test]
    fn packets_of_either_byte_order_are_joined() {
        for bytes in [u32::to_le_bytes, u32::to_be_bytes] {
            let stream =
                [packet(b"trace ", 5, bytes), packet(b"{", 0, bytes), packet(b"", 3, bytes)].concat();
            assert_eq!(text(&stream).unwrap(), b"trace {");
            // The last packet's padding may be missing.
            assert_eq!(text(&stream[..stream.len() - 2]).unwrap(), b"trace {");
        }
    }

    #[test]
    fn bytes_after_the_last_packet_are_ignored_unless_they_may_be_packets() {
        let stream = packet(b"trace", 3, u32::to_le_bytes);
        let rest = |more: &[u8]| {
            let bytes = [&stream, more].concat();
            contents(&bytes).unwrap().map(|contents| contents.rest.map(|rest| rest.to_string()))
        };
        assert_eq!(rest(b"").unwrap(), None);
        for more in
            [&b"/* a comment that is longer than a header, with its end */\n"[..], b"x", &[0; 100], &[0; 3]]
        {
            let said = rest(more).unwrap().unwrap();
            assert!(
                said.starts_with("metadata, byte 45:") && said.contains(&more.len().to_string()),
                "{said}"
            );
        }
        for more in [[b"????", &stream[4..]].concat(), [b"text", &stream[..]].concat(), stream[..30].to_vec()]
        {
            assert!(rest(&more).is_err(), "{more:?}");
        }
    }

    #[test]
    fn each_header_field_is_checked() {
        let good = [packet(b"a", 0, u32::to_le_bytes), packet(b"b", 0, u32::to_le_bytes)].concat();
        let second = HEADER_SIZE + 1;
        for (at, with, cause) in [
            (second, 0, "magic"),
            (second + 4, b'x', "UUID"),
            (second + 24, 1, "content of"),
            (second + 25, 255, "around content"),
            (second + 28, 1, "packet of"),
            (second + 32, 1, "compression"),
            (second + 33, 1, "encryption"),
            (second + 34, 1, "checksum"),
            (second + 35, 2, "version 2.8"),
            (second + 36, 7, "version 1.7"),
        ] {
            let mut bytes = good.clone();
            bytes[at] = with;
            let error = text(&bytes).unwrap_err().to_string();
            assert!(error.contains(cause), "byte {at}: {error}");
        }
        let error = text(&good[..good.len() - 5]).unwrap_err().to_string();
        assert_eq!(error, "metadata, byte 38: 33 bytes are left; a packet header has 37");
    }
}
