//! Which begin an end belongs to.

use std::collections::{HashMap, VecDeque};
use tracewing_trace::super_trace::{Carried, Place};
use tracewing_units::{Cpu, Pid, Task, Tid, Timestamp};

/// So many bytes are given to begins that wait for their ends; when they are used up, the older half is
/// forgotten.
const ROOM: usize = 256 << 20;

/// Which one an end belongs to where several begins with the same key wait for theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Nesting {
    /// The latest one; those before it wait for ends of their own, as function calls do.
    #[default]
    Stack,
    /// The earliest one, as messages that are treated in the order in which they came.
    Queue,
    /// The latest one; those before it get no end.
    Latest,
    /// The earliest one; those after it get no end.
    First,
}

/// Where and when an event was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, serde::Serialize)]
pub struct Moment {
    /// When, in nanoseconds on the recording's clock.
    pub ns: Timestamp,
    /// Its CPU, where the events say; so it is with the others.
    pub cpu: Option<Cpu>,
    /// Its process: the number of that one's first thread.
    pub process: Option<Pid>,
    /// The LWP that emitted the event.
    pub tid: Option<Tid>,
    /// Its user thread's number in its process.
    #[serde(rename = "task")]
    pub user_thread: Option<Task>,
}

impl Moment {
    /// An event at a place.
    pub(crate) fn of(place: &Place<'_>, ns: Timestamp) -> Self {
        let Place { cpu, process, tid, thread, .. } = *place;
        let user_thread = match thread {
            Carried::Thread { id, .. } => Some(id),
            Carried::None | Carried::Unknown => None,
        };
        Self { ns, cpu, process, tid, user_thread }
    }
}

/// A begin that waits for its end.
#[derive(Debug, Clone, Copy)]
struct Begin {
    at: Moment,
    /// Whether the filter lets it through.
    is_chosen: bool,
}

/// Begins that wait for their ends, by key.
#[derive(Debug)]
pub(crate) struct Pairs {
    nesting: Nesting,
    open: HashMap<Box<[u8]>, VecDeque<Begin>>,
    /// Bytes that are used, roughly.
    used: usize,
    room: usize,
    /// Chosen begins that will have no end.
    pub(crate) unmatched_begins: u64,
    /// Chosen ends that have no beginning.
    pub(crate) unmatched_ends: u64,
    /// Periods of which only the begin or only the end is chosen.
    pub(crate) chosen_in_part: u64,
    /// Begins that were dropped to limit memory; they are among the unmatched ones, too.
    pub(crate) forgotten: u64,
}

/// Memory that a key and its first begin take in addition to the key's bytes: pointers, lengths, unused
/// capacity.
const ENTRY: usize = 4 * size_of::<Begin>() + 96;

impl Pairs {
    pub(crate) fn new(nesting: Nesting) -> Self {
        Self::with_room(nesting, ROOM)
    }

    fn with_room(nesting: Nesting, room: usize) -> Self {
        Pairs {
            nesting,
            open: HashMap::new(),
            used: 0,
            room,
            unmatched_begins: 0,
            unmatched_ends: 0,
            chosen_in_part: 0,
            forgotten: 0,
        }
    }

    /// Remembers a begin event until an end event has the same key. Events that the filter does not choose
    /// count, too: without them, others would be paired.
    pub(crate) fn begin(&mut self, key: &[u8], at: Moment, is_chosen: bool) {
        let begin = Begin { at, is_chosen };
        let Some(waiting) = self.open.get_mut(key) else {
            self.used += ENTRY + key.len();
            self.open.insert(key.into(), [begin].into());
            return self.make_room();
        };
        match self.nesting {
            Nesting::Stack | Nesting::Queue => {
                waiting.push_back(begin);
                self.used += size_of::<Begin>();
                self.make_room();
            }
            Nesting::Latest => {
                self.unmatched_begins += chosen(waiting.drain(..));
                waiting.push_back(begin);
            }
            Nesting::First => self.unmatched_begins += u64::from(is_chosen),
        }
    }

    /// Takes an end, and gives the beginning that it belongs to, if both are chosen.
    pub(crate) fn end(&mut self, key: &[u8], is_chosen: bool) -> Option<Moment> {
        let Some(waiting) = self.open.get_mut(key) else {
            self.unmatched_ends += u64::from(is_chosen);
            return None;
        };
        let begin = match self.nesting {
            Nesting::Stack | Nesting::Latest => waiting.pop_back(),
            Nesting::Queue | Nesting::First => waiting.pop_front(),
        };
        if waiting.is_empty() {
            self.open.remove(key);
            self.used -= ENTRY + key.len();
        } else {
            self.used -= size_of::<Begin>();
        }
        let begin = begin?;
        self.chosen_in_part += u64::from(begin.is_chosen != is_chosen);
        (begin.is_chosen && is_chosen).then_some(begin.at)
    }

    /// What still waits has no end.
    pub(crate) fn finish(&mut self) {
        self.unmatched_begins += chosen(self.open.drain().flat_map(|(_, waiting)| waiting));
    }

