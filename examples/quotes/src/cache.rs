//! The server's cache of prices. `Slow` has the bug of the tutorial; `Quick` is the same cache without it.

use std::collections::HashMap;
use std::time::{Duration, Instant};
use tracewing_tokio::sync::Mutex;

/// Response time of the exchange.
const EXCHANGE: Duration = Duration::from_millis(5);

/// Lifetime of a price.
const VALID: Duration = Duration::from_millis(250);

/// A price, and the time when the exchange returned it.
type Entry = (u64, Instant);

/// The last known price of each item.
pub struct Cache {
    prices: Mutex<HashMap<u64, Entry>>,
    fixed: bool,
}

impl Cache {
    /// An empty cache. `fixed`: without the bug.
    pub fn new(fixed: bool) -> Self {
        Self { prices: Mutex::new(HashMap::new()), fixed }
    }

    /// The price of an item, from the cache or the exchange.
    pub async fn price(&self, item: u64) -> u64 {
        if self.fixed { self.price_fixed(item).await } else { self.price_slow(item).await }
    }

    /// The bug: the guard lives across the `.await`, so all other requests wait for this one's exchange.
    async fn price_slow(&self, item: u64) -> u64 {
        let mut prices = self.prices.lock().await;
        if let Some(price) = valid(prices.get(&item)) {
            return price;
        }
        let price = ask_exchange(item).await;
        prices.insert(item, (price, Instant::now()));
        price
    }

    /// The fix: the guard is dropped before the `.await`, and taken again for the moment of the insertion.
    async fn price_fixed(&self, item: u64) -> u64 {
        if let Some(price) = valid(self.prices.lock().await.get(&item)) {
            return price;
        }
        let price = ask_exchange(item).await;
        self.prices.lock().await.insert(item, (price, Instant::now()));
        price
    }
}

/// The price of an entry, if it is still valid.
fn valid(entry: Option<&Entry>) -> Option<u64> {
    entry.filter(|(_, since)| since.elapsed() < VALID).map(|(price, _)| *price)
}

/// Simulates a request over the network.
async fn ask_exchange(item: u64) -> u64 {
    tokio::time::sleep(EXCHANGE).await;
    item * 7 + 1
}
