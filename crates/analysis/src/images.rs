//! Which files the code in memory comes from, as events of each process report it. A report about addresses
//! replaces earlier ones from then on, since a library may be where another one was before, or another
//! program.

use crate::stored::stored;
use std::collections::HashMap;
use std::ops::Range;

use tracewing_trace::super_trace::{Kind, Located};
use tracewing_units::Pid;

/// Number of times that code has been replaced by other code, in any process: a logical time, which
/// determines the code at an address.
pub(crate) type Epoch = u32;

/// Processes that are asked for code: one and those above it.
const ANCESTORS: usize = 64;

/// Files of a process that are no longer where they were, and are remembered; the oldest are forgotten first.
const PAST: usize = 1 << 12;

#[derive(Debug, Clone)]
struct Image {
    addresses: Range<u64>,
    bias: u64,
    path: String,
    epochs: Range<Epoch>,
}

#[derive(Debug, Clone, Default)]
struct Process {
    /// Since when it executes its program: code that is reported late has been there since then.
    began: Epoch,
    /// Its parent, if it is a forked child, and when it was forked.
    parent: Option<(Pid, Epoch)>,
    /// Those that are there; no two of them overlap.
    present: Vec<Image>,
    past: Vec<Image>,
}

/// The code of all processes, now and in the past.
#[derive(Debug, Clone, Default)]
pub(crate) struct Images {
    processes: HashMap<Option<Pid>, Process>,
    epoch: Epoch,
    /// How many there are of all processes.
    files: usize,
}

stored! {
    SHAPE:
    Image { addresses bias path epochs }
    Process { began parent present past }
    Images { processes epoch files }
}

impl Images {
    /// How many files and processes are known.
    pub(crate) fn count(&self) -> usize {
        self.files + self.processes.len()
    }

    /// The code at these addresses of a process is from the file at `path`; `bias` is what is added to
    /// addresses in the file.
    pub(crate) fn learn(&mut self, process: Option<Pid>, addresses: Range<u64>, bias: u64, path: String) {
        if addresses.is_empty() {
            return;
        }
        let process = self.processes.entry(process).or_default();
        let is_same =
            |image: &Image| image.addresses == addresses && image.bias == bias && image.path == path;
        if process.present.iter().any(is_same) {
            return;
        }
        let overlaps =
            |image: &Image| image.addresses.start < addresses.end && addresses.start < image.addresses.end;
        let mut since = process.began;
        if process.present.iter().any(overlaps) {
            self.epoch = self.epoch.saturating_add(1);
            since = self.epoch;
            self.files = self.files.saturating_sub(process.end(since, overlaps));
        }
        self.files = self.files.saturating_add(1);
        process.present.push(Image { addresses, bias, path, epochs: since..Epoch::MAX });
    }

    /// Handles the event if it is a fork of a process.
    #[inline]
    pub(crate) fn follow(&mut self, at: &Located<'_>) {
        if let Some(Kind::NewTask { child, same_process: false }) = at.activity.map(|event| event.kind)
            && let Some(parent) = at.place.process
        {
            self.forked(parent, child.as_process());
        }
    }

    fn forked(&mut self, parent: Pid, child: Pid) {
        self.processes.entry(Some(child)).or_default().parent = Some((parent, self.epoch));
    }

    /// A process executes another program: nothing is where it was.
    pub(crate) fn forget(&mut self, process: Option<Pid>) {
        self.epoch = self.epoch.saturating_add(1);
        let process = self.processes.entry(process).or_default();
        process.began = self.epoch;
        self.files = self.files.saturating_sub(process.end(self.epoch, |_| true));
    }

    /// What time it is.
    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Since when the code has been at an address that was there at a time.
    pub(crate) fn since(&self, process: Option<Pid>, address: u64, epoch: Epoch) -> Epoch {
        if self.epoch == 0 {
            return 0;
        }
        let began =
            || self.processes.get(&process).map(|process| process.began).filter(|began| *began <= epoch);
        let found = self.find(process, address, epoch);
        found.map_or_else(|| began().unwrap_or(0), |image| image.epochs.start)
    }

