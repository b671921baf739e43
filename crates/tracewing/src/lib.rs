//! (to be written)

mod class;
mod declaration;
mod event;
mod field;
mod macros;
mod path;
mod payload;

pub use class::EventClass;
pub use event::Event;
pub use field::Field;
#[doc(hidden)]
pub use macros::private as __private;
pub use tracewing_abi::schema::Level;
pub use tracewing_macros::{Event, EventField};
