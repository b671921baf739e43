//! Spans: intervals of a thread's or a future's time with a beginning, an end and a parent.
//!
//! A span is a few events that share its id; `docs/reference/spans.md` describes them. The innermost span of
//! a thread is one word of its own memory ([`enter`], [`leave`]), which the bridge from `tracing` uses as
//! well, so that spans of both kinds are nested in each other. Ids are counted from random numbers
//! ([`next_id`]).

use core::future::Future;
use core::marker::PhantomData;
use core::num::NonZeroU64;
use core::pin::Pin;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use core::task::{Context, Poll};

use tracewing_abi::schema::{Base, Level};
use tracewing_ring::thread;
use tracewing_vocabulary::Field;
use tracewing_vocabulary::span::Begin;

use crate::declaration::{Declaration, FieldDeclaration};
use crate::event::AdHocSite;
use crate::words;

/// The id of a span that is recorded. No other span has it, in this process or (as far as chance allows, with
/// 64 bits) in another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId(NonZeroU64);

impl SpanId {
    /// The innermost span that the calling thread is in; `None` where none of those that it is in is
    /// recorded.
    pub fn innermost() -> Option<Self> {
        NonZeroU64::new(innermost()).map(Self)
    }

    /// The number that stands in the trace.
    pub fn get(self) -> NonZeroU64 {
        self.0
    }
}

/// What the author of a `span!` wrote.
#[doc(hidden)]
pub trait SpanDeclaration {
    const LEVEL: Level;
    const FILE: &'static str;
    const LINE: u32;
    /// Full names of the classes that have no fields but `span`, at the indices `END` and so on.
    const NAMES: [&'static str; 4];
}

const END: usize = 0;
const ENTER: usize = 1;
const EXIT: usize = 2;
const CLOSE: usize = 3;

/// The class of one of these events.
struct Moment<D, const INDEX: usize>(PhantomData<fn(D)>);

impl<D: SpanDeclaration, const INDEX: usize> Declaration for Moment<D, INDEX> {
    const NAME: &'static str = D::NAMES[INDEX];
    const LEVEL: Level = D::LEVEL;
    const MAJOR: u8 = 0;
    const DESCRIPTION: &'static str = "";
    const PRINT: &'static str = "";
    const FILE: &'static str = D::FILE;
    const LINE: u32 = D::LINE;
    const FIELDS: &'static [FieldDeclaration] = &[FieldDeclaration::SPAN];
}

impl FieldDeclaration {
    /// The span that an event is about.
    pub const SPAN: Self = Self::of_span(Begin::span);
    /// The span that a beginning one belongs to.
    pub const PARENT: Self = Self::of_span(Begin::parent);

    const fn of_span(field: &Field) -> Self {
        Self { name: field.name, base: Base::Hexadecimal, unit: "" }
    }
}

/// Emits one of these events, if some recording wants it.
#[inline(always)]
fn emit_event<D: SpanDeclaration, const INDEX: usize>(id: u64) {
    let site = AdHocSite::<Moment<D, INDEX>, (&u64, ()), 1>::new();
    if site.is_on() {
        site.record((&id, ()));
    }
}

/// A span that is about to begin.
#[doc(hidden)]
#[derive(Default)]
pub struct Opening {
    /// 0: the beginning event is not enabled.
    id: u64,
}

impl Opening {
    /// The span's id, for the beginning event. The span is recorded only if a recording enables that event.
    #[cold]
    pub fn begin(&mut self) -> u64 {
        self.id = next_id();
        self.id
    }

    /// What the thread is in.
    #[cold]
    pub fn parent(&self) -> u64 {
        innermost()
    }

    /// The parent as given.
    #[cold]
    pub fn explicit(parent: impl Into<Option<SpanId>>) -> u64 {
        parent.into().map_or(0, |parent| parent.0.get())
    }

