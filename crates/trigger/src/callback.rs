//! Callbacks: a [`Trigger`] calls what was attached to it, wherever the program fires it.
//!
//! A callback is kept in a slot behind a [`Gate`]. Slots are allocated when first needed and never freed, so
//! whoever fires may look at one at any time. Detaching closes the gate, waits until nobody is inside, and
//! only then drops the callback. Firing costs two atomic additions per callback, to a counter that few
//! threads share; it allocates nothing and waits for nobody.
//!
//! Each thread has a list of the callbacks that it is inside, on its stack ([`Frame`]): so a callback that
//! detaches itself does not wait for itself.
//!
//! After `fork`, threads of the parent that were inside are counted in the child, where they do not exist. A
//! slot therefore knows its process; in a child, nobody waits at a slot of the parent's, and it is not used
//! again.

use alloc::boxed::Box;
use core::cell::{Cell, UnsafeCell};
use core::ffi::c_void;
use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

use crate::gate::{Gate, SHARDS};
use crate::switch::{SwitchError, Switched, switch};
use crate::{Kind, Objects, Record, objects, thread};

/// How many callbacks can be attached to a trigger at a time.
pub const CALLBACKS: usize = 4;

/// Number of callbacks attached to all triggers of this copy of the crate.
static ATTACHED: AtomicU32 = AtomicU32::new(0);

/// Something that happens in a program, of which others want to know; `A` is what they are told. Fired by
/// [`fire!`](crate::fire).
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
    /// How many callbacks are attached. The first word, which is read without knowing `A`.
    attached: AtomicU32,
    slots: [AtomicPtr<Slot<A>>; CALLBACKS],
}

type Callback<A> = Box<dyn Fn(&A) + Send + Sync>;

struct Slot<A: ?Sized + 'static> {
    gate: Gate,
    /// Changed only while the gate is closed and nobody is inside.
    callback: UnsafeCell<Option<Callback<A>>>,
    is_taken: AtomicBool,
    /// The process whose threads are counted at the gate.
    process: u32,
}

// SAFETY: the callback may be called by, and dropped on, any thread; the gate keeps the calls and the change
// apart.
unsafe impl<A: ?Sized> Sync for Slot<A> {}

/// A call that is under way, on the stack of the thread that makes it.
struct Frame {
    slot: *const c_void,
    outer: *const Frame,
    /// Whether the callback was detached by a call inside this one, and is to be dropped when it returns.
    is_last: Cell<bool>,
}

/// A callback that is attached to a trigger. Dropping it detaches the callback.
#[must_use = "the callback is detached when this is dropped"]
pub struct Attached<A: ?Sized + 'static> {
    trigger: &'static Trigger<A>,
    slot: &'static Slot<A>,
    switched: Switched,
}

/// Why a callback could not be attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttachError {
    /// As many as possible are attached.
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

