//! Spans: their ids, and the calling thread's current one.

use tracewing::dynamic::span;

/// `struct tracewing_span`.
#[repr(C)]
struct Span {
    id: u64,
    before: u64,
}

#[unsafe(no_mangle)]
extern "C" fn tracewing_span_innermost() -> u64 {
    span::innermost()
}

/// Begins a span: returns its id, and stores the thread's previous span in `before`.
#[unsafe(no_mangle)]
extern "C" fn tracewing_span_begin_2(before: &mut u64) -> u64 {
    let id = span::next_id();
    *before = span::enter(id);
    id
}

/// Ends a span, if it has begun.
#[unsafe(no_mangle)]
extern "C" fn tracewing_span_end_2(begun: &mut Span) -> bool {
    if begun.id != 0 {
        span::leave(begun.id, begun.before);
    }
    begun.id != 0
}
