//! Reads one CPU's raw pages, and the number of events lost between them, for a [`Taker`].
//!
//! With plain `read`: a page per call, copied once. The kernel gives whole pages by swapping them out of its
//! buffer, so a call takes the same short time however full the buffer is; mapping the buffer (Linux 6.10) or
//! splicing would save the copy of 4 KiB, which costs little compared with the conversion of a page. They
//! also need newer kernels, or leave partly filled pages unread.

use crate::clock::KernelClock;
use crate::error::{Action, Error};
use crate::page::{Missed, Page, PageLayout};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, pread, read};
use std::path::{Path, PathBuf};
use tracewing_units::{Cpu, Cycles};

/// Receives the pages and losses of a CPU, in time order.
pub(crate) trait Taker {
    /// `events` were dropped because the buffer was full, between `begin` (or the last event taken) and the
    /// first event stamped `at` or later.
    fn dropped(&mut self, begin: Option<Cycles>, at: Cycles, events: u64);
    /// `events` were overwritten before they were read: between the last event taken and the page that comes
    /// next, whose first event is stamped `at`.
    fn overwritten(&mut self, at: Cycles, events: u64);
    /// A page cannot be decoded.
    fn damaged(&mut self);
    /// The next page, and its bytes; gives a stamp up to which everything has been taken.
    fn page(&mut self, page: &Page<'_>, bytes: &[u8]) -> Result<Cycles, Error>;
}

/// One CPU's side of an instance.
#[derive(Debug)]
pub(crate) struct CpuReader {
    pub(crate) cpu: Cpu,
    raw: OwnedFd,
    raw_path: PathBuf,
    stats: Stats,
    layout: PageLayout,
    clock: KernelClock,
    page: Vec<u8>,
    /// Pages in the buffer, the most that one drain takes.
    pages: usize,
    /// Losses that a taker has got.
    reported: Counts,
    /// Bytes of events that the last drain has found.
    found: usize,
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
    pub(crate) fn open(dir: &Path, cpu: Cpu, buffers: Buffers) -> Result<Self, Error> {
        let open = |name: &str| {
            let path = dir.join(name);
            match open(&path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()) {
                Ok(fd) => Ok((fd, path)),
                Err(errno) => Err(Error::Tracefs { action: Action::Open, path, source: errno.into() }),
            }
        };
        let (raw, raw_path) = open("trace_pipe_raw")?;
        let (fd, path) = open("stats")?;
        let stats = Stats { fd, path };
        let Buffers { layout, clock, page_size, pages } = buffers;
        let page = vec![0; page_size];
        Ok(Self {
            cpu,
            raw,
            raw_path,
            stats,
            layout,
            clock,
            page,
            pages,
            reported: Counts::default(),
            found: 0,
        })
    }

    /// How the pages are laid out.
    pub(crate) fn layout(&self) -> PageLayout {
        self.layout
    }

    /// Bytes of pages that one drain can find in the buffer.
    pub(crate) fn most_bytes(&self) -> usize {
        (self.pages + 1) * self.page.len()
    }

    /// How full the buffer was at the last drain, in hundredths: at least so many, since events that a drain
    /// leaves for the next one are not known. 100 if events were dropped since the one before.
    pub(crate) fn fill(&self) -> u8 {
        (self.found * 100 / (self.pages * self.page.len())).min(100) as u8
    }

    /// Events recorded since the instance was made, and lost, as the kernel counts them.
    pub(crate) fn counts(&self) -> Result<Counts, Error> {
        self.stats.read()
    }

    /// Takes the current contents of the buffer. Events that are added meanwhile may be left for the next
    /// call.
    pub(crate) fn drain(&mut self, taker: &mut impl Taker) -> Result<(), Error> {
        self.take(taker, false)
    }

    /// Takes the whole contents of the buffer. Only for an instance that has been switched off.
    pub(crate) fn drain_all(&mut self, taker: &mut impl Taker) -> Result<(), Error> {
        self.take(taker, true)
    }

