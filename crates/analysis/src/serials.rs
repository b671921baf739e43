//! Values by serial numbers: a look-up is an index, and memory grows with those that live, not with all that
//! ever did.

/// Serial numbers that share an allocation; it is freed when the last of them is taken away.
const CHUNK: usize = 64;

/// A value for each serial number that lives.
#[derive(Debug)]
pub(crate) struct Serials<T> {
    chunks: Vec<Option<Box<Chunk<T>>>>,
}

#[derive(Debug)]
struct Chunk<T> {
    values: [Option<T>; CHUNK],
    /// How many there are.
    live: usize,
}

impl<T> Default for Serials<T> {
    fn default() -> Self {
        Serials { chunks: Vec::new() }
    }
}

impl<T: Default> Serials<T> {
    /// The value of a serial number: a new one if there is none.
    #[inline]
    pub(crate) fn at(&mut self, serial: usize) -> &mut T {
        let chunk = serial / CHUNK;
        if self.chunks.len() <= chunk {
            self.chunks.resize_with(chunk + 1, || None);
        }
        let chunk = self.chunks[chunk]
            .get_or_insert_with(|| Box::new(Chunk { values: std::array::from_fn(|_| None), live: 0 }));
        let value = &mut chunk.values[serial % CHUNK];
        chunk.live += usize::from(value.is_none());
        value.get_or_insert_with(T::default)
    }

    /// Takes the value of a serial number away: the default one if there is none.
    pub(crate) fn take(&mut self, serial: usize) -> T {
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

    #[test]
    fn each_has_its_own_and_the_ended_take_no_room() {
        let mut serials: Serials<u64> = Serials::default();
        for serial in 0..1000 {
            *serials.at(serial) += serial as u64;
            *serials.at(serial) += 1;
        }
        for serial in 0..999 {
            assert_eq!(serials.take(serial), serial as u64 + 1);
            assert_eq!(serials.take(serial), 0);
        }
        assert_eq!(serials.chunks.iter().flatten().count(), 1);
        assert_eq!(*serials.at(999), 1000);
        assert_eq!(serials.take(1_000_000), 0);
    }
}
