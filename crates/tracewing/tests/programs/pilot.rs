//! Emits numbered events on every CPU on request, for tests of flight recorders: a thread is pinned to each
//! CPU, so the expected content of a snapshot is known for that CPU to the event.
//!
//! Standard input gives the orders, a line each; standard output answers each with a line:
//!
//! | order | does | answer |
//! |---|---|---|
//! | `emit N` | every thread emits N events | the last number emitted |
//! | `fly` | every thread emits until the next order | `flying` |
//! | `count` | how many every thread has emitted by now | their numbers |
//! | `land` | ends `fly` | their numbers |
//! | `snapshot` | asks the recorder for a snapshot | its folder, or the error |
//! | `panic` | a thread panics | `panicked` |
//! | `abort` | ends the process by SIGKILL | none |
//!
//! The process ends with its standard input. If `PILOT_COUNTS` names a file, the threads count in it what
//! they have emitted, 8 bytes each, where it can be read when the process was killed.

use std::io::{BufRead, Write};
use std::os::fd::AsRawFd;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use tracewing::{Event, emit};

#[derive(Event)]
#[event(provider = "pilot")]
struct Count {
    cpu: u64,
    number: u64,
}

static LAND: AtomicBool = AtomicBool::new(false);

/// What a thread has emitted.
type Emitted = &'static AtomicU64;

struct Pilot {
    orders: Sender<u64>,
    done: Receiver<()>,
    emitted: Emitted,
}

/// CPUs that this process may use.
static CPUS: LazyLock<Vec<usize>> = LazyLock::new(|| {
    // SAFETY: an all-zero set is a valid one, and the call fills at most the size that it is given.
    let set = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        assert_eq!(libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set), 0);
        set
    };
    // SAFETY: every number is below the set's size.
    (0..libc::CPU_SETSIZE as usize).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) }).collect()
});

fn pin(cpu: usize) {
    // SAFETY: as above; the calling thread alone is moved.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        assert_eq!(libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set), 0);
    }
}

/// Counters for so many threads, which begin with 0.
fn counters(threads: usize) -> &'static [AtomicU64] {
    let Some(path) = std::env::var_os("PILOT_COUNTS") else {
        return (0..threads).map(|_| AtomicU64::new(0)).collect::<Vec<_>>().leak();
    };
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let len = threads * size_of::<AtomicU64>();
    file.set_len(len as u64).unwrap();
    let (access, fd) = (libc::PROT_READ | libc::PROT_WRITE, file.as_raw_fd());
    // SAFETY: the file has this length, nothing makes it shorter, and what is mapped stays so. The kernel
    // gives it the alignment of a page. Only atomic accesses are made to it.
    unsafe {
        let memory = libc::mmap(std::ptr::null_mut(), len, access, libc::MAP_SHARED, fd, 0);
        assert_ne!(memory, libc::MAP_FAILED);
        std::slice::from_raw_parts(memory.cast(), threads)
    }
}

impl Pilot {
    /// An order is a number of events, or `u64::MAX` for as many as fit until `LAND`.
    fn start(cpu: usize, emitted: Emitted) -> Self {
        let ((orders, next), (finished, done)) = (mpsc::channel(), mpsc::channel());
        let counter = emitted;
        let work = move || {
            pin(cpu);
            for order in next {
                let end = counter.load(Relaxed).saturating_add(order);
                let mut number = counter.load(Relaxed);
                while number < end && !(order == u64::MAX && LAND.load(Relaxed)) {
                    number += 1;
                    emit!(Count { cpu: cpu as u64, number });
                    counter.store(number, Release); // with `numbers`: the event is in the buffer
                }
                finished.send(()).unwrap();
            }
        };
        thread::Builder::new().name("pilot".to_owned()).spawn(work).unwrap();
        Self { orders, done, emitted }
    }
}

fn numbers(pilots: &[Pilot]) -> String {
    let numbers = pilots.iter().map(|pilot| pilot.emitted.load(Acquire).to_string());
    numbers.collect::<Vec<_>>().join(" ")
}

fn main() {
    tracewing::snapshot_on_panic();
    let pilots: Vec<Pilot> =
        CPUS.iter().zip(counters(CPUS.len())).map(|(cpu, emitted)| Pilot::start(*cpu, emitted)).collect();
    let order = |count: u64| pilots.iter().for_each(|pilot| pilot.orders.send(count).unwrap());
    let wait = || pilots.iter().for_each(|pilot| pilot.done.recv().unwrap());
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let answer = match line.split_once(' ').unwrap_or((&line, "")) {
            ("emit", count) => {
                order(count.parse().unwrap());
                wait();
                numbers(&pilots)
            }
            ("fly", _) => {
                LAND.store(false, Relaxed);
                order(u64::MAX);
                "flying".to_owned()
            }
            ("count", _) => numbers(&pilots),
            ("land", _) => {
                LAND.store(true, Relaxed);
                wait();
                numbers(&pilots)
            }
            ("snapshot", _) => match tracewing::snapshot() {
                Ok(folder) => folder.display().to_string(),
                Err(error) => error.to_string(),
            },
            ("panic", _) => {
                assert!(thread::spawn(|| panic!("mayday")).join().is_err());
                "panicked".to_owned()
            }
            ("abort", _) => {
                // SAFETY: ends this process.
                unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
                unreachable!()
            }
            other => panic!("no order: {other:?}"),
        };
        println!("{answer}");
        std::io::stdout().flush().unwrap();
    }
}
