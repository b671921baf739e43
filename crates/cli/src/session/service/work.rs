//! A request that is carried out: by a process of its own, so that the service parses nothing for it and
//! waits for nothing.

use super::message::{LONGEST_ERRORS, LONGEST_OUTPUT, Outcome, Reply, Request};
use crate::session::recorders::own_program;
use anyhow::{Context, Result};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The end of a text that was cut.
const CUT: &str = "…";

/// The process. If it is not waited for, it completes what it does.
pub struct Work {
    process: Child,
    /// Becomes readable when it ends.
    end: OwnedFd,
    output: File,
    errors: File,
}

impl AsFd for Work {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.end.as_fd()
    }
}

impl Work {
    /// Begins to carry out a request about the sessions of a folder.
    pub fn start(folder: &Path, request: &Request) -> Result<Self> {
        // In memory: nothing has to be read so that the process can write.
        let file =
            || Ok::<_, rustix::io::Errno>(File::from(memfd_create("tracewing-reply", MemfdFlags::CLOEXEC)?));
        let (output, errors) = (file()?, file()?);
        let mut command = Command::new(own_program()?);
        command.args(["service", "answer", "--sessions"]).arg(folder).arg(request.what.word());
        command.args(&request.session);
        if request.is_json {
            command.arg("--json");
        }
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(errors.try_clone()?);
        // Ctrl-C is for the service, which lets it complete.
        let mut process = command.process_group(0).spawn()?;
        let pid = Pid::from_raw(process.id().cast_signed()).context("a process has a number")?;
        let end = pidfd_open(pid, PidfdFlags::empty()).inspect_err(|_| {
            let _ = process.kill();
            let _ = process.wait();
        })?;
        Ok(Self { process, end, output, errors })
    }

    /// What it has printed. It has ended.
    pub fn reply(mut self) -> Reply {
        let is_done = self.process.wait().is_ok_and(|status| status.success());
        let outcome = if is_done { Outcome::Done } else { Outcome::Failed };
        let (output, errors) = (text(&self.output, LONGEST_OUTPUT), text(&self.errors, LONGEST_ERRORS));
        Reply { outcome, output, errors }
    }
}

/// What a file has, cut where it is longer.
fn text(file: &File, longest: usize) -> String {
    let (mut bytes, mut len) = (vec![0; longest + 1], 0);
    // As much as can be read: the outcome is known without it.
    while let Ok(read @ 1..) = file.read_at(&mut bytes[len..], len as u64) {
        len += read;
    }
    bytes.truncate(len);
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if text.len() > longest {
        text.truncate(text.floor_char_boundary(longest - CUT.len()));
        text.push_str(CUT);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn what_is_too_long_is_cut_between_two_characters() {
        let text_of = |content: &[u8]| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(content).unwrap();
            text(&file, 10)
        };
        assert_eq!(text_of(b""), "");
        assert_eq!(text_of(b"0123456789"), "0123456789");
        assert_eq!(text_of(b"0123456789a"), "0123456…");
        assert_eq!(text_of("012345é789".as_bytes()), "012345…");
        // Each of these bytes becomes a character of three.
        assert_eq!(text_of(b"0123\xff\xff\xff"), "0123\u{fffd}…");
    }
}
