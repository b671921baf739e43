//! Starts a browser. Every user can read the arguments of its process, so these only name a file that this
//! user alone can read; the file leads on to the address with the token.

use crate::error::Error;
use crate::token;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use tracewing_files::Dir;

/// The file that leads to the page; it is removed with this value.
#[derive(Debug)]
pub struct Opening {
    folder: Dir,
    name: String,
}

impl Opening {
    /// Writes the file. `name` identifies the recording; `address` is that of the page, and has only
    /// characters that are themselves in HTML.
    ///
    /// # Errors
    /// The user's folder cannot be written.
    pub fn new(name: &str, address: &str) -> Result<Self, Error> {
        let path = token::folder()?;
        let io = |cause| Error::Io { path: path.clone(), cause };
        let folder = Dir::private(&path).map_err(io)?;
        let name = format!("{name}.html");
        let text = format!(
            "<!DOCTYPE html><meta charset=utf-8><title>tracewing</title>\
             <meta http-equiv=refresh content=\"0;url={address}\"><a href=\"{address}\">Open the recording</a>\n"
        );
        let unfinished = folder.create_private_file(&name).map_err(io)?;
        unfinished.file().write_all(text.as_bytes()).map_err(io)?;
        folder.supersede(unfinished, &name).map_err(io)?;
        Ok(Opening { folder, name })
    }

    /// The file.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join(&self.name)
    }

    /// Starts to show it in the user's browser; `None` if there is none. Root gets none.
    pub fn show(&self) -> Option<Starting> {
        let has_screen = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
        if rustix::process::geteuid().is_root() || !has_screen {
            return None;
        }
        let mut command = Command::new("xdg-open");
        command.arg(self.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // A Ctrl-C in our terminal is not for the browser, which may be a child of it.
        command.process_group(0);
        Some(Starting { child: command.spawn().ok()? })
    }
}

/// `xdg-open`, which hands over to the desktop and ends. Some wait for the browser instead.
#[derive(Debug)]
pub struct Starting {
    child: Child,
}

/// How it has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Started {
    /// The browser has the page.
    Shown,
    /// It has not: why.
    Failed(String),
}

impl Starting {
    /// How it has ended; `None` if it has not.
    pub fn ended(&mut self) -> Option<Started> {
        match self.child.try_wait() {
            Ok(None) => None,
            Ok(Some(status)) if status.success() => Some(Started::Shown),
            Ok(Some(status)) => Some(Started::Failed(status.to_string())),
            Err(error) => Some(Started::Failed(error.to_string())),
        }
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        // It would lead nowhere.
        let _ = self.folder.remove(&self.name);
    }
}
