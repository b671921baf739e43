//! Other copies of the crate in the process. One that comes with a plug-in, into a process that is recorded
//! already, learns of the recorders from those that are there (`tracewing_abi::ways`): nothing in its
//! environment says so where a recorder has attached to the process (`record --pid`), or was invited
//! (`record --with`).
//!
//! It looks for them while the dynamic linker holds its list of objects: none of them is unloaded meanwhile,
//! and all that were there before the plug-in have been relocated.

use core::ffi::{c_int, c_void};
use core::ptr::fn_addr_eq;
use core::slice;

use libc::{dl_iterate_phdr, dl_phdr_info};
use tracewing_abi::attach::{NOTE_SIZE, NOTE_TYPE, WAYS_AT};
use tracewing_abi::site::NOTE_OWNER;
use tracewing_abi::ways::{Way, Ways};
use tracewing_ring::thread::RECORDINGS;

use super::access::Access;
use super::{filtered, join};

/// Words of a note's head: the lengths of owner and description, and the type (System V ABI, chapter 5).
const HEAD: usize = 12;

/// Lists the ways to this copy's recorders for another copy. None if the program has forbidden further calls
/// of the agent.
///
/// # Safety
/// There is room for so many ways.
pub(super) unsafe extern "C" fn ways(ways: *mut Way, room: usize) -> usize {
    if filtered::is_alone() {
        return 0;
    }
    let mut count = 0;
    let all = join::recordings().filter_map(|(recording, access)| access.way(recording));
    for way in all.take(room) {
        // SAFETY: the caller's.
        unsafe { ways.add(count).write(way) };
        count += 1;
    }
    count
}

/// Ways to the recorders of the other copies, one for each recording.
pub(super) struct Found {
    ways: [Way; RECORDINGS],
    count: usize,
}

impl Found {
    /// Asks the other copies, without a system call.
    pub(super) fn look() -> Self {
        let mut found = Self { ways: [Way::NONE; RECORDINGS], count: 0 };
        // SAFETY: `ask_object` gets what it expects, and does not outlive the call.
        unsafe { dl_iterate_phdr(Some(ask_object), (&raw mut found).cast()) };
        found
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The recorders whose recordings this copy is not in at that moment, each with a door of this copy's own
    /// if it has one.
    pub(super) fn recorders(&self) -> impl Iterator<Item = Access> {
        let others = self.ways.iter().take(self.count).filter(|way| !join::is_in(&way.recording));
        others.filter_map(Access::of_neighbour)
    }
}

/// Asks the copy in an object, if there is one.
unsafe extern "C" fn ask_object(object: *mut dl_phdr_info, _: usize, found: *mut c_void) -> c_int {
    // SAFETY: the dynamic linker passes a valid description of an object, and what `Found::look` has given.
    let (object, found) = unsafe { (&*object, &mut *found.cast::<Found>()) };
    if object.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: the linker's own array.
    let headers = unsafe { slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into()) };
    let is_mapped = |note: &libc::Elf64_Phdr| {
        let loads =
            headers.iter().filter(|load| load.p_type == libc::PT_LOAD && load.p_flags & libc::PF_R != 0);
        let ends = |part: &libc::Elf64_Phdr| (part.p_vaddr, part.p_vaddr.saturating_add(part.p_memsz));
        let (begin, end) = ends(note);
        loads.map(ends).any(|load| load.0 <= begin && end <= load.1)
    };
    let notes = headers.iter().filter(|header| header.p_type == libc::PT_NOTE);
    for header in notes.filter(|header| is_mapped(header)) {
        let address = (object.dlpi_addr as usize).wrapping_add(header.p_vaddr as usize);
        // SAFETY: notes are part of what the object has mapped for reading, and stay until it is unloaded.
        let notes = unsafe { slice::from_raw_parts(address as *const u8, header.p_memsz as usize) };
        for_each(notes, header.p_align as usize, |other| {
            if !fn_addr_eq(other, ways as Ways) {
                found.ask(other);
            }
        });
    }
    0
}

/// Gives the functions that the notes of attach entries name.
fn for_each(notes: &'static [u8], align: usize, mut take: impl FnMut(Ways)) -> Option<()> {
    let align = if align == 8 { 8 } else { 4 };
    let number = |head: &[u8], at: usize| Some(u32::from_le_bytes(head.get(at..at + 4)?.try_into().ok()?));
    let mut rest = notes;
    loop {
        let (head, after) = rest.split_at_checked(HEAD)?;
        let (owner, size, kind) = (number(head, 0)? as usize, number(head, 4)? as usize, number(head, 8)?);
        let begin = (HEAD + owner).next_multiple_of(align) - HEAD;
        let description = after.get(begin..begin.checked_add(size)?)?;
        let is_ours = after.get(..owner)?.strip_suffix(&[0]) == Some(NOTE_OWNER.as_bytes());
        if is_ours && kind == NOTE_TYPE && size == NOTE_SIZE {
            let word = description.get(WAYS_AT..)?;
            let distance = u64::from_le_bytes(word.get(..8)?.try_into().ok()?);
            let function = word.as_ptr().addr().wrapping_add(distance as usize);
            // SAFETY: a note of this owner and version names such a function, of an object that is loaded
            // and relocated.
            take(unsafe { core::mem::transmute::<usize, Ways>(function) });
        }
        rest = after.get((begin + size).next_multiple_of(align)..)?;
    }
}

impl Found {
    fn ask(&mut self, other: Ways) {
        let mut ways = [Way::NONE; RECORDINGS];
        // SAFETY: room for so many.
        let count = unsafe { other(ways.as_mut_ptr(), ways.len()) };
        for way in ways.into_iter().take(count) {
            let is_known = self.ways[..self.count].iter().any(|known| known.recording == way.recording);
            if self.count < RECORDINGS && !is_known {
                self.ways[self.count] = way;
                self.count += 1;
            }
        }
    }
}
