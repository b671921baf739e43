//! Functions, locks, samples and counters on the timeline.

use super::Timeline;
use crate::change::Change;
use crate::model::{ContainerId, Counter, CounterId, Kind as What, Use, at};
use tracewing_analysis::profile::{Image, Looked};
use tracewing_analysis::{Call, Function, LockUse, Party, Seen, ThreadKey};
use tracewing_programs::symbols::Symbols;
use tracewing_units::{Tid, Timestamp};

impl Timeline {
    /// A function begins or ends in a thread.
    pub(super) fn call(&mut self, thread: ThreadKey, time: Timestamp, call: Call) {
        let lines = &mut self.states.sink;
        if !self.pairs.calls {
            lines.model.lacks_functions = true;
            return;
        }
        let (process, tid) = thread;
        let of = match self.function_lines.get(&thread) {
            Some(known) => *known,
            None => {
                let new = lines.container(What::Functions { tid });
                lines.model.containers[new as usize].process = process;
                self.function_lines.insert(thread, new);
                new
            }
        };
        let name = match call {
            Call::Begins { function, .. } => {
                let name = at(&mut self.functions, function as usize);
                Some(*name.get_or_insert_with(|| lines.model.names.add(String::new(), Use::Function)))
            }
            Call::Ends { .. } => None,
        };
        // Where events were lost, only a part of a call is certain.
        let time = match call {
            Call::Ends { begin, certain: Some(certain), .. } => begin + certain.total_ns,
            _ => time,
        };
        lines.touch(of, time);
        lines.push(Change::Function { of, name }, time);
    }

    /// Ends functions that are still open, and resolves the names of all functions, including those from
    /// samples.
    pub(super) fn finish_functions(&mut self) {
        let mut ends = Vec::new();
        self.calls.finish(&mut |thread, time, call| ends.push((thread, time, call)));
        ends.into_iter().for_each(|(thread, time, call)| self.call(thread, time, call));
        let (mut symbols, names) = (Symbols::new(), &mut self.states.sink.model.names);
        for (number, name) in (0..).zip(&self.functions) {
            if let Some(name) = name {
                let text = match self.calls.function(number) {
                    Function::Named(name) => name,
                    Function::InFile { path, address } => symbols.name(&path, address),
                    Function::InMemory(address) => format!("{address:#x}"),
                };
                names.set(*name, text);
            }
        }
        let mut named = |image: &Image, offset| {
            let symbol = symbols.at_offset(&image.path, &image.build_id, offset);
            symbol.map(|symbol| symbol.name.to_owned())
        };
        let sampled = std::mem::take(&mut self.chains).finish(&mut named);
        for (name, function) in self.codes.iter().zip(sampled) {
            if let Some(name) = name {
                names.set(*name, function.shown());
            }
        }
    }

    /// A lock was held, or waited for, during an interval.
    pub(super) fn lock_use(&mut self, lock: &LockUse) {
        // The idle task's locks belong to no thread.
        if lock.party == Party::Thread(Tid::IDLE) {
            return;
        }
        let lines = &mut self.states.sink;
        if !self.pairs.has(lock) {
            lines.model.lacks_locks = true;
            return;
        }
        let known = self.lock_lines.entry((lock.process, lock.party)).or_default();
        let (number, free) = (known.len(), |of: &&ContainerId| lines.last(**of) <= lock.begin);
        let of = match known.iter().find(free) {
            Some(of) => *of,
            None => {
                let new = lines.container(What::Locks { of: lock.party, number });
                lines.model.containers[new as usize].process = lock.process;
                known.push(new);
                new
            }
        };
        let names = &mut lines.model.names;
        let name = *self.locks.entry((lock.kind, lock.lock, lock.is_held)).or_insert_with(|| {
            let (start, used) = if lock.is_held { ("", Use::Held) } else { ("waits for ", Use::Awaited) };
            names.add(format!("{start}{} {:#x}", lock.kind, lock.lock), used)
        });
        lines.did(of, name, false, lock.begin, lock.end);
    }

    /// A thread or task that may have waited for a lock has ended.
    pub(super) fn lock_user_ends(&mut self, party: Party, at: Timestamp) {
        let mut uses = Vec::new();
        self.lock_uses.ends(party, at, &mut |lock| uses.push(lock));
        uses.iter().for_each(|lock| self.lock_use(lock));
    }

    /// A sample of a thread or of counters.
    pub(super) fn looked(&mut self, seen: &Seen<'_>, time: Timestamp, looked: Looked) {
        match looked {
            Looked::Chain(codes) => {
                let Some(of) = self.place(&seen.place) else { return };
                let lines = &mut self.states.sink;
                let mut chain = Vec::with_capacity(4 * codes.len());
                for code in codes {
                    let name = at(&mut self.codes, code as usize);
                    let name = name.get_or_insert_with(|| lines.model.names.add(String::new(), Use::Sampled));
                    chain.extend_from_slice(&name.to_le_bytes());
                }
                lines.touch(of, time);
                lines.push(Change::Sample { of, chain: &chain }, time);
            }
            Looked::Counters { values, cpu } => {
                for (name, value) in values {
                    let counter = self.counter(Counter { name, cpu });
                    self.states.sink.push(Change::Counter { counter, value }, time);
                }
            }
        }
    }

    fn counter(&mut self, counter: Counter) -> CounterId {
        let counters = &mut self.states.sink.model.counters;
        let known = counters.iter().position(|known| *known == counter);
        known.unwrap_or_else(|| {
            counters.push(counter);
            counters.len() - 1
        }) as CounterId
    }
}
