//! Callbacks: a [`Trigger`] calls the attached functions wherever the program fires it.
//!
//! A [`Gate`] protects each callback's slot. Slots are allocated when first needed and never freed, so a
//! firing thread may read one at any time. Detaching closes the gate, waits until no thread is inside, and
//! only then drops the callback. Firing costs two atomic additions per callback, to a counter that few
//! threads share; it never allocates or waits.
//!
//! Each thread keeps a list of its running callbacks on its stack ([`Frame`]), so a callback that detaches
//! itself does not wait for itself.
//!
//! After `fork`, the child's counters include threads of the parent that were inside, which do not exist in
//! the child. A slot therefore records its process; a child never waits for a slot of its parent, and does
//! not use it again.

use alloc::boxed::Box;
use core::cell::{Cell, UnsafeCell};
use core::ffi::c_void;
use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

use crate::gate::{Gate, SHARDS};
use crate::switch::{SwitchError, Switched, switch};
use crate::{Kind, Objects, Record, objects, thread};

/// Maximum number of callbacks of a trigger.
pub const CALLBACKS: usize = 4;

/// Number of callbacks attached to all triggers in this copy of the crate.
static ATTACHED: AtomicU32 = AtomicU32::new(0);

/// A point in a program that calls attached functions; `A` is their argument. [`fire!`](crate::fire) fires
/// it.
///
/// ```
/// use tracewing_trigger::{Trigger, fire};
///
/// static GREW: Trigger<(usize, usize)> = Trigger::new();
///
/// fn grow(queue: &mut Vec<u32>) {
///     let before = queue.capacity();
///     queue.reserve(100);
///     fire!(GREW, &(before, queue.capacity()));
/// }
///
/// let attached = GREW.attach(|(before, after)| println!("{before} -> {after}")).unwrap();
/// grow(&mut Vec::new());
/// attached.detach();
/// ```
#[repr(C)]
pub struct Trigger<A: ?Sized + 'static> {
    /// Number of attached callbacks. The first word, since it is read without knowing `A`.
    attached: AtomicU32,
    slots: [AtomicPtr<Slot<A>>; CALLBACKS],
}

type Callback<A> = Box<dyn Fn(&A) + Send + Sync>;

struct Slot<A: ?Sized + 'static> {
    gate: Gate,
    /// Changed only while the gate is closed and no thread is inside.
    callback: UnsafeCell<Option<Callback<A>>>,
    is_taken: AtomicBool,
    /// The process whose threads are counted at the gate.
    process: u32,
}

// SAFETY: the callback may be called by, and dropped on, any thread; the gate keeps the calls and the change
// apart.
unsafe impl<A: ?Sized> Sync for Slot<A> {}

/// A call in progress, on the stack of the calling thread.
struct Frame {
    slot: *const c_void,
    outer: *const Frame,
    /// Whether a call inside this one detached the callback, which must then be dropped when it returns.
    is_last: Cell<bool>,
}

/// An attached callback. Dropping this detaches it.
#[must_use = "the callback is detached when this is dropped"]
pub struct Attached<A: ?Sized + 'static> {
    trigger: &'static Trigger<A>,
    slot: &'static Slot<A>,
    switched: Switched,
}

/// Why a callback could not be attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttachError {
    /// The trigger already has the maximum number of callbacks.
    Full,
    /// The trigger's sites could not be switched on.
    Switch(SwitchError),
}

impl fmt::Display for AttachError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => write!(f, "{CALLBACKS} callbacks are attached to this trigger: detach one first"),
            Self::Switch(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for AttachError {}

/// Calls the functions attached to a trigger: `fire!(TRIGGER, &arguments)`.
///
/// `TRIGGER` is the path of a `static` [`Trigger<A>`](crate::Trigger). The second argument is a `&A`,
/// evaluated only if a callback is attached. Otherwise all this costs one instruction
/// ([`is_on`](crate::is_on)).
#[macro_export]
macro_rules! fire {
    ($trigger:path, $argument:expr $(,)?) => {{
        extern "C" fn owner() -> *const () {
            (&raw const $trigger).cast()
        }
        struct Here;
        impl $crate::Place for Here {
            const SITE: &'static $crate::Site = &$crate::Site {
                class: &$crate::__private::Class {
                    name: ::core::stringify!($trigger),
                    level: $crate::__private::Level::Info,
                    major: 0,
                    description: "",
                    print: "",
                    file: ::core::file!(),
                    line: ::core::line!(),
                    fields: &[],
                },
                owner,
                file: ::core::file!(),
                line: ::core::line!(),
                kind: $crate::Kind::Callback,
            };
        }
        if $crate::is_on::<Here>() {
            let argument = $argument;
            $crate::cold(move || $trigger.call(argument));
        }
    }};
}

