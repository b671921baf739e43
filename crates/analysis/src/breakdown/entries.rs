//! Where threads begin: the first function that their program reports, by its name or by the address of its
//! code.

use crate::functions::event::{Counting, FunctionEvent, FunctionReader, Which};
use crate::images::{Epoch, Images};
use tracewing_trace::super_trace::Seen;
use tracewing_units::Pid;

/// Where a thread begins.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Start {
    /// Its function, or the thread's name if no event reports the function.
    Named(String),
    /// The function with its code at this address of a file, by the file's own counting.
    Code {
        /// The path of the file with the code.
        path: String,
        /// The address, as in the file.
        address: u64,
    },
    /// The function at this address, in an unknown file.
    Address(u64),
}

/// The first function of a thread.
#[derive(Debug, Clone)]
pub(super) struct First {
    which: Which,
    /// When it began, to determine the code at its address.
    epoch: Epoch,
}

/// Evaluates events of programs about their functions.
#[derive(Debug, Default)]
pub(super) struct Entries {
    reader: FunctionReader,
    counting: Counting,
    images: Images,
}

impl Entries {
    /// Handles the event if it is a fork of a process.
    pub(super) fn follow(&mut self, seen: &Seen<'_>) {
        self.images.follow(&seen.located());
    }

    /// Takes an event of a program; gives the function that begins by it.
    pub(super) fn event(&mut self, seen: &Seen<'_>) -> Option<First> {
        let read = self.reader.read(seen.event)?;
        match self.counting.only(read, seen.place.process)? {
            FunctionEvent::Entry(which) => Some(First { which, epoch: self.images.epoch() }),
            FunctionEvent::Image { begin, end, bias, path } => {
                self.images.learn(seen.place.process, begin..end, bias, path);
                None
            }
            FunctionEvent::Exit(_) | FunctionEvent::NotFollowed => None,
        }
    }

    /// Where a thread of a process begins, when all has been read.
    pub(super) fn start(&self, process: Option<Pid>, entry: Option<First>, name: String) -> Start {
        match entry {
            None => Start::Named(name),
            Some(First { which: Which::Named(function), .. }) => Start::Named(function.into()),
            Some(First { which: Which::Address(address), epoch }) => {
                match self.images.at(process, address, epoch) {
                    Some((path, address)) => Start::Code { path, address },
                    None => Start::Address(address),
                }
            }
        }
    }
}
