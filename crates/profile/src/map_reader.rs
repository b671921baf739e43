//! Reads perf maps without the risk that a recording hangs: a process's `/tmp` may be in a file system that
//! never answers, such as a stopped FUSE daemon's.
//!
//! A thread opens and reads the maps of a batch, one after the other. The recorder takes the results that
//! come in time. A thread that is stuck ends with the recorder; but if a daemon has taken a request and does
//! not answer, the kernel keeps the thread, and with it the recorder's process, until the daemon ends.

use std::collections::BTreeSet;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use rustix::io::Errno;

use crate::map_place::{Place, Unused};
use crate::perf_map::{Allowance, Function, functions};

/// Threads that may be stuck. Each holds the descriptors of its batch.
const MOST_STUCK: usize = 2;

/// A map, and the addresses whose functions are needed.
pub(crate) struct Request {
    pub(crate) place: Place,
    pub(crate) addresses: BTreeSet<u64>,
}

/// The functions of a map, or why it is not used.
pub(crate) type Answer = Result<Vec<Function>, Unused>;

/// What has come in time.
pub(crate) struct Answers {
    /// To the first requests, in their order.
    pub(crate) all: Vec<Answer>,
    /// The maps have more than is read of all of them.
    pub(crate) is_cut_short: bool,
}

/// Reads batches of maps.
#[derive(Default)]
pub(crate) struct MapReader {
    running: Vec<JoinHandle<()>>,
}

impl MapReader {
    /// Reads maps for at most this time.
    pub(crate) fn read(&mut self, requests: Vec<Request>, most: Duration) -> Answers {
        let mut allowance = Allowance::default();
        self.ask(requests, most, move |Request { place, addresses }| {
            let addresses: Vec<u64> = addresses.into_iter().collect();
            let functions = place.open().map(|map| functions(map, &addresses, &mut allowance));
            (functions, allowance.is_exceeded)
        })
    }

    /// No thread is stuck.
    pub(crate) fn is_idle(&self) -> bool {
        self.running.iter().all(JoinHandle::is_finished)
    }

    /// With a thread that is stuck until the sender is dropped.
    #[cfg(test)]
    pub(crate) fn stuck() -> (Self, Sender<()>) {
        let (end, gate) = channel::<()>();
        let mut reader = Self::default();
        reader.ask(vec![()], Duration::ZERO, move |()| {
            (gate.recv().map(|()| Vec::new()).or(Err(Unused::Absent)), false)
        });
        (reader, end)
    }

    fn ask<R: Send + 'static>(
        &mut self,
        requests: Vec<R>,
        most: Duration,
        mut answer: impl FnMut(R) -> (Answer, bool) + Send + 'static,
    ) -> Answers {
        let count = requests.len();
        self.running.retain(|thread| !thread.is_finished());
        if count == 0 || self.running.len() >= MOST_STUCK {
            return Answers { all: Vec::new(), is_cut_short: false };
        }
        let (sender, receiver) = channel();
        let work = move || each(requests, &sender, &mut answer);
        match Builder::new().name("perf-maps".to_owned()).spawn(work) {
            Ok(thread) => self.running.push(thread),
            Err(error) => return refused(count, &error),
        }
        collected(&receiver, count, Instant::now() + most)
    }
}

/// Answers until nothing more is waited for.
fn each<R>(requests: Vec<R>, sender: &Sender<(Answer, bool)>, answer: &mut impl FnMut(R) -> (Answer, bool)) {
    for request in requests {
        if sender.send(answer(request)).is_err() {
            return;
        }
    }
}

/// There is no thread.
fn refused(count: usize, error: &io::Error) -> Answers {
    let error = Errno::from_io_error(error).unwrap_or(Errno::AGAIN);
    let all = (0..count).map(|_| Err(Unused::Unreadable(error))).collect();
    Answers { all, is_cut_short: false }
}

fn collected(receiver: &Receiver<(Answer, bool)>, count: usize, until: Instant) -> Answers {
    let mut answers = Answers { all: Vec::new(), is_cut_short: false };
    while answers.all.len() < count {
        let Ok((answer, is_exceeded)) =
            receiver.recv_timeout(until.saturating_duration_since(Instant::now()))
        else {
            break;
        };
        answers.all.push(answer);
        answers.is_cut_short |= is_exceeded;
    }
    answers
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    #[test]
    fn answers_are_in_the_order_of_requests() {
        let root = tempfile::tempdir().unwrap();
        let map = root.path().join("tmp/perf-7.map");
        std::fs::create_dir(map.parent().unwrap()).unwrap();
        std::fs::write(&map, "10 10 name\n").unwrap();
        let request = |began| Request { place: Place::below(root.path(), began), addresses: [0x10].into() };
        let answers = MapReader::default().read(vec![request(0), request(i64::MAX)], LONG);
        let name = Function { begin: 0x10, end: 0x20, name: b"name".to_vec() };
        assert_eq!(answers.all, [Ok(vec![name]), Err(Unused::Stale)]);
        assert!(!answers.is_cut_short);
    }

    #[test]
    fn what_came_before_a_stuck_map_is_taken() {
        let (sender, receiver) = channel();
        sender.send((Err(Unused::Absent), true)).unwrap();
        let answers = collected(&receiver, 2, Instant::now());
        assert_eq!((answers.all, answers.is_cut_short), (vec![Err(Unused::Absent)], true));
    }

    #[test]
    fn stuck_threads_are_few() {
        let mut reader = MapReader::default();
        let mut opened = Vec::new();
        for _ in 0..MOST_STUCK + 1 {
            let (open, gate) = channel::<()>();
            opened.push(open);
            let stuck = move |()| {
                let _ = gate.recv();
                (Err(Unused::Absent), false)
            };
            assert_eq!(reader.ask(vec![()], Duration::ZERO, stuck).all, []);
        }
        assert_eq!(reader.running.len(), MOST_STUCK);
        drop(opened);
        reader.running.drain(..).for_each(|thread| thread.join().unwrap());
        let at_once = |()| (Err(Unused::Stale), false);
        assert_eq!(reader.ask(vec![()], LONG, at_once).all, [Err(Unused::Stale)]);
    }
}
