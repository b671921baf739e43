//! Ids of the calling thread and its process, found without a system call, since a filter may end the program
//! for one.
//!
//! The C library keeps a thread's id in the thread's block, and updates it in a child of `fork` or `_Fork`.
//! Its offset is the one that glibc exports for debuggers (`_thread_db_pthread_tid`), or is searched for.
//! Either way it is compared with the kernel's id when the process first takes part in a recording, when a
//! system call is harmless.
//!
//! A child made by a raw system call has its parent's block as it was, so that its threads' ids are not
//! known, and its events are lost. It is recognised by the page below, which a forked child finds zeroed, and
//! by the calling thread's id, which is the one that the thread had in the parent.

use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicUsize, Ordering::*};

use tracewing_ring::thread;
use tracewing_units::{Pid, Tid};

use super::system;

/// Ids of a thread and of its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) tid: Tid,
    pub(super) pid: Pid,
}

/// Offset of a thread's id in its block, plus one; 0 if unknown.
static PLACE: AtomicUsize = AtomicUsize::new(0);

/// The process's id, on a page that a forked child finds zeroed; [`NOT_KNOWN`] in a child whose id cannot be
/// known.
static PROCESS: AtomicPtr<AtomicI32> = AtomicPtr::new(core::ptr::null_mut());
const NOT_KNOWN: i32 = -1;

/// The id of the process that last knew its own: in a child that does not yet, its parent's, or an older
/// ancestor's.
static LAST_PROCESS: AtomicI32 = AtomicI32::new(0);

/// Bytes of a thread's block in which its id is looked for: less than any C library's block has.
const SEARCHED: usize = if cfg!(target_env = "musl") { 128 } else { 1024 };

/// Learns where threads' ids are, and the process's. Makes system calls. `false` where the system refuses
/// memory.
pub(super) fn prepare() -> bool {
    look_for_place();
    let page = PROCESS.load(Acquire); // with the release below
    let page = if page.is_null() {
        let Some(page) = system::map_wiped_on_fork(size_of::<AtomicI32>()) else { return false };
        // Release, with the acquire loads: the page is there. A thread that is second keeps the first page.
        let _ = PROCESS.compare_exchange(core::ptr::null_mut(), page.as_ptr().cast(), AcqRel, Relaxed);
        PROCESS.load(Acquire) // with the release below
    } else {
        page
    };
    let Pid(number) = system::process_id();
    // SAFETY: a page that is never unmapped; any bytes are valid.
    unsafe { &*page }.store(number, Relaxed);
    LAST_PROCESS.store(number, Relaxed);
    true
}

fn look_for_place() {
    if PLACE.load(Relaxed) == 0 {
        // Relaxed: the number is all there is to it.
        PLACE.store(place(system::thread_id()).map_or(0, |place| place + 1), Relaxed);
    }
}

/// Checks that the id is also at this offset for a thread other than the one that searched.
pub(super) fn verify() {
    if id_in_block() != Some(system::thread_id()) {
        PLACE.store(0, Relaxed);
    }
}

/// In the child, whose only thread calls this: the process's id is that thread's. `false` if that is unknown.
pub(super) fn forked() -> bool {
    // SAFETY: null, or a page that is never unmapped.
    let (Some(process), Some(tid)) = (unsafe { PROCESS.load(Acquire).as_ref() }, id_in_block()) else {
        return false;
    };
    process.store(tid.0, Relaxed);
    LAST_PROCESS.store(tid.0, Relaxed);
    true
}

/// The ids of the caller; `None` if they cannot be determined.
pub(super) fn of_caller() -> Option<Identity> {
    let tid = id_in_block()?;
    // SAFETY: null, or a page that is never unmapped. Acquire, with `prepare`.
    let process = unsafe { PROCESS.load(Acquire).as_ref() }?;
    let before = Tid(thread::with(|mark| mark.tid.swap(tid.0, Relaxed)));
    let number = match process.load(Relaxed) {
        0 => {
            let number = first_in_process(tid, before).map_or(NOT_KNOWN, |pid| pid.0);
            match process.compare_exchange(0, number, Relaxed, Relaxed) {
                Ok(_) => number,
                Err(known) => known,
            }
        }
        number => number,
    };
    (number != NOT_KNOWN).then_some(Identity { tid, pid: Pid(number) })
}

