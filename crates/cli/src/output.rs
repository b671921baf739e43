//! What all subcommands share: output that ends quietly when its reader goes away, and enough open files.

use anyhow::Error;
use rustix::process::{Resource, getrlimit, setrlimit};
use std::io::{ErrorKind, IsTerminal, Write};

/// Bytes collected before they are written.
const BATCH: usize = 1 << 16;

/// Standard output in large pieces.
pub struct Output {
    buffer: Vec<u8>,
    stdout: std::io::Stdout,
    terminal: bool,
}

impl Output {
    pub fn new() -> Self {
        let stdout = std::io::stdout();
        Output { buffer: Vec::with_capacity(2 * BATCH), terminal: stdout.is_terminal(), stdout }
    }

    /// Where to append.
    #[inline]
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Writes when enough has come together.
    #[inline]
    pub fn settle(&mut self) -> std::io::Result<()> {
        if self.buffer.len() >= BATCH { self.flush() } else { Ok(()) }
    }

    /// Writes everything.
    pub fn flush(&mut self) -> std::io::Result<()> {
        let mut stdout = self.stdout.lock();
        stdout.write_all(&self.buffer)?;
        self.buffer.clear();
        stdout.flush()
    }

    /// Writes to standard error; on a terminal behind all that was printed before.
    pub fn warn(&mut self, text: &[u8]) -> std::io::Result<()> {
        if self.terminal {
            self.flush()?;
        }
        let stderr = std::io::stderr();
        if !stderr.is_terminal() {
            return stderr.lock().write_all(text);
        }
        let style = anstyle::Style::new().fg_color(Some(anstyle::AnsiColor::Yellow.into()));
        let text = String::from_utf8_lossy(text);
        anstream::eprintln!("{style}{}{style:#}", text.trim_end());
        Ok(())
    }
}

/// Whether the reader of standard output went away, which is its right.
pub fn is_broken_pipe(error: &Error) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
    })
}

/// Allows as many open files as the system lets us have: every stream is one.
pub fn raise_file_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // With fewer files, a trace of fewer streams still opens.
    let _ = setrlimit(Resource::Nofile, limit);
}
