//! One stream of a trace: its files' packets by time, its events and losses, and where to begin reading at
//! any time.

pub(crate) mod cursor;
pub(crate) mod file;
pub(crate) mod index_cache;
pub(crate) mod index_source;
pub(crate) mod losses;
pub(crate) mod packet;
pub(crate) mod packet_index;
pub(crate) mod positions;
pub(crate) mod remark;
pub(crate) mod window;