/// The id of a process that was made without the handlers of `fork`, by the first of its threads that asks,
/// which had the id `before` in the parent. The C library's `_Fork` has given it another one, which is the
/// process's, too. Of a thread that was never seen nothing can be said.
fn first_in_process(tid: Tid, before: Tid) -> Option<Pid> {
    let pid = tid.as_process();
    let is_renamed = !before.is_idle() && before != tid && pid != Pid(LAST_PROCESS.load(Relaxed));
    is_renamed.then_some(pid)
}

/// A thread's id, by its handle. Makes system calls.
///
/// # Safety
/// The thread has not ended, or not been joined.
pub(super) unsafe fn of_thread(thread: libc::pthread_t) -> Option<Tid> {
    look_for_place();
    let place = PLACE.load(Relaxed).checked_sub(1)?;
    // SAFETY: in the thread's block, which is there as long as its handle means it.
    let number = unsafe { (thread as *const u8).add(place).cast::<i32>().read_volatile() };
    (number > 0).then_some(Tid(number))
}

fn id_in_block() -> Option<Tid> {
    let place = PLACE.load(Relaxed).checked_sub(1)?;
    // SAFETY: in the calling thread's block, which the C library may write to at this place only before the
    // thread runs.
    let number = unsafe { block().add(place).cast::<i32>().read_volatile() };
    (number > 0).then_some(Tid(number))
}

fn block() -> *const u8 {
    // SAFETY: always succeeds; with glibc and musl the handle is the block's address.
    unsafe { libc::pthread_self() as *const u8 }
}

/// Where the calling thread's id, which is `tid`, lies in its block.
fn place(tid: Tid) -> Option<usize> {
    let is_there = |place: usize| {
        // SAFETY: inside the block.
        place <= SEARCHED && unsafe { block().add(place).cast::<i32>().read_volatile() } == tid.0
    };
    if let Some(place) = exported_to_debuggers() {
        return Some(place).filter(|place| is_there(*place));
    }
    let mut places = (0..SEARCHED).step_by(size_of::<i32>()).filter(|place| is_there(*place));
    places.next().filter(|_| places.next().is_none())
}

/// What glibc exports for debuggers: size in bits, number of elements, and offset.
fn exported_to_debuggers() -> Option<usize> {
    // SAFETY: a NUL-terminated name; null where there is no such symbol, else three numbers.
    let [bits, _, place] = *unsafe {
        libc::dlsym(libc::RTLD_DEFAULT, c"_thread_db_pthread_tid".as_ptr()).cast::<[u32; 3]>().as_ref()
    }?;
    (bits == i32::BITS).then_some(place as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_known() {
        assert!(prepare());
        let check = || {
            verify();
            let identity = Identity { tid: system::thread_id(), pid: system::process_id() };
            assert_eq!(of_caller(), Some(identity));
        };
        check();
        std::thread::spawn(check).join().unwrap();
    }

    #[test]
    fn the_id_is_found_without_the_symbol() {
        let tid = system::thread_id();
        let found: Vec<usize> = (0..SEARCHED)
            .step_by(size_of::<i32>())
            // SAFETY: inside the block.
            .filter(|place| unsafe { block().add(*place).cast::<i32>().read_volatile() } == tid.0)
            .collect();
        assert_eq!(found, [place(tid).unwrap()]);
    }

    #[test]
    fn children_of_raw_system_calls_are_not_known() {
        assert!(prepare());
        assert_eq!(first_in_process(Tid(7), Tid(0)), None);
        assert_eq!(first_in_process(Tid(7), Tid(7)), None);
        assert_eq!(first_in_process(Tid(8), Tid(7)), Some(Pid(8)));
    }
}
