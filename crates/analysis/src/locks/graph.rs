//! The wait-for graph: an edge from each waiter of a lock to its holder, and the cycles among those that wait
//! at the end, so that none of them can continue.

use std::collections::{HashMap, HashSet};
use tracewing_units::{Caller, Chain, Duration, LockAddress, Pid};

use super::account::{Party, Sum};
use super::places::{Frame, Places};
use super::thread::{Acquisition, By};
use crate::images::Epoch;

/// The waits of one party for one lock that another party had.
#[derive(Debug, Clone)]
pub struct Edge {
    /// The process of the waiter and of the lock.
    pub process: Option<Pid>,
    /// The party that waits, or waited.
    pub waiter: Party,
    /// Its name, or nothing.
    pub waiter_name: String,
    /// The holder of the lock.
    pub owner: Party,
    /// Its name, or nothing.
    pub owner_name: String,
    /// The lock's address in its process.
    pub lock: LockAddress,
    /// The kind of lock, as the column `kind` has it.
    pub kind: &'static str,
    /// How often and for how long.
    pub waits: Sum,
    /// For how long it has waited when the recording ends, or when it has ended itself before, ns.
    pub lasts_ns: Option<Duration>,
    /// From where in the program it waits then, the innermost first.
    pub frames: Vec<Frame>,
    /// Whether the end of the wait may have been lost.
    doubtful: bool,
}

/// The wait-for graph of threads and tasks.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    /// Those that last first, then those that were waited for longest.
    pub edges: Vec<Edge>,
    /// Deadlocks at the end: places in [`Graph::edges`]. Each one's owner is the next one's waiter, and the
    /// last one's the first one's.
    pub cycles: Vec<Vec<usize>>,
    arcs: HashMap<(Option<Pid>, Party, Party, LockAddress), Arc>,
}

#[derive(Debug, Clone)]
struct Arc {
    kind: &'static str,
    waits: Sum,
    lasts: Option<Lasts>,
}

#[derive(Debug, Clone)]
struct Lasts {
    ns: Duration,
    doubtful: bool,
    epoch: Epoch,
    caller: Caller,
    chain: Option<Chain>,
}

impl Graph {
    /// A wait has ended.
    pub(super) fn waited(
        &mut self,
        waiter: Party,
        acquisition: &Acquisition,
        owners: &[Party],
        ns: Duration,
    ) {
        for owner in owners {
            self.arc(waiter, acquisition, *owner).waits.add(ns);
        }
    }

    /// A wait that lasts when the recording ends, for `ns` until then. A `doubtful` one, whose end may have
    /// been lost, is used only as part of a cycle: a thread there has no events because it waits.
    pub(super) fn waits(
        &mut self,
        waiter: Party,
        acquisition: &Acquisition,
        owners: &[Party],
        ns: Duration,
        doubtful: bool,
    ) {
        let Acquisition { caller, chain, by: By { epoch, .. }, .. } = *acquisition;
        for owner in owners {
            self.arc(waiter, acquisition, *owner).lasts = Some(Lasts { ns, doubtful, epoch, caller, chain });
        }
    }

    fn arc(&mut self, waiter: Party, of: &Acquisition, owner: Party) -> &mut Arc {
        let new = || Arc { kind: of.kind.name(), waits: Sum::default(), lasts: None };
        self.arcs.entry((of.by.process, waiter, owner, of.lock)).or_insert_with(new)
    }

    /// Drops the waits of these parties.
    pub(super) fn forget(&mut self, of: impl Fn(&Party) -> bool) {
        self.arcs.retain(|(_, waiter, ..), _| !of(waiter));
    }

