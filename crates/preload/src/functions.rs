//! Functions of programs that were built to tell when they begin and end.
//!
//! | module | does |
//! |---|---|
//! | `chosen` | which functions are wanted, and from which file they are |
//! | `fentry` | `__fentry__` (`-pg -mfentry`), which tells of begins only: ends are found by another return address |
//! | `shadow`, `pool` | the return addresses that were replaced: of one thread, of all |
//! | `jumps` | `longjmp` and exceptions, which leave functions otherwise |
//! | `registers` | calls in places where no register may change |
//! | `thread` | what a thread has of its own |
//! | `profile` | the C library's own use of `-pg`, which is left out |
//!
//! Here is `-finstrument-functions`, whose two calls are ordinary ones. An event is a function's address, 20
//! bytes with its head. While nobody records, a call costs a load and a jump.

mod chosen;
mod fentry;
mod jumps;
mod pool;
mod profile;
mod registers;
mod shadow;
mod thread;

use core::sync::atomic::{AtomicBool, Ordering::*};

use tracewing::dynamic::{is_recorded, try_record};
use tracewing::{Event, emit};
use tracewing_abi::functions::FUNCTIONS_VARIABLE;

use fentry::IS_ON;

static ARE_WANTED: AtomicBool = AtomicBool::new(false);

/// Finds out whether functions are wanted, and which. To be called while the library is loaded.
pub(crate) fn prepare() {
    jumps::find_all();
    match std::env::var(FUNCTIONS_VARIABLE) {
        Ok(patterns) => {
            registers::prepare();
            pool::prepare();
            chosen::prepare(&patterns);
            ARE_WANTED.store(true, Relaxed); // alone: while nobody records, nobody looks at the rest
        }
        Err(_) => {
            fentry::pass_on();
        }
    }
}

/// Another recording, or none.
pub(crate) fn at_change() {
    // Release, with `is_on`: what `prepare` has done is there.
    IS_ON.store((ARE_WANTED.load(Relaxed) && is_recorded()).into(), Release);
}

/// Objects were unloaded.
pub(crate) fn forget_unloaded() {
    if ARE_WANTED.load(Relaxed) {
        chosen::forget_unloaded();
    }
}

#[inline(always)]
fn is_on() -> bool {
    IS_ON.load(Acquire) != 0 // with `at_change`
}

tracewing_vocabulary::function_events!(tracewing::declared_events);

/// What gcc and clang have a function call when it begins.
///
/// # Safety
/// None: the addresses are only numbers.
#[unsafe(no_mangle)]
unsafe extern "C" fn __cyg_profile_func_enter(function: usize, _caller: usize) {
    if is_on() && chosen::is_wanted(function) && !try_record(Entry::class(), &(function as u64).to_ne_bytes())
    {
        entry_slow(function);
    }
}

/// The same when it ends, also by an exception where the compiler sees to that.
///
/// # Safety
/// As above.
#[unsafe(no_mangle)]
unsafe extern "C" fn __cyg_profile_func_exit(function: usize, _caller: usize) {
    if is_on() && chosen::is_wanted(function) && !try_record(Exit::class(), &(function as u64).to_ne_bytes())
    {
        exit_slow(function);
    }
}

#[cold]
#[inline(never)]
fn entry_slow(function: usize) {
    emit!(Entry { function: function as u64 });
}

#[cold]
#[inline(never)]
fn exit_slow(function: usize) {
    emit!(Exit { function: function as u64 });
}
