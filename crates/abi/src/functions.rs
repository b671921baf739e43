//! The contract between the recorder and the library that it pre-loads (`tracewing-preload`) for recording
//! functions of C and C++.

/// The environment variable that lists the functions to record: one shell pattern per line; any may match. A
/// pattern is compared with the function's name, with and without its parameters, and without its return
/// type. If the variable is not set, no functions are recorded.
pub const FUNCTIONS_VARIABLE: &str = "TRACEWING_FUNCTIONS";

/// The pattern that matches all functions.
pub const ALL_FUNCTIONS: &str = "*";

/// Functions that compiler-instrumented code calls on entry: with `-finstrument-functions`, and with `-pg
/// -mfentry`.
pub const HOOKS: [&str; 2] = ["__cyg_profile_func_enter", "__fentry__"];
