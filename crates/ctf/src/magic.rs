//! Magic numbers of streams and files, and the sizes of their headers, shared by readers, writers and errors.

/// First field of each packet of a data stream (CTF 1.8, section 5.2.1; CTF 2, section 6.1).
pub(crate) const PACKET_MAGIC: u32 = 0xC1FC_1FC1;
/// First four bytes of each metadata packet (CTF 1.8, section 7.1).
pub(crate) const METADATA_PACKET_MAGIC: u32 = 0x75D1_1D57;
/// Size in bytes of a metadata packet's header.
pub(crate) const METADATA_PACKET_HEADER_SIZE: usize = 37;
/// First four bytes of an index file, big-endian.
pub(crate) const INDEX_MAGIC: u32 = 0xC1F1_DCC1;
/// Size in bytes of an index file's header.
pub(crate) const INDEX_HEADER_SIZE: usize = 16;
/// What is before each fragment of CTF 2's metadata (RFC 7464).
#[cfg(feature = "read")]
pub(crate) const RECORD_SEPARATOR: char = '\x1e';
