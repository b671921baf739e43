//! Which threads of running processes are recorded.
//!
//! The kernel's list holds threads, so the threads of a process are listed and added. With the option
//! `event-fork`, the kernel also adds the threads that a listed thread starts. Then no thread is missing
//! after a round that finds no new one, since any thread started meanwhile was started by a listed one.
//! Without the option, only the next call finds threads that start later, and the kernel keeps the numbers of
//! ended threads: the next call removes these, since a thread of another process may get such a number.

use crate::error::Error;
use crate::options::Scope;
use crate::source::{Source, in_initial_pid_namespace};
use std::collections::BTreeSet;
use tracewing_units::{Pid, Tid};

/// Maximum number of rounds; the rest of a process that keeps starting threads is left to the next call.
const MOST_ROUNDS: usize = 100;

/// The threads that were added.
#[derive(Debug, Default)]
pub(crate) struct Followed {
    /// Contents of the kernel's list, where the kernel does not change it.
    added: BTreeSet<Tid>,
    /// Threads of `added` that have ended and were removed.
    ended: BTreeSet<Tid>,
    is_recording: bool,
}

impl Followed {
    /// Also records the threads of these processes, as `list` returns them. Returns the new ones.
    ///
    /// # Errors
    /// [`Error::PidNamespace`] if their numbers differ from the kernel's; errors of tracefs.
    pub(crate) fn follow(
        &mut self,
        source: &Source,
        processes: &[Pid],
        list: impl Fn(Pid) -> Vec<Tid>,
    ) -> Result<Vec<Tid>, Error> {
        if !in_initial_pid_namespace() {
            return Err(Error::PidNamespace);
        }
        let mut all = Vec::new();
        for _ in 0..MOST_ROUNDS {
            let listed = processes.iter().flat_map(|process| list(*process));
            let listed: BTreeSet<Tid> = listed.collect();
            let recorded = self.recorded(source)?;
            let new: BTreeSet<Tid> = listed.difference(&recorded).copied().collect();
            if new.is_empty() {
                break;
            }
            source.add(&new)?;
            all.extend(&new);
            self.added.extend(new);
        }
        if source.scope() == (Scope::Processes { children: false }) {
            all.extend(
                self.leave_out_ended(source, processes.iter().flat_map(|process| list(*process)).collect())?,
            );
        }
        if !self.is_recording && !self.added.is_empty() {
            source.resume()?;
            self.is_recording = true;
        }
        Ok(all)
    }

    /// Removes the threads that have ended. Returns the numbers of ended threads that now belong to other
    /// threads of the processes.
    fn leave_out_ended(&mut self, source: &Source, living: BTreeSet<Tid>) -> Result<Vec<Tid>, Error> {
        let back: Vec<Tid> = self.ended.intersection(&living).copied().collect();
        let ended: BTreeSet<Tid> = self.added.difference(&living).copied().collect();
        if ended != self.ended {
            source.leave_out(&ended)?;
            self.ended = ended;
        }
        Ok(back)
    }

    fn recorded(&self, source: &Source) -> Result<BTreeSet<Tid>, Error> {
        match source.scope() {
            Scope::Processes { children: false } => Ok(self.added.clone()),
            _ => Ok(source.recorded()?.into_iter().collect()),
        }
    }
}
