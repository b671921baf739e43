//! Functions of programs that were built with calls at the beginning and end of functions.
//!
//! | module | does |
//! |---|---|
//! | `chosen` | which functions are recorded, and their files |
//! | `fentry` | `__fentry__` (`-pg -mfentry`), which reports begins only: ends are found by a replaced return address |
//! | `shadow`, `pool` | the return addresses that were replaced: of one thread, of all |
//! | `jumps` | `longjmp` and exceptions, which leave functions in other ways |
//! | `registers` | calls where no register may change |
//! | `thread` | per-thread data |
//! | `profile` | the C library's own use of `-pg`, which is left out |
//!
//! This file implements `-finstrument-functions`, whose two calls are ordinary ones. An event is a function's
//! address, 20 bytes with its header. While nothing is recorded, a call costs a load and a jump.

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

static ARE_ENABLED: AtomicBool = AtomicBool::new(false);

/// Finds out whether functions are recorded, and which. Must be called while the library is loaded.
pub(crate) fn prepare() {
    jumps::find_all();
    match std::env::var(FUNCTIONS_VARIABLE) {
        Ok(patterns) => {
            registers::prepare();
            pool::prepare();
            chosen::prepare(&patterns);
            ARE_ENABLED.store(true, Relaxed); // alone: the rest is read only during a recording
        }
        Err(_) => {
            fentry::pass_on();
        }
    }
}

/// Handles the beginning or end of a recording.
pub(crate) fn at_change() {
    // Release, with `is_on`: the work of `prepare` is done.
    IS_ON.store((ARE_ENABLED.load(Relaxed) && is_recorded()).into(), Release);
}

pub(crate) fn forget_unloaded() {
    if ARE_ENABLED.load(Relaxed) {
        chosen::forget_unloaded();
    }
}

#[inline(always)]
fn is_on() -> bool {
    IS_ON.load(Acquire) != 0 // with `at_change`
}

tracewing_vocabulary::function_events!(tracewing::declared_events);

/// gcc and clang insert a call of this at a function's beginning.
///
/// # Safety
/// None: the addresses are only numbers.
#[unsafe(no_mangle)]
unsafe extern "C" fn __cyg_profile_func_enter(function: usize, _caller: usize) {
    if is_on()
        && chosen::is_enabled(function)
        && !try_record(Entry::class(), &(function as u64).to_ne_bytes())
    {
        entry_slow(function);
    }
}

/// The same at a function's end, also by an exception if the compiler supports that.
///
/// # Safety
/// As above.
#[unsafe(no_mangle)]
unsafe extern "C" fn __cyg_profile_func_exit(function: usize, _caller: usize) {
    if is_on() && chosen::is_enabled(function) && !try_record(Exit::class(), &(function as u64).to_ne_bytes())
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
