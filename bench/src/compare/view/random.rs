//! Numbers that look like chance and are the same in each run.

/// The next numbers follow from this one: splitmix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 up to below 1.
    pub fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A window of `length`, of any width from `shortest` to all of it: each power of two is as probable.
    pub fn window(&mut self, length: f64, shortest: f64) -> (f64, f64) {
        let width = length * (shortest / length).min(1.0).powf(self.share());
        let from = (length - width) * self.share();
        (from, from + width)
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn windows_lie_within_and_have_all_widths() {
        let mut random = Random(1);
        let mut widths = Vec::new();
        for _ in 0..1000 {
            let (from, to) = random.window(1e9, 1e3);
            assert!(0.0 <= from && from < to && to <= 1e9 + 1.0, "{from} {to}");
            widths.push(to - from);
        }
        let below = widths.iter().filter(|width| **width < 1e6).count();
        assert!((400..600).contains(&below), "{below}");
        assert!(widths.iter().all(|width| *width >= 999.0));
    }
}
