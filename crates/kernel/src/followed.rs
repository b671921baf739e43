//! Which threads of processes that run already are recorded.
//!
//! The kernel's list holds threads, so those of a process are listed and added. A thread that is in the list
//! adds what it starts by itself where the scope asks for that (option `event-fork`), so that after a round
//! which finds nothing new no thread is missing: what was started meanwhile was started by a thread in the
//! list. Without that option threads that start later are found by the next call only, and the kernel keeps
//! the numbers of threads that have ended: the next call leaves those out, since another process's thread may
//! get one.

use crate::error::Error;
use crate::options::Scope;
use crate::source::{Source, in_initial_pid_namespace};
use std::collections::BTreeSet;
use tracewing_units::{Pid, Tid};

/// Rounds after which a process that starts threads all the time is left to the next call.
const MOST_ROUNDS: usize = 100;

/// The threads that were added.
#[derive(Debug, Default)]
pub(crate) struct Followed {
    /// Where the kernel does not change its list: what is in it.
    added: BTreeSet<Tid>,
    /// Those of them that have ended, and are left out.
    ended: BTreeSet<Tid>,
    is_recording: bool,
}

impl Followed {
    /// Records the threads of these processes, too, as `list` gives them. Gives those that are new.
    ///
    /// # Errors
    /// [`Error::PidNamespace`] where their numbers are not the kernel's; what fails in tracefs.
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

    /// Leaves out the threads that have ended. Gives those whose numbers other threads of the processes have
    /// by now.
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
