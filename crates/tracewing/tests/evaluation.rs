//! Arguments are evaluated when an event is wanted, and only then; nothing is moved.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tracewing::__private::pretend;
use tracewing::{Event, emit, event};

#[derive(Event)]
struct Job<'a> {
    id: u64,
    name: &'a str,
}

/// Early returns and errors inside arguments belong to the function around.
fn fallible(text: &str, count: &Cell<u32>) -> Result<(), std::num::ParseIntError> {
    emit!(Job { id: text.parse()?, name: text });
    count.set(count.get() + 1);
    event!("evaluation:fallible", id = text.parse::<u64>()?, text);
    count.set(count.get() + 1);
    Ok(())
}

#[test]
fn arguments_are_evaluated_only_when_wanted() {
    let count = Cell::new(0);
    let seen = |value: u64| {
        count.set(count.get() + 1);
        value
    };
    let name = String::from("Ada");
    let all_sites = || {
        emit!(Job { id: seen(1), name: &name });
        let job = Job { id: 1, name: &name };
        emit!(job);
        emit!(&job);
        event!("evaluation:ad_hoc", id = seen(2), name, temporary = &*format!("{name}{}", seen(3)));
        event!(level: Error, "evaluation:level", id = seen(4));
    };

    all_sites();
    assert_eq!(count.get(), 0);
    assert!(fallible("no number", &count).is_ok());
    assert_eq!(count.take(), 2);

    pretend(true);
    all_sites();
    assert_eq!(count.take(), 4);
    assert!(fallible("no number", &count).is_err());
    assert!(fallible("5", &count).is_ok());
    assert_eq!(count.take(), 2);

    let text = String::from("in an argument");
    let id = || -> u64 { std::panic::panic_any(text.clone()) };
    let panics = || emit!(Job { id: id(), name: &text });
    let panic = catch_unwind(AssertUnwindSafe(panics)).unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&text));

    pretend(false);
    all_sites();
    assert_eq!((count.get(), name.as_str()), (0, "Ada"));
}
