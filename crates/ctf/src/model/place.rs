//! Where in the metadata something is declared, for error messages.

/// A byte offset in the metadata's text; none if it was not read from a text. Places are not part of the
/// declaration: all compare equal and have the same debug output.
#[derive(Clone, Copy, Default)]
pub struct Place(Option<std::num::NonZeroU32>);

impl Place {
    /// The place at this byte offset; none beyond 4 GiB.
    pub fn new(offset: usize) -> Self {
        Place(u32::try_from(offset).ok().and_then(|offset| offset.checked_add(1)?.try_into().ok()))
    }

    /// The byte offset.
    pub fn offset(self) -> Option<usize> {
        Some(self.0?.get() as usize - 1)
    }

    /// This place, or the other one if this is none.
    #[must_use]
    pub fn or(self, other: Place) -> Self {
        Place(self.0.or(other.0))
    }
}

impl PartialEq for Place {
    fn eq(&self, _: &Place) -> bool {
        true
    }
}

impl Eq for Place {}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Place")
    }
}
