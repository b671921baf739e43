//! First events of classes. A program writes them with the key of a class that the recorder may not know yet
//! ([`tracewing_abi::first`]), after the class's description. Before a packet is written, each is replaced by
//! the event itself, if the rules for its class enable it. So readers never see first events.
//!
//! This module finds descriptions, and reports the classes and processes for which a decision is needed; the
//! owner of the rules decides. The number of findings is bounded. What exceeds it is found again, since a
//! packet waits until its classes are known, or has waited long enough.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tracewing_abi::first::{self, Key};
use tracewing_rules::filter::{Context, evaluate};
use tracewing_units::{Cpu, Pid};

use crate::packet_events::{First, Walk};

/// Maximum bytes of descriptions that wait to be taken.
const MOST_BYTES: usize = 1 << 20;
/// Maximum number of processes, and of classes in processes, that wait to be taken: each requires a look at
/// the process.
const MOST_ASKED: usize = 256;
/// Maximum number of classes with a decision, including those that cannot be known.
const MOST_BOUND: usize = 1 << 17;
/// Maximum number of decisions for single processes; beyond it, all are discarded and made again.
const MOST_DECIDED: usize = 1 << 16;

/// The recorder's decisions about classes, by their keys.
#[derive(Debug, Default)]
pub struct Firsts {
    /// The id of the class of first events; 0 while no program may write any.
    id: AtomicU16,
    has_seen: AtomicBool,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    bound: HashMap<Key, Bound>,
    /// For classes that are [`Bound::ByProcess`].
    in_process: HashMap<(Key, Pid), Bound>,
    found: Found,
    bytes: usize,
}

/// New findings in the buffers.
#[derive(Debug, Default)]
pub struct Found {
    /// Descriptions of classes without a decision.
    pub descriptions: BTreeMap<Key, Box<[u8]>>,
    /// Classes and processes without a decision.
    pub undecided: BTreeSet<(Key, Pid)>,
    /// Processes that have classes without ids.
    pub processes: BTreeSet<Pid>,
}

impl Found {
    /// Whether packets may be waiting for a decision.
    pub fn is_waited_for(&self) -> bool {
        !self.descriptions.is_empty() || !self.undecided.is_empty()
    }
}

/// The decision about first events of a class.
#[derive(Debug)]
pub enum Bound {
    /// They are recorded under this id if the filter accepts them.
    On(u16, Box<[AtomicU64]>),
    /// The rules disable them.
    Off,
    /// The rules differ by process ([`Firsts::bind_in`]).
    ByProcess,
    /// The class or the process cannot be known, so they are lost.
    Unknown,
    /// The class's description did not arrive in time; it may still come.
    Missing,
}

impl Bound {
    /// Recorded under this id; `filter` as in [`Grant`](tracewing_abi::message::grant::Grant).
    pub fn on(id: u16, filter: &[u8]) -> Self {
        let words = filter.as_chunks::<8>().0.iter();
        Self::On(id, words.map(|word| AtomicU64::new(u64::from_le_bytes(*word))).collect())
    }
}

/// What happened to the first events in a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Replaced {
    /// Events that the rules disable, and descriptions.
    pub(crate) left_out: u64,
    /// Events whose class, or whose rules, are unknown.
    pub(crate) lost: u64,
}

impl Known {
    fn bind(&mut self, key: Key, bound: Bound) -> bool {
        let has_room = !matches!(bound, Bound::Unknown | Bound::Missing) || self.bound.len() < MOST_BOUND;
        if has_room {
            self.bound.insert(key, bound);
        }
        has_room
    }

    fn of(&self, first: &First) -> Option<&Bound> {
        match self.bound.get(&first.key)? {
            Bound::ByProcess => self.in_process.get(&(first.key, first.pid)),
            bound => Some(bound),
        }
    }