impl<A: ?Sized> Trigger<A> {
    /// A trigger without callbacks.
    #[allow(clippy::new_without_default, reason = "triggers are statics")]
    pub const fn new() -> Self {
        Self {
            attached: AtomicU32::new(0),
            slots: [const { AtomicPtr::new(core::ptr::null_mut()) }; CALLBACKS],
        }
    }

    /// Calls `callback` from now on wherever the trigger is fired, on the firing thread; also in libraries
    /// that are loaded later. A panic in it aborts the program. Firing the trigger inside the callback calls
    /// the callback again.
    ///
    /// Without the feature `sites` no trigger ever fires.
    ///
    /// Must not be called in a signal handler, nor while [`objects`] are held.
    ///
    /// # Errors
    /// The trigger already has [`CALLBACKS`] callbacks, or the kernel does not let the program change its
    /// code. Nothing has changed then.
    pub fn attach(
        &'static self,
        callback: impl Fn(&A) + Send + Sync + 'static,
    ) -> Result<Attached<A>, AttachError> {
        let callback: Callback<A> = Box::new(callback);
        let objects = objects();
        let slot = self.free_slot().ok_or(AttachError::Full)?;
        slot.is_taken.store(true, Ordering::Relaxed);
        // SAFETY: the slot was free: its gate is closed, no thread is inside, and the lock of `objects`
        // excludes other threads that attach.
        unsafe { *slot.callback.get() = Some(callback) };
        slot.gate.open();
        self.attached.fetch_add(1, Ordering::Relaxed);
        ATTACHED.fetch_add(1, Ordering::Relaxed);
        match self.switch(&objects, true) {
            Ok(switched) => Ok(Attached { trigger: self, slot, switched }),
            Err(error) => {
                self.detach(slot, objects);
                Err(AttachError::Switch(error))
            }
        }
    }

    /// A free slot, allocated if there is none.
    fn free_slot(&self) -> Option<&'static Slot<A>> {
        // SAFETY: has no obligations.
        let process = unsafe { libc::getpid() } as u32;
        for place in &self.slots {
            // Acquire, here and below: pairs with the release below. SAFETY: null, or a slot that is never
            // freed.
            let slot = unsafe { place.load(Ordering::Acquire).as_ref() };
            // Acquire: pairs with `vacate`.
            if slot.is_some_and(|slot| slot.is_taken.load(Ordering::Acquire)) {
                continue;
            }
            if let Some(slot) = slot.filter(|slot| slot.process == process) {
                return Some(slot);
            }
            let slot = Box::leak(Box::new(Slot {
                gate: Gate::new(),
                callback: UnsafeCell::new(None),
                is_taken: AtomicBool::new(false),
                process,
            }));
            // Release: a thread that finds the slot also finds its contents.
            place.store(slot, Ordering::Release);
            return Some(slot);
        }
        None
    }

    /// Calls the attached functions.
    #[doc(hidden)]
    pub fn call(&self, argument: &A) {
        for place in &self.slots {
            // SAFETY: null, or a slot that is never freed.
            if let Some(slot) = unsafe { place.load(Ordering::Acquire).as_ref() } {
                slot.call(argument);
            }
        }
    }

    fn switch(&self, objects: &Objects, on: bool) -> Result<Switched, SwitchError> {
        let own = |record: &&Record| {
            let site = record.site();
            site.kind == Kind::Callback && core::ptr::addr_eq((site.owner)(), self)
        };
        let changes: alloc::vec::Vec<_> = objects.sites().filter(own).map(|record| (record, on)).collect();
        switch(&changes)
    }

    fn detach(&self, slot: &'static Slot<A>, objects: Objects) {
        slot.gate.close();
        ATTACHED.fetch_sub(1, Ordering::Relaxed);
        if self.attached.fetch_sub(1, Ordering::Relaxed) == 1 {
            // If that is refused, the sites find nothing attached.
            let _ = self.switch(&objects, false);
        }
        drop(objects);
        slot.wait_and_clear();
    }
}

impl<A: ?Sized> Slot<A> {
    fn call(&self, argument: &A) {
        let thread = thread::current();
        let shard = shard_of(thread);
        if !self.gate.enter(shard) {
            return;
        }
        // SAFETY: the calling thread's own, which lives as long as the thread.
        let innermost = unsafe { &*thread };
        let frame = Frame {
            slot: core::ptr::from_ref(self).cast(),
            outer: innermost.get().cast(),
            is_last: Cell::new(false),
        };
        innermost.set((&raw const frame).cast());
        let _leave = Leave { slot: self, frame: &frame, innermost, shard };
        // SAFETY: the gate was open when this thread entered, so the callback exists, and stays until the
        // thread has left.
        if let Some(callback) = unsafe { &*self.callback.get() } {
            callback(argument);
        }
    }

