//! Where an earlier field is, as lengths, tags and selectors name it.

use super::Place;

/// Where an earlier field is: the length of an array, the tag of a variant, the selector of an optional.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldLocation {
    /// Where `path` starts.
    pub origin: Origin,
    /// Names of structure members (and variant options) on the way.
    pub path: Vec<String>,
    /// Where this is said.
    pub place: Place,
}

/// Where the path to a field starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// TSDL without a scope: the first name is looked up from the innermost structure around the reference
    /// outwards, then in the scopes before it, nearest first (specification 1.8.3, section 7.3.2).
    Search,
    /// CTF 2 without an origin: the innermost structure around the reference, or the one so many structures
    /// around it (as many as the path has `null`s; CTF2-SPEC-2.0, field location).
    Relative {
        /// Structures to leave.
        up: u32,
    },
    /// The root of a scope.
    Scope(Scope),
}

impl From<&str> for FieldLocation {
    fn from(name: &str) -> Self {
        FieldLocation::new(Origin::Search, vec![name.to_owned()])
    }
}

impl FieldLocation {
    /// The field to which `path` leads from `origin`.
    pub fn new(origin: Origin, path: Vec<String>) -> Self {
        FieldLocation { origin, path, place: Place::default() }
    }

    /// A place given from the root of a scope.
    pub fn absolute<S: Into<String>>(origin: Scope, path: impl IntoIterator<Item = S>) -> Self {
        FieldLocation::new(Origin::Scope(origin), path.into_iter().map(Into::into).collect())
    }

    /// A place given from the structure `up` structures around that which holds the reference.
    pub fn relative<S: Into<String>>(up: u32, path: impl IntoIterator<Item = S>) -> Self {
        FieldLocation::new(Origin::Relative { up }, path.into_iter().map(Into::into).collect())
    }
}

/// The parts of a packet and of an event record, in the order in which they are decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// `trace.packet.header`; CTF 2: `packet-header`
    PacketHeader,
    /// `stream.packet.context`; CTF 2: `packet-context`
    PacketContext,
    /// `stream.event.header`; CTF 2: `event-record-header`
    EventHeader,
    /// `stream.event.context`; CTF 2: `event-record-common-context`
    CommonContext,
    /// `event.context`; CTF 2: `event-record-specific-context`
    SpecificContext,
    /// `event.fields`; CTF 2: `event-record-payload`
    Payload,
}

#[cfg(feature = "read")]
impl Scope {
    /// Index, 0 to 2, among the scopes after the event header.
    #[inline]
    pub(crate) fn after_header(self) -> Option<usize> {
        (self as usize).checked_sub(Scope::CommonContext as usize)
    }
}