    /// The file of the code that was at an address at a time, and the address by that file's own counting.
    pub(crate) fn at(&self, process: Option<Pid>, address: u64, epoch: Epoch) -> Option<(String, u64)> {
        let image = self.find(process, address, epoch)?;
        Some((image.path.clone(), address.wrapping_sub(image.bias)))
    }

    fn find(&self, process: Option<Pid>, address: u64, epoch: Epoch) -> Option<&Image> {
        self.lineage(process, epoch)
            .find_map(|(process, epoch)| self.processes.get(&process)?.find(address, epoch))
            .or_else(|| self.shared(process, address, epoch))
    }

    /// A process without any reported code uses its parent's memory (`vfork`): the code is what all others
    /// have there, if they agree.
    fn shared(&self, process: Option<Pid>, address: u64, epoch: Epoch) -> Option<&Image> {
        if self.processes.get(&process).is_some_and(|own| own.has_code(epoch)) {
            return None;
        }
        let mut found = self.processes.values().filter_map(|process| process.find(address, epoch));
        let first = found.next()?;
        found.all(|other| (&other.path, other.bias) == (&first.path, first.bias)).then_some(first)
    }

    /// A process and those that it was forked from, as it executes their program: each with the last time
    /// that concerns it.
    pub(crate) fn lineage(
        &self,
        process: Option<Pid>,
        epoch: Epoch,
    ) -> impl Iterator<Item = (Option<Pid>, Epoch)> {
        let parent = |(process, epoch): &(Option<Pid>, Epoch)| {
            let process = self.processes.get(process)?;
            let (parent, forked) = process.parent?;
            (process.began == 0 || *epoch < process.began).then(|| (Some(parent), forked.min(*epoch)))
        };
        std::iter::successors(Some((process, epoch)), parent).take(ANCESTORS)
    }
}

impl Process {
    /// Some of what is there is no longer. Returns how many are forgotten.
    fn end(&mut self, epoch: Epoch, is_gone: impl Fn(&Image) -> bool) -> usize {
        let gone = self.present.extract_if(.., |image| is_gone(image));
        self.past.extend(gone.map(|image| Image { epochs: image.epochs.start..epoch, ..image }));
        let forgotten = self.past.len().saturating_sub(PAST);
        self.past.drain(..forgotten);
        forgotten
    }

    fn has_code(&self, epoch: Epoch) -> bool {
        self.present.iter().chain(&self.past).any(|image| image.epochs.contains(&epoch))
    }

