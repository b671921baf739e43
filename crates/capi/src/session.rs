//! Programs that record themselves, and snapshots.

use std::ffi::{c_char, c_uint};
use std::time::Duration;

use tracewing::Session;

use crate::text::{text, write_message};

/// `struct tracewing_session_options`.
#[repr(C)]
struct Options {
    output: *const c_char,
    events: *const *const c_char,
    sub_buffer_bytes: usize,
    sub_buffers: usize,
    flush_ms: c_uint,
    flight_recorder: bool,
}

/// `struct tracewing_session_summary`.
#[repr(C)]
struct Summary {
    events: u64,
    lost: u64,
}

/// # Safety
/// The options are as the header says; `error` is `NULL` or points to `size` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn tracewing_session_start(
    options: &Options,
    error: *mut c_char,
    size: usize,
) -> *mut Session {
    // SAFETY: the caller's.
    let mut builder = Session::builder().output(unsafe { text(options.output) }.into_owned());
    let mut pattern = options.events;
    // SAFETY: the list ends with `NULL`.
    while let Some(event) = unsafe { pattern.as_ref() }.filter(|event| !event.is_null()) {
        // SAFETY: a string of the list, followed by another element.
        unsafe {
            builder = builder.event(text(*event));
            pattern = pattern.add(1);
        }
    }
    if options.sub_buffer_bytes != 0 {
        builder = builder.sub_buffer_size(options.sub_buffer_bytes);
    }
    if options.sub_buffers != 0 {
        builder = builder.sub_buffers(options.sub_buffers);
    }
    if options.flush_ms != 0 {
        builder = builder.flush(Duration::from_millis(options.flush_ms.into()));
    }
    if options.flight_recorder {
        builder = builder.flight_recorder();
    }
    match builder.start() {
        Ok(session) => Box::into_raw(Box::new(session)),
        Err(why) => {
            // SAFETY: the caller's.
            unsafe { write_message(&why, error, size) };
            std::ptr::null_mut()
        }
    }
}

/// # Safety
/// `session` is from `tracewing_session_start` and is not used afterwards; `error` is `NULL` or points to
/// `size` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn tracewing_session_stop(
    session: *mut Session,
    summary: Option<&mut Summary>,
    error: *mut c_char,
    size: usize,
) -> bool {
    // SAFETY: the caller's.
    match unsafe { Box::from_raw(session) }.stop() {
        Ok(stopped) => {
            if let Some(summary) = summary {
                *summary = Summary { events: stopped.events, lost: stopped.lost };
            }
            true
        }
        Err(why) => {
            // SAFETY: the caller's.
            unsafe { write_message(&why, error, size) };
            false
        }
    }
}

/// # Safety
/// `folder` is a string; `error` is `NULL` or points to `size` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn tracewing_session_snapshot(
    session: &Session,
    folder: *const c_char,
    error: *mut c_char,
    size: usize,
) -> bool {
    // SAFETY: the caller's.
    let taken = session.snapshot(unsafe { text(folder) }.into_owned());
    // SAFETY: the caller's.
    taken.map_err(|why| unsafe { write_message(&why, error, size) }).is_ok()
}

/// # Safety
/// `error` is `NULL` or points to `size` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn tracewing_snapshot(error: *mut c_char, size: usize) -> bool {
    // SAFETY: the caller's.
    tracewing::snapshot().map_err(|why| unsafe { write_message(&why, error, size) }).is_ok()
}
