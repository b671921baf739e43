//! Functions with `#[traced]`, in recordings.

#[path = "../../tracing/tests/recorded/mod.rs"]
mod recorded;

use recorded::{alone, record};
use tracewing::traced;

#[traced]
fn depth(left: u32) -> u32 {
    if left == 0 {
        return 0;
    }
    1 + depth(left - 1)
}

#[traced]
fn first<T: Copy>(all: &[T]) -> T {
    all[0]
}

struct Counter(u32);

#[traced]
impl Counter {
    const fn zero() -> Self {
        Self(0)
    }

    fn next(&mut self) -> u32 {
        self.0 += 1;
        self.0
    }

    async fn ready(&self) -> u32 {
        self.0
    }
}

#[test]
fn functions_begin_and_end() {
    let _alone = alone();
    let events = record(&["function:*"], || {
        assert_eq!(depth(2), 2);
        assert_eq!((first(&[7]), first(&["a"])), (7, "a"));
        let mut counter = Counter::zero();
        assert_eq!(counter.next(), 1);
        drop(counter.ready());
        std::panic::catch_unwind(|| first::<u8>(&[])).unwrap_err();
    });
    let names: Vec<&str> = events.iter().map(|event| event.name.as_str()).collect();
    let (entry, exit) = ("function:entry:functions::", "function:exit:functions::");
    let (depth, first, next) = ("depth", "first", "Counter::next");
    let expected = [
        (entry, depth),
        (entry, depth),
        (entry, depth),
        (exit, depth),
        (exit, depth),
        (exit, depth),
        (entry, first),
        (exit, first),
        (entry, first),
        (exit, first),
        (entry, next),
        (exit, next),
        (entry, first),
        (exit, first),
    ];
    assert_eq!(names, expected.map(|(boundary, function)| format!("{boundary}{function}")));
}
