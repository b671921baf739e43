//! Where in a program locks are acquired: resolves return addresses and call chains by events.

use std::collections::HashMap;
use std::ops::Range;

use tracewing_trace::super_trace::{Located, Mode, Name};
use tracewing_units::{Caller, Chain, Pid};

use crate::images::{Epoch, Images};
use crate::stored::stored;

/// A place in a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// A return address, or the number of a place in the source.
    pub address: u64,
    /// The file that the code is from, and the address by that file's own counting.
    pub image: Option<(String, u64)>,
    /// File and line of the source, if reported.
    pub source: Option<(String, u64)>,
    /// For the kernel's own locks: the activity that uses it, a system call or an interrupt.
    pub activity: Option<String>,
}

impl Frame {
    /// The place as precisely as the recording allows. `of_call` names a call by the file that the code is
    /// from, and by the address to which it returns.
    pub fn text(&self, of_call: impl FnOnce(&str, u64) -> String) -> String {
        match (&self.activity, &self.source, &self.image) {
            (Some(activity), ..) => activity.clone(),
            (None, Some((file, line)), _) => format!("{file}:{line}"),
            (None, None, Some((path, address))) => of_call(path, *address),
            (None, None, None) => format!("{:#x}", self.address),
        }
    }
}

/// What events have reported about places.
#[derive(Debug, Clone, Default)]
pub(super) struct Places {
    chains: HashMap<Chain, Vec<u64>>,
    images: Images,
    sources: HashMap<(Option<Pid>, Caller), (String, u64)>,
    /// What the kernel does where it acquires its own locks; none has a number but by its place.
    activities: Vec<(Mode, String)>,
}

stored! { SHAPE: Places { chains images sources activities } }

/// Above all addresses of programs: numbers of what the kernel does.
const KERNEL: u64 = 1 << 63;

impl Places {
    /// Handles the event if it is a fork of a process.
    #[inline]
    pub(super) fn follow(&mut self, at: &Located<'_>) {
        self.images.follow(at);
    }

    /// How many things are known; a chain is so many.
    pub(super) fn count(&self, of_chain: usize) -> usize {
        self.chains.len() * of_chain + self.images.count() + self.sources.len()
    }

    pub(super) fn learn_chain(&mut self, chain: Chain, frames: Vec<u64>) {
        self.chains.insert(chain, frames);
    }

    pub(super) fn learn_image(
        &mut self,
        process: Option<Pid>,
        addresses: Range<u64>,
        bias: u64,
        path: String,
    ) {
        self.images.learn(process, addresses, bias, path);
    }

    /// A process executes another program.
    pub(super) fn forget_images(&mut self, process: Option<Pid>) {
        self.images.forget(process);
    }

    /// The current time, for places that depend on it.
    pub(super) fn epoch(&self) -> Epoch {
        self.images.epoch()
    }

    /// Since when a place has been what it was at a time.
    pub(super) fn since(&self, process: Option<Pid>, caller: Option<Caller>, epoch: Epoch) -> Epoch {
        caller.map_or(0, |Caller(address)| self.images.since(process, address, epoch))
    }

    /// The same for a chain: since when all of its places are unchanged.
    pub(super) fn chain_since(&self, process: Option<Pid>, chain: Option<Chain>, epoch: Epoch) -> Epoch {
        let frames = self.frames(chain).map(|address| self.images.since(process, address, epoch));
        frames.max().unwrap_or(0)
    }

    /// The place that a caller's number stands for, in one process or in all of them.
    pub(super) fn learn_source(&mut self, process: Option<Pid>, caller: Caller, file: String, line: u64) {
        self.sources.insert((process, caller), (file, line));
    }

    /// A number for what the kernel does.
    pub(super) fn activity(&mut self, mode: Mode, name: impl Fn(Name) -> String) -> Caller {
        let mode = if mode == Mode::Unknown { Mode::User } else { mode };
        let known = self.activities.iter().position(|(known, _)| *known == mode);
        let place = known.unwrap_or_else(|| {
            let text = match mode {
                Mode::SystemCall(call) => format!("system call {}", name(call)),
                Mode::Interrupt(Some(which)) => format!("interrupt {}", name(which)),
                Mode::Interrupt(None) => "interrupt".to_owned(),
                Mode::User | Mode::Unknown => "no system call".to_owned(),
            };
            self.activities.push((mode, text));
            self.activities.len() - 1
        });
        Caller(KERNEL | place as u64)
    }

    /// The place from which a lock was acquired at a time.
    pub(super) fn caller(&self, process: Option<Pid>, caller: Option<Caller>, epoch: Epoch) -> Vec<Frame> {
        caller.into_iter().map(|Caller(address)| self.frame(process, address, epoch)).collect()
    }

    /// The places of a chain, the innermost first.
    pub(super) fn chain(&self, process: Option<Pid>, chain: Option<Chain>, epoch: Epoch) -> Vec<Frame> {
        self.frames(chain).map(|address| self.frame(process, address, epoch)).collect()
    }

    fn frames(&self, chain: Option<Chain>) -> impl Iterator<Item = u64> {
        let frames = chain.and_then(|chain| self.chains.get(&chain));
        frames.into_iter().flatten().copied()
    }

    fn frame(&self, process: Option<Pid>, address: u64, epoch: Epoch) -> Frame {
        let image = self.images.at(process, address, epoch);
        let mut lineage = self.images.lineage(process, epoch);
        let source = lineage.find_map(|(process, _)| self.sources.get(&(process, Caller(address))));
        let source = source.or_else(|| self.sources.get(&(None, Caller(address)))).cloned();
        let activity =
            address.checked_sub(KERNEL).and_then(|place| self.activities.get(usize::try_from(place).ok()?));
        Frame { address, image, source, activity: activity.map(|(_, text)| text.clone()) }
    }
}
