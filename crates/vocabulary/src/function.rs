//! Functions of programs: those of C and C++ by their addresses, and those of Rust, which have classes of
//! their own.

use crate::declare::{names, readers};

/// Passes the declaration of the events of provider `function` to a macro.
#[macro_export]
macro_rules! function_events {
    ($($then:ident)::+) => { $($then)::+ ! {
        provider "function" named "function:";
        enumerations {}
        events {
            /// A function is entered.
            Entry "entry" [level = "trace", print = "{function:#x}"] {
                /// An address in the function: its first, or the one after its call of `__fentry__`.
                function: u64 [hex],
            }

            /// A function returns.
            Exit "exit" [level = "trace", print = "{function:#x}"] {
                /// The same address as on entry.
                function: u64 [hex],
            }

            /// A call was not recorded: too many calls are nested in the thread to follow its return.
            NotFollowed "not_followed" [level = "warn", print = "{function:#x}"] {
                /// Address of the function.
                function: u64 [hex],
            }

            /// File mapped between two addresses; recorded before the first function in it, and again in each
            /// new sub-buffer.
            Image<'e> "image" [print = "{begin:#x} to {end:#x} are {path}"] {
                /// First address.
                begin: u64 [hex],
                /// First address after the mapping.
                end: u64 [hex],
                /// Load address minus the file's own address.
                bias: u64 [hex],
                /// Path of the file.
                path: &'e str,
            }
        }
    } };
}

function_events!(readers);

macro_rules! literals {
    ($($declaration:tt)*) => { names! { function_name $($declaration)* } };
}

function_events!(literals);

/// The meaning of the name of a class for one function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named<'n> {
    /// The function of this name is entered.
    Entry(&'n str),
    /// The function of this name returns.
    Exit(&'n str),
}

impl Named<'_> {
    /// A pattern for the classes of single functions.
    pub const GLOB: &'static str = "function:*:*";
    /// Patterns for all classes of begins and ends of functions.
    pub const GLOBS: [&'static str; 2] = ["function:entry*", "function:exit*"];
}

impl<'n> Named<'n> {
    /// Parses a class name: those of Rust functions are `function:entry:NAME` and `function:exit:NAME`.
    pub fn of_name(name: &'n str) -> Option<Self> {
        let of = |start| name.strip_prefix(start)?.strip_prefix(':');
        of(Entry::NAME).map(Self::Entry).or_else(|| of(Exit::NAME).map(Self::Exit))
    }
}
