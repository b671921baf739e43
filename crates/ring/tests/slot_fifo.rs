//! The slot FIFO as its users see it: against a plain queue, under threads, and with signal handlers as
//! writers. `loom/slot_fifo.rs` checks the orders of memory accesses.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use std::thread;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use tracewing_ring::slot_fifo::SlotFifo;

#[derive(Debug, Clone, Copy)]
enum Step {
    Push(u8),
    Pop,
    NewReader,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step =
        prop_oneof![4 => any::<u8>().prop_map(Step::Push), 3 => Just(Step::Pop), 1 => Just(Step::NewReader)];
    prop::collection::vec(step, 0..200)
}

/// Applies `steps` to a queue of `N` slots and to a plain one.
fn same_as_a_plain_queue<const N: usize>(steps: &[Step]) {
    let witness = Arc::new(());
    let fifo = SlotFifo::<(u8, Arc<()>), N>::new();
    let mut plain = VecDeque::new();
    let (mut failed, mut reader) = (0, fifo.reader().unwrap());
    for step in steps {
        match *step {
            Step::Push(value) if plain.len() < N => {
                fifo.try_push((value, witness.clone())).unwrap();
                plain.push_back(value);
            }
            Step::Push(value) => {
                assert_eq!(fifo.try_push((value, witness.clone())).unwrap_err().0, value);
                failed += 1;
            }
            Step::Pop => assert_eq!(reader.pop().map(|(value, _)| value), plain.pop_front()),
            Step::NewReader => {
                assert!(fifo.reader().is_none(), "one reader at a time");
                drop(reader);
                reader = fifo.reader().unwrap();
            }
        }
        assert_eq!((fifo.failed(), reader.failed()), (failed, failed));
        assert_eq!(Arc::strong_count(&witness), 1 + plain.len(), "each value exists once");
    }
    drop(reader);
    drop(fifo);
    assert_eq!(Arc::strong_count(&witness), 1, "what was left is dropped");
}

proptest! {
    #[test]
    fn a_plain_queue(steps in steps()) {
        same_as_a_plain_queue::<1>(&steps);
        same_as_a_plain_queue::<2>(&steps);
        same_as_a_plain_queue::<16>(&steps);
    }
}

#[test]
fn a_leaked_reader_does_not_leak_the_values() {
    let witness = Arc::new(());
    let fifo = SlotFifo::<Arc<()>, 4>::new();
    std::mem::forget(fifo.reader());
    fifo.try_push(witness.clone()).unwrap();
    drop(fifo);
    assert_eq!(Arc::strong_count(&witness), 1);
}

/// A value that shows when it is torn.
#[derive(Debug, Clone, Copy)]
struct Message {
    writer: u64,
    number: u64,
    proof: [u64; 6],
}

impl Message {
    fn new(writer: u64, number: u64) -> Self {
        Self { writer, number, proof: [(writer << 32 | number).wrapping_mul(0x9e37_79b9_7f4a_7c15); 6] }
    }
}

/// Checks and counts what comes out: whole values, and each writer's in its order.
#[derive(Default)]
struct Checked {
    next: [u64; 8],
    popped: u64,
}

impl Checked {
    fn check(&mut self, message: Message) {
        let Message { writer, number, proof } = message;
        assert_eq!(proof, Message::new(writer, number).proof, "torn: {message:?}");
        let next = &mut self.next[writer as usize];
        assert!(number >= *next, "out of order, or twice: {message:?}, expected at least {next}");
        *next = number + 1;
        self.popped += 1;
    }
}

#[test]
fn threads() {
    const WRITERS: u64 = 4;
    const EACH: u64 = 200_000;
    let fifo = SlotFifo::<Message, 8>::new();
    let mut checked = Checked::default();
    let mut reader = fifo.reader().unwrap();
    thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let fifo = &fifo;
                scope.spawn(move || {
                    (0..EACH).filter(|number| fifo.try_push(Message::new(writer, *number)).is_err()).count()
                        as u64
                })
            })
            .collect();
        while !writers.iter().all(thread::ScopedJoinHandle::is_finished) {
            while let Some(message) = reader.pop() {
                checked.check(message);
            }
            thread::yield_now();
        }
        let failures: u64 = writers.into_iter().map(|writer| writer.join().unwrap()).sum();
        assert_eq!(fifo.failed(), failures);
    });
    while let Some(message) = reader.pop() {
        checked.check(message);
    }
    assert!(checked.popped > 0);
    assert_eq!(checked.popped + fifo.failed(), WRITERS * EACH);
    // All slots are free again.
    (0..8).for_each(|number| fifo.try_push(Message::new(0, number)).unwrap());
}

static FROM_SIGNALS: SlotFifo<Message, 16> = SlotFifo::new();
static HANDLED: AtomicU64 = AtomicU64::new(0);

extern "C" fn push_from_handler(_: libc::c_int) {
    let number = HANDLED.fetch_add(1, Relaxed);
    let _ = FROM_SIGNALS.try_push(Message::new(1, number));
}

/// One thread pushes and pops as fast as it can; signals interrupt it anywhere, and push.
#[test]
fn signal_handlers() {
    let (stop, pushed) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut checked = Checked::default();
    // SAFETY: a handler that calls only `try_push`, which a signal handler may call, at a signal that nothing
    // else in this program uses.
    unsafe {
        let handler = push_from_handler as extern "C" fn(libc::c_int);
        libc::signal(libc::SIGUSR1, handler as libc::sighandler_t);
    }
    // SAFETY: no arguments.
    let worker = unsafe { libc::pthread_self() } as usize;
    thread::scope(|scope| {
        scope.spawn(|| {
            let end = Instant::now() + Duration::from_secs(2);
            while Instant::now() < end {
                // SAFETY: the thread of the test function, which waits for this one.
                unsafe { libc::pthread_kill(worker as libc::pthread_t, libc::SIGUSR1) };
                thread::sleep(Duration::from_micros(20));
            }
            stop.store(true, Relaxed);
        });
        let mut reader = FROM_SIGNALS.reader().unwrap();
        for number in 0.. {
            if stop.load(Relaxed) {
                break;
            }
            let _ = FROM_SIGNALS.try_push(Message::new(0, number));
            pushed.store(number + 1, Relaxed);
            if number % 3 != 0 {
                while let Some(message) = reader.pop() {
                    checked.check(message);
                }
            }
        }
    });
    let mut reader = FROM_SIGNALS.reader().unwrap();
    while let Some(message) = reader.pop() {
        checked.check(message);
    }
    let handled = HANDLED.load(Relaxed);
    assert!(handled > 100, "signals arrived: {handled}");
    assert_eq!(checked.popped + FROM_SIGNALS.failed(), pushed.load(Relaxed) + handled);
}
