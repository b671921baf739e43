//! Events as values: the trait that [`derive(Event)`](macro@crate::Event) implements, and what
//! [`emit!`](crate::emit) and [`event!`](crate::event) do at their site. How an event's bytes come about is
//! [`payload`](crate::payload)'s part, how they reach a buffer [`path`](crate::path)'s.

use crate::class::EventClass;
use crate::declaration::{Declaration, Description, FieldList, ad_hoc};
use crate::path::{self, Gathered};
use crate::payload::{self, Sink};
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr;
use tracewing_abi::schema;
use tracewing_ring::Segment;
use tracewing_trigger::{Kind, Place, Site, cold_call, cold_call_at, here};

/// An event that a program can emit with [`emit!`](crate::emit).
///
/// Implemented by [`derive(Event)`](macro@crate::Event), and by references to events.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an event",
    label = "not an event",
    note = "events are structs with `#[derive(tracewing::Event)]`"
)]
pub trait Event {
    /// The type's event class.
    fn class() -> &'static EventClass;

    /// The class's description.
    #[doc(hidden)]
    const DESCRIPTION: &'static schema::Class<'static>;

    /// Hands the event's payload to `sink`, whether the class is on or not.
    #[doc(hidden)]
    fn send<S: Sink>(&self, sink: S);
}

impl<E: Event> Event for &E {
    #[inline(always)]
    fn class() -> &'static EventClass {
        E::class()
    }

    const DESCRIPTION: &'static schema::Class<'static> = E::DESCRIPTION;

    #[inline(always)]
    fn send<S: Sink>(&self, sink: S) {
        (**self).send(sink);
    }
}

/// The event path, for one class.
struct Record(&'static EventClass);

impl Sink for Record {
    /// # Safety
    /// As for the trait.
    #[inline(always)]
    unsafe fn fixed<const LEN: usize, const WORDS: usize, const ORDERED: bool>(
        self,
        payload: [MaybeUninit<u64>; WORDS],
    ) {
        // SAFETY: the caller's.
        unsafe { cold_call::<path::Fixed<LEN, ORDERED>, WORDS>(ptr::from_ref(self.0).cast(), payload) }
    }

    #[inline(always)]
    unsafe fn gather<const ORDERED: bool>(self, segments: &[Segment]) {
        let gathered = Gathered { segments, site: here() };
        // SAFETY: the caller's.
        unsafe {
            cold_call_at::<path::Gather<ORDERED>>(ptr::from_ref(self.0).cast(), (&raw const gathered).cast());
        }
    }
}

/// The same for a class that has to be asked for, which is better done out of the way.
struct RecordOf(fn() -> &'static EventClass);

impl Sink for RecordOf {
    /// # Safety
    /// As for the trait.
    #[inline(always)]
    unsafe fn fixed<const LEN: usize, const WORDS: usize, const ORDERED: bool>(
        self,
        payload: [MaybeUninit<u64>; WORDS],
    ) {
        // SAFETY: the caller's.
        unsafe { self.gather::<ORDERED>(&[Segment::new(payload.as_ptr().cast(), LEN)]) }
    }

    #[inline(always)]
    unsafe fn gather<const ORDERED: bool>(self, segments: &[Segment]) {
        let gathered = Gathered { segments, site: here() };
        // SAFETY: the caller's.
        unsafe {
            cold_call_at::<path::GatherOf<ORDERED>>(self.0 as *const (), (&raw const gathered).cast());
        }
    }
}

/// Where in the source a site is.
#[doc(hidden)]
pub trait Location {
    const FILE: &'static str;
    const LINE: u32;
}

/// The site of an `emit!`, before the event's type is known: the compiler infers it from the argument of
/// [`record`](Self::record), so that the class can be asked before that argument is evaluated.
#[doc(hidden)]
pub struct EventSite<L, E>(PhantomData<fn(L, E)>);

impl<L, E> EventSite<L, E> {
    #[allow(clippy::new_without_default, reason = "only `emit!` makes one")]
    #[inline(always)]
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

extern "C" fn owner<E: Event>() -> *const () {
    ptr::from_ref(E::class()).cast()
}

extern "C" fn ad_hoc_owner<D: Declaration, F: FieldList<D>, const N: usize>() -> *const () {
    ptr::from_ref(ad_hoc::<D, F, N>()).cast()
}

impl<L: Location, E: Event> Place for EventSite<L, E> {
    const SITE: &'static Site =
        &Site { class: E::DESCRIPTION, owner: owner::<E>, file: L::FILE, line: L::LINE, kind: Kind::Event };
}

impl<L: Location, E: Event> EventSite<L, E> {
    #[inline(always)]
    pub fn is_on(&self) -> bool {
        tracewing_trigger::is_on::<Self>()
    }
}

impl<L, E: Event> EventSite<L, E> {
    #[inline(always)]
    pub fn record(&self, event: &E) {
        event.send(Record(E::class()));
    }
}

/// The site of an `event!` of `N` fields, likewise.
#[doc(hidden)]
pub struct AdHocSite<D, F, const N: usize>(PhantomData<fn(D, F)>);

impl<D, F, const N: usize> AdHocSite<D, F, N> {
    #[allow(clippy::new_without_default, reason = "only `event!` makes one")]
    #[inline(always)]
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<D: Declaration, F: FieldList<D>, const N: usize> Place for AdHocSite<D, F, N> {
    const SITE: &'static Site = &Site {
        class: Description::<D, F, N>::CLASS,
        owner: ad_hoc_owner::<D, F, N>,
        file: D::FILE,
        line: D::LINE,
        kind: Kind::Event,
    };
}

impl<D: Declaration, F: FieldList<D>, const N: usize> AdHocSite<D, F, N> {
    #[inline(always)]
    pub fn is_on(&self) -> bool {
        tracewing_trigger::is_on::<Self>()
    }

    #[inline(always)]
    pub fn record(&self, fields: F) {
        payload::gather_inferred(&fields, RecordOf(ad_hoc::<D, F, N>));
    }
}

/// The payload of an event as bytes, for tests.
#[doc(hidden)]
pub fn to_bytes<E: Event + ?Sized>(event: &E) -> Vec<u8> {
    let mut bytes = Vec::new();
    event.send(Collect(&mut bytes));
    bytes
}

pub(crate) struct Collect<'a>(pub(crate) &'a mut Vec<u8>);

impl Sink for Collect<'_> {
    /// # Safety
    /// As for the trait.
    unsafe fn fixed<const LEN: usize, const WORDS: usize, const ORDERED: bool>(
        self,
        payload: [MaybeUninit<u64>; WORDS],
    ) {
        // SAFETY: the caller's.
        self.0.extend_from_slice(unsafe { core::slice::from_raw_parts(payload.as_ptr().cast(), LEN) });
    }

    unsafe fn gather<const ORDERED: bool>(self, segments: &[Segment]) {
        for segment in segments {
            // SAFETY: the caller's.
            self.0.extend_from_slice(unsafe { segment.bytes() });
        }
    }
}
