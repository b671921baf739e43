//! The events that tracewing itself emits, and the kernel's events that it interprets: each is declared here
//! once, with its name, its fields and their meaning.
//!
//! | module | events |
//! |---|---|
//! | [`user_thread`] | tasks and other user threads |
//! | [`lock`] | locks |
//! | [`function`] | functions of C, C++ and Rust |
//! | [`profile`] | samples and counters |
//! | [`own`], [`recorder`] | threads of programs, with their names |
//! | [`kernel`] | the kernel's, by LTTng's names |
//! | [`span`] | spans, whose names users choose |
//! | [`probe`] | fields of probes, whose names users choose |
//! | [`context`] | context fields, which all events can have |
//! | [`environment`] | the metadata keys of a trace |
//! | [`renamed`] | names of earlier versions |
//!
//! A declaration is a macro ([`user_thread_events!`], …) that passes its text to another one. Here that
//! defines a struct, which [`Reader::read`] fills from any implementation of [`Fields`]; in the crate that
//! emits the events it provides the input of `#[derive(tracewing::Event)]`.

#![no_std]
#![warn(unreachable_pub)]

extern crate alloc;

pub mod context;
mod declare;
pub mod environment;
mod field;
pub mod function;
pub mod kernel;
pub mod lock;
pub mod own;
pub mod probe;
pub mod profile;
pub mod recorder;
pub mod renamed;
pub mod span;
pub mod user_thread;

pub use field::{Field, FieldKind, Fields, Reader, Recorded};
pub use tracewing_units::{Pid, Tid};

/// An event class with a meaning to tracewing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// A class of user threads.
    UserThread(user_thread::Class),
    /// A class of locks.
    Lock(lock::Class),
    /// A class of functions.
    Function(function::Class),
    /// A class of samples and counters.
    Profile(profile::Class),
    /// A class that the tracer itself emits in programs.
    Own(own::Class),
    /// A class that the recorder emits.
    Recorder(recorder::Class),
    /// A class of the kernel.
    Kernel(kernel::Class),
}

impl Class {
    /// The class of this name, in any provider.
    pub fn of_name(name: &str) -> Option<Self> {
        let programs = || {
            None.or_else(|| user_thread::Class::of_name(name).map(Self::UserThread))
                .or_else(|| lock::Class::of_name(name).map(Self::Lock))
                .or_else(|| function::Class::of_name(name).map(Self::Function))
                .or_else(|| profile::Class::of_name(name).map(Self::Profile))
                .or_else(|| own::Class::of_name(name).map(Self::Own))
                .or_else(|| recorder::Class::of_name(name).map(Self::Recorder))
        };
        kernel::Class::of_name(name).map(Self::Kernel).or_else(programs)
    }

    /// The classes of all providers.
    pub fn all() -> impl Iterator<Item = Self> {
        let user_threads = user_thread::Class::ALL.iter().map(|class| Self::UserThread(*class));
        let locks = lock::Class::ALL.iter().map(|class| Self::Lock(*class));
        let functions = function::Class::ALL.iter().map(|class| Self::Function(*class));
        let profiles = profile::Class::ALL.iter().map(|class| Self::Profile(*class));
        let own = own::Class::ALL.iter().map(|class| Self::Own(*class));
        let recorder = recorder::Class::ALL.iter().map(|class| Self::Recorder(*class));
        let kernel = kernel::Class::ALL.iter().map(|class| Self::Kernel(*class));
        user_threads.chain(locks).chain(functions).chain(profiles).chain(own).chain(recorder).chain(kernel)
    }

    /// Name in recordings; the first one if there are several.
    pub const fn name(self) -> &'static str {
        match self {
            Self::UserThread(class) => class.name(),
            Self::Lock(class) => class.name(),
            Self::Function(class) => class.name(),
            Self::Profile(class) => class.name(),
            Self::Own(class) => class.name(),
            Self::Recorder(class) => class.name(),
            Self::Kernel(class) => class.name(),
        }
    }

    /// The meaning of its events.
    pub const fn description(self) -> &'static str {
        match self {
            Self::UserThread(class) => class.description(),
            Self::Lock(class) => class.description(),
            Self::Function(class) => class.description(),
            Self::Profile(class) => class.description(),
            Self::Own(class) => class.description(),
            Self::Recorder(class) => class.description(),
            Self::Kernel(class) => class.description(),
        }
    }

    /// The fields, indexed as in [`Fields`].
    pub const fn fields(self) -> &'static [Field] {
        match self {
            Self::UserThread(class) => class.fields(),
            Self::Lock(class) => class.fields(),
            Self::Function(class) => class.fields(),
            Self::Profile(class) => class.fields(),
            Self::Own(class) => class.fields(),
            Self::Recorder(class) => class.fields(),
            Self::Kernel(class) => class.fields(),
        }
    }

    /// Whether its events explain values in others: names of threads and tasks, source lines, mappings. An
    /// extract needs them, also those from before its beginning.
    pub fn explains(self) -> bool {
        match self {
            Self::UserThread(class) => class == user_thread::Class::Origin,
            Self::Lock(class) => {
                use lock::Class::{CallChain, Image, Place, Shadowed};
                matches!(class, CallChain | Image | Place | Shadowed)
            }
            Self::Function(class) => class == function::Class::Image,
            Self::Profile(class) => {
                use profile::Class::{Fork, JitSymbol, KernelSymbol, Mapping, Thread};
                matches!(class, Mapping | Thread | Fork | KernelSymbol | JitSymbol)
            }
            Self::Own(_) | Self::Recorder(_) => true,
            Self::Kernel(class) => class == kernel::Class::StateDump,
        }
    }

    /// Whether its events, emitted by programs, only repeat the state: names and places of what the others
    /// refer to. How often they come depends on sub-buffers and archives, so they are no part of the number
    /// of events.
    pub fn is_state(self) -> bool {
        match self {
            Self::UserThread(class) => {
                use user_thread::Class::{Existed, Origin};
                matches!(class, Existed | Origin)
            }
            Self::Lock(class) => {
                use lock::Class::{CallChain, Image, Place};
                matches!(class, CallChain | Image | Place)
            }
            Self::Function(class) => class == function::Class::Image,
            Self::Profile(_) | Self::Own(_) | Self::Recorder(_) | Self::Kernel(_) => false,
        }
    }
}

/// Whether a field of a switch, of threads or of tasks, describes what runs after it: `next`, `next_tid`.
pub fn describes_next(field: &str) -> bool {
    let rest = field.strip_prefix(user_thread::Switch::next.name);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn of_each_switch_the_fields_of_what_runs_next_are_known() {
        let of = |fields: &'static [Field]| -> Vec<&str> {
            fields.iter().map(|field| field.name).filter(|name| describes_next(name)).collect()
        };
        assert_eq!(of(kernel::Switch::FIELDS), ["next_tid", "next_comm"]);
        assert_eq!(of(user_thread::Switch::FIELDS), ["next"]);
        // LTTng records this one, too.
        assert!(describes_next("next_prio"));
        assert!(!describes_next("nextcloud_id") && !describes_next("tid"));
    }
}
