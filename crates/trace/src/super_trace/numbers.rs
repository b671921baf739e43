//! Values indexed by numbers that are assigned consecutively: those of threads, processes, CPUs and user
//! threads. Such numbers are small and adjacent, so that a look-up takes two index operations; all other
//! numbers are hashed. Memory grows with the number of values; adjacent ones take little more than their own
//! size.

use super::map::Map;
use tracewing_units::{Cpu, Task, Tid};

/// Numbers below this are indices: as many as a kernel has for threads (`PID_MAX_LIMIT` of
/// `include/linux/threads.h`).
const SMALL: u64 = 1 << 22;

/// Numbers that share an allocation, which is freed when none of them has a value.
const PAGE: usize = 1 << 10;

/// A number that is assigned consecutively.
pub(super) trait Number: Copy + Eq {
    /// The same for each number only once.
    fn bits(self) -> u64;
}

impl Number for Cpu {
    #[inline]
    fn bits(self) -> u64 {
        self.0.into()
    }
}

impl Number for Tid {
    #[inline]
    fn bits(self) -> u64 {
        self.0.cast_unsigned().into()
    }
}

impl Number for Task {
    #[inline]
    fn bits(self) -> u64 {
        self.0
    }
}

/// A value for each number that has one.
#[derive(Debug, Clone)]
pub(super) struct Numbers<K, V> {
    values: Vec<(K, V)>,
    /// For small numbers: a table of two levels with the indices of their values.
    pages: Vec<Option<Box<Page>>>,
    /// Of great numbers, where their values are.
    great: Map<u64, usize>,
}

#[derive(Debug, Clone)]
struct Page {
    /// Index of the value plus one; 0 if there is none.
    places: [u32; PAGE],
    /// How many there are.
    used: usize,
}

impl<K, V> Default for Numbers<K, V> {
    fn default() -> Self {
        Numbers { values: Vec::new(), pages: Vec::new(), great: Map::default() }
    }
}

impl<K: Number, V> Numbers<K, V> {
    /// Where the value of a number is, until one is taken away.
    #[inline]
    pub(super) fn place(&self, number: K) -> Option<usize> {
        let bits = number.bits();
        if bits >= SMALL {
            return self.great.get(&bits).copied();
        }
        let page = self.pages.get(bits as usize / PAGE)?.as_ref()?;
        (page.places[bits as usize % PAGE] as usize).checked_sub(1)
    }

    fn set_place(&mut self, number: K, place: usize) {
        let bits = number.bits();
        if bits >= SMALL {
            self.great.insert(bits, place);
            return;
        }
        let page = bits as usize / PAGE;
        if self.pages.len() <= page {
            self.pages.resize_with(page + 1, || None);
        }
        let page = self.pages[page].get_or_insert_with(|| Box::new(Page { places: [0; PAGE], used: 0 }));
        let known = &mut page.places[bits as usize % PAGE];
        page.used += usize::from(*known == 0);
        *known = place as u32 + 1;
    }

    fn forget_place(&mut self, number: K) {
        let bits = number.bits();
        if bits >= SMALL {
            self.great.remove(&bits);
        } else if let Some(place) = self.pages.get_mut(bits as usize / PAGE)
            && let Some(page) = place
        {
            page.places[bits as usize % PAGE] = 0;
            page.used -= 1;
            if page.used == 0 {
                *place = None;
            }
        }
    }

    #[inline]
    pub(super) fn has(&self, number: K) -> bool {
        self.place(number).is_some()
    }

    #[inline]
    pub(super) fn get(&self, number: K) -> Option<&V> {
        Some(&self.values[self.place(number)?].1)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, number: K) -> Option<&mut V> {
        let place = self.place(number)?;
        Some(self.in_place(place))
    }

    /// The value of a number: a new one if there is none.
    #[inline]
    pub(super) fn at(&mut self, number: K, make: impl FnOnce() -> V) -> &mut V {
        let place = match self.place(number) {
            Some(place) => place,
            None => self.add(number, make()),
        };
        self.in_place(place)
    }

    /// The value in a place.
    #[inline]
    pub(super) fn in_place(&mut self, place: usize) -> &mut V {
        &mut self.values[place].1
    }

    /// Adds a value for a number that has none, and returns its index.
    #[cold]
    pub(super) fn add(&mut self, number: K, value: V) -> usize {
        let place = self.values.len();
        self.values.push((number, value));
        self.set_place(number, place);
        place
    }

    /// Gives a number another value.
    pub(super) fn insert(&mut self, number: K, value: V) {
        match self.place(number) {
            Some(place) => *self.in_place(place) = value,
            None => _ = self.add(number, value),
        }
    }

    /// Takes the value of a number away.
    pub(super) fn remove(&mut self, number: K) -> Option<V> {
        let place = self.place(number)?;
        self.forget_place(number);
        let (_, value) = self.values.swap_remove(place);
        if let Some((moved, _)) = self.values.get(place) {
            self.set_place(*moved, place);
        }
        Some(value)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        self.values.iter().map(|(number, value)| (*number, value))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (K, &mut V)> {
        self.values.iter_mut().map(|(number, value)| (*number, value))
    }

    pub(super) fn into_iter(self) -> impl Iterator<Item = (K, V)> {
        self.values.into_iter()
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &V> {
        self.values.iter().map(|(_, value)| value)
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.values.iter_mut().map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn each_number_has_its_own_value() {
        let (mut numbers, mut expected) = (Numbers::default(), BTreeMap::new());
        let mut random = 1_u64;
        for count in 0..100_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Few, so that many repeat: adjacent ones, some far apart, and large ones.
            let number = random >> 57;
            let number = [number, number * 4096, number + SMALL - 64, !number][(random >> 40) as usize % 4];
            match (random >> 32) % 4 {
                0 => {
                    assert_eq!(*numbers.at(Task(number), || count), *expected.entry(number).or_insert(count))
                }
                1 => {
                    numbers.insert(Task(number), count);
                    expected.insert(number, count);
                }
                _ => assert_eq!(numbers.remove(Task(number)), expected.remove(&number)),
            }
            assert_eq!(numbers.get(Task(number)), expected.get(&number));
            assert_eq!(numbers.has(Task(number)), expected.contains_key(&number));
            if count % 100 == 0 {
                let all: BTreeMap<_, _> =
                    numbers.iter().map(|(Task(number), value)| (number, *value)).collect();
                assert_eq!(all, expected);
                assert!(expected.iter().all(|(number, value)| numbers.get(Task(*number)) == Some(value)));
                let pages: BTreeSet<_> = expected
                    .keys()
                    .filter(|number| **number < SMALL)
                    .map(|number| number / PAGE as u64)
                    .collect();
                assert_eq!(numbers.pages.iter().flatten().count(), pages.len());
            }
        }
    }
}
