//! Bars made of block characters.

/// A bar for `count`; the longest one, for `most`, has `width` characters.
pub fn bar(count: u64, most: u64, width: u64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (u128::from(count) * u128::from(width * 8)).div_ceil(u128::from(most.max(1))) as usize;
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

#[cfg(test)]
mod tests {
    use super::bar;

    #[test]
    fn bars_are_as_long_as_their_part() {
        assert_eq!(bar(0, 0, 10), "");
        assert_eq!(bar(8, 8, 10), "█".repeat(10));
        assert_eq!(bar(1, 2, 1), "▌");
        assert_eq!(bar(1, u64::MAX, 50), "▏");
    }
}
