//! The callers of a thread in code without unwind tables, as a just-in-time compiler creates it: by frame
//! pointers there, by tables again where they exist. Code with neither leaves arbitrary values in the
//! register, so only the thread's own stack is read, upwards, and only readable pages.

use core::arch::asm;
use core::cell::Cell;
use core::ffi::c_void;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use core::{ptr, slice};

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameOffset, NativeEndian, RegisterRule, UnwindContext,
    UnwindContextStorage, UnwindSection, UnwindTableRow, X86_64,
};

/// End of the first thread's stack; 0 if the loader does not provide it.
static FIRST_END: AtomicUsize = AtomicUsize::new(0);

/// Finds the end of the first thread's stack.
pub(crate) fn prepare() {
    // SAFETY: a NUL-terminated name; null, or a pointer of the loader's (`__libc_stack_end`), which has been
    // set.
    let end =
        unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__libc_stack_end".as_ptr()).cast::<usize>().as_ref() };
    FIRST_END.store(end.copied().unwrap_or(0), Relaxed); // alone: without it, the walk is shorter
}

/// A frame of the calling thread: the address where it continues, and its registers at that point.
#[derive(Clone, Copy)]
pub(crate) struct Frame {
    pub(crate) address: usize,
    pub(crate) stack_pointer: usize,
    pub(crate) frame_pointer: usize,
}

impl Frame {
    /// The frames that called this one, the innermost first.
    pub(crate) fn callers(self, thread_pointer: usize) -> impl Iterator<Item = Self> {
        let stack = Stack::from(self.stack_pointer, thread_pointer);
        core::iter::successors(Some(self), move |frame| frame.caller(&stack)).skip(1)
    }

    fn caller(&self, stack: &Stack) -> Option<Self> {
        let Rules { end, return_address, frame_pointer } = match table(self.address) {
            Some(table) => table.rules(self)?,
            None => Rules::of_frame_pointer(self)?,
        };
        let caller = Self {
            address: stack.read(return_address)?,
            stack_pointer: end,
            frame_pointer: frame_pointer.map_or(Some(self.frame_pointer), |place| stack.read(place))?,
        };
        (caller.address != 0 && end > self.stack_pointer).then_some(caller)
    }
}

/// The end of a frame, and the places on the stack of its caller's registers.
struct Rules {
    end: usize,
    return_address: usize,
    /// `None`: the register is unchanged.
    frame_pointer: Option<usize>,
}

impl Rules {
    fn of_frame_pointer(frame: &Frame) -> Option<Self> {
        let place = frame.frame_pointer;
        let end = place.checked_add(16)?;
        (place >= frame.stack_pointer).then_some(Self {
            end,
            return_address: place + 8,
            frame_pointer: Some(place),
        })
    }
}

/// The used part of a thread's stack.
struct Stack {
    begin: usize,
    end: usize,
    /// The last page that was found to be readable; 0: none yet.
    page: Cell<usize>,
}

const PAGE: usize = 4096;

impl Stack {
    /// glibc stores a thread's own data, to which the thread pointer points, above its stack, but below the
    /// first thread's.
    fn from(begin: usize, thread_pointer: usize) -> Self {
        let end = if begin < thread_pointer { thread_pointer } else { FIRST_END.load(Relaxed) };
        Self { begin, end, page: Cell::new(0) }
    }

    fn read(&self, place: usize) -> Option<usize> {
        let is_within = place >= self.begin && place.checked_add(8)? <= self.end && place.is_multiple_of(8);
        // A coroutine's stack is anywhere, with holes up to the thread pointer.
        if !is_within || (self.page.get() != place / PAGE && !is_readable(place)) {
            return None;
        }
        self.page.set(place / PAGE);
        // SAFETY: aligned, and in a page that was found to be readable.
        Some(unsafe { ptr::with_exposed_provenance::<usize>(place).read_volatile() })
    }
}

