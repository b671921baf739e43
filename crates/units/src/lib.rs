//! Units of measurement in traces: one type per unit, so that values of different units are not mixed.
//!
//! | type | value |
//! |---|---|
//! | [`Timestamp`] | a moment, in nanoseconds since the clock's origin |
//! | [`Duration`] | the time between two moments, in nanoseconds |
//! | [`Cycles`] | a clock's value before it is converted |
//! | [`Tid`], [`Pid`], [`Cpu`], [`Task`] | numbers of threads, processes, CPUs and user threads |
//! | [`LockAddress`], [`Ticket`], [`Origin`] | what identifies locks, requests for them, and places that create user threads |
//! | [`Caller`], [`Chain`], [`SpanNumber`] | what identifies places that use locks, their call chains, and spans |
//!
//! All are as large as the integer within, and operators exist only where the units fit:
//!
//! ```
//! use tracewing_units::{Duration, Timestamp};
//!
//! let begin = Timestamp::from_ns(1_000);
//! let end = begin + Duration::from_ns(500);
//! assert_eq!(end - begin, Duration::from_ns(500));
//! assert_eq!((end - begin) / 2, Duration::from_ns(250));
//! ```
//!
//! Moments cannot be added:
//!
//! ```compile_fail,E0308
//! # use tracewing_units::Timestamp;
//! let sum = Timestamp::from_ns(1) + Timestamp::from_ns(2);
//! ```
//!
//! A moment is not a duration, and neither is a plain integer:
//!
//! ```compile_fail,E0308
//! # use tracewing_units::{Duration, Timestamp};
//! let length: Duration = Timestamp::from_ns(1);
//! ```
//!
//! ```compile_fail,E0308
//! # use tracewing_units::Timestamp;
//! let at: Timestamp = 1_i64;
//! ```
//!
//! ```compile_fail,E0308
//! # use tracewing_units::Duration;
//! let sum = Duration::from_ns(1) + 1_u64;
//! ```
//!
//! Cycles are not nanoseconds; only their clock converts them:
//!
//! ```compile_fail,E0369
//! # use tracewing_units::{Cycles, Duration};
//! let sum = Cycles(1) + Duration::from_ns(2);
//! ```
//!
//! ```compile_fail,E0308
//! # use tracewing_units::{Cycles, Timestamp};
//! let is_later = Timestamp::from_ns(1) > Cycles(2);
//! ```
//!
//! Numbers of threads, processes and CPUs cannot be mixed:
//!
//! ```compile_fail,E0308
//! # use tracewing_units::{Pid, Tid};
//! let is_first = Tid(1) == Pid(1);
//! ```
//!
//! ```compile_fail,E0308
//! # use tracewing_units::{Cpu, Tid};
//! let cpu: Cpu = Tid(1);
//! ```
//!
//! Nor is a user thread a thread:
//!
//! ```compile_fail,E0308
//! # use tracewing_units::{Task, Tid};
//! let task: Task = Tid(1);
//! ```
//!
//! Nor is a request the lock that it is for:
//!
//! ```compile_fail,E0308
//! # use tracewing_units::{LockAddress, Ticket};
//! let is_same = Ticket(1) == LockAddress(1);
//! ```
//!
//! Nor is a call chain the place that it leads to, or a span:
//!
//! ```compile_fail,E0308
//! # use tracewing_units::{Caller, Chain};
//! let is_there = Caller(1) == Chain(1);
//! ```
//!
//! ```compile_fail,E0308
//! # use tracewing_units::{Chain, SpanNumber};
//! let span: SpanNumber = Chain(1);
//! ```
//!
//! Nor are they plain integers; what the standard library gives is converted where it comes from:
//!
//! ```
//! # use tracewing_units::Pid;
//! let own = Pid::from_unsigned(std::process::id());
//! assert_eq!(own.to_string().parse(), Ok(own));
//! ```
//!
//! ```compile_fail,E0308
//! # use tracewing_units::Pid;
//! let own: Pid = std::process::id();
//! ```
//!
//! ```compile_fail,E0308
//! # use tracewing_units::Pid;
//! let has_joined = Pid(1) == 1_u32;
//! ```
//!
//! ```compile_fail,E0277
//! # use tracewing_units::Cpu;
//! let buffer = [1, 2, 3][Cpu(1)];
//! ```

#![no_std]
#![warn(unreachable_pub)]

mod duration;
mod keys;
mod numbers;
mod timestamp;

pub use duration::Duration;
pub use keys::{Caller, Chain, LockAddress, Origin, SpanNumber, Ticket};
pub use numbers::{Cpu, Cycles, Pid, Task, Tid};
pub use timestamp::Timestamp;

/// A type that is serialised as its inner integer.
macro_rules! transparent {
    ($($type:ty),*) => { $(
        #[cfg(feature = "serde")]
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.0.serialize(serializer)
            }
        }
    )* };
}
pub(crate) use transparent;
