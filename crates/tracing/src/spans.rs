//! The living spans: from the numbers that the registry of `tracing` assigns and later reuses, to ids that
//! are unique in the process, and to their call sites.
//!
//! One caller has a span to itself at its beginning and at its end, and `tracing` ensures that no thread
//! enters it before or after. So different threads never race for one entry, only for a free place, which the
//! table assigns without a lock. A span that finds its places taken goes into a map with a lock; that happens
//! only in programs with thousands of living spans.

use crate::site::Site;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering::*};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A live span: its id in the recording, and its call site.
#[derive(Clone, Copy)]
pub(crate) struct Living {
    pub id: u64,
    pub site: &'static Site,
}

/// Places of the table.
const PLACES: usize = 1 << 14;
/// Number of places in which a span can be.
const CANDIDATES: usize = 4;
/// Key of a place that is being filled; no registry assigns it as a number.
const TAKEN: u64 = u64::MAX;

struct Place {
    /// The registry's number, 0 while the place is free.
    key: AtomicU64,
    id: AtomicU64,
    site: AtomicPtr<Site>,
}

/// The living spans of one registry.
pub(crate) struct Spans {
    places: Box<[Place]>,
    others: Mutex<HashMap<u64, Living>>,
    /// Number of spans in `others`.
    count: AtomicUsize,
}

impl Spans {
    pub(crate) fn new() -> Self {
        let place = |_| Place {
            key: AtomicU64::new(0),
            id: AtomicU64::new(0),
            site: AtomicPtr::new(ptr::null_mut()),
        };
        Self {
            places: (0..PLACES).map(place).collect(),
            others: Mutex::new(HashMap::new()),
            count: AtomicUsize::new(0),
        }
    }

    /// Adds the span with this number.
    pub(crate) fn insert(&self, number: u64, span: Living) {
        // Relaxed: only the number's owner looks for it, and threads that got it from the owner.
        let is_free = |place: &&Place| place.key.compare_exchange(0, TAKEN, Acquire, Relaxed).is_ok(); // with `remove`
        match self.places(number).find(is_free) {
            Some(place) => {
                place.id.store(span.id, Relaxed);
                place.site.store(ptr::from_ref(span.site).cast_mut(), Relaxed);
                place.key.store(number, Release); // partner: the acquire in `find`
            }
            None => {
                self.count.fetch_add(1, Relaxed);
                self.others().insert(number, span);
            }
        }
    }

    /// The living span with this number.
    #[inline]
    pub(crate) fn find(&self, number: u64) -> Option<Living> {
        match self.place(number) {
            Some((_, span)) => Some(span),
            None if self.count.load(Relaxed) == 0 => None,
            None => self.others().get(&number).copied(),
        }
    }

    /// Removes and returns the span with this number.
    pub(crate) fn remove(&self, number: u64) -> Option<Living> {
        if let Some((place, span)) = self.place(number) {
            place.key.store(0, Release); // partner: the claim of the place; reads of it are done
            return Some(span);
        }
        if self.count.load(Relaxed) == 0 {
            return None;
        }
        let span = self.others().remove(&number);
        if span.is_some() {
            self.count.fetch_sub(1, Relaxed);
        }
        span
    }

    #[inline]
    fn place(&self, number: u64) -> Option<(&Place, Living)> {
        let place = self.places(number).find(|place| place.key.load(Acquire) == number)?; // with `insert`
        // SAFETY: null before the first span; otherwise a site, which is never freed.
        let site = unsafe { place.site.load(Relaxed).as_ref() }?;
        Some((place, Living { id: place.id.load(Relaxed), site }))
    }

    /// The places of a number. Registries assign small numbers, and distinguish reuses of a number by the
    /// high bits.
    #[inline]
    fn places(&self, number: u64) -> impl Iterator<Item = &Place> {
        let first = (number ^ (number >> 32).wrapping_mul(0x9e37_79b9)) as usize;
        (first..first.wrapping_add(CANDIDATES)).map(|at| &self.places[at % PLACES])
    }

    fn others(&self) -> MutexGuard<'_, HashMap<u64, Living>> {
        self.others.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site;
    use std::thread;
    use tracing_core::callsite::Callsite;

    fn site() -> &'static Site {
        static CALLSITE: tracing_core::callsite::DefaultCallsite =
            tracing_core::callsite::DefaultCallsite::new(&METADATA);
        static METADATA: tracing_core::Metadata<'static> = tracing_core::metadata! {
            name: "span",
            target: "target",
            level: tracing_core::Level::INFO,
            fields: &[],
            callsite: &CALLSITE,
            kind: tracing_core::metadata::Kind::SPAN,
        };
        let _ = CALLSITE.metadata();
        site::of(&METADATA)
    }

    #[test]
    fn every_span_is_found_until_it_is_removed() {
        let spans = Spans::new();
        // More than there are places, and numbers that map to the same ones.
        let numbers: Vec<u64> = (1..40_000).chain((1..100).map(|high| high << 50 | 7)).collect();
        thread::scope(|scope| {
            for part in numbers.chunks(numbers.len() / 4) {
                let spans = &spans;
                scope.spawn(move || {
                    for &number in part {
                        spans.insert(number, Living { id: number * 3, site: site() });
                    }
                });
            }
        });
        assert!(spans.count.load(Relaxed) > 0);
        for &number in &numbers {
            assert_eq!(spans.find(number).map(|span| span.id), Some(number * 3));
        }
        thread::scope(|scope| {
            for part in numbers.chunks(numbers.len() / 4) {
                let spans = &spans;
                scope.spawn(move || {
                    for &number in part {
                        assert_eq!(spans.remove(number).map(|span| span.id), Some(number * 3));
                        assert!(spans.find(number).is_none());
                    }
                });
            }
        });
        assert!(numbers.iter().all(|number| spans.remove(*number).is_none()));
        assert_eq!(spans.count.load(Relaxed), 0);
    }
}