/// Calls what is attached to a trigger: `fire!(TRIGGER, &arguments)`.
///
/// `TRIGGER` is the path of a `static` [`Trigger<A>`](crate::Trigger). The second argument is a `&A`,
/// evaluated only if something is attached. While nothing is, all this is one instruction
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
    /// A trigger to which nothing is attached.
    #[allow(clippy::new_without_default, reason = "triggers are statics")]
    pub const fn new() -> Self {
        Self {
            attached: AtomicU32::new(0),
            slots: [const { AtomicPtr::new(core::ptr::null_mut()) }; CALLBACKS],
        }
    }

    /// From now on, calls `callback` wherever the trigger is fired, on the thread that fires it; also in
    /// libraries that are loaded later. A panic in it aborts the program. What fires the trigger inside the
    /// callback calls the callback again.
    ///
    /// Without the feature `sites` no trigger is ever fired.
    ///
    /// Not for signal handlers, nor while [`objects`] are held.
    ///
    /// # Errors
    /// [`CALLBACKS`] are attached, or the kernel does not let the program change its code. Nothing has
    /// changed then.
    pub fn attach(
        &'static self,
        callback: impl Fn(&A) + Send + Sync + 'static,
    ) -> Result<Attached<A>, AttachError> {
        let callback: Callback<A> = Box::new(callback);
        let objects = objects();
        let slot = self.free_slot().ok_or(AttachError::Full)?;
        slot.is_taken.store(true, Ordering::Relaxed);
        // SAFETY: the slot was free: its gate is closed, nobody is inside, and the lock of `objects` keeps
        // others that attach away.
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

    /// A slot that nobody uses, made if there is none.
    fn free_slot(&self) -> Option<&'static Slot<A>> {
        // SAFETY: has no obligations.
        let process = unsafe { libc::getpid() } as u32;
        for place in &self.slots {
            // Acquire, here as below: pairs with the release beneath.
            // SAFETY: null, or a slot that is never freed.
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
            // Release: whoever finds the slot finds what is in it.
            place.store(slot, Ordering::Release);
            return Some(slot);
        }
        None
    }

    /// Calls what is attached.
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
            // Where that is refused, the sites find nothing attached.
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
        // SAFETY: the gate was open when this thread went in, so the callback is there, and stays until it
        // has left.
        if let Some(callback) = unsafe { &*self.callback.get() } {
            callback(argument);
        }
    }

    /// Waits until nobody is inside but the calling thread, and drops the callback. If the thread is inside,
    /// it is dropped when the thread leaves.
    fn wait_and_clear(&'static self) {
        // SAFETY: has no obligations.
        if unsafe { libc::getpid() } as u32 != self.process {
            // Threads that do not exist here may be counted. What they used stays as it is.
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
            // SAFETY: the gate is closed, and nobody is inside.
            None => unsafe { self.clear() },
        }
    }

    /// The calls of this slot's callback that the thread is inside: how many, and the outermost.
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
    /// The gate is closed, and nobody uses the callback any more.
    unsafe fn clear(&self) {
        // SAFETY: the caller's.
        let callback = unsafe { (*self.callback.get()).take() };
        // Release: pairs with `free_slot`. Before the callback is dropped, which may attach another.
        self.is_taken.store(false, Ordering::Release);
        drop(callback);
    }
}

/// Leaves a callback.
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
            // SAFETY: this was the outermost call of the thread that has detached the callback, when no other
            // thread was inside and the gate was closed.
            unsafe { self.slot.clear() };
        }
    }
}

/// The counter in which a thread counts itself.
fn shard_of(thread: *const Cell<*const c_void>) -> usize {
    // The upper bits of a product with 2^64 / golden ratio depend on all bits of the address.
    ((thread as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % SHARDS
}

/// Waits a little, longer the more often it was called: a callback may take its time.
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
            // SAFETY: a valid time, and no room asked for what is left of it.
            unsafe { libc::nanosleep(&moment, core::ptr::null_mut()) };
        }
    }
}

impl<A: ?Sized> Attached<A> {
    /// What came of switching the trigger's sites on; at those with a uprobe on them the callback is not
    /// called.
    pub fn switched(&self) -> Switched {
        self.switched
    }

    /// Detaches the callback. When this returns, no thread is inside it and none will be; what it owns is
    /// dropped.
    ///
    /// Called inside the callback itself, it waits for other threads only. The calls that the calling thread
    /// is inside go on to their end; what the callback owns is dropped when the outermost of them returns.
    ///
    /// Two callbacks that detach each other on two threads wait for each other for ever. In a forked child, a
    /// callback that was attached before the fork is no longer called, but neither waited for nor dropped:
    /// threads of the parent may have been inside.
    ///
    /// Not for signal handlers, nor while [`objects`] are held.
    pub fn detach(self) {}
}

impl<A: ?Sized> Drop for Attached<A> {
    fn drop(&mut self) {
        self.trigger.detach(self.slot, objects());
    }
}

/// Switches on those sites of an object being loaded that have callbacks waiting. The lock of the objects is
/// held.
#[cfg(feature = "sites")]
pub(crate) fn loaded(object: &crate::Object) {
    if ATTACHED.load(Ordering::Relaxed) == 0 {
        return;
    }
    let has_callbacks = |record: &&Record| {
        let site = record.site();
        // SAFETY: the owner of such a site is a `Trigger`, which begins with this word, and a static.
        site.kind == Kind::Callback
            && unsafe { &*(site.owner)().cast::<AtomicU32>() }.load(Ordering::Relaxed) > 0
    };
    let changes: alloc::vec::Vec<_> =
        object.sites().iter().filter(has_callbacks).map(|record| (record, true)).collect();
    // Nobody is there to be told of an error; the callback is not called in that object then.
    let _ = switch(&changes);
}