    fn find(&self, address: u64, epoch: Epoch) -> Option<&Image> {
        let mut all = self.present.iter().chain(&self.past);
        all.find(|image| image.epochs.contains(&epoch) && image.addresses.contains(&address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recount;

    const PROCESS: Option<Pid> = Some(Pid(7));

    fn at(images: &Images, address: u64, epoch: Epoch) -> Option<(String, u64)> {
        images.at(PROCESS, address, epoch)
    }

    fn found(path: &str, address: u64) -> Option<(String, u64)> {
        Some((path.to_owned(), address))
    }

    #[test]
    fn files_are_counted() {
        recount::check(
            |images: &mut Images, kind, process, addresses| match kind {
                0 | 1 => images.learn(Some(process), addresses, 0, "a".to_owned()),
                2 => images.forked(process, Pid(3)),
                _ => images.forget(Some(process)),
            },
            |images| {
                let files = images.processes.values().map(|of| of.present.len() + of.past.len());
                [images.files, files.sum()]
            },
            |_| (),
        );
    }

    #[test]
    fn a_reported_image_replaces_those_at_its_addresses() {
        let mut images = Images::default();
        images.learn(PROCESS, 0x1000..0x2000, 0x1000, "a".to_owned());
        images.learn(PROCESS, 0x5000..0x6000, 0x5000, "lib".to_owned());
        images.learn(PROCESS, 0x1000..0x2000, 0x1000, "a".to_owned());
        assert_eq!(images.epoch(), 0, "reported again");
        images.learn(PROCESS, 0x1800..0x3000, 0x1800, "b".to_owned());
        assert_eq!(images.epoch(), 1);
        assert_eq!([0, 1].map(|epoch| at(&images, 0x1810, epoch)), [found("a", 0x810), found("b", 0x10)]);
        assert_eq!([0, 1].map(|epoch| images.since(PROCESS, 0x1810, epoch)), [0, 1]);
        assert_eq!([0, 1].map(|epoch| images.since(PROCESS, 0x5010, epoch)), [0, 0]);
        assert_eq!(at(&images, 0x1010, 1), None, "what is covered in part is gone");
        images.learn(PROCESS, 0x1000..0x2000, 0x1000, "a".to_owned());
        assert_eq!([0, 1, 2].map(|epoch| images.since(PROCESS, 0x1810, epoch)), [0, 1, 2]);
        assert_eq!(at(&images, 0x1010, 2), found("a", 0x10));
    }

    #[test]
    fn an_image_reported_late_was_there_since_the_program_began() {
        let mut images = Images::default();
        images.learn(PROCESS, 0x1000..0x2000, 0x1000, "a".to_owned());
        images.forget(PROCESS);
        assert_eq!(at(&images, 0x1010, 1), None);
        let before = images.since(PROCESS, 0x1010, 1);
        images.learn(PROCESS, 0x1000..0x2000, 0, "b".to_owned());
        assert_eq!((before, images.since(PROCESS, 0x1010, 1)), (1, 1));
        assert_eq!([0, 1].map(|epoch| at(&images, 0x1010, epoch)), [found("a", 0x10), found("b", 0x1010)]);
    }

    #[test]
    fn a_childs_code_is_its_parents_until_it_reports_its_own() {
        let mut images = Images::default();
        images.forked(Pid(1), Pid(2));
        images.forked(Pid(2), Pid(7));
        images.learn(Some(Pid(1)), 0x1000..0x2000, 0x1000, "a".to_owned());
        assert_eq!(at(&images, 0x1010, 0), found("a", 0x10));
        images.learn(PROCESS, 0x1000..0x2000, 0x1000, "b".to_owned());
        assert_eq!(at(&images, 0x1010, 0), found("b", 0x10));
        assert_eq!(images.epoch(), 0, "another process's");
        images.forget(Some(Pid(2)));
        assert_eq!(
            images.at(Some(Pid(2)), 0x1010, 0),
            found("a", 0x10),
            "before it executed another program"
        );
        images.learn(Some(Pid(2)), 0x5000..0x6000, 0x5000, "own".to_owned());
        assert_eq!(images.at(Some(Pid(2)), 0x1010, 1), None);
    }

    #[test]
    fn no_code_is_another_processs() {
        let mut images = Images::default();
        images.learn(Some(Pid(1)), 0x1000..0x2000, 0x1000, "a".to_owned());
        images.learn(None, 0x1000..0x2000, 0x1000, "a".to_owned());
        assert_eq!(at(&images, 0x1010, 0), found("a", 0x10), "it reports nothing of its own");
        images.learn(PROCESS, 0x5000..0x6000, 0x5000, "own".to_owned());
        assert_eq!(at(&images, 0x1010, 0), None);
        images.learn(Some(Pid(1)), 0x1000..0x2000, 0x1000, "b".to_owned());
        images.forked(Pid(1), Pid(7));
        images.learn(Some(Pid(1)), 0x1000..0x2000, 0x1000, "c".to_owned());
        assert_eq!(at(&images, 0x1010, 2), found("b", 0x10), "what was the parent's then");
    }

    #[test]
    fn the_past_has_an_end() {
        let mut images = Images::default();
        for round in 0..2 * PAST {
            images.learn(PROCESS, 0x1000..0x2000, 0, format!("{round}"));
        }
        assert_eq!(images.processes[&PROCESS].past.len(), PAST);
        assert_eq!(images.count(), PAST + 2, "one is there, and one is the process");
        assert_eq!(at(&images, 0x1010, 0), None);
    }
}
