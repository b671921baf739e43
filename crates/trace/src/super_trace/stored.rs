//! The state as bytes, of which [`checkpoint`](super::checkpoint) makes what a later reader continues from.
//!
//! Numbers are in 7-bit groups, the lowest first; a list is its length and its members. Each type is listed
//! once, in `types`, with all its fields: a field that is missing there does not compile. [`SHAPE`] changes
//! with the list, so bytes of another version of it are noticed.
//!
//! Bytes are not trusted: whatever they are, reading them gives values or nothing, and takes no more memory
//! than they have.

mod types;

pub(super) use types::SHAPE;
pub use types::shape;

use super::numbers::{Number, Numbers};
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hash};
use std::ops::Range;

/// A value that is written as bytes, and read from them.
pub trait Stored: Sized {
    /// Appends the value.
    fn put(&self, out: &mut Vec<u8>);

    /// The value at the beginning of some bytes, which are used up; `None` if there is none.
    fn take(bytes: &mut Bytes<'_>) -> Option<Self>;
}

/// What is left of some bytes.
#[derive(Debug, Clone, Copy)]
pub struct Bytes<'b>(&'b [u8]);

impl<'b> Bytes<'b> {
    /// All of these.
    pub fn new(bytes: &'b [u8]) -> Self {
        Self(bytes)
    }

    /// Whether nothing is left.
    pub fn are_over(&self) -> bool {
        self.0.is_empty()
    }

    fn first(&mut self, count: usize) -> Option<&'b [u8]> {
        let (first, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(first)
    }

    /// The length of a list: each member has a byte at least.
    fn length(&mut self) -> Option<usize> {
        let length = usize::try_from(u64::take(self)?).ok()?;
        (length <= self.0.len()).then_some(length)
    }
}

impl Stored for u64 {
    #[inline]
    fn put(&self, out: &mut Vec<u8>) {
        let mut number = *self;
        while number >= 0x80 {
            out.push(number as u8 | 0x80);
            number >>= 7;
        }
        out.push(number as u8);
    }

    #[inline]
    fn take(bytes: &mut Bytes<'_>) -> Option<Self> {
        let mut number = 0;
        for place in 0..10 {
            let [byte] = *bytes.first(1)?.first_chunk()?;
            let group = u64::from(byte & 0x7f);
            if place == 9 && group > 1 {
                return None;
            }
            number |= group << (7 * place);
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }
}

/// Small negative numbers are short, too.
impl Stored for i64 {
    #[inline]
    fn put(&self, out: &mut Vec<u8>) {
        ((self << 1) ^ (self >> 63)).cast_unsigned().put(out);
    }

    #[inline]
    fn take(bytes: &mut Bytes<'_>) -> Option<Self> {
        let number = u64::take(bytes)?;
        Some((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }
}

macro_rules! numbers {
    ($($type:ty as $wide:ty),*) => { $(
        impl Stored for $type {
            #[inline]
            fn put(&self, out: &mut Vec<u8>) {
                <$wide>::from(*self).put(out);
            }

            #[inline]
            fn take(bytes: &mut Bytes<'_>) -> Option<Self> {
                <$wide>::take(bytes)?.try_into().ok()
            }
        }
    )* };
}

numbers!(u8 as u64, u32 as u64, i32 as i64);

impl Stored for usize {
    fn put(&self, out: &mut Vec<u8>) {
        (*self as u64).put(out);
    }

    fn take(bytes: &mut Bytes<'_>) -> Option<Self> {
        u64::take(bytes)?.try_into().ok()
    }
}

impl Stored for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn take(bytes: &mut Bytes<'_>) -> Option<Self> {
        match bytes.first(1)? {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }
}

impl Stored for () {
    fn put(&self, _: &mut Vec<u8>) {}

    fn take(_: &mut Bytes<'_>) -> Option<Self> {
        Some(())
    }
}

impl<A: Stored, B: Stored> Stored for (A, B) {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }

    fn take(bytes: &mut Bytes<'_>) -> Option<Self> {
        Some((A::take(bytes)?, B::take(bytes)?))
    }
}

impl<A: Stored, B: Stored, C: Stored> Stored for (A, B, C) {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
        self.2.put(out);
    }

    fn take(bytes: &mut Bytes<'_>) -> Option<Self> {
        Some((A::take(bytes)?, B::take(bytes)?, C::take(bytes)?))
    }
}

impl<T: Stored> Stored for [T; 2] {
    fn put(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|value| value.put(out));
    }