/// Whether eight bytes can be read there. The kernel reads a set of signals before it rejects the unknown
/// operation, and sandboxes allow that call.
fn is_readable(place: usize) -> bool {
    const NO_OPERATION: usize = usize::MAX;
    let answer: isize;
    // SAFETY: `rt_sigprocmask` of an operation that does not exist changes nothing; `errno` is not touched.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") libc::SYS_rt_sigprocmask as isize => answer,
            in("rdi") NO_OPERATION,
            in("rsi") place,
            in("rdx") 0,
            in("r10") 8,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    answer == -(libc::EINVAL as isize)
}

/// An entry of the unwind tables, and the address that it was found by.
struct Table {
    entry: usize,
    address: usize,
}

/// The table of the code that returns to this address.
fn table(address: usize) -> Option<Table> {
    let address = address - 1; // in the call
    let mut bases = [ptr::null_mut(); 3];
    // SAFETY: any address may be asked for; room for `struct dwarf_eh_bases`, three pointers.
    let entry = unsafe { _Unwind_Find_FDE(ptr::without_provenance_mut(address), bases.as_mut_ptr()) };
    (!entry.is_null()).then(|| Table { entry: entry.expose_provenance(), address })
}

/// Storage for the rules of a few registers: there are 17, and compilers occasionally save them for another
/// path.
struct Storage;

impl UnwindContextStorage<usize> for Storage {
    type Rules = [(gimli::Register, RegisterRule<usize>); 17];
    type Stack = [UnwindTableRow<usize, Self>; 4];
}

impl Table {
    /// The table's rules for the frame; `None` if they need more than the stack and the frame pointer.
    fn rules(&self, frame: &Frame) -> Option<Rules> {
        const LENGTH: usize = 4;
        // SAFETY: an entry begins with its length and the distance of the next field from the common entry,
        // four bytes each.
        let [length, back] = unsafe { ptr::with_exposed_provenance::<[u32; 2]>(self.entry).read_unaligned() }
            .map(|field| field as usize);
        let common = (self.entry + LENGTH).checked_sub(back).filter(|common| *common < self.entry)?;
        let size = self.entry + LENGTH + length - common;
        // SAFETY: the common entry precedes it in the same section, which stays as long as the code that the
        // thread is in.
        let section = unsafe { slice::from_raw_parts(ptr::with_exposed_provenance(common), size) };
        let section = EhFrame::new(section, NativeEndian);
        let bases = BaseAddresses::default().set_eh_frame(common as u64);
        let offset = EhFrameOffset(self.entry - common);
        let entry = section.fde_from_offset(&bases, offset, EhFrame::cie_from_offset).ok()?;
        let mut context = UnwindContext::<usize, Storage>::new_in();
        let row = entry.unwind_info_for_address(&section, &bases, &mut context, self.address as u64).ok()?;
        let end = match *row.cfa() {
            CfaRule::RegisterAndOffset { register: X86_64::RSP, offset } => {
                frame.stack_pointer.checked_add_signed(offset as isize)
            }
            CfaRule::RegisterAndOffset { register: X86_64::RBP, offset } => {
                frame.frame_pointer.checked_add_signed(offset as isize)
            }
            _ => None,
        }?;
        let Some(RegisterRule::Offset(offset)) = row.register(X86_64::RA) else { return None };
        let return_address = end.checked_add_signed(offset as isize)?;
        let frame_pointer = match row.register(X86_64::RBP) {
            Some(RegisterRule::Offset(offset)) => Some(end.checked_add_signed(offset as isize)?),
            None | Some(RegisterRule::Undefined | RegisterRule::SameValue) => None,
            _ => return None,
        };
        Some(Rules { end, return_address, frame_pointer })
    }
}

// SAFETY: the declaration of libgcc's unwind-dw2-fde.h.
#[link(name = "gcc_s")]
unsafe extern "C" {
    fn _Unwind_Find_FDE(address: *mut c_void, bases: *mut *mut c_void) -> *const c_void;
}
