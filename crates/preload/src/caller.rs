//! Exports functions in front of the C library's, and passes them one argument more: the address that they
//! return to.

/// Exports functions by these names, with so many arguments, and passes calls on to functions with one more.
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

/// The register of the argument behind so many (System V ABI for x86-64, 3.2.3).
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