    fn take(&mut self, taker: &mut impl Taker, all: bool) -> Result<(), Error> {
        // Drops known before the first page is taken out happened while the buffer was full, so after all
        // that is in it and before `begin`; later ones somewhere between `begin` and `end`.
        let before = self.stats.read()?;
        let begin = self.clock.now();
        let is_full = before.dropped > self.reported.dropped;
        self.found = if is_full { self.pages * self.page.len() } else { 0 };
        taker.dropped(None, begin, before.dropped.saturating_sub(self.reported.dropped));
        self.reported.dropped = before.dropped;
        // One page more than the buffer has: the reader's own.
        let mut left = self.pages + 1;
        while left > 0 || all {
            let Some(len) = self.read_page()? else { break };
            left = left.saturating_sub(1);
            let Ok(page) = Page::parse(&self.layout, &self.page[..len]) else {
                taker.damaged();
                continue;
            };
            self.found += page.extent();
            if let Some(missed) = page.missed {
                // The page of a full buffer seldom has room for the number; the sum is always in `stats`.
                let unreported = self.stats.read()?.overrun.saturating_sub(self.reported.overrun);
                let events =
                    if let Missed::Count(events) = missed { events.min(unreported) } else { unreported };
                self.reported.overrun += events;
                taker.overwritten(page.stamp, events);
            }
            let taken = taker.page(&page, &self.page[..len])?;
            // What was in the buffer at `begin` has been taken. Were later events followed as well, a
            // recorder that records itself would never end.
            if !all && taken >= begin {
                break;
            }
        }
        let after = self.stats.read()?;
        if after.dropped > self.reported.dropped {
            taker.dropped(Some(begin), self.clock.now(), after.dropped - self.reported.dropped);
            self.reported.dropped = after.dropped;
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
                        action: Action::Read,
                        path: self.raw_path.clone(),
                        source: errno.into(),
                    });
                }
            }
        }
    }
}

/// A CPU's `stats` file.
#[derive(Debug)]
struct Stats {
    fd: OwnedFd,
    path: PathBuf,
}

/// Events since the instance was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// There was room for them, whether or not they were read or overwritten since.
    pub(crate) recorded: u64,
    /// There was no room for them: the buffer was full, or full of unfinished events.
    pub(crate) dropped: u64,
    /// They were overwritten before they were read.
    overrun: u64,
}

impl Stats {
    fn read(&self) -> Result<Counts, Error> {
        let mut text = [0; 512];
        let read = loop {
            match pread(&self.fd, &mut text, 0) {
                Err(Errno::INTR) => {}
                result => break result,
            }
        };
        match read {
            Ok(len) => Ok(Counts::parse(&String::from_utf8_lossy(&text[..len]))),
            Err(errno) => {
                Err(Error::Tracefs { action: Action::Read, path: self.path.clone(), source: errno.into() })
            }
        }
    }
}

impl Counts {
    fn parse(stats: &str) -> Self {
        let count = |key: &str| {
            let line = stats.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
            line.and_then(|number| number.trim().parse::<u64>().ok()).unwrap_or(0)
        };
        let overrun = count("overrun");
        Self {
            recorded: count("entries").saturating_add(count("read events")).saturating_add(overrun),
            dropped: count("dropped events").saturating_add(count("commit overrun")),
            overrun,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Counts;

    #[test]
    fn losses_are_read_from_stats() {
        let stats = "entries: 7\noverrun: 100\ncommit overrun: 2\nbytes: 9\noldest event ts:     0.000000\nnow ts:  \
                     1481.271461\ndropped events: 40\nread events: 1\n";
        assert_eq!(Counts::parse(stats), Counts { recorded: 108, dropped: 42, overrun: 100 });
        assert_eq!(Counts::parse(""), Counts::default());
        assert_eq!(Counts::parse("dropped events: x"), Counts::default());
    }
}
