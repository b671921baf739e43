//! Reads one CPU's raw pages and hands them to its [`Stream`].
//!
//! With plain `read`: a page per call, copied once. The kernel gives whole pages by swapping them out of its buffer,
//! so a call takes the same short time however full the buffer is; mapping the buffer (Linux 6.10) or splicing would
//! save the copy of 4 KiB, which is a small part of what the conversion of a page costs, and need newer kernels or
//! leave partly filled pages unread.

use crate::clock::KernelClock;
use crate::error::Error;
use crate::page::PageLayout;
use crate::stream::{Programs, Sink, Stream};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, pread, read};
use std::path::{Path, PathBuf};

/// One CPU's side of an instance.
#[derive(Debug)]
pub(crate) struct CpuReader {
    raw: OwnedFd,
    raw_path: PathBuf,
    stats: OwnedFd,
    stats_path: PathBuf,
    layout: PageLayout,
    clock: KernelClock,
    page: Vec<u8>,
    /// Pages in the buffer, the most that one drain takes.
    pages: usize,
    /// Drops that the stream has been told of.
    dropped: u64,
    pub(crate) stream: Stream,
}

/// How the buffers of an instance are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Buffers {
    pub(crate) layout: PageLayout,
    pub(crate) clock: KernelClock,
    /// Bytes of a page.
    pub(crate) page_size: usize,
    /// Pages per CPU.
    pub(crate) pages: usize,
}

impl CpuReader {
    /// `dir`: the CPU's directory, `…/per_cpu/cpuN`.
    pub(crate) fn open(dir: &Path, buffers: Buffers, stream: Stream) -> Result<Self, Error> {
        let open = |name: &str| {
            let path = dir.join(name);
            match open(&path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()) {
                Ok(fd) => Ok((fd, path)),
                Err(errno) => Err(Error::Tracefs { action: "open", path, source: errno.into() }),
            }
        };
        let (raw, raw_path) = open("trace_pipe_raw")?;
        let (stats, stats_path) = open("stats")?;
        let Buffers { layout, clock, page_size, pages } = buffers;
        let page = vec![0; page_size];
        Ok(Self { raw, raw_path, stats, stats_path, layout, clock, page, pages, dropped: 0, stream })
    }

    /// Converts what is in the buffer now. What comes meanwhile may be left for the next time.
    pub(crate) fn drain<S: Sink<Error = Error>>(
        &mut self,
        programs: &Programs,
        sink: &mut S,
    ) -> Result<(), Error> {
        self.take(programs, sink, false)
    }

    /// Converts all that is in the buffer. Only for an instance that is switched off.
    pub(crate) fn drain_all<S: Sink<Error = Error>>(
        &mut self,
        programs: &Programs,
        sink: &mut S,
    ) -> Result<(), Error> {
        self.take(programs, sink, true)
    }

    fn take<S: Sink<Error = Error>>(
        &mut self,
        programs: &Programs,
        sink: &mut S,
        all: bool,
    ) -> Result<(), Error> {
        // Drops known before the first page is taken out happened while the buffer was full, so after all that is in
        // it and before `begin`; later ones somewhere between `begin` and `end`.
        let before = self.read_dropped()?;
        let begin = self.clock.now();
        self.stream.expect_gap(None, begin, before - self.dropped);
        self.dropped = before;
        // One page more than the buffer has: the reader's own.
        let mut left = self.pages + 1;
        while left > 0 || all {
            let Some(bytes) = self.read_page()? else { break };
            let used = self.stream.page(&self.layout, &self.page[..bytes], programs, sink)?;
            // The writer is on this page, or was when it was copied. Were all of its own traces followed, a recorder
            // that records itself would never come to an end.
            if !all && used < self.page.len() / 2 {
                break;
            }
            left = left.saturating_sub(1);
        }
        let after = self.read_dropped()?;
        if after > before {
            self.stream.expect_gap(Some(begin), self.clock.now(), after - before);
            self.dropped = after;
        }
        Ok(())
    }

    fn read_page(&mut self) -> Result<Option<usize>, Error> {
        loop {
            match read(&self.raw, &mut self.page[..]) {
                Ok(0) | Err(Errno::AGAIN) => return Ok(None),
                Ok(bytes) => return Ok(Some(bytes)),
                Err(Errno::INTR) => {}
                Err(errno) => {
                    return Err(Error::Tracefs {
                        action: "read",
                        path: self.raw_path.clone(),
                        source: errno.into(),
                    });
                }
            }
        }
    }

    /// Events that the kernel had no room for, since the instance was made; never less than before.
    fn read_dropped(&self) -> Result<u64, Error> {
        let mut text = [0; 512];
        let read = loop {
            match pread(&self.stats, &mut text, 0) {
                Err(Errno::INTR) => {}
                result => break result,
            }
        };
        let len = read.map_err(|errno| Error::Tracefs {
            action: "read",
            path: self.stats_path.clone(),
            source: errno.into(),
        })?;
        Ok(dropped(&String::from_utf8_lossy(&text[..len])).max(self.dropped))
    }
}

/// `dropped events` (the buffer was full) and `commit overrun` (it was full of unfinished events) of a `stats` file.
fn dropped(stats: &str) -> u64 {
    let count = |key: &str| {
        let line = stats.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        line.and_then(|number| number.trim().parse::<u64>().ok()).unwrap_or(0)
    };
    count("dropped events").saturating_add(count("commit overrun"))
}

#[cfg(test)]
mod tests {
    use super::dropped;

    #[test]
    fn drops_are_read_from_stats() {
        let stats = "entries: 7\noverrun: 100\ncommit overrun: 2\nbytes: 9\noldest event ts:     0.000000\nnow ts:  \
                     1481.271461\ndropped events: 40\nread events: 1\n";
        assert_eq!(dropped(stats), 42);
        assert_eq!(dropped(""), 0);
        assert_eq!(dropped("dropped events: x"), 0);
    }
}
