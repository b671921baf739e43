//! Features of this machine for tests: programs, the kernel's events. A test asks, and skips if one is
//! missing.

use crate::skip::{Cause, is_installed, skip};
use std::fmt::Display;

/// Whether these programs, with which a test compares, are installed; prints it if not.
pub fn installed(programs: &[&str]) -> bool {
    match programs.iter().find(|program| !is_installed(program)) {
        None => true,
        Some(missing) => {
            skip(Cause::Program(missing), format_args!("{missing} is not installed"));
            false
        }
    }
}

/// Whether the kernel can be traced here, by the answer of `tracewing_kernel::privileges`; prints it if not.
pub fn traceable<E: Display>(privileges: Result<(), E>) -> bool {
    privileges.inspect_err(|missing| skip(Cause::KernelEvents, missing)).is_ok()
}
