//! Field classes of bytes: strings and BLOBs.

use super::{Attributes, FieldLocation, Roles};

/// What the bytes of a string, or of an array of small integers, stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Encoding {
    /// Numbers, not text.
    #[default]
    None,
    /// UTF-8 text.
    Utf8,
    /// ASCII text (TSDL only).
    Ascii,
    /// UTF-16 text, most significant bytes first (CTF 2).
    Utf16Be,
    /// UTF-16 text, least significant bytes first (CTF 2).
    Utf16Le,
    /// UTF-32 text, most significant bytes first (CTF 2).
    Utf32Be,
    /// UTF-32 text, least significant bytes first (CTF 2).
    Utf32Le,
}

impl Encoding {
    /// Bytes of a code unit, and so of the null that ends a string.
    pub fn unit(self) -> usize {
        match self {
            Encoding::None | Encoding::Utf8 | Encoding::Ascii => 1,
            Encoding::Utf16Be | Encoding::Utf16Le => 2,
            Encoding::Utf32Be | Encoding::Utf32Le => 4,
        }
    }
}

/// A null-terminated string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StringClass {
    /// The text's encoding.
    pub encoding: Encoding,
    /// User attributes.
    pub attributes: Attributes,
}

impl StringClass {
    /// A string of this encoding.
    pub fn new(encoding: Encoding) -> Self {
        StringClass { encoding, attributes: Attributes::default() }
    }
}

/// A string in a known number of bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaticStringClass {
    /// Bytes that it takes; the text ends at the first null in them.
    pub length: u64,
    /// The text's encoding.
    pub encoding: Encoding,
    /// User attributes.
    pub attributes: Attributes,
}

/// A string in as many bytes as an earlier field says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DynamicStringClass {
    /// An earlier unsigned integer field: the bytes that the string takes. The text ends at the first null in
    /// them.
    pub length: FieldLocation,
    /// The text's encoding.
    pub encoding: Encoding,
    /// User attributes.
    pub attributes: Attributes,
}

/// The media type of a BLOB that does not say.
pub const DEFAULT_MEDIA_TYPE: &str = "application/octet-stream";

/// A known number of bytes that mean nothing here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaticBlobClass {
    /// Number of bytes.
    pub length: u64,
    /// What they are (IANA media type).
    pub media_type: String,
    /// What it means to a reader: [`Role::MetadataStreamUuid`](super::Role::MetadataStreamUuid) or nothing.
    pub roles: Roles,
    /// User attributes.
    pub attributes: Attributes,
}

/// As many bytes that mean nothing here as an earlier field says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DynamicBlobClass {
    /// An earlier unsigned integer field: how many bytes.
    pub length: FieldLocation,
    /// What they are (IANA media type).
    pub media_type: String,
    /// User attributes.
    pub attributes: Attributes,
}
