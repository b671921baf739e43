//! Triggers: places in a program that cost one instruction while they are off, and that are switched on and
//! off while the program runs on any number of threads.
//!
//! A site ([`is_on`]) is a `nop` of eight bytes while it is off. Changing one byte turns it into a `nop` of
//! three bytes and a `jmp rel32` to the site's code, which is out of line. The idea is Feather-Trace's
//! (Brandenburg and Anderson 2007, section 2.1), which skips a call by a short jump and switches by the
//! jump's offset; here the single byte decides whether there is a jump at all, so that none is executed while
//! the site is off. `docs/explanation/triggers.md` explains why processors allow that.
//!
//! ```
//! use tracewing_abi::schema::{Class, Level};
//! use tracewing_abi::site::{Kind, Site};
//! use tracewing_trigger::{Place, cold, is_on, objects, switch};
//!
//! struct Here;
//! impl Place for Here {
//!     const SITE: &'static Site = &Site {
//!         class: &Class {
//!             name: "shop:sold", level: Level::Info, major: 0, description: "", print: "",
//!             file: file!(), line: line!(), fields: &[],
//!         },
//!         owner: Site::no_owner,
//!         file: file!(),
//!         line: line!(),
//!         kind: Kind::Event,
//!     };
//! }
//!
//! fn sell(price: u32) {
//!     if is_on::<Here>() {
//!         cold(move || println!("sold for {price}"));
//!     }
//! }
//!
//! sell(3);
//! let objects = objects();
//! let all: Vec<_> = objects.sites().map(|record| (record, true)).collect();
//! let switched = switch(&all).unwrap();
//! assert_eq!(switched.obstructed, 0);
//! sell(4); // sold for 4
//! ```
//!
//! | module | does |
//! |---|---|
//! | `site` | the instruction and its record in the object file; `absent` replaces it without the feature `sites` |
//! | `cold` | runs a site's code out of line; `ordinary` elsewhere |
//! | `object` | the programs and libraries whose sites belong to this copy of the crate, as they are loaded and unloaded |
//! | `switch` | switches sites |
//! | `callback` | [`Trigger`] and [`fire!`]: calls attached functions |
//! | `gate` | counts the threads inside a callback |
//! | `thread` | one pointer per thread |
//! | `patch` | changes a byte of the program's code |
//! | `lock` | a lock that survives `fork` |
//! | `pin` | keeps a library from being unloaded |
//!
//! The crate `tracewing` decides which events a recording enables, and what happens at a site that is on.
//!
//! Without the feature `sites` (on by default) `is_on` is `false` at compile time, and the compiler drops the
//! code of the site; no trace of it remains in the program.

#![no_std]
#![warn(unreachable_pub)]

extern crate alloc;

#[cfg(not(feature = "sites"))]
mod absent;
mod callback;
#[cfg(all(feature = "sites", target_arch = "x86_64"))]
mod cold;
mod gate;
mod lock;
mod object;
#[cfg(not(all(feature = "sites", target_arch = "x86_64")))]
mod ordinary;
mod patch;
mod pin;
mod place;
#[cfg(feature = "sites")]
mod site;
mod switch;
mod thread;

#[cfg(not(feature = "sites"))]
pub use absent::is_on;
pub use callback::{AttachError, Attached, CALLBACKS, Trigger};
#[cfg(all(feature = "sites", target_arch = "x86_64"))]
pub use cold::{cold, cold_call, cold_call_at, here};
#[doc(hidden)]
pub use lock::{Guard, Lock};
pub use object::{Object, Objects, objects, on_load};
#[cfg(not(all(feature = "sites", target_arch = "x86_64")))]
pub use ordinary::{cold, cold_call, cold_call_at, here};
pub use pin::pin;
pub use place::{Callee, Place};
#[cfg(feature = "sites")]
pub use site::is_on;
#[cfg(feature = "sites")]
#[doc(hidden)]
pub use site::{register, unregister};
pub use switch::{Obstacle, SwitchError, Switched, switch};
pub use tracewing_abi::site::{Kind, Record, Site};

/// Used by the expansion of [`fire!`]. Not part of the interface.
#[doc(hidden)]
pub mod __private {
    pub use tracewing_abi::schema::{Class, Level};
}