    /// Registers a first event. Returns whether a decision for it exists.
    fn note(&mut self, first: &First, payload: &[u8]) -> bool {
        let bound = self.bound.get(&first.key);
        if first.is_description() {
            let is_new = matches!(bound, None | Some(Bound::Missing))
                && !self.found.descriptions.contains_key(&first.key);
            let has_room = self.bytes + payload.len() <= MOST_BYTES;
            if is_new && has_room && first::key(payload) == first.key {
                self.bytes += payload.len();
                self.found.descriptions.insert(first.key, payload.into());
            }
            return true;
        }
        let is_by_process = matches!(bound, Some(Bound::ByProcess));
        if self.found.processes.len() < MOST_ASKED {
            self.found.processes.insert(first.pid);
        }
        let is_known = self.of(first).is_some();
        if is_by_process && !is_known && self.found.undecided.len() < MOST_ASKED {
            self.found.undecided.insert((first.key, first.pid));
        }
        is_known
    }
}

impl Firsts {
    /// Allows programs to write first events, in the class with this id.
    pub fn begin(&self, id: u16) {
        self.id.store(id, Relaxed); // only compared with ids in packets, which programs write after the grant
    }

    /// Whether any first event was seen.
    pub fn has_seen(&self) -> bool {
        self.has_seen.load(Relaxed) // only the thread that reads the buffers stores and asks
    }

    /// Sets the decision for first events of the class with this key.
    ///
    /// Returns `false` if the decision is not kept: a hostile process can describe more unusable classes than
    /// there is memory for. Then it only delays its own buffers.
    pub fn bind(&self, key: Key, bound: Bound) -> bool {
        self.known().bind(key, bound)
    }

    /// Sets the decision for one process.
    pub fn bind_in(&self, key: Key, process: Pid, bound: Bound) {
        let mut known = self.known();
        if known.in_process.len() >= MOST_DECIDED {
            known.in_process.clear();
        }
        known.in_process.insert((key, process), bound);
    }

    /// Discards all decisions for single processes.
    pub fn forget_processes(&self) {
        self.known().in_process.clear();
    }