    /// Forgets the older half of all begins where there is no room for them.
    fn make_room(&mut self) {
        if self.used <= self.room {
            return;
        }
        let mut times: Vec<Timestamp> = self.open.values().flatten().map(|begin| begin.at.ns).collect();
        let middle = times.len() / 2;
        let (_, &mut median, _) = times.select_nth_unstable(middle);
        self.used = 0;
        let mut forgotten = 0;
        self.open.retain(|key, waiting| {
            forgotten += chosen(waiting.iter().filter(|begin| begin.at.ns <= median).copied());
            waiting.retain(|begin| begin.at.ns > median);
            waiting.shrink_to_fit();
            let used = ENTRY + key.len() + waiting.len().saturating_sub(1) * size_of::<Begin>();
            self.used += if waiting.is_empty() { 0 } else { used };
            !waiting.is_empty()
        });
        self.forgotten += forgotten;
        self.unmatched_begins += forgotten;
    }
}

/// How many of these the filter lets through.
fn chosen(begins: impl Iterator<Item = Begin>) -> u64 {
    begins.filter(|begin| begin.is_chosen).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u32) -> Moment {
        Moment { ns: Timestamp::from_ns(ns.into()), ..Moment::default() }
    }

    /// Begins at 1, 2, 3; then ends. Gives the begins, and how many begins and ends are unmatched.
    fn play(nesting: Nesting, ends: usize) -> (Vec<i64>, u64, u64) {
        let mut pairs = Pairs::new(nesting);
        (1..=3).for_each(|ns| pairs.begin(b"key", at(ns), true));
        let begins =
            (0..ends).filter_map(|_| pairs.end(b"key", true)).map(|begin| begin.ns.as_ns()).collect();
        pairs.finish();
        (begins, pairs.unmatched_begins, pairs.unmatched_ends)
    }

    #[test]
    fn the_nesting_says_which_begin_an_end_has() {
        assert_eq!(play(Nesting::Stack, 2), (vec![3, 2], 1, 0));
        assert_eq!(play(Nesting::Queue, 2), (vec![1, 2], 1, 0));
        assert_eq!(play(Nesting::Latest, 2), (vec![3], 2, 1));
        assert_eq!(play(Nesting::First, 2), (vec![1], 2, 1));
        assert_eq!(play(Nesting::Stack, 4), (vec![3, 2, 1], 0, 1));
    }

    /// Begins at 1, 2, ... and as many ends, of which the filter chooses some: the begins of periods that it
    /// chooses, how many it chooses in part, and how many chosen begins and ends are unmatched.
    fn choose(nesting: Nesting, begins: &[bool], ends: &[bool]) -> (Vec<i64>, u64, [u64; 2]) {
        let mut pairs = Pairs::new(nesting);
        for (ns, is_chosen) in (1..).zip(begins) {
            pairs.begin(b"key", at(ns), *is_chosen);
        }
        let found = ends.iter().filter_map(|is_chosen| pairs.end(b"key", *is_chosen));
        let found = found.map(|begin| begin.ns.as_ns()).collect();
        pairs.finish();
        (found, pairs.chosen_in_part, [pairs.unmatched_begins, pairs.unmatched_ends])
    }

    #[test]
    fn periods_are_the_same_whichever_events_are_chosen() {
        let (yes, no) = (true, false);
        assert_eq!(choose(Nesting::Stack, &[yes, no, yes], &[yes, no, yes]), (vec![3, 1], 0, [0, 0]));
        assert_eq!(choose(Nesting::Stack, &[yes, no, yes], &[no, yes, yes]), (vec![1], 2, [0, 0]));
        // The first end belongs to the first begin, which is not chosen.
        assert_eq!(choose(Nesting::Queue, &[no, yes, yes], &[yes, yes, no]), (vec![2], 2, [0, 0]));
        assert_eq!(choose(Nesting::First, &[no, yes], &[yes, yes]), (vec![], 1, [1, 1]));
        assert_eq!(choose(Nesting::Latest, &[yes, no], &[yes, no]), (vec![], 1, [1, 0]));
    }

    #[test]
    fn begins_without_end_take_no_more_than_their_room() {
        for (nesting, keys) in [(Nesting::Stack, 1), (Nesting::Queue, 7), (Nesting::Stack, 100_000)] {
            let mut pairs = Pairs::with_room(nesting, 100_000);
            for ns in 0..100_000_u32 {
                pairs.begin(&(ns % keys).to_le_bytes(), at(ns), true);
                assert!(pairs.used <= pairs.room);
            }
            let last = 99_999_u32;
            let begin = pairs.end(&(last % keys).to_le_bytes(), true).expect("the latest is remembered");
            assert!(nesting == Nesting::Queue || begin.ns.as_ns() == i64::from(last));
            pairs.finish();
            assert!(pairs.forgotten > 90_000);
            assert_eq!(pairs.unmatched_begins, 99_999);
        }
    }
}
