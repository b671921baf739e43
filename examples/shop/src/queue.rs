//! A bounded queue: adding to a full one waits, and so does taking from an empty one.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};

/// A queue for several threads.
pub struct Queue<T> {
    items: Mutex<VecDeque<T>>,
    capacity: usize,
    changed: Condvar,
}

impl<T> Queue<T> {
    /// An empty queue for at most `capacity` items.
    pub fn new(capacity: usize) -> Self {
        Self { items: Mutex::new(VecDeque::with_capacity(capacity)), capacity, changed: Condvar::new() }
    }

    /// Adds an item; `added` gets it and the queue's new length before any thread can take it.
    pub fn push(&self, item: T, added: impl FnOnce(&T, usize)) {
        let items = self.items.lock().unwrap_or_else(PoisonError::into_inner);
        let mut items = self
            .changed
            .wait_while(items, |items| items.len() == self.capacity)
            .unwrap_or_else(PoisonError::into_inner);
        added(&item, items.len() + 1);
        items.push_back(item);
        drop(items);
        self.changed.notify_all();
    }

    /// Takes the oldest item; also returns how many are left.
    pub fn pop(&self) -> (T, usize) {
        let mut items = self.items.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(item) = items.pop_front() {
                let left = items.len();
                drop(items);
                self.changed.notify_all();
                return (item, left);
            }
            items = self.changed.wait(items).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_out_in_order() {
        let queue = Queue::new(3);
        let mut lengths = Vec::new();
        for item in [1, 2, 3] {
            queue.push(item, |_, length| lengths.push(length));
        }
        assert_eq!(lengths, [1, 2, 3]);
        assert_eq!([queue.pop(), queue.pop(), queue.pop()], [(1, 2), (2, 1), (3, 0)]);
    }

    #[test]
    fn a_full_queue_makes_its_producer_wait() {
        let queue = Queue::new(1);
        std::thread::scope(|scope| {
            scope.spawn(|| (0..100).for_each(|item| queue.push(item, |_, length| assert_eq!(length, 1))));
            assert_eq!((0..100).map(|_| queue.pop().0).collect::<Vec<_>>(), (0..100).collect::<Vec<_>>());
        });
    }
}
