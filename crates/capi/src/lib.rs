//! Implements `tracewing.h`: the crate `tracewing` for programs in C and C++.
//!
//! The programs' own compiler lays out their sites, classes and descriptions through the header's macros,
//! like the crate's macros for Rust. So the same agent finds and switches them, and all tools see them.
//!
//! | module | does |
//! |---|---|
//! | `attach` | recordings that begin while the program runs |
//! | `event` | loading and unloading of sites, and the functions that they call |
//! | `span` | spans |
//! | `user_thread` | user threads |
//! | `session` | programs that record themselves |
//! | `sandbox` | programs that give up the clock |
//! | `text` | strings in and out |
//!
//! The macros use the functions whose names end in `_2`, for version 2 of `tracewing_abi::site`. The header
//! documents the others.

#![warn(unreachable_pub)]

mod attach;
mod event;
mod sandbox;
mod session;
mod span;
mod text;
mod user_thread;
