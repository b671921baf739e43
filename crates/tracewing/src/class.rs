//! Event classes: one record of 16 bytes each, which the event path reads and the agent finds, and the description
//! behind it.
//!
//! The records of a program, or of a shared library, lie one behind the other in its section `tracewing_classes_1`;
//! the linker says where that begins and ends. So the agent knows every class before the first event, no list is
//! built at start-up, and a plug-in that has its own copy of this crate has its own list. The number at the end of the
//! section's name changes with the layout of [`EventClass`]: copies of different versions of this crate may be linked
//! into one program and never read each other's records.
//!
//! A record gets into the section in one of two ways. A derived class is a `static` there. An ad-hoc class
//! ([`event!`](crate::event)) cannot be one, since a `static` cannot have the types that the compiler infers from the
//! arguments: its record is written by the assembler, through directives in the code of the site ([`ad_hoc`]), with a
//! pointer to the instance of [`describe`] for those types. Where the compiler copies that code (inlining, generic
//! functions) each copy has its own record, with the same description or another one as the types ask; the recorder
//! gives equal descriptions the same id.
//!
//! The list is that of the object that this crate's code is in. Where a Rust `dylib` (not a `cdylib`) holds that code
//! for a program as well, the program's own classes stay off.
//!
//! Who sets the ids, and when, is the agent's business; what a description says is
//! [`declaration`](crate::declaration)'s.

use crate::declaration::{Declaration, FieldList, describe};
use core::sync::atomic::{AtomicU32, Ordering};
use tracewing_abi::schema;

/// An event class of this program: whether some recording wants its events, and what they are.
///
/// Made by [`derive(Event)`](crate::Event) and [`event!`](crate::event) only. Size and alignment are equal, so that
/// records from different object files follow each other without gaps.
#[repr(C, align(16))]
pub struct EventClass {
    id: AtomicU32,
    describe: fn() -> &'static schema::Class<'static>,
}

const _: () = assert!(size_of::<EventClass>() == 16 && align_of::<EventClass>() == 16);

impl EventClass {
    /// A class that is off.
    #[doc(hidden)]
    pub const fn new(describe: fn() -> &'static schema::Class<'static>) -> Self {
        Self { id: AtomicU32::new(0), describe }
    }

    /// Whether some recording wants events of this class: one relaxed load.
    #[inline(always)]
    pub fn is_on(&self) -> bool {
        self.id() != 0
    }

    /// The number by which the recording knows this class, 0 while it is off.
    #[inline(always)]
    pub fn id(&self) -> u32 {
        self.id.load(Ordering::Relaxed)
    }

    /// Switches the class on, or off with 0. Where no recording is joined, its events go nowhere.
    #[doc(hidden)]
    pub fn set_id(&self, id: u32) {
        self.id.store(id, Ordering::Relaxed);
    }

    /// Name, level, fields and the like.
    pub fn description(&self) -> &'static schema::Class<'static> {
        (self.describe)()
    }
}

/// Keeps the section alive in a program without any class.
#[used]
#[unsafe(link_section = "tracewing_classes_1")]
static NONE: EventClass =
    EventClass::new(|| unreachable!("`all` leaves this record out, so nobody asks what it describes"));

// SAFETY: the linker defines both for every section whose name is an identifier (`NONE` sees to it that there is one).
unsafe extern "C" {
    #[link_name = "__start_tracewing_classes_1"]
    static START: [u8; 0];
    #[link_name = "__stop_tracewing_classes_1"]
    static STOP: [u8; 0];
}

/// The classes of the program or shared library that this copy of the crate is linked into, in no order. A class may
/// come several times, then with equal descriptions; each record must be switched on by itself.
pub fn all() -> impl Iterator<Item = &'static EventClass> {
    // SAFETY: directives for the assembler, no instruction. They keep the dynamic linker from taking another object's
    // symbols for ours.
    unsafe {
        core::arch::asm!(
            ".hidden __start_tracewing_classes_1",
            ".hidden __stop_tracewing_classes_1",
            options(nomem, nostack, preserves_flags)
        );
    }
    let (start, stop) = (&raw const START as usize, &raw const STOP as usize);
    let first = &raw const START as *const EventClass;
    (0..(stop - start) / size_of::<EventClass>()).filter_map(move |index| {
        // SAFETY: the linker defines the two symbols as begin and end of the section, in which only `EventClass`
        // records are put, each as large as its alignment, hence without gaps; they are never changed but through
        // their atomics, and live as long as this code is loaded.
        let class = unsafe { &*first.add(index) };
        (!core::ptr::eq(class, &NONE)).then_some(class)
    })
}

/// The record of an ad-hoc class, made where this is inlined.
#[doc(hidden)]
#[inline(always)]
pub fn ad_hoc<D: Declaration, F: FieldList<D>, const N: usize>() -> &'static EventClass {
    let class: *const EventClass;
    // SAFETY: `pushsection` to `popsection` lay out an `EventClass` (zero id, four bytes of padding, function pointer)
    // aligned as that type is; the instructions take its address, touch no memory and no flags.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        core::arch::asm!(
            ".pushsection tracewing_classes_1, \"aw\", @progbits",
            ".balign 16",
            "2: .quad 0, {describe}",
            ".popsection",
            "lea {class}, [rip + 2b]",
            class = out(reg) class,
            describe = sym describe::<D, F, N>,
            options(pure, nomem, nostack, preserves_flags)
        );
        #[cfg(target_arch = "aarch64")]
        core::arch::asm!(
            ".pushsection tracewing_classes_1, \"aw\", @progbits",
            ".balign 16",
            "2: .quad 0, {describe}",
            ".popsection",
            "adrp {class}, 2b",
            "add {class}, {class}, :lo12:2b",
            class = out(reg) class,
            describe = sym describe::<D, F, N>,
            options(pure, nomem, nostack, preserves_flags)
        );
        &*class
    }
}
