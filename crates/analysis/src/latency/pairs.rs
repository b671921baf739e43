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

/// Begins with one key that wait for their ends.
#[derive(Debug, Default)]
struct Waiting {
    begins: VecDeque<Moment>,
    /// When the filter last left out a begin or an end with this key.
    left_out: Option<Timestamp>,
}

/// The begin that an end belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Begin {
    /// When and where it was.
    pub(crate) at: Moment,
    /// Whether the filter has left out a begin or an end with the same key since then.
    pub(crate) is_torn: bool,
}

/// Begins that wait for their ends, by key.
#[derive(Debug)]
pub(crate) struct Pairs {
    nesting: Nesting,
    open: HashMap<Box<[u8]>, Waiting>,
    /// Bytes that are used, roughly.
    used: usize,
    room: usize,
    /// Begins that will have no end.
    pub(crate) unmatched_begins: u64,
    /// Ends that have no beginning.
    pub(crate) unmatched_ends: u64,
    /// Begins that were forgotten for want of room; they are unmatched, too.
    pub(crate) forgotten: u64,
}

/// What a key and its first begin take, besides the key's bytes: pointers, lengths, room that is not used.
const ENTRY: usize = 4 * size_of::<Moment>() + 96;

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
            forgotten: 0,
        }
    }

    /// Remembers a begin event until an end event has the same key.
    pub(crate) fn begin(&mut self, key: &[u8], begin: Moment) {
        let Some(waiting) = self.open.get_mut(key) else {
            self.used += ENTRY + key.len();
            self.open.insert(key.into(), Waiting { begins: [begin].into(), left_out: None });
            return self.make_room();
        };
        let waiting = &mut waiting.begins;
        match self.nesting {
            Nesting::Stack | Nesting::Queue => {
                waiting.push_back(begin);
                self.used += size_of::<Moment>();
                self.make_room();
            }
            Nesting::Latest => {
                self.unmatched_begins += 1;
                waiting.clear();
                waiting.push_back(begin);
            }
            Nesting::First => self.unmatched_begins += 1,
        }
    }

    /// Takes an end, and gives the beginning that it belongs to.
    pub(crate) fn end(&mut self, key: &[u8]) -> Option<Begin> {
        let Some(waiting) = self.open.get_mut(key) else {
            self.unmatched_ends += 1;
            return None;
        };
        let Waiting { begins, left_out } = waiting;
        let at = match self.nesting {
            Nesting::Stack | Nesting::Latest => begins.pop_back(),
            Nesting::Queue | Nesting::First => begins.pop_front(),
        };
        let left_out = *left_out;
        if begins.is_empty() {
            self.open.remove(key);
            self.used -= ENTRY + key.len();
        } else {
            self.used -= size_of::<Moment>();
        }
        at.map(|at| Begin { at, is_torn: left_out >= Some(at.ns) })
    }

    /// The filter leaves out a begin or an end, with which the next end might be wrongly paired.
    pub(crate) fn leaves_out(&mut self, key: &[u8], at: Timestamp) {
        if let Some(waiting) = self.open.get_mut(key) {
            waiting.left_out = Some(at);
        }
    }

    /// What still waits has no end.
    pub(crate) fn finish(&mut self) {
        self.unmatched_begins +=
            self.open.drain().map(|(_, waiting)| waiting.begins.len() as u64).sum::<u64>();
    }

    /// Forgets the older half of all begins where there is no room for them.
    fn make_room(&mut self) {
        if self.used <= self.room {
            return;
        }
        let mut times: Vec<Timestamp> =
            self.open.values().flat_map(|waiting| &waiting.begins).map(|begin| begin.ns).collect();
        let middle = times.len() / 2;
        let (_, &mut median, _) = times.select_nth_unstable(middle);
        let before = times.len();
        self.used = 0;
        let mut after = 0;
        self.open.retain(|key, Waiting { begins: waiting, .. }| {
            waiting.retain(|begin| begin.ns > median);
            waiting.shrink_to_fit();
            after += waiting.len();
            let used = ENTRY + key.len() + waiting.len().saturating_sub(1) * size_of::<Moment>();
            self.used += if waiting.is_empty() { 0 } else { used };
            !waiting.is_empty()
        });
        self.forgotten += (before - after) as u64;
        self.unmatched_begins += (before - after) as u64;
    }
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
        (1..=3).for_each(|ns| pairs.begin(b"key", at(ns)));
        let begins = (0..ends).filter_map(|_| pairs.end(b"key")).map(|begin| begin.at.ns.as_ns()).collect();
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

    /// The end that belongs to the begin, and the begin that the next end belongs to, may be elsewhere.
    #[test]
    fn a_period_in_which_its_key_is_left_out_is_torn() {
        let mut pairs = Pairs::new(Nesting::Stack);
        pairs.leaves_out(b"key", Timestamp::from_ns(0));
        pairs.begin(b"key", at(1));
        pairs.begin(b"other", at(2));
        assert!(!pairs.end(b"key").unwrap().is_torn);
        pairs.begin(b"key", at(3));
        pairs.leaves_out(b"key", Timestamp::from_ns(4));
        pairs.begin(b"key", at(5));
        assert_eq!(pairs.end(b"key"), Some(Begin { at: at(5), is_torn: false }));
        assert_eq!(pairs.end(b"key"), Some(Begin { at: at(3), is_torn: true }));
        assert!(!pairs.end(b"other").unwrap().is_torn);
    }

    #[test]
    fn begins_without_end_take_no_more_than_their_room() {
        for (nesting, keys) in [(Nesting::Stack, 1), (Nesting::Queue, 7), (Nesting::Stack, 100_000)] {
            let mut pairs = Pairs::with_room(nesting, 100_000);
            for ns in 0..100_000_u32 {
                pairs.begin(&(ns % keys).to_le_bytes(), at(ns));
                assert!(pairs.used <= pairs.room);
            }
            let last = 99_999_u32;
            let begin = pairs.end(&(last % keys).to_le_bytes()).expect("the latest is remembered");
            assert!(nesting == Nesting::Queue || begin.at.ns.as_ns() == i64::from(last));
            pairs.finish();
            assert!(pairs.forgotten > 90_000);
            assert_eq!(pairs.unmatched_begins, 99_999);
        }
    }
}
