//! Sets of integers as ranges: first and last value of each.

/// One range after the other.
pub(super) type Ranges = Vec<(i128, i128)>;

/// What of `ranges` is not in `others`.
pub(super) fn without(ranges: &[(i128, i128)], others: &[(i128, i128)]) -> Ranges {
    let mut left = ranges.to_vec();
    for &(first, last) in others {
        left = left
            .into_iter()
            .flat_map(|(low, high)| [(low, high.min(first - 1)), (low.max(last + 1), high)])
            .filter(|(low, high)| low <= high)
            .collect();
    }
    left
}

/// What of `ranges` is in `others`.
pub(super) fn inside(ranges: &[(i128, i128)], others: &[(i128, i128)]) -> Ranges {
    without(ranges, &without(&[(i128::MIN / 2, i128::MAX / 2)], others))
}

/// The same set with as few ranges as it takes, in order.
pub(super) fn normal(ranges: &[(i128, i128)]) -> Ranges {
    let mut sorted = ranges.to_vec();
    sorted.sort_unstable();
    let mut merged: Ranges = Vec::new();
    for (first, last) in sorted {
        match merged.last_mut() {
            Some((_, end)) if first <= *end + 1 => *end = last.max(*end),
            _ => merged.push((first, last)),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets() {
        assert_eq!(without(&[(0, 10)], &[(3, 4), (10, 12)]), [(0, 2), (5, 9)]);
        assert_eq!(without(&[(-5, 5), (7, 7)], &[(-9, 9)]), []);
        assert_eq!(without(&[(1, 2)], &[]), [(1, 2)]);
        assert_eq!(inside(&[(-3, 4), (7, 900), (901, 902)], &[(0, 255)]), [(0, 4), (7, 255)]);
        assert_eq!(normal(&[(5, 6), (0, 1), (2, 3), (6, 9)]), [(0, 3), (5, 9)]);
    }
}
