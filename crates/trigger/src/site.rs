//! The site's instruction, and its record in the object file.
//!
//! Each copy of a site that the compiler makes puts a [`Record`](crate::Record) into a section. The section
//! is tied to that of the code (`SHF_LINK_ORDER`), so that a linker which drops the function drops its
//! records.
//!
//! The first site of a compilation unit also emits what its program or library needs once: the node for
//! [`object`](crate::object), code at start and end of the program (or at `dlopen` and `dlclose`) that links
//! and unlinks the node, and the note for external readers. They form a group (`COMDAT`), of which the linker
//! keeps one per program or library. So every one of them has its own node, whether it has its own copy of
//! this crate or shares one in a Rust `dylib`; and an object without sites has none.
//!
//! The number in the names changes with each version of this crate that Cargo treats as incompatible: several
//! may be linked into one program and never see each other's sites.

use core::arch::asm;

use crate::object::Object;
use crate::{Place, Site, callback, object};

/// Called while an object is loaded.
pub extern "C" fn register(object: &'static Object) {
    object::add(object, callback::loaded);
}

/// Called while an object is unloaded, and when the program exits.
pub extern "C" fn unregister(object: &Object) {
    object::remove(object);
}

/// Lines for the assembler.
macro_rules! lines {
    ($($line:expr)+) => { concat!($($line, "\n"),+) };
}

/// The parts that each program and library has once, with the processor's code of the two functions. The
/// symbols are weak since the linker may have dropped all sites.
macro_rules! object {
    ($register:expr, $unregister:expr) => {
        lines! {
            ".ifndef .Ltracewing_sites_2_count"
            ".set .Ltracewing_sites_2_count, 0"
            // One section is tied to another by name, so the sites are numbered.
            ".macro __tracewing_sites_2 number"
            ".Ltracewing_sites_2_\\number:"
            ".pushsection tracewing_sites_2, \"awo\", @progbits, .Ltracewing_sites_2_\\number"
            ".endm"
            ".weak __start_tracewing_sites_2"
            ".weak __stop_tracewing_sites_2"
            ".hidden __start_tracewing_sites_2"
            ".hidden __stop_tracewing_sites_2"
            // `Object`.
            ".pushsection .data.tracewing_sites_2, \"awG\", @progbits, tracewing_sites_2, comdat"
            ".balign 8"
            "2: .quad 0, __start_tracewing_sites_2, __stop_tracewing_sites_2"
            ".popsection"
            ".pushsection .text.tracewing_sites_2, \"axG\", @progbits, tracewing_sites_2, comdat"
            ".balign 4"
            "3:"
            $register
            "4:"
            $unregister
            ".popsection"
            // Before a program's ordinary constructors, and after its destructors.
            ".pushsection .init_array.101, \"awG\", @init_array, tracewing_sites_2, comdat"
            ".balign 8"
            ".quad 3b"
            ".popsection"
            ".pushsection .fini_array.101, \"awG\", @fini_array, tracewing_sites_2, comdat"
            ".balign 8"
            ".quad 4b"
            ".popsection"
            ".pushsection .note.tracewing, \"aG\", @note, tracewing_sites_2, comdat"
            ".balign 4"
            ".long 10, 16, 2"
            ".asciz \"tracewing\""
            ".balign 4"
            ".quad __start_tracewing_sites_2 - ."
            ".quad __stop_tracewing_sites_2 - ."
            ".popsection"
            ".endif"
        }
    };
}

/// A site's record, with the distance to its instruction.
macro_rules! record {
    ($distance:literal) => {
        lines! {
            ".set .Ltracewing_sites_2_count, .Ltracewing_sites_2_count + 1"
            ".altmacro"
            "__tracewing_sites_2 %.Ltracewing_sites_2_count"
            ".noaltmacro"
            ".balign 8"
            concat!("6: .quad ", $distance, ", {describe}, 0")
            ".popsection"
        }
    };
}

/// Returns the description of a place; a record points to this function.
extern "C" fn describe<P: Place>() -> &'static Site {
    P::SITE
}

/// Whether the site is on: one `nop` while it is off.
///
/// The action for `true` should be a call of [`cold`](crate::cold()): then a site that is off adds only this
/// instruction to its path. `docs/explanation/triggers.md` describes the other effects on the surrounding
/// code; a loop with a site in it is neither unrolled nor vectorised.
///
/// Each inlined or generic copy is a site of its own, all with the same [`SITE`](Place::SITE).
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn is_on<P: Place>() -> bool {
    // SAFETY: the instruction is a `nop`, or `nop` and `jmp` to `on`. The rest is data: a `Record` as that
    // type is laid out, a node as `Object` is, and functions that pass the node to `register` and
    // `unregister` as the platform's calling convention requires.
    unsafe {
        asm!(
            object!(
                lines!("lea rdi, [rip + 2b]" "jmp {register}@PLT"),
                lines!("lea rdi, [rip + 2b]" "jmp {unregister}@PLT")
            ),
            "5: .byte 0x0f, 0x1f, {OFF}, 0xe9",
            ".long {on} - . - 4",
            record!("5b - ."),
            on = label { return true },
            describe = sym describe::<P>,
            register = sym register,
            unregister = sym unregister,
            OFF = const tracewing_abi::site::OFF,
            options(nomem, nostack, preserves_flags),
        );
    }
    false
}

/// Whether the site is on: a load of its record's word.
///
/// Each inlined or generic copy is a site of its own, all with the same [`SITE`](Place::SITE).
#[cfg(target_arch = "aarch64")]
#[inline(always)]
pub fn is_on<P: Place>() -> bool {
    let on: u32;
    // SAFETY: the instructions load the word `on` of the record that follows. The rest is data, as on x86-64.
    unsafe {
        asm!(
            object!(
                lines!("adrp x0, 2b" "add x0, x0, :lo12:2b" "b {register}"),
                lines!("adrp x0, 2b" "add x0, x0, :lo12:2b" "b {unregister}")
            ),
            record!("0"),
            "adrp {at}, 6b",
            "add {at}, {at}, :lo12:6b",
            "ldr {on:w}, [{at}, #16]",
            at = out(reg) _,
            on = lateout(reg) on,
            describe = sym describe::<P>,
            register = sym register,
            unregister = sym unregister,
            options(readonly, nostack, preserves_flags),
        );
    }
    on != 0
}
