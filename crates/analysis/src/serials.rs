//! Values by serial numbers: a look-up is an index, and memory grows with those that live, not with all that
//! ever did.

use std::marker::PhantomData;
use tracewing_trace::super_trace::Serial;

/// Serial numbers that share an allocation; it is freed when the last of them is taken away.
const CHUNK: usize = 64;

/// A value for each serial number that lives.
#[derive(Debug)]
pub(crate) struct Serials<K, T> {
    of: PhantomData<K>,
    chunks: Vec<Option<Box<Chunk<T>>>>,
}

#[derive(Debug)]
struct Chunk<T> {
    values: [Option<T>; CHUNK],
    /// How many there are.
    live: usize,
}

impl<K, T> Default for Serials<K, T> {
    fn default() -> Self {
        Serials { of: PhantomData, chunks: Vec::new() }
    }
}

impl<K: Serial, T: Default> Serials<K, T> {
    /// The value of a serial number, inserted if missing.
    #[inline]
    pub(crate) fn at(&mut self, serial: K) -> &mut T {
        let (chunk, place) = (serial.index() / CHUNK, serial.index() % CHUNK);
        let known = self.chunks.get(chunk).and_then(Option::as_ref);
        if known.is_none_or(|chunk| chunk.values[place].is_none()) {
            self.insert(chunk, place);
        }
        let value = self.chunks[chunk].as_mut().and_then(|chunk| chunk.values[place].as_mut());
        value.expect("it was inserted just now if it was missing")
    }

    /// The value of a serial number; `None` if missing.
    #[inline]
    pub(crate) fn get_mut(&mut self, serial: K) -> Option<&mut T> {
        let chunk = self.chunks.get_mut(serial.index() / CHUNK)?.as_mut()?;
        chunk.values[serial.index() % CHUNK].as_mut()
    }

    /// How many there are.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.chunks.iter().flatten().map(|chunk| chunk.live).sum()
    }

    #[cold]
    fn insert(&mut self, chunk: usize, place: usize) {
        if self.chunks.len() <= chunk {
            self.chunks.resize_with(chunk + 1, || None);
        }
        let chunk = self.chunks[chunk]
            .get_or_insert_with(|| Box::new(Chunk { values: std::array::from_fn(|_| None), live: 0 }));
        chunk.values[place] = Some(T::default());
        chunk.live += 1;
    }

    /// Removes and returns the value of a serial number; the default if missing.
    pub(crate) fn take(&mut self, serial: K) -> T {
        let serial = serial.index();
        let Some(place) = self.chunks.get_mut(serial / CHUNK) else { return T::default() };
        let Some(chunk) = place else { return T::default() };
        let value = chunk.values[serial % CHUNK].take();
        chunk.live -= usize::from(value.is_some());
        if chunk.live == 0 {
            *place = None;
        }
        value.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracewing_trace::super_trace::LwpSerial;

    #[test]
    fn each_has_its_own_and_the_ended_take_no_room() {
        let mut serials: Serials<LwpSerial, u64> = Serials::default();
        for serial in 0..1000 {
            *serials.at(LwpSerial(serial)) += serial as u64;
            *serials.at(LwpSerial(serial)) += 1;
        }
        for serial in 0..999 {
            assert_eq!(serials.take(LwpSerial(serial)), serial as u64 + 1);
            assert_eq!(serials.take(LwpSerial(serial)), 0);
            assert_eq!(serials.get_mut(LwpSerial(serial)), None);
        }
        assert_eq!(serials.chunks.iter().flatten().count(), 1);
        assert_eq!(serials.count(), 1);
        assert_eq!(serials.get_mut(LwpSerial(999)), Some(&mut 1000));
        assert_eq!(*serials.at(LwpSerial(999)), 1000);
        assert_eq!(serials.take(LwpSerial(1_000_000)), 0);
    }
}
