//! What is certain of an index that grows.

use tracewing_index::{Index, Window};
use tracewing_units::Duration;

/// What was certain before the end is what the complete index has.
pub fn same_so_far(before: &Index, after: &Index) {
    let mut compared = 0;
    for (id, row) in before.rows().filter(|(id, _)| id.0 < 1 << 31) {
        let to = row.certain.min(before.tail().length);
        let sums = before.statistics(id, Duration::ZERO, to).unwrap();
        assert_eq!(sums, after.statistics(id, Duration::ZERO, to).unwrap(), "{row:?}");
        compared += usize::from(!sums.is_empty());
        let window = Window::covering(Duration::ZERO, to, 100);
        let certain = |index: &Index| {
            let mut buckets = index.picture(id, window).unwrap();
            buckets.retain(|bucket| (bucket.number + 1) << window.shift <= to.as_ns());
            buckets.into_iter().map(|bucket| (bucket.number, bucket.content.times)).collect::<Vec<_>>()
        };
        assert_eq!(certain(before), certain(after), "{row:?}");
    }
    assert!(compared > 3, "{compared}");
}
