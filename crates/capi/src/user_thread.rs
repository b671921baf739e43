//! User threads.

use std::ffi::{c_char, c_int, c_uint};

use tracewing::user_thread::{self, Cause, Outcome, UserThread};

use crate::text::text;

/// # Safety
/// All three are `NULL` or strings.
#[unsafe(no_mangle)]
unsafe extern "C" fn tracewing_user_thread_create_at(
    name: *const c_char,
    runtime: *const c_char,
    file: *const c_char,
    line: c_uint,
) -> u64 {
    if !user_thread::wants_create() {
        return user_thread::create_unrecorded().get().get();
    }
    // SAFETY: the caller's.
    let [name, runtime, file] = unsafe { [text(name), text(runtime), text(file)] };
    user_thread::create_at(&name, &runtime, &file, line).get().get()
}

/// # Safety
/// `name` is `NULL` or a string.
#[unsafe(no_mangle)]
unsafe extern "C" fn tracewing_user_thread_name(thread: u64, name: *const c_char) {
    if let Some(thread) = UserThread::from_number(thread) {
        // SAFETY: the caller's.
        user_thread::name(thread, &unsafe { text(name) });
    }
}

#[unsafe(no_mangle)]
extern "C" fn tracewing_user_thread_switch(next: u64, cause: c_int) -> u64 {
    let cause = match cause {
        1 => Cause::Ended,
        2 => Cause::Blocked,
        3 => Cause::Yielded,
        4 => Cause::Budget,
        5 => Cause::Preempted,
        6 => Cause::Nested,
        7 => Cause::Pending,
        _ => Cause::None,
    };
    number(user_thread::switch(UserThread::from_number(next), cause))
}

#[unsafe(no_mangle)]
extern "C" fn tracewing_user_thread_current() -> u64 {
    number(user_thread::current())
}

#[unsafe(no_mangle)]
extern "C" fn tracewing_user_thread_wake(thread: u64) {
    UserThread::from_number(thread).into_iter().for_each(user_thread::wake);
}

#[unsafe(no_mangle)]
extern "C" fn tracewing_user_thread_exit(thread: u64, outcome: c_int) {
    let outcome = match outcome {
        0 => Outcome::Completed,
        1 => Outcome::Cancelled,
        2 => Outcome::Panicked,
        _ => Outcome::Unknown,
    };
    UserThread::from_number(thread).into_iter().for_each(|thread| user_thread::exit(thread, outcome));
}

fn number(thread: Option<UserThread>) -> u64 {
    thread.map_or(0, |thread| thread.get().get())
}