    fn take(bytes: &mut Bytes<'_>) -> Option<Self> {
        Some([T::take(bytes)?, T::take(bytes)?])
    }
}

impl<T: Stored> Stored for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        self.iter().for_each(|value| value.put(out));
    }

    fn take(bytes: &mut Bytes<'_>) -> Option<Self> {
        match bool::take(bytes)? {
            true => T::take(bytes).map(Some),
            false => Some(None),
        }
    }
}

impl<T: Stored> Stored for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.len().put(out);
        self.iter().for_each(|value| value.put(out));
    }

    fn take(bytes: &mut Bytes<'_>) -> Option<Self> {
        let length = bytes.length()?;
        let mut all = Vec::new();
        for _ in 0..length {
            all.push(T::take(bytes)?);
        }
        Some(all)
    }
}

impl Stored for Box<[u8]> {
    fn put(&self, out: &mut Vec<u8>) {
        self.len().put(out);
        out.extend_from_slice(self);
    }

    fn take(bytes: &mut Bytes<'_>) -> Option<Self> {
        let length = bytes.length()?;
        bytes.first(length).map(Box::from)
    }
}

impl Stored for String {
    fn put(&self, out: &mut Vec<u8>) {
        self.len().put(out);
        out.extend_from_slice(self.as_bytes());
    }

    fn take(bytes: &mut Bytes<'_>) -> Option<Self> {
        let length = bytes.length()?;
        String::from_utf8(bytes.first(length)?.to_vec()).ok()
    }
}

/// In the order in which they are, which is that of what analyses get at the end.
impl<K: Number + Stored, V: Stored> Stored for Numbers<K, V> {
    fn put(&self, out: &mut Vec<u8>) {
        self.iter().count().put(out);
        for (number, value) in self.iter() {
            number.put(out);
            value.put(out);
        }
    }

    fn take(bytes: &mut Bytes<'_>) -> Option<Self> {
        let mut all = Numbers::default();
        for _ in 0..bytes.length()? {
            let number = K::take(bytes)?;
            all.insert(number, V::take(bytes)?);
        }
        Some(all)
    }
}

/// By its keys, so that the same map gives the same bytes.
impl<K: Stored + Ord + Hash, V: Stored, S: BuildHasher + Default> Stored for HashMap<K, V, S> {
    fn put(&self, out: &mut Vec<u8>) {
        let sorted: BTreeMap<&K, &V> = self.iter().collect();
        sorted.len().put(out);
        for (key, value) in sorted {
            key.put(out);
            value.put(out);
        }
    }

    fn take(bytes: &mut Bytes<'_>) -> Option<Self> {
        let mut all = HashMap::default();
        for _ in 0..bytes.length()? {
            let key = K::take(bytes)?;
            all.insert(key, V::take(bytes)?);
        }
        Some(all)
    }
}

impl<K: Stored + Ord, V: Stored> Stored for BTreeMap<K, V> {
    fn put(&self, out: &mut Vec<u8>) {
        self.len().put(out);
        for (key, value) in self {
            key.put(out);
            value.put(out);
        }
    }

    fn take(bytes: &mut Bytes<'_>) -> Option<Self> {
        let mut all = BTreeMap::new();
        for _ in 0..bytes.length()? {
            let key = K::take(bytes)?;
            all.insert(key, V::take(bytes)?);
        }
        Some(all)
    }
}

impl<T: Stored> Stored for Range<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.start.put(out);
        self.end.put(out);
    }

    fn take(bytes: &mut Bytes<'_>) -> Option<Self> {
        Some(T::take(bytes)?..T::take(bytes)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_and_broken_ones_are_noticed() {
        for number in [0, 1, -1, 63, -64, 64, i64::from(i32::MIN), i64::MAX, i64::MIN] {
            let mut bytes = Vec::new();
            number.put(&mut bytes);
            assert_eq!(i64::take(&mut Bytes::new(&bytes)), Some(number));
            bytes.pop();
            assert_eq!(i64::take(&mut Bytes(&bytes)), None);
        }
        assert_eq!(u64::take(&mut Bytes(&[0xff; 12])), None);
        assert_eq!(u32::take(&mut Bytes(&[0xff, 0xff, 0xff, 0xff, 0x1f])), None);
        assert_eq!(Vec::<u64>::take(&mut Bytes(&[200, 200, 200, 1, 1])), None);
    }
}