    /// The thread is in the span from now on, if it is recorded.
    #[inline(always)]
    pub fn guard<D: SpanDeclaration>(self) -> Span<D> {
        let before = if self.id == 0 { 0 } else { enter(self.id) };
        Span { id: self.id, before, _declaration: PhantomData }
    }
}

/// A span that the thread is in until this value is dropped; made by [`span!`](crate::span!).
///
/// It stays on its thread. Do not hold it across an `.await`, where the thread goes to other tasks: use
/// [`Span::instrument`].
#[must_use = "the span ends when this is dropped, at once if it is not bound to a name"]
pub struct Span<D: SpanDeclaration> {
    /// 0: the span is not recorded.
    id: u64,
    before: u64,
    /// Not `Send`.
    _declaration: PhantomData<*const D>,
}

impl<D: SpanDeclaration> Span<D> {
    /// The span's id, for spans on other threads to name it as their parent; `None` where it is not recorded.
    pub fn id(&self) -> Option<SpanId> {
        NonZeroU64::new(self.id).map(SpanId)
    }

    /// Lets a future have the span: the thread leaves it now, and is in it again whenever it polls the
    /// future. The span ends when the future is dropped, which an executor does when it has completed.
    ///
    /// ```
    /// async fn serve(order: u64) {
    ///     // …
    /// }
    ///
    /// fn start(order: u64) -> impl Future<Output = ()> + Send {
    ///     tracewing::span!("shop:order", order).instrument(serve(order))
    /// }
    /// # drop(start(7));
    /// ```
    pub fn instrument<F: Future>(self, future: F) -> Instrumented<F, D> {
        let span = Detached { id: self.id, _declaration: PhantomData };
        if self.id != 0 {
            Entered { span: &span, before: self.before };
        }
        core::mem::forget(self);
        Instrumented { future, span }
    }
}

impl<D: SpanDeclaration> Drop for Span<D> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.id != 0 {
            leave(self.id, self.before);
            emit_event::<D, END>(self.id);
        }
    }
}

/// A span that no thread need be in; closed when it is dropped.
struct Detached<D: SpanDeclaration> {
    /// 0: the span is not recorded.
    id: u64,
    _declaration: PhantomData<fn(D)>,
}

impl<D: SpanDeclaration> Detached<D> {
    fn enter(&self) -> Option<Entered<'_, D>> {
        (self.id != 0).then(|| {
            let before = enter(self.id);
            emit_event::<D, ENTER>(self.id);
            Entered { span: self, before }
        })
    }
}

impl<D: SpanDeclaration> Drop for Detached<D> {
    fn drop(&mut self) {
        if self.id != 0 {
            emit_event::<D, CLOSE>(self.id);
        }
    }
}

/// The thread is in a span, until this is dropped.
struct Entered<'a, D: SpanDeclaration> {
    span: &'a Detached<D>,
    before: u64,
}

impl<D: SpanDeclaration> Drop for Entered<'_, D> {
    fn drop(&mut self) {
        leave(self.span.id, self.before);
        emit_event::<D, EXIT>(self.span.id);
    }
}

/// A future with a span ([`Span::instrument`]).
#[must_use = "futures do nothing unless polled"]
pub struct Instrumented<F, D: SpanDeclaration> {
    // Dropped first: what its destructors emit comes before the span's end.
    future: F,
    span: Detached<D>,
}

impl<F: Future, D: SpanDeclaration> Future for Instrumented<F, D> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: `future` stays where it is: nothing here moves it, the type has no `Drop` of its own and is
        // `Unpin` only if the future is. `span` is not pinned.
        let (future, span) = unsafe {
            let this = self.get_unchecked_mut();
            (Pin::new_unchecked(&mut this.future), &this.span)
        };
        let _entered = span.enter();
        future.poll(context)
    }
}

/// Ids of one block: a random number, and this many that follow it.
const BLOCK: u64 = 1 << 16;