    /// All input has been handled.
    pub(super) fn finish(&mut self, name: impl Fn(Party) -> String, places: &Places) {
        let edge =
            |((process, waiter, owner, lock), arc): ((Option<Pid>, Party, Party, LockAddress), Arc)| Edge {
                process,
                waiter,
                waiter_name: name(waiter),
                owner,
                owner_name: name(owner),
                lock,
                kind: arc.kind,
                waits: arc.waits,
                lasts_ns: arc.lasts.as_ref().map(|lasts| lasts.ns),
                doubtful: arc.lasts.as_ref().is_some_and(|lasts| lasts.doubtful),
                frames: arc.lasts.map_or_else(Vec::new, |Lasts { epoch, caller, chain, .. }| {
                    match places.chain(process, chain, epoch) {
                        frames if frames.is_empty() => places.caller(process, caller.known(), epoch),
                        frames => frames,
                    }
                }),
            };
        self.edges = std::mem::take(&mut self.arcs).into_iter().map(edge).collect();
        self.edges.sort_by_key(|edge| {
            let key = (edge.lasts_ns.is_some(), edge.lasts_ns.max(Some(edge.waits.total_ns)));
            (std::cmp::Reverse(key), edge.process, edge.waiter, edge.owner, edge.lock)
        });
        let in_circles: HashSet<usize> = cycles(&self.edges).into_iter().flatten().collect();
        for (_, edge) in self.edges.iter_mut().enumerate().filter(|(place, _)| !in_circles.contains(place)) {
            edge.lasts_ns = edge.lasts_ns.filter(|_| !edge.doubtful);
        }
        self.edges.retain(|edge| edge.lasts_ns.is_some() || edge.waits.count > 0);
        self.cycles = cycles(&self.edges);
    }
}

/// The cycles of waits that last, each from its first edge on.
fn cycles(edges: &[Edge]) -> Vec<Vec<usize>> {
    let mut leads: HashMap<Party, Vec<usize>> = HashMap::new();
    // Those that are known by a place only may be several.
    let is_one = |party: &Party| !matches!(party, Party::Place(..));
    let lasts = |edge: &Edge| edge.lasts_ns.is_some() && is_one(&edge.waiter) && is_one(&edge.owner);
    for (place, edge) in edges.iter().enumerate().filter(|(_, edge)| lasts(edge)) {
        leads.entry(edge.waiter).or_default().push(place);
    }
    let mut done = vec![false; edges.len()];
    let mut cycles = Vec::new();
    for first in (0..edges.len()).filter(|first| lasts(&edges[*first])) {
        // Depth first, without recursion: the edges of the way, each with how many of what follows it have
        // been tried.
        let mut way: Vec<(usize, usize)> = Vec::new();
        if !std::mem::replace(&mut done[first], true) {
            way.push((first, 0));
        }
        while let Some((edge, tried)) = way.last_mut() {
            let next = leads.get(&edges[*edge].owner).and_then(|next| next.get(*tried)).copied();
            *tried += 1;
            let Some(next) = next else {
                way.pop();
                continue;
            };
            if let Some(begin) = way.iter().position(|(edge, _)| *edge == next) {
                cycles.push(way[begin..].iter().map(|(edge, _)| *edge).collect());
            } else if !std::mem::replace(&mut done[next], true) {
                way.push((next, 0));
            }
        }
    }
    cycles
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracewing_units::Tid;

    fn edge(waiter: Tid, owner: Tid, lasts: bool) -> Edge {
        Edge {
            process: Some(Pid(1)),
            waiter: Party::Thread(waiter),
            waiter_name: String::new(),
            owner: Party::Thread(owner),
            owner_name: String::new(),
            lock: LockAddress(0),
            kind: "mutex",
            waits: Sum::default(),
            lasts_ns: lasts.then_some(Duration::from_ns(1)),
            frames: Vec::new(),
            doubtful: false,
        }
    }

    #[test]
    fn a_cycle_of_waiters_is_a_deadlock() {
        let found = |edges: &[(i32, i32)]| {
            cycles(
                &edges
                    .iter()
                    .map(|(waiter, owner)| edge(Tid(*waiter), Tid(*owner), true))
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(found(&[(1, 2), (2, 3), (4, 1)]), Vec::<Vec<usize>>::new());
        assert_eq!(found(&[(1, 1)]), [[0]]);
        assert_eq!(found(&[(1, 2), (2, 3), (3, 1)]), [[0, 1, 2]]);
        assert_eq!(found(&[(9, 1), (1, 2), (2, 1), (5, 6), (6, 5)]), [[1, 2], [3, 4]]);
        // A lock that several have, for reading: one of them waits for the writer.
        assert_eq!(found(&[(1, 2), (1, 3), (3, 1)]), [[1, 2]]);
        let over = [edge(Tid(1), Tid(2), true), edge(Tid(2), Tid(1), false)];
        assert_eq!(cycles(&over), Vec::<Vec<usize>>::new());
    }
}
