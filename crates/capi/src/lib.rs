//! What `tracewing.h` declares: the crate `tracewing` for programs in C and C++.
//!
//! Their sites, classes and descriptions are laid out by their own compiler, through the header's macros,
//! just as the crate's macros do it for Rust; so the same agent finds and switches them, and all tools see
//! them.
//!
//! | module | does |
//! |---|---|
//! | `event` | sites that come and go, and what is behind one that is on |
//! | `span` | spans |
//! | `user_thread` | user threads |
//! | `session` | programs that record themselves |
//! | `sandbox` | programs that give up the clock |
//! | `text` | strings in and out |
//!
//! The functions whose names end in `_2` are the macros' part, in version 2 of `tracewing_abi::site`. What
//! each of the others does is said in the header.

mod event;
mod sandbox;
mod session;
mod span;
mod text;
mod user_thread;
