//! Numbers that identify call chains and loaded files in events.

/// Hashes numbers to one that is never 0, and wide enough that two chains do not share one.
pub(crate) fn hash(numbers: impl Iterator<Item = u64>) -> u64 {
    // Multiply and fold, with an odd constant whose bits look random.
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let fold = |hash: u64, number: u64| {
        let product = u128::from(hash ^ number ^ FACTOR) * u128::from(FACTOR);
        (product as u64) ^ ((product >> 64) as u64)
    };
    numbers.fold(FACTOR.rotate_left(31), fold).max(1)
}
