//! What the streams that wait have next, the first on top: a binary heap whose top is replaced in place.
//!
//! Where streams take turns, the top is replaced at every event, and most often stays on top:
//! [`std::collections::BinaryHeap`] has no operation for that without a guard.

use super::key::Key;

/// Keys, of which the least is the first.
#[derive(Debug)]
pub(super) struct Queue(Vec<Key>);

impl Queue {
    pub(super) fn with_capacity(count: usize) -> Self {
        Queue(Vec::with_capacity(count))
    }

    #[inline]
    pub(super) fn first(&self) -> Option<Key> {
        self.0.first().copied()
    }

    /// Puts a key in the place of the first, and returns what is first then.
    #[inline]
    pub(super) fn replace_first(&mut self, key: Key) -> Key {
        match &mut self.0[..] {
            [] => key,
            [first] => {
                *first = key;
                key
            }
            keys => {
                sink(keys, key);
                keys[0]
            }
        }
    }

    pub(super) fn push(&mut self, key: Key) {
        self.0.push(key);
        let mut place = self.0.len() - 1;
        while place > 0 && key.is_before(&self.0[(place - 1) / 2]) {
            self.0[place] = self.0[(place - 1) / 2];
            place = (place - 1) / 2;
        }
        self.0[place] = key;
    }

    pub(super) fn pop(&mut self) -> Option<Key> {
        let last = self.0.pop()?;
        let Some(first) = self.first() else { return Some(last) };
        self.replace_first(last);
        Some(first)
    }

    /// Takes all, in no order.
    pub(super) fn take(&mut self) -> Vec<Key> {
        std::mem::take(&mut self.0)
    }
}

impl Extend<Key> for Queue {
    fn extend<I: IntoIterator<Item = Key>>(&mut self, keys: I) {
        keys.into_iter().for_each(|key| self.push(key));
    }
}

/// Puts a key on top, and moves it down to where it belongs.
#[inline]
fn sink(keys: &mut [Key], key: Key) {
    let mut place = 0;
    while let Some(left) = keys.get(2 * place + 1) {
        let (mut child, mut least) = (2 * place + 1, *left);
        if let Some(right) = keys.get(child + 1)
            && right.is_before(left)
        {
            (child, least) = (child + 1, *right);
        }
        if !least.is_before(&key) {
            break;
        }
        keys[place] = least;
        place = child;
    }
    keys[place] = key;
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracewing_units::Timestamp;

    #[test]
    fn keys_come_in_order() {
        let (mut queue, mut expected, mut random) = (Queue::with_capacity(4), Vec::new(), 1_u64);
        for count in 0..100_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Few times, so that ranks and streams decide, too.
            let at = Timestamp::from_ns((random >> 60) as i64 - 8);
            let key = Key::new(at, (random >> 40) as u32 % 3, (random >> 33) as usize % 5);
            match (random >> 50) % 8 {
                0..3 if count % 1000 < 500 => {
                    queue.push(key);
                    expected.push(key);
                }
                3..6 => {
                    queue.replace_first(key);
                    if let Some(first) = expected.first_mut() {
                        *first = key;
                    }
                }
                _ => assert_eq!(queue.pop(), (!expected.is_empty()).then(|| expected.remove(0))),
            }
            expected.sort();
            assert_eq!(queue.first(), expected.first().copied());
        }
        let mut rest = queue.take();
        rest.sort();
        assert_eq!(rest, expected);
        assert_eq!(queue.pop(), None);
    }

    #[test]
    fn keys_at_the_ends_come_in_order() {
        let times = [i64::MIN, -1, 0, 1, i64::MAX].map(Timestamp::from_ns);
        let ends = [0, 1, u32::MAX];
        let mut keys = Vec::new();
        for at in times {
            for rank in ends {
                keys.extend(ends.map(|stream| Key::new(at, rank, stream as usize)));
            }
        }
        let mut queue = Queue::with_capacity(0);
        queue.extend(keys.iter().rev().copied());
        let sorted: Vec<Key> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(sorted, keys);
    }
}