    /// Waits until no other thread is inside, and drops the callback. If the calling thread is inside, the
    /// callback is dropped when it leaves.
    fn wait_and_clear(&'static self) {
        // SAFETY: has no obligations.
        if unsafe { libc::getpid() } as u32 != self.process {
            // The counters may include threads that do not exist here. What they used stays as it is.
            self.is_taken.store(false, Ordering::Relaxed);
            return;
        }
        let thread = thread::current();
        let (own, outermost) = self.own_frames(thread);
        for shard in 0..SHARDS {
            let own = if shard == shard_of(thread) { own } else { 0 };
            let mut patience = 0;
            while self.gate.count(shard) > own {
                wait(&mut patience);
            }
        }
        match outermost {
            Some(frame) => frame.is_last.set(true),
            // SAFETY: the gate is closed, and no thread is inside.
            None => unsafe { self.clear() },
        }
    }

    /// The calling thread's running calls of this slot's callback: their number, and the outermost one.
    fn own_frames<'a>(&self, thread: *const Cell<*const c_void>) -> (u32, Option<&'a Frame>) {
        // SAFETY: the calling thread's own.
        let mut next = unsafe { &*thread }.get().cast::<Frame>();
        let (mut count, mut outermost) = (0, None);
        // SAFETY: frames are on the list while they are on this thread's stack, and this call ends before
        // they do.
        while let Some(frame) = unsafe { next.as_ref() } {
            if frame.slot == core::ptr::from_ref(self).cast() {
                count += 1;
                outermost = Some(frame);
            }
            next = frame.outer;
        }
        (count, outermost)
    }

    /// # Safety
    /// The gate is closed, and no thread uses the callback any more.
    unsafe fn clear(&self) {
        // SAFETY: the caller's.
        let callback = unsafe { (*self.callback.get()).take() };
        // Release: pairs with `free_slot`. Stored before the callback is dropped, because dropping it may
        // attach another.
        self.is_taken.store(false, Ordering::Release);
        drop(callback);
    }
}

/// Leaves a callback when dropped.
struct Leave<'a, A: ?Sized + 'static> {
    slot: &'a Slot<A>,
    frame: &'a Frame,
    innermost: &'a Cell<*const c_void>,
    shard: usize,
}

impl<A: ?Sized> Drop for Leave<'_, A> {
    fn drop(&mut self) {
        self.innermost.set(self.frame.outer.cast());
        self.slot.gate.leave(self.shard);
        if self.frame.is_last.get() {
            // SAFETY: this was the outermost call on the thread that detached the callback; at that time no
            // other thread was inside, and the gate was closed.
            unsafe { self.slot.clear() };
        }
    }
}

/// The counter that a thread uses.
fn shard_of(thread: *const Cell<*const c_void>) -> usize {
    // The upper bits of a product with 2^64 / golden ratio depend on all bits of the address.
    ((thread as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % SHARDS
}

/// Waits briefly, longer with each call: a callback may take its time.
fn wait(patience: &mut u32) {
    *patience += 1;
    match *patience {
        ..=99 => core::hint::spin_loop(),
        100..=199 => {
            // SAFETY: has no obligations.
            unsafe { libc::sched_yield() };
        }
        _ => {
            let moment = libc::timespec { tv_sec: 0, tv_nsec: 100_000 };
            // SAFETY: a valid time; the remaining time is not requested.
            unsafe { libc::nanosleep(&moment, core::ptr::null_mut()) };
        }
    }
}

impl<A: ?Sized> Attached<A> {
    /// The result of switching the trigger's sites on; sites with a uprobe do not call the callback.
    pub fn switched(&self) -> Switched {
        self.switched
    }

    /// Detaches the callback. When this returns, no thread is inside it and none will be; what it owns is
    /// dropped.
    ///
    /// Called inside the callback itself, it waits only for other threads. The calling thread's own calls run
    /// to their end; what the callback owns is dropped when the outermost of them returns.
    ///
    /// Two callbacks that detach each other on two threads deadlock. In a forked child, a callback that was
    /// attached before the fork is no longer called, but it is neither waited for nor dropped: threads of the
    /// parent may have been inside.
    ///
    /// Must not be called in a signal handler, nor while [`objects`] are held.
    pub fn detach(self) {}
}

impl<A: ?Sized> Drop for Attached<A> {
    fn drop(&mut self) {
        self.trigger.detach(self.slot, objects());
    }
}

/// Switches on those sites of a newly loaded object that have callbacks. The caller holds the lock of the
/// objects.
#[cfg(feature = "sites")]
pub(crate) fn loaded(object: &crate::Object) {
    if ATTACHED.load(Ordering::Relaxed) == 0 {
        return;
    }
    let has_callbacks = |record: &&Record| {
        let site = record.site();
        // SAFETY: the owner of such a site is a static `Trigger`, which begins with this word.
        site.kind == Kind::Callback
            && unsafe { &*(site.owner)().cast::<AtomicU32>() }.load(Ordering::Relaxed) > 0
    };
    let changes: alloc::vec::Vec<_> =
        object.sites().iter().filter(has_callbacks).map(|record| (record, true)).collect();
    // There is no caller to report an error to; the callback is not called in that object then.
    let _ = switch(&changes);
}
