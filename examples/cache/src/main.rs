//! A cache that is observed only when it misses too often: callbacks are attached to a trigger while the
//! program runs.
//!
//! ```text
//! cache [REQUESTS]
//! ```
//!
//! Most requests are for a few keys; now and then a scan reads many others once. While no callback is
//! attached, the trigger adds one instruction to an eviction.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tracewing_trigger::{AttachError, Attached, Trigger, fire};

const CAPACITY: usize = 64;
/// Keys that are requested again and again.
const HOT: u32 = 48;
/// A scan reads this many keys, each once.
const SCAN: u32 = 100;
/// Requests from one scan to the next.
const SCAN_EVERY: u32 = 1000;

/// An entry was replaced by another one.
struct Evicted {
    key: u32,
    by: u32,
}

static EVICTED: Trigger<Evicted> = Trigger::new();

/// The most recently used keys.
#[derive(Default)]
struct Cache {
    /// The most recently used key is at the front.
    keys: VecDeque<u32>,
    hits: u64,
    evictions: u64,
}

impl Cache {
    fn get(&mut self, key: u32) {
        match self.keys.iter().position(|known| *known == key) {
            Some(place) => {
                self.keys.remove(place);
                self.hits += 1;
            }
            None if self.keys.len() == CAPACITY => {
                if let Some(evicted) = self.keys.pop_back() {
                    self.evictions += 1;
                    fire!(EVICTED, &Evicted { key: evicted, by: key });
                }
            }
            None => {}
        }
        self.keys.push_front(key);
    }

    /// Serves these requests; their numbers determine the keys.
    fn serve(&mut self, requests: std::ops::Range<u32>) {
        for request in requests {
            let since_scan = request % SCAN_EVERY;
            self.get(if since_scan < SCAN { HOT + request } else { request.wrapping_mul(0x9e37_79b1) % HOT });
        }
    }
}

/// Counts evictions by cause, from its creation until it is dropped.
struct Watch {
    counts: Arc<Counts>,
    _attached: Attached<Evicted>,
}

#[derive(Default)]
struct Counts {
    all: AtomicU64,
    /// Evictions of keys that are requested again and again.
    of_hot: AtomicU64,
    by_scans: AtomicU64,
}

impl Watch {
    fn attach() -> Result<Self, AttachError> {
        let counts = Arc::<Counts>::default();
        let count = counts.clone();
        let attached = EVICTED.attach(move |evicted: &Evicted| {
            count.all.fetch_add(1, Relaxed);
            count.of_hot.fetch_add(u64::from(evicted.key < HOT), Relaxed);
            count.by_scans.fetch_add(u64::from(evicted.by >= HOT), Relaxed);
        })?;
        Ok(Self { counts, _attached: attached })
    }
}

impl fmt::Display for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts { all, of_hot, by_scans } = &*self.counts;
        let [all, of_hot, by_scans] = [all, of_hot, by_scans].map(|count| count.load(Relaxed));
        write!(f, "{all} evictions: {by_scans} by scans; {of_hot} of keys that are asked for again")
    }
}

fn main() -> Result<(), AttachError> {
    let requests = std::env::args().nth(1).and_then(|requests| requests.parse().ok()).unwrap_or(200_000);
    let mut cache = Cache::default();
    cache.serve(0..requests / 2);
    println!("{} of {} requests were hits", cache.hits, requests / 2);
    if cache.hits * 100 < u64::from(requests / 2) * 95 {
        let watch = Watch::attach()?;
        cache.serve(requests / 2..requests);
        println!("{watch}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evictions_are_counted_while_a_callback_is_attached() {
        let mut cache = Cache::default();
        cache.serve(0..10_000);
        let before = cache.evictions;
        let watch = Watch::attach().unwrap();
        cache.serve(10_000..20_000);
        let watched = cache.evictions - before;
        let counts = watch.counts.clone();
        drop(watch);
        cache.serve(20_000..30_000);
        let [all, of_hot, by_scans] =
            [&counts.all, &counts.of_hot, &counts.by_scans].map(|count| count.load(Relaxed));
        assert!(watched > 0 && cache.evictions > before + watched);
        assert_eq!(all, watched);
        assert!(of_hot > 0 && by_scans > of_hot && by_scans < all);
    }
}
