//! Helper processes of a recorder: each keeps exactly the capabilities that its work needs, and does this
//! work for the recorder, which then needs no such capabilities itself.
//!
//! ```no_run
//! use tracewing_helper::{CapabilitySet, Fields, Helper, Reply};
//! use std::time::Duration;
//!
//! let helper = Helper::start(c"opener", CapabilitySet::DAC_READ_SEARCH, |server| {
//!     server.answer_each(|request| {
//!         let mut fields = Fields::of(&request.bytes);
//!         let number = fields.u64()?; // `None`: a wrong request, which ends the helper
//!         fields.is_end().then(|| Reply::new((number + 1).to_ne_bytes()))
//!     });
//! })?;
//! let reply = helper.ask(&7_u64.to_ne_bytes(), Duration::from_secs(1))?;
//! assert_eq!(Fields::of(&reply.bytes).u64(), Some(8));
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! - [`Helper`] is the recorder's side: starts the process, asks it, ends it.
//! - [`Server`] is the helper's side: takes requests, and answers them from any of its threads.
//! - [`AsUsers`] starts processes that do one thing as another user, without capabilities.
//! - `message`: one packet with its number, bytes and descriptors; [`Fields`] reads the bytes.
//! - `rights`: gives up capabilities. `process`: fork, descriptors, signals, the end.
//!
//! # What each side can rely on
//!
//! A helper has the given capabilities, as far as the recorder has them, in its permitted, effective and
//! bounding set, none in the inheritable and ambient ones, and cannot get others (`no_new_privs`). Of the
//! recorder's descriptors it has only its end of the channel; standard input, output and error are
//! `/dev/null`. It has a copy of the recorder's memory at the time of its start, so it is started before
//! the recorder reads anything from others, and before it has threads.
//!
//! Signals from the terminal do not end a helper: it ends when the channel closes, which happens when the
//! recorder drops it or ends in any way. If its end takes longer, it is killed: by [`Helper`] after a second,
//! and by the kernel when the recorder's thread that has started it ends.
//!
//! Neither side trusts the other beyond the layout of packets, since either may have been taken over by the
//! data that it reads. A packet with another layout ends the helper, on whichever side it arrives.

#![warn(unreachable_pub)]

mod as_user;
mod fields;
mod helper;
mod message;
mod process;
mod rights;
mod server;

pub use as_user::{AsUsers, Limits, NoReply, User};
pub use fields::{Fields, Text};
pub use helper::{Helper, Number};
pub use message::{MOST_BYTES, MOST_FILES, Reply, Request};
pub use rights::keep_only;
pub use rustix::thread::CapabilitySet;
pub use server::{Replier, Server};
