//! Access to all files that tracewing writes, and to the files of a recording that it reads: by descriptor,
//! never by a path that was checked before.
//!
//! | module | does |
//! |---|---|
//! | `dir` | [`Dir`]: a folder for output, opened once; everything below it is made, renamed and removed through its descriptor |
//! | `create` | creates such a folder, or uses an empty one of this user that others cannot write |
//! | `missing` | whether the folder and its files are still in place |
//! | `output` | [`OutputFile`]: one file; replaces only a regular file of this user |
//! | `tree` | [`Tree`]: reads a recording; follows no symbolic link out of it |
//! | `regular` | [`open_regular`]: opens a path from outside only if it is a regular file |
//! | `private` | files that only this user may read, put in place when they are complete |
//! | `exclusive` | [`Exclusive`]: a lock for what processes of one user change in a folder |
//! | `seal` | [`Seal`]: what a folder has had, to notice each change in it |
//! | `refused` | why a folder or file is refused, with a message for the user |
//!
//! This protects from another user with write access to a folder on the way (such as `/tmp`) that plants
//! links, or swaps files and folders between a check and the use. Parents of an output folder are followed as
//! the user typed them. From the folder itself on, nothing is looked up by a path again; the folder must
//! belong to this process's effective user, without write permission for group and others, which is checked
//! on the open descriptor.
//!
//! Folders are created with mode 0750 and files with 0640, minus the umask.

#![warn(unreachable_pub)]

mod create;
mod dir;
mod exclusive;
mod missing;
mod output;
mod private;
mod refused;
mod regular;
mod seal;
mod tree;

pub use create::Made;
pub use dir::Dir;
pub use exclusive::{Exclusive, LOCK_FILE};
pub use missing::Missing;
pub use output::OutputFile;
pub use private::Unfinished;
pub use refused::Refused;
pub use regular::open_regular;
pub use seal::Seal;
pub use tree::Tree;
