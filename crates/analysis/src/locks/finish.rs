//! The table: from accounts to rows with names and places.

use std::cmp::Reverse;
use std::collections::HashMap;

use tracewing_units::{Pid, Timestamp};

use super::Locks;
use super::account::{Account, Party};
use super::table::{AcrossAwait, LocksTable, Row, Subject, Unpaired};
use super::totals::{Key, Totals};
use crate::run::Ran;

impl Locks {
    /// Ends the analysis and makes the table.
    pub fn finish(mut self, ran: &Ran) -> LocksTable {
        if self.totals.begun {
            self.note_waiters(ran.end_ns);
            self.end_all(ran.end_ns);
        }
        let mut accounts = std::mem::take(&mut self.totals.accounts);
        let unpaired = self.forget_unpaired(&mut accounts, ran);
        let (lacks_holds, lacks_owners) = self.totals.forget(&ran.recorded.lacks_of_locks);
        let mut rows: Vec<Row> = accounts.into_iter().map(|(key, account)| self.row(key, account)).collect();
        rows.sort_by_key(|row| {
            let account = &row.account;
            (Reverse((account.waits.total_ns, account.acquired)), row.process, row.subject)
        });
        let mut graph = std::mem::take(&mut self.totals.graph);
        graph.finish(|party| self.name(party), &self.places);
        let across_awaits = self.across_awaits();
        let Totals { histogram, incomplete, unknown_depths, forgotten_holders, .. } = self.totals;
        let has_owners = unpaired.is_none() && lacks_owners == [false; 2];
        LocksTable {
            rows,
            histogram,
            graph,
            across_awaits,
            shadowed: self.shadowed,
            incomplete,
            strangers: self.strangers.len(),
            unknown_depths,
            lacks_holds,
            lacks_owners,
            forgotten_holders: if has_owners { forgotten_holders } else { 0 },
            duration_ns: ran.duration_ns(),
            unpaired,
        }
    }

    /// Forgets what needs pairs of events, where the filter may have left out one of two.
    fn forget_unpaired(&mut self, accounts: &mut HashMap<Key, Account>, ran: &Ran) -> Option<Unpaired> {
        let tears_tickets = ran.some_tids && accounts.values().any(|account| account.has_tickets);
        let unpaired = match () {
            () if ran.torn => Unpaired::Events,
            () if ran.some_cpus => Unpaired::Cpus,
            () if tears_tickets => Unpaired::Tids,
            () => return None,
        };
        let is_torn = |account: &&mut Account| unpaired != Unpaired::Tids || account.has_tickets;
        accounts.values_mut().filter(is_torn).for_each(Account::unpair);
        (self.totals.histogram, self.totals.graph) = Default::default();
        self.totals.across_awaits.clear();
        Some(unpaired)
    }

    fn row(&self, (process, subject, epoch): Key, account: Account) -> Row {
        let held_at = self.places.caller(process, account.held_longest_at(), epoch).into_iter().next();
        Row {
            process,
            process_name: process.map(|process| self.process_name(process)).unwrap_or_default(),
            subject,
            task_name: match subject {
                Subject::Task(Some(task)) => self.name(Party::Task(process, task)),
                _ => String::new(),
            },
            owner_name: account.owner().map(|(owner, _)| self.name(owner)).unwrap_or_default(),
            frames: match subject {
                Subject::Lock(_) | Subject::Futex(_) | Subject::Thread(_) | Subject::Task(_) => {
                    held_at.iter().filter(|frame| frame.source.is_some()).cloned().collect()
                }
                Subject::Caller(caller) => self.places.caller(process, caller, epoch),
                Subject::Chain(chain) => self.places.chain(process, chain, epoch),
            },
            held_at,
            account,
        }
    }

    fn across_awaits(&mut self) -> Vec<AcrossAwait> {
        let across = std::mem::take(&mut self.totals.across_awaits).into_iter();
        let mut across_awaits: Vec<AcrossAwait> = across
            .map(|((process, lock, caller), across)| AcrossAwait {
                process,
                lock,
                kind: across.kind.name(),
                frames: self.places.caller(process, caller.known(), across.epoch),
                holds: across.holds,
                waiters: across.waiters,
                waited_ns: across.waited_ns,
            })
            .collect();
        across_awaits.sort_by_key(|across| (Reverse(across.waited_ns), across.lock));
        across_awaits
    }

    fn process_name(&self, process: Pid) -> String {
        self.names.get(&process.first_thread()).cloned().unwrap_or_default()
    }

    fn name(&self, of: Party) -> String {
        let name = match of {
            Party::Thread(tid) => self.names.get(&tid),
            Party::Task(process, task) => self.task_names.get(&(process, task)),
            Party::Place(process, caller) => {
                let frames = self.places.caller(process, Some(caller), self.places.epoch());
                let source = frames.into_iter().next().and_then(|frame| frame.source);
                return source.map(|(file, line)| format!("{}:{line}", file_name(&file))).unwrap_or_default();
            }
        };
        name.cloned().unwrap_or_default()
    }

    /// The recording ends: wait-for edges must be determined before the state is dropped.
    pub(super) fn note_waiters(&mut self, at: Timestamp) {
        for (party, thread) in &mut self.threads {
            thread.settle(&mut |outcome| self.totals.add(*party, &outcome, false, &self.places));
        }
        for (party, thread) in &self.threads {
            if let Some(request) = thread.waits() {
                let acquisition = &request.acquisition;
                let owners = self.totals.owners_of(acquisition, request.owner);
                self.totals.graph.waits(*party, acquisition, &owners, thread.until(at) - request.at, false);
            }
        }
        for (party, (request, ended)) in &self.silent {
            let acquisition = &request.acquisition;
            let owners = self.totals.owners_of(acquisition, request.owner);
            self.totals.graph.waits(*party, acquisition, &owners, ended.unwrap_or(at) - request.at, true);
        }
    }

    /// Ends all requests and critical sections with the recording.
    fn end_all(&mut self, at: Timestamp) {
        self.tickets.finish(at, None, &mut |party, outcome| {
            self.totals.ticketed(party, &outcome, true, &self.places);
        });
        for (party, mut thread) in self.threads.drain() {
            thread.finish(at, &mut |outcome| self.totals.add(party, &outcome, false, &self.places));
        }
        self.totals.owners.clear();
    }
}

/// The last part of a path.
fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
