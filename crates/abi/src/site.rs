//! Trigger sites as they lie in a program: one [`Record`] per copy of a site's instruction, the [`Site`] that
//! it refers to, and the ELF note by which external readers find the records.
//!
//! The crate `trigger` generates all of them from the code of the sites. This page is all that a reader of a
//! program's file or of another process needs.
//!
//! # In a file
//! Each program or library with sites has an ELF note of owner [`NOTE_OWNER`] and type [`NOTE_TYPE`] (other
//! versions of these layouts have a note with another type). Its description is two `i64`, little-endian:
//! distances from each of these words itself to the first record and to the end of the records. Equal ends,
//! or distances that lead to address 0 (the linker has dropped all sites), mean that there are none. The
//! section headers, where they are there, call the records' section [`SECTION`].
//!
//! A record's `describe` is an address, filled in by the dynamic linker: in the file of a
//! position-independent program it is the addend of a relocation. What it points to returns the address of
//! the [`Site`] and does nothing else (optimised: `lea rax, [rip + …]; ret`). `Site`, `schema::Class` and
//! `schema::Field` are read-only data with relocations of the same kind.

use core::mem::offset_of;
use core::sync::atomic::{AtomicU32, Ordering};

use crate::schema;

/// Owner of the note, without its final NUL.
pub const NOTE_OWNER: &str = "tracewing";

/// The note's type: the version of all layouts here, [`schema::Class`] included; also the number at the end
/// of [`SECTION`].
pub const NOTE_TYPE: u32 = 2;

/// Bytes of the note's description.
pub const NOTE_SIZE: usize = 16;

/// Section of the records.
pub const SECTION: &str = "tracewing_sites_2";

/// Bytes of a site on x86-64. Off it is one instruction that does nothing, `0f 1f 84 e9` and 32 bits,
/// `nop dword [rcx + 8 * rbp + disp32]`; on it is two, `0f 1f c0`, `nop eax`, and `e9` and the same 32 bits,
/// `jmp rel32`.
pub const INSTRUCTION: usize = 8;

/// Bytes at its beginning that identify a site; the 32 bits follow.
pub const HEAD: usize = 4;

/// Which of the bytes is changed to switch the site: the operand of the `nop`.
pub const SWITCH: usize = 2;

/// That byte while the site is off.
pub const OFF: u8 = 0x84;

/// That byte while the site is on.
pub const ON: u8 = 0xc0;

/// What debuggers and uprobes store in place of an instruction's first byte: `int3`.
pub const BREAKPOINT: u8 = 0xcc;

/// The decoded first bytes of a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    /// Whether the site is on.
    pub is_on: bool,
    /// Whether there is a breakpoint on its first byte. A debugger's changes nothing about the site. Under a
    /// uprobe the kernel executes the instruction of the program's file instead: the site does nothing, even
    /// if it is on.
    pub has_breakpoint: bool,
}

impl Instruction {
    /// Reads the first bytes of a site. A breakpoint on the jump after the `nop` is ignored.
    ///
    /// # Errors
    /// The first byte that neither the assembler nor a debugger or switch of the site stores there.
    pub fn from_head(head: [u8; HEAD]) -> Result<Self, u8> {
        match head {
            [0x0f | BREAKPOINT, 0x1f, OFF | ON, 0xe9 | BREAKPOINT] => {
                Ok(Self { is_on: head[SWITCH] == ON, has_breakpoint: head[0] == BREAKPOINT })
            }
            [first, ..] if first != 0x0f && first != BREAKPOINT => Err(first),
            [_, second, ..] if second != 0x1f => Err(second),
            [_, _, switch, _] if switch != OFF && switch != ON => Err(switch),
            [.., last] => Err(last),
        }
    }
}

/// One copy of a site. The compiler makes several where it inlines the code around a site, or instantiates it
/// for several types.
///
/// Offsets: 0 distance, 8 `describe`, 16 `on`, 20 reserved.
///
/// Only the assembler creates records: each stands for an instruction in the code of its program, and the
/// code that switches sites relies on that.
#[repr(C)]
#[derive(Debug)]
pub struct Record {
    /// Distance from this record to the site's instruction; 0 on processors where the site is a load of `on`.
    distance: i64,
    describe: extern "C" fn() -> &'static Site,
    /// 1 where the site has been switched on, else 0. Processors without an instruction to patch test this
    /// word; on x86-64 it repeats what was asked for, and the instruction decides.
    on: AtomicU32,
    /// Always zero; keeps the size fixed.
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

    /// Whether the site was last switched on.
    pub fn is_wanted(&self) -> bool {
        self.on.load(Ordering::Relaxed) != 0
    }

    /// Stores the requested state and returns the previous one. Callers that switch the site must call it; on
    /// x86-64 it has no other effect.
    pub fn set_enabled(&self, on: bool) -> bool {
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
    /// The events that are recorded there. A [`Callback`](Kind::Callback) site has a class with a name and no
    /// fields.
    pub class: &'static schema::Class<'static>,
    /// The site's owner: for an [`Event`](Kind::Event) site the crate `tracewing`'s `EventClass`, for a
    /// `Callback` site its trigger.
    pub owner: extern "C" fn() -> *const (),
    /// Source file of the site.
    pub file: &'static str,
    /// Line in the source file, from 1.
    pub line: u32,
    /// What happens there.
    pub kind: Kind,
}

const _: () = assert!(size_of::<Site>() == 40 && align_of::<Site>() == 8);

impl Site {
    /// The owner of a site without one: null.
    pub extern "C" fn no_owner() -> *const () {
        core::ptr::null()
    }
}

/// What happens at a site that is on.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An event is recorded.
    Event = 0,
    /// A trigger's callbacks are called.
    Callback = 1,
}
