//! For tests of what counts things while they change: a recount finds as many.

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::fmt::Debug;
use std::ops::Range;
use tracewing_units::Pid;

/// Has `apply` change a new value in any ways, each of one of four kinds with a process and some addresses.
/// After each, `counts` gives what is counted and what a recount finds; `ends` gets the last value.
pub(crate) fn check<T: Default, C: PartialEq + Debug>(
    apply: impl Fn(&mut T, u8, Pid, Range<u64>),
    counts: impl Fn(&T) -> [C; 2],
    ends: impl Fn(&T),
) {
    let changes = prop::collection::vec((0..4_u8, 1..4_i32, 0..16_u64, 1..6_u64), 0..100);
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    let checked = TestRunner::new(config).run(&changes, |changes| {
        let mut value = T::default();
        for (kind, process, begin, length) in changes {
            apply(&mut value, kind, Pid(process), begin..begin + length);
            let [counted, found] = counts(&value);
            prop_assert_eq!(counted, found);
        }
        ends(&value);
        Ok(())
    });
    checked.unwrap();
}
