//! Functions that record when they begin and end ([`traced`](macro@crate::traced)).

use core::marker::PhantomData;

use tracewing_abi::schema::{self, Level};

use crate::class::EventClass;
use crate::declaration::{Declaration, Description, FieldDeclaration, describe, mistake};
use crate::event::{Event, EventSite, Location};
use crate::payload::{self, Sink};

const ENTRY: usize = 0;
const EXIT: usize = 1;

/// Implemented by the expansion of the attribute, once per function.
#[doc(hidden)]
pub trait FunctionDeclaration: 'static {
    /// Full names of its classes, at the indices `ENTRY` and `EXIT`.
    const NAMES: [&'static str; 2];
    const FILE: &'static str;
    const LINE: u32;

    /// Its classes, likewise: what [`function_classes`] makes.
    fn classes() -> &'static [EventClass; 2];
}

/// The classes of a function.
#[doc(hidden)]
pub const fn function_classes<F: FunctionDeclaration>() -> [EventClass; 2] {
    if let Some(mistake) = mistake::<Boundary<F, ENTRY>>() {
        panic!("{}", mistake)
    }
    [
        EventClass::new(describe::<Boundary<F, ENTRY>, (), 0>),
        EventClass::new(describe::<Boundary<F, EXIT>, (), 0>),
    ]
}

/// The beginning or the end of a function: its event, declaration and place.
struct Boundary<F, const INDEX: usize>(PhantomData<fn(F)>);

impl<F: FunctionDeclaration, const INDEX: usize> Declaration for Boundary<F, INDEX> {
    const NAME: &'static str = F::NAMES[INDEX];
    const LEVEL: Level = Level::Trace;
    const MAJOR: u8 = 0;
    const DESCRIPTION: &'static str = "";
    const PRINT: &'static str = "";
    const FILE: &'static str = F::FILE;
    const LINE: u32 = F::LINE;
    const FIELDS: &'static [FieldDeclaration] = &[];
}

impl<F: FunctionDeclaration, const INDEX: usize> Location for Boundary<F, INDEX> {
    const FILE: &'static str = F::FILE;
    const LINE: u32 = F::LINE;
}

impl<F: FunctionDeclaration, const INDEX: usize> Event for Boundary<F, INDEX> {
    #[inline(always)]
    fn class() -> &'static EventClass {
        &F::classes()[INDEX]
    }

    const DESCRIPTION: &'static schema::Class<'static> = Description::<Self, (), 0>::CLASS;

    #[inline(always)]
    fn send<S: Sink>(&self, sink: S) {
        payload::fixed::<0, 0, false, _, S>(&(), sink);
    }
}

/// A function that runs, until this is dropped.
#[doc(hidden)]
pub struct Function<F: FunctionDeclaration>(PhantomData<fn(F)>);

impl<F: FunctionDeclaration> Function<F> {
    #[inline(always)]
    pub fn begins() -> Self {
        emit_event::<F, ENTRY>();
        Self(PhantomData)
    }
}

impl<F: FunctionDeclaration> Drop for Function<F> {
    #[inline(always)]
    fn drop(&mut self) {
        emit_event::<F, EXIT>();
    }
}

#[inline(always)]
fn emit_event<F: FunctionDeclaration, const INDEX: usize>() {
    let site = EventSite::<Boundary<F, INDEX>, Boundary<F, INDEX>>::new();
    if site.is_on() {
        site.record(&Boundary(PhantomData));
    }
}
