//! Starts a browser. Every user can read the arguments of its process, so these only name a file that this
//! user alone can read; the file leads on to the address with the token.

use crate::error::Error;
use crate::token;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
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

    /// Shows it in the user's browser; false if there is none. Root gets none.
    pub fn show(&self) -> bool {
        let has_screen = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
        if rustix::process::geteuid().is_root() || !has_screen {
            return false;
        }
        let mut command = Command::new("xdg-open");
        command.arg(self.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // It hands over to the desktop and ends; some wait for a browser, which must not keep us.
        let Ok(mut child) = command.spawn() else { return false };
        std::thread::spawn(move || child.wait());
        true
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        // It would lead nowhere.
        let _ = self.folder.remove(&self.name);
    }
}
