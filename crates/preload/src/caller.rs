//! Exports functions that precede the C library's, and passes them one more argument: their return address.

/// Exports functions with these names and numbers of arguments, and forwards calls to functions with one more
/// argument.
macro_rules! with_caller {
    ($($(#[$attribute:meta])* $name:ident / $arguments:tt => $to:path;)*) => {$(
        $(#[$attribute])*
        /// # Safety
        /// As for the C library's.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        unsafe extern "C-unwind" fn $name() {
            core::arch::naked_asm!(
                concat!("mov ", $crate::caller::register!($arguments), ", qword ptr [rsp]"),
                "jmp {to}",
                to = sym $to,
            )
        }
    )*};
}

/// The register of the argument after this many (System V ABI for x86-64, 3.2.3).
macro_rules! register {
    (1) => {
        "rsi"
    };
    (2) => {
        "rdx"
    };
    (3) => {
        "rcx"
    };
    (4) => {
        "r8"
    };
}

pub(crate) use {register, with_caller};
