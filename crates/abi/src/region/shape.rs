//! Why memory is no buffer region, or numbers are not those of one.

use core::fmt;

/// Why a region cannot have the shape that is asked for, or that its header claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShapeFault {
    /// The number of CPUs is out of range.
    Cpus,
    /// The number of sub-buffers is out of range, or no power of two.
    SubBuffers,
    /// The size of a sub-buffer is out of range, or no power of two.
    SubBufferBytes,
    /// The memory is too small for a header.
    Small,
    /// The header is none of a region.
    NoRegion,
    /// The header is of another version.
    Version,
    /// The header names an unknown mode.
    Mode,
    /// The header names an unknown protocol.
    Protocol,
    /// The header names an unknown clock.
    Clock,
    /// The header names a clock that this system does not have.
    ForeignClock,
    /// The header claims another size than the memory has.
    Size,
}

impl fmt::Display for ShapeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cpus => "the number of CPUs must lie between 1 and 8192",
            Self::SubBuffers => "the number of sub-buffers must be a power of two between 2 and 256",
            Self::SubBufferBytes => {
                "the size of a sub-buffer must be a power of two between 256 bytes and 1 GiB"
            }
            Self::Small => "buffer region smaller than a page",
            Self::NoRegion => "not a tracewing buffer region",
            Self::Version => "buffer region of another version of tracewing",
            Self::Mode => "buffer region of an unknown mode",
            Self::Protocol => "buffer region of an unknown protocol",
            Self::Clock => "buffer region with an unknown clock",
            Self::ForeignClock => "buffer region with a clock that only Linux keeps",
            Self::Size => "buffer region whose size does not fit its header",
        })
    }
}

impl core::error::Error for ShapeFault {}
