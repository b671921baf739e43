//! What the recorder and the library that it pre-loads (`tracewing-preload`) have to agree on to record
//! functions of C and C++.

/// The environment variable that tells the library which functions are recorded: shell patterns, one a line,
/// of which one must match a function's name, with or without its parameters, and without what it returns.
/// Without it, none are.
pub const FUNCTIONS_VARIABLE: &str = "TRACEWING_FUNCTIONS";

/// The pattern for all.
pub const ALL_FUNCTIONS: &str = "*";

/// What the compiler has instrumented functions call when they begin: with `-finstrument-functions`, and with
/// `-pg -mfentry`.
pub const HOOKS: [&str; 2] = ["__cyg_profile_func_enter", "__fentry__"];
