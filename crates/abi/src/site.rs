//! Trigger sites as they lie in a program: one [`Record`] per copy of a site's instruction, the [`Site`] behind it, and
//! the ELF note by which a reader from outside finds the records.
//!
//! The crate `trigger` writes all of them from the code of the sites; whoever reads a program's file, or another
//! process, needs no more than this page.
//!
//! # In a file
//! Each program or library with sites has an ELF note of owner [`NOTE_OWNER`] and type [`NOTE_TYPE`] (another, beside it,
//! for another version of all this). Its description is two `i64`, little-endian: distances from each of these words itself to the first
//! record and to the end of the records. Equal ends, or distances that lead to address 0 (the linker has dropped all
//! sites), mean that there are none. The section headers, where they are there, call the records' section [`SECTION`].
//!
//! A record's `describe` is an address, filled in by the dynamic linker: in the file of a position-independent program it
//! is the addend of a relocation. What it points to returns the address of the [`Site`] and does nothing else (optimised:
//! `lea rax, [rip + …]; ret`). `Site`, `schema::Class` and `schema::Field` are read-only data with relocations of the same
//! kind.

use core::mem::offset_of;
use core::sync::atomic::{AtomicU32, Ordering};

use crate::schema;

/// Owner of the note, without its final NUL.
pub const NOTE_OWNER: &str = "tracewing";

/// The note's section.
pub const NOTE_SECTION: &str = ".note.tracewing";

/// The note's type: the version of all layouts here, [`schema::Class`] included; also the number at the end of [`SECTION`].
pub const NOTE_TYPE: u32 = 1;

/// Bytes of the note's description.
pub const NOTE_SIZE: usize = 16;

/// Section of the records.
pub const SECTION: &str = "tracewing_sites_1";

/// Bytes of a site's instruction on x86-64: an opcode of one byte and 32 bits behind it.
pub const INSTRUCTION: usize = 5;

/// The instruction's first byte while the site is off: `test eax, imm32`, whose result nobody reads.
pub const OFF: u8 = 0xa9;

/// The same while the site is on: `jmp rel32`, whose distance the 32 bits are.
pub const ON: u8 = 0xe9;

/// One copy of a site. The compiler makes several where it inlines the code around a site, or instantiates it for several
/// types.
///
/// Offsets: 0 distance, 8 `describe`, 16 `on`, 20 reserved.
///
/// Only the assembler makes them: a record stands for an instruction in the code of its program, which whoever switches
/// sites relies on.
#[repr(C)]
#[derive(Debug)]
pub struct Record {
    /// Distance from this record to the site's instruction; 0 on processors where the site is a load of `on`.
    distance: i64,
    describe: fn() -> &'static Site,
    /// 1 where the site has been switched on, else 0. Processors without an instruction to patch test this word; on
    /// x86-64 it repeats what was asked for, and the instruction decides.
    on: AtomicU32,
    /// Zero.
    reserved: u32,
}

const _: () = assert!(size_of::<Record>() == 24 && align_of::<Record>() == 8);

impl Record {
    /// Offset of the distance from the record to its instruction, an `i64`.
    pub const DISTANCE: usize = offset_of!(Record, distance);
    /// Offset of the address of the function that gives the [`Site`].
    pub const DESCRIBE: usize = offset_of!(Record, describe);
    /// Offset of the word that says what was last asked for.
    pub const ON: usize = offset_of!(Record, on);

    /// The site's instruction; `None` on processors where there is none to patch.
    pub fn address(&self) -> Option<usize> {
        let here = core::ptr::from_ref(self) as usize;
        (self.distance != 0).then(|| here.wrapping_add_signed(self.distance as isize))
    }

    /// What was last asked of the site.
    pub fn is_wanted(&self) -> bool {
        self.on.load(Ordering::Relaxed) != 0
    }

    /// Says what is asked of the site, and gives what was before. Whoever switches the site says it; on x86-64 it has no
    /// other effect.
    pub fn set_wanted(&self, on: bool) -> bool {
        self.on.swap(on.into(), Ordering::Relaxed) != 0
    }

    /// What the site is.
    pub fn site(&self) -> &'static Site {
        (self.describe)()
    }
}

/// What a site is: the same for all its copies.
///
/// Offsets: 0 `class`, 8 `owner`, 16 `file` (address, length), 32 `line`, 36 `kind`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Site {
    /// The events that are recorded there. A [`Callback`](Kind::Callback) site has a class with a name and no fields.
    pub class: &'static schema::Class<'static>,
    /// To whom the site belongs: of an [`Event`](Kind::Event) site, the crate `tracewing`'s `EventClass`; of a
    /// `Callback` site, its trigger.
    pub owner: fn() -> *const (),
    /// Source file of the site.
    pub file: &'static str,
    /// Line in it.
    pub line: u32,
    /// What happens there.
    pub kind: Kind,
}

const _: () = assert!(size_of::<Site>() == 40 && align_of::<Site>() == 8);

/// What happens at a site that is on.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An event is recorded.
    Event = 0,
    /// A trigger's callbacks are called.
    Callback = 1,
}
