//! (to be written)

mod agent;
mod class;
mod declaration;
mod event;
mod field;
mod macros;
mod path;
mod payload;
#[cfg(feature = "session")]
mod session;

pub use class::EventClass;
pub use event::Event;
pub use field::Field;
#[doc(hidden)]
pub use macros::private as __private;
#[cfg(feature = "session")]
pub use session::{Session, SessionBuilder, SessionError, SessionSummary};
pub use tracewing_abi::schema::Level;
pub use tracewing_macros::{Event, EventField};
