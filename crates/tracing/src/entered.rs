//! The spans of `tracing` that a thread is in: the innermost one is the parent of the thread's next event or
//! span.
//!
//! The innermost span is stored in the thread's word that `span!` also uses, so that spans of both sorts can
//! be nested in each other. This module keeps the previous value of the word for each span: unlike the guard
//! of a `span!`, the layer has no other place for it.

use std::cell::RefCell;
use tracewing::dynamic::span;

struct Entered {
    id: u64,
    /// The span that the thread was in before.
    before: u64,
}

thread_local! {
    static ENTERED: RefCell<Vec<Entered>> = const { RefCell::new(Vec::new()) };
}

/// Enters the span on the calling thread.
pub(crate) fn enter(id: u64) {
    with(|entered| entered.push(Entered { id, before: span::enter(id) }));
}

/// Leaves the span on the calling thread; it need not be the innermost.
pub(crate) fn exit(id: u64) {
    with(|entered| {
        if let Some(at) = entered.iter().rposition(|entered| entered.id == id) {
            span::leave(id, entered.remove(at).before);
        }
    });
}

/// A thread that is about to end, or whose destructors emit, no longer has a list: it is in no span.
fn with(change: impl FnOnce(&mut Vec<Entered>)) {
    let _ = ENTERED.try_with(|entered| entered.try_borrow_mut().map(|mut entered| change(&mut entered)));
}