/// An id for a new span.
#[doc(hidden)]
pub fn next_id() -> u64 {
    // One instruction, since a signal handler may want an id, too.
    match words::with(|words| thread::count(words.next_span)) {
        spent if spent % BLOCK == 0 => begin_block(),
        id => id,
    }
}

#[cold]
fn begin_block() -> u64 {
    let first = mix(seed() ^ mix(thread::with(origin))) / BLOCK * BLOCK + 1;
    words::with(|words| words.next_span.store(first + 1, Relaxed));
    first
}

/// Where and when the block begins, on this machine: no other thread's, and no other time's.
fn origin(mark: &thread::Mark) -> u64 {
    /// Blocks so far, for threads that may not read the clock.
    static BLOCKS: AtomicU64 = AtomicU64::new(0);
    let blocks = BLOCKS.fetch_add(1, Relaxed);
    let now = if mark.silent.load(Relaxed) == 0 { thread::unique_key() } else { 0 };
    let tid = u64::from(mark.entries[0].tid.load(Relaxed).unsigned_abs());
    mix(now ^ mix(tid << 32 ^ blocks)) ^ core::ptr::from_ref(mark).addr() as u64
}

/// A random number that the kernel gives each program that it executes; no system call.
fn seed() -> u64 {
    // SAFETY: a number; 0 where the kernel does not say.
    let random = unsafe { libc::getauxval(libc::AT_RANDOM) } as *const u64;
    // SAFETY: null, or 16 bytes that stay.
    if random.is_null() { 0 } else { unsafe { random.read_unaligned() } }
}

/// Spreads a number over all bits, one to one (the last step of SplitMix64).
fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// The innermost span that the calling thread is in, 0 for none.
#[doc(hidden)]
#[inline]
pub fn innermost() -> u64 {
    words::with(|words| words.span.load(Relaxed))
}

/// The calling thread enters this span. Returns its previous span, for [`leave`].
#[doc(hidden)]
#[inline]
pub fn enter(id: u64) -> u64 {
    // A signal handler in between leaves the word as it finds it.
    words::with(|words| {
        let before = words.span.load(Relaxed);
        words.span.store(id, Relaxed);
        before
    })
}

/// The calling thread leaves the span.
///
/// Spans may end in another order than the reverse of that in which they began. A span that is left while
/// others are inside is remembered, so that the thread does not return to it when they end. If several
/// non-adjacent ones are out of order, only one is remembered: then a later span may have a parent that has
/// ended.
#[doc(hidden)]
#[inline]
pub fn leave(id: u64, before: u64) {
    words::with(|words| {
        let is = |word: &AtomicU64, id| word.load(Relaxed) == id;
        let around = match before {
            0 => 0,
            ended if is(words.ended_span, ended) => words.around_ended.load(Relaxed),
            open => open,
        };
        if is(words.span, id) {
            words.span.store(around, Relaxed);
        } else {
            if !is(words.around_ended, id) {
                words.ended_span.store(id, Relaxed);
            }
            words.around_ended.store(around, Relaxed);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_differ() {
        let ids = || (0..2 * BLOCK).map(|_| next_id()).collect::<Vec<_>>();
        let other = std::thread::spawn(ids);
        let mut all = [ids(), other.join().unwrap()].concat();
        all.sort_unstable();
        all.dedup();
        assert!(all.len() == 4 * BLOCK as usize && !all.contains(&0));
    }

    #[test]
    fn spans_end_in_any_order() {
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let outer = next_id();
            assert_eq!(enter(outer), 0);
            let open = [(); 3].map(|()| next_id()).map(|id| (id, enter(id)));
            for (count, at) in order.into_iter().enumerate() {
                leave(open[at].0, open[at].1);
                let is_open = |at: &usize| !order[..=count].contains(at);
                let expected = [2, 1, 0].into_iter().find(is_open).map_or(outer, |at| open[at].0);
                assert_eq!(innermost(), expected, "{order:?} after {count}");
            }
            leave(outer, 0);
            assert_eq!(innermost(), 0);
        }
    }
}