    /// Takes the findings since the last call.
    pub fn take_found(&self) -> Found {
        let mut known = self.known();
        known.bytes = 0;
        std::mem::take(&mut known.found)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether an event with this id is a first event.
    pub(crate) fn is_first(&self, id: u16) -> bool {
        id == self.id.load(Relaxed) && id != 0
    }

    /// Registers the first events in a packet; returns whether all have a decision. `events` are whole.
    pub(crate) fn scan(&self, events: &[u8]) -> bool {
        let firsts = Walk { bytes: events, at: 0 }.filter(|event| self.is_first(event.id));
        let (mut known, mut is_known) = (self.known(), true);
        for event in firsts {
            self.has_seen.store(true, Relaxed);
            if let Some(first) = event.first(events) {
                is_known &= known.note(&first, &events[first.payload..event.at + event.length]);
            }
        }
        is_known
    }

    /// Replaces first events by the events themselves. Returns `None`, and leaves `events` as it was, if a
    /// class is not known yet, unless `is_last`: nothing more is waited for. `events` are whole; `note`
    /// receives their new ids.
    pub(crate) fn replace(
        &self,
        events: &mut Vec<u8>,
        cpu: Cpu,
        is_last: bool,
        note: impl Fn(u16),
    ) -> Option<Replaced> {
        if !self.scan(events) && !is_last {
            return None;
        }
        let mut known = self.known();
        let mut replaced = Replaced::default();
        let (mut read, mut written) = (0, 0);
        while let Some(event) = (Walk { bytes: events, at: read }).next() {
            read = event.at + event.length;
            if !self.is_first(event.id) {
                events.copy_within(event.at..read, written);
                written += event.length;
                continue;
            }
            let first = event.first(events);
            if first.as_ref().is_some_and(|first| first.is_description()) {
                replaced.left_out += 1;
                continue;
            }
            let becomes = first.as_ref().and_then(|first| known.of(first));
            let (Some(first), Some(becomes)) = (&first, becomes) else {
                replaced.lost += 1;
                // Later events of the class do not wait again.
                if let Some(first) = first.filter(|first| !known.bound.contains_key(&first.key)) {
                    known.bind(first.key, Bound::Missing);
                }
                continue;
            };
            match becomes {
                Bound::On(id, filter) => {
                    let context = Context { tid: event.tid(events), pid: first.pid, cpu };
                    let payload = &events[first.payload..read];
                    if !evaluate(filter, std::iter::once(payload), &context) {
                        replaced.left_out += 1;
                        continue;
                    }
                    note(*id);
                    written = event.put(events, written, *id, first.payload..read);
                }
                Bound::Off => replaced.left_out += 1,
                Bound::ByProcess | Bound::Unknown | Bound::Missing => replaced.lost += 1,
            }
        }
        events.truncate(written);
        Some(replaced)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracewing_abi::event::{CONTEXT, EXTENDED_HEADER, EXTENDED_ID, HEADER};
    use tracewing_abi::first::DESCRIPTION;

    const FIRST: u16 = 9;

    /// An event's bytes; extended where it has a stamp.
    fn event(id: u16, stamp: Option<u64>, payload: &[u8]) -> Vec<u8> {
        let header = if stamp.is_some() { EXTENDED_HEADER } else { HEADER };
        let mut bytes = 7_u32.to_le_bytes().to_vec();
        bytes.extend(stamp.map_or(id, |_| EXTENDED_ID).to_le_bytes());
        bytes.extend(((header + CONTEXT + payload.len()) as u16).to_le_bytes());
        if let Some(stamp) = stamp {
            bytes.extend(stamp.to_le_bytes());
            bytes.extend(id.to_le_bytes());
        }
        bytes.extend(42_u32.to_le_bytes());
        bytes.extend(payload);
        bytes
    }

    fn first(key: Key, payload: &[u8]) -> Vec<u8> {
        let mut bytes = key.map(u64::to_le_bytes).concat();
        bytes.extend(5_u32.to_le_bytes());
        bytes.extend((payload.len() as u16).to_le_bytes());
        bytes.extend(payload);
        bytes
    }

    fn replaced(firsts: &Firsts, events: &[u8], is_last: bool) -> Option<(Vec<u8>, Replaced)> {
        let mut events = events.to_vec();
        let replaced = firsts.replace(&mut events, Cpu(0), is_last, |_| {})?;
        Some((events, replaced))
    }

    #[test]
    fn events_take_the_place_of_first_ones() {
        let firsts = Firsts::default();
        firsts.begin(FIRST);
        firsts.bind([1, 0], Bound::On(77, Box::default()));
        firsts.bind([2, 0], Bound::Off);
        for stamp in [None, Some(1 << 40)] {
            let packet = [
                event(3, None, b"before"),
                event(FIRST, stamp, &first([1, 0], b"payload")),
                event(FIRST, stamp, &first([2, 0], b"left out")),
                event(4, stamp, b""),
                event(FIRST, stamp, &first([1, 0], b"")),
            ];
            let expected = [
                event(3, None, b"before"),
                event(77, stamp, b"payload"),
                event(4, stamp, b""),
                event(77, stamp, b""),
            ];
            let found = replaced(&firsts, &packet.concat(), false);
            assert_eq!(found, Some((expected.concat(), Replaced { left_out: 1, lost: 0 })));
        }
    }

    #[test]
    fn unknown_classes_are_waited_for_and_then_lost() {
        let firsts = Firsts::default();
        firsts.begin(FIRST);
        let packet = [event(3, None, b"a"), event(FIRST, None, &first([1, 1], b"b"))].concat();
        assert_eq!(replaced(&firsts, &packet, false), None);
        let lost = Some((event(3, None, b"a"), Replaced { left_out: 0, lost: 1 }));
        assert_eq!(replaced(&firsts, &packet, true), lost);
        assert_eq!(replaced(&firsts, &packet, false), lost, "once");
        firsts.bind([1, 1], Bound::Unknown);
        assert_eq!(replaced(&firsts, &packet, false), lost);
        firsts.bind([1, 1], Bound::On(8, Box::default()));
        let whole = [event(3, None, b"a"), event(8, None, b"b")].concat();
        assert_eq!(replaced(&firsts, &packet, false), Some((whole, Replaced::default())));
    }

    #[test]
    fn nonsense_is_lost_and_harms_nothing() {
        let firsts = Firsts::default();
        firsts.begin(FIRST);
        let mut lying = event(FIRST, None, &first([1, 0], b"abc"));
        let at = lying.len() - 4;
        lying[at - 1] = 0xff;
        let packet = [event(FIRST, None, b"short"), lying, event(3, None, b"a")].concat();
        let expected = Some((event(3, None, b"a"), Replaced { left_out: 0, lost: 2 }));
        assert_eq!(replaced(&firsts, &packet, false), expected);
        for cut in 0..packet.len() {
            replaced(&firsts, &packet[..cut], true);
        }
    }

    fn described(description: &[u8], key: Key) -> Vec<u8> {
        let mut bytes = first(key, description);
        bytes[16..20].copy_from_slice(&DESCRIPTION.to_le_bytes());
        event(FIRST, None, &bytes)
    }

    #[test]
    fn descriptions_are_found_and_left_out() {
        let firsts = Firsts::default();
        firsts.begin(FIRST);
        let key = first::key(b"a class");
        let packet = [described(b"a class", key), event(FIRST, None, &first(key, b"payload"))].concat();
        assert_eq!(replaced(&firsts, &packet, false), None);
        let found = firsts.take_found();
        assert!(found.is_waited_for() && found.processes.contains(&Pid(5)));
        assert_eq!(*found.descriptions[&key], *b"a class");
        firsts.bind(key, Bound::on(8, &[]));
        let left = Some((event(8, None, b"payload"), Replaced { left_out: 1, lost: 0 }));
        assert_eq!(replaced(&firsts, &packet, false), left);
        assert!(!firsts.take_found().is_waited_for());
    }

    #[test]
    fn descriptions_are_bounded() {
        let firsts = Firsts::default();
        firsts.begin(FIRST);
        assert!(firsts.scan(&described(b"a class", [1, 2])));
        assert!(firsts.take_found().descriptions.is_empty(), "a key that is not the description's");
        for number in 0..1000_u32 {
            let description = [&number.to_le_bytes()[..], &[0; 8192]].concat();
            firsts.scan(&described(&description, first::key(&description)));
        }
        let bytes: usize =
            firsts.take_found().descriptions.values().map(|description| description.len()).sum();
        assert!((MOST_BYTES / 2..=MOST_BYTES).contains(&bytes), "{bytes}");
    }

    #[test]
    fn processes_are_decided_one_by_one() {
        let firsts = Firsts::default();
        firsts.begin(FIRST);
        firsts.bind([1, 1], Bound::ByProcess);
        let packet = event(FIRST, None, &first([1, 1], b"x"));
        assert_eq!(replaced(&firsts, &packet, false), None);
        assert!(firsts.take_found().undecided.contains(&([1, 1], Pid(5))));
        firsts.bind_in([1, 1], Pid(6), Bound::Off);
        assert_eq!(replaced(&firsts, &packet, false), None, "another process");
        firsts.bind_in([1, 1], Pid(5), Bound::Off);
        let left_out = Some((Vec::new(), Replaced { left_out: 1, lost: 0 }));
        assert_eq!(replaced(&firsts, &packet, false), left_out);
        firsts.forget_processes();
        assert_eq!(replaced(&firsts, &packet, false), None);
    }
}
