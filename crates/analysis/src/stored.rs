//! What analyses know as bytes in a checkpoint: structs, each with all its fields (one that is missing there
//! does not compile), and the parts that they are in.

use tracewing_trace::super_trace::{Bytes, Part, Stored};

/// The structs of a module, and a number that changes with them.
macro_rules! stored {
    ($shape:ident: $($struct:ident { $($field:ident)* })*) => {
        pub(crate) const $shape: u64 =
            tracewing_trace::super_trace::shape(stringify!($($struct { $($field)* })*));

        $(impl tracewing_trace::super_trace::Stored for $struct {
            fn put(&self, out: &mut Vec<u8>) {
                let Self { $($field),* } = self;
                $(tracewing_trace::super_trace::Stored::put($field, out);)*
            }

            fn take(bytes: &mut tracewing_trace::super_trace::Bytes<'_>) -> Option<Self> {
                Some(Self { $($field: tracewing_trace::super_trace::Stored::take(bytes)?),* })
            }
        })*
    };
}

/// Writes values one after the other, of which these are references.
macro_rules! put_each {
    ($out:ident: $($value:ident)*) => { $(tracewing_trace::super_trace::Stored::put($value, $out);)* };
}

/// Reads values in the same order into the places that these refer to.
macro_rules! take_each {
    ($bytes:ident: $($place:ident)*) => { $(*$place = tracewing_trace::super_trace::Stored::take($bytes)?;)* };
}

pub(crate) use {put_each, stored, take_each};

/// Which analyses need a part of a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartKind {
    Functions,
    Profile,
    Locks,
}

impl PartKind {
    /// The part of this kind that has a value of this shape.
    pub(crate) fn part(self, shape: u64, value: &impl Stored) -> Part {
        let mut bytes = Vec::new();
        shape.put(&mut bytes);
        value.put(&mut bytes);
        Part { kind: self as u8, bytes: bytes.into() }
    }

    /// Whether there is a part of this kind with a value of this shape.
    pub(crate) fn is_in(self, shape: u64, parts: &[Part]) -> bool {
        self.bytes(shape, parts).is_some()
    }

    /// The value in the part of this kind; `None` if it is not there, or of another shape.
    pub(crate) fn take<T: Stored>(self, shape: u64, parts: &[Part]) -> Option<T> {
        let mut bytes = self.bytes(shape, parts)?;
        T::take(&mut bytes).filter(|_| bytes.are_over())
    }

    fn bytes(self, shape: u64, parts: &[Part]) -> Option<Bytes<'_>> {
        let mut bytes = Bytes::new(&parts.iter().find(|part| part.kind == self as u8)?.bytes);
        (u64::take(&mut bytes)? == shape).then_some(bytes)
    }
}
