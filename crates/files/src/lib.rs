//! All files that tracewing writes, and the files of a recording that it reads: by descriptor, never by a
//! path that was checked before.
//!
//! | module | does |
//! |---|---|
//! | `dir` | [`Dir`]: a folder for output, opened once; everything below it is made, renamed and removed through its descriptor |
//! | `create` | how such a folder comes to be: made, or an empty one of this user that others cannot write |
//! | `missing` | whether the folder and its files are still where they were made |
//! | `output` | [`OutputFile`]: one file; replaces only a regular file of this user |
//! | `tree` | [`Tree`]: reads a recording; follows no symbolic link out of it |
//! | `regular` | [`open_regular`]: a file that others have named, if it is one |
//! | `refused` | why a folder or file is not used, in words for the user |
//!
//! What this protects from: another user who can write to a folder on the way (such as `/tmp`) and plants
//! links, or swaps files and folders between a check and the use. Parents of an output folder are followed as
//! the user typed them. From the folder itself on, nothing is looked up by a path again; the folder must be
//! of this process's effective user, with no write permission for group and others, which is checked on the
//! open descriptor.
//!
//! Folders are made with mode 0750 and files with 0640, less what the umask takes away.

mod create;
mod dir;
mod missing;
mod output;
mod refused;
mod regular;
mod tree;

pub use create::Made;
pub use dir::Dir;
pub use missing::Missing;
pub use output::OutputFile;
pub use refused::Refused;
pub use regular::open_regular;
pub use tree::Tree;
