//! Names of processes as state dumps give them, for analyses that begin later.
//!
//! Of the names of a process, some analyses keep the first and others the last one, and none needs those
//! in between, or the names of other threads. So there are two for each process number at most, however many
//! state dumps a recording has.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use tracewing_units::{Pid, Tid};

/// A name as the kernel stores it.
type Name = Box<[u8]>;

/// The names of all processes.
#[derive(Debug, Default)]
pub(crate) struct Dumps(BTreeMap<Pid, (Name, Option<Name>)>);

impl Dumps {
    /// A state dump names a thread.
    pub(crate) fn learn(&mut self, tid: Tid, process: Pid, name: &[u8]) {
        if tid != process.first_thread() {
            return;
        }
        match self.0.entry(process) {
            Entry::Vacant(place) => _ = place.insert((name.into(), None)),
            Entry::Occupied(mut names) => {
                let (first, last) = names.get_mut();
                *last = (**first != *name).then(|| name.into());
            }
        }
    }

    /// All that have to be repeated, with their threads.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Tid, Pid, &[u8])> {
        self.0.iter().flat_map(|(process, (first, last))| {
            let names = std::iter::once(first).chain(last);
            names.map(move |name| (process.first_thread(), *process, &**name))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_last_name_of_a_process_are_kept() {
        let mut dumps = Dumps::default();
        let mut named = |names: &[(i32, i32, &str)]| {
            for (tid, process, name) in names {
                dumps.learn(Tid(*tid), Pid(*process), name.as_bytes());
            }
            let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
            dumps.iter().map(|(tid, process, name)| (tid.0, process.0, text(name))).collect::<Vec<_>>()
        };
        let of = |process, name: &str| (process, process, name.to_owned());
        assert_eq!(named(&[(7, 7, "sh"), (8, 7, "thread"), (5, 5, "init")]), [of(5, "init"), of(7, "sh")]);
        assert_eq!(named(&[(7, 7, "sh"), (7, 7, "sh")]), [of(5, "init"), of(7, "sh")]);
        let both = [of(5, "init"), of(7, "sh"), of(7, "make")];
        assert_eq!(named(&[(7, 7, "env"), (7, 7, "make")]), both);
        assert_eq!(named(&[(7, 7, "sh")]), both[..2]);
    }
}
