//! Which spans of `tracing` a thread is in, for the innermost of which the thread's next event or span
//! belongs to.
//!
//! The innermost one itself is in the thread's word that `span!` uses, too, so that spans of both sorts can
//! be nested in each other. Here is what the word said before each of them: unlike the guard of a `span!`,
//! the layer has no other place for it.

use std::cell::RefCell;
use tracewing::dynamic::span;

struct Entered {
    id: u64,
    /// What the thread was in before.
    before: u64,
}

thread_local! {
    static ENTERED: RefCell<Vec<Entered>> = const { RefCell::new(Vec::new()) };
}

/// The thread is in the span from now on.
pub fn enter(id: u64) {
    with(|entered| entered.push(Entered { id, before: span::enter(id) }));
}

/// The thread is out of the span; which need not be the innermost.
pub fn exit(id: u64) {
    with(|entered| {
        if let Some(at) = entered.iter().rposition(|entered| entered.id == id) {
            span::leave(id, entered.remove(at).before);
        }
    });
}

/// A thread that is about to end, or a destructor of whose is emitting, has no list any more: it is in no
/// span.
fn with(change: impl FnOnce(&mut Vec<Entered>)) {
    let _ = ENTERED.try_with(|entered| entered.try_borrow_mut().map(|mut entered| change(&mut entered)));
}
