//! Why a recording cannot be viewed.

use std::path::PathBuf;

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A folder or file could not be used.
    #[error("{}: {cause}", path.display())]
    Io {
        /// The folder or file.
        path: PathBuf,
        /// What the operating system said.
        cause: std::io::Error,
    },
    /// The port cannot be used.
    #[error("cannot listen on 127.0.0.1:{port}: {cause}; `--port 0` takes any free port")]
    Listen {
        /// The port; 0 for any.
        port: u16,
        /// What the operating system said.
        cause: std::io::Error,
    },
    /// The server cannot work.
    #[error("the viewer's server failed: {0}")]
    Server(std::io::Error),
    /// No folder for the token is known.
    #[error("no folder for the viewer's token is known: neither XDG_DATA_HOME nor HOME is set")]
    NoFolder,
    /// There is no index.
    #[error(transparent)]
    Index(#[from] tracewing_index::Error),
}
