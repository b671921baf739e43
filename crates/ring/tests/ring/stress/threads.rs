//! Threads and signal handlers of one process write; another thread reads.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::*};
use std::thread;

use tracewing_abi::region::{Mode, Protocol};

use crate::books::{Book, Books, EVENTS, Totals};
use crate::collector::{Collector, Gap};
use crate::emitter::{Emitter, Shape};
use crate::events::{LARGE, PINNED};
use crate::machine::{self, Random, StopAtEnd};
use crate::snapshots::Snapshots;

/// Contexts that write for one thread: the thread itself, and handlers that interrupt it and each other.
pub const LEVELS: usize = 4;

#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// Determines everything that the scheduler does not.
    pub seed: u64,
    pub threads: usize,
    /// Events per thread.
    pub each: u32,
    /// Whether events are so large that two fill a sub-buffer of 256 bytes.
    pub is_large: bool,
    /// Whether signals arrive at 10 kHz; their handlers emit too.
    pub has_signals: bool,
    /// Whether all threads are moved from CPU to CPU all the time; otherwise every other thread stays on one.
    pub is_pushed: bool,
    /// Whether CPUs go offline and come back meanwhile: then no thread stays anywhere.
    pub has_hotplug: bool,
    pub reading: Reading,
}

/// What a reader does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// Reads and releases.
    Consume,
    /// The same, and a new reader now and then replaces it.
    Restart,
    /// Takes snapshots (overwrite mode).
    Snapshots,
}

impl Load {
    /// A random load that suits the shape.
    pub fn any(shape: Shape, random: &mut Random, each: u32) -> Self {
        let reading = match random.below(4) {
            0 => Reading::Restart,
            1 if shape.mode == Mode::Overwrite => Reading::Snapshots,
            _ => Reading::Consume,
        };
        Self {
            seed: random.next(),
            threads: 1 + random.below(if shape.protocol == Protocol::Local { 2 } else { 6 }),
            each,
            is_large: random.one_in(3),
            has_signals: random.one_in(2),
            is_pushed: shape.protocol != Protocol::Local && random.one_in(3),
            has_hotplug: false,
            reading,
        }
    }
}

/// A thread's part.
#[derive(Clone, Copy)]
struct Part<'a> {
    emitter: &'a Emitter,
    books: [&'a Book; LEVELS],
    /// The CPU whose buffer to use (`Smp`, `Local`); that of the current CPU if `None`.
    buffer: Option<usize>,
}

impl Part<'_> {
    fn emit(&self, level: usize) -> bool {
        self.books[level].emit(self.emitter, self.buffer.unwrap_or_else(machine::current_cpu))
    }
}

/// Runs the load; `None` where the machine lacks what the protocol needs.
pub fn run(shape: Shape, load: Load) -> Option<Totals> {
    let emitter = Emitter::new(shape)?;
    let books = Books::new();
    let cpus = machine::usable_cpus();
    // A `Local` buffer belongs to one thread.
    let threads = if shape.protocol == Protocol::Local { load.threads.min(cpus.len()) } else { load.threads };
    let parts: Vec<_> = (0..threads)
        .map(|index| {
            // With `Publish` the CPU determines the buffer; with the others the event goes to the given one.
            let roams = load.is_pushed || load.has_hotplug && shape.protocol == Protocol::Publish;
            let stays = shape.protocol == Protocol::Local || !roams && index % 2 == 0;
            let cpu = cpus[index % cpus.len()];
            let style = if load.is_large { LARGE } else { 0 } | if stays { PINNED } else { 0 };
            let book =
                |level| books.open(index * LEVELS + level, style | (1 + index * LEVELS + level) as u32);
            let emitter = &emitter;
            (Part { emitter, books: std::array::from_fn(book), buffer: stays.then_some(cpu) }, stays, cpu)
        })
        .collect();
    let done = AtomicBool::new(false);
    let ids: Vec<AtomicI32> = parts.iter().map(|_| AtomicI32::new(0)).collect();
    let (mut collector, snapshots, gaps) = thread::scope(|scope| {
        let reader = scope.spawn(|| read(&emitter, load, &done));
        if load.is_pushed {
            scope.spawn(|| push_around(&ids, &cpus, &done));
        }
        let stop = StopAtEnd(&done);
        let writers: Vec<_> = parts
            .iter()
            .zip(&ids)
            .map(|((part, stays, cpu), id)| {
                scope.spawn(move || write(*part, load, stays.then_some(*cpu), id))
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        drop(stop);
        reader.join().unwrap()
    });
    collector.drain(true);
    assert!(collector.is_drained());
    assert!(collector.read > 0);
    let totals = books.balance(&collector, 0, 0);
    books.explain(gaps.into_iter());
    Some(Totals { snapshots, ..totals })
}

fn read(emitter: &Emitter, load: Load, done: &AtomicBool) -> (Collector, u64, Vec<Gap>) {
    let mut random = Random(load.seed ^ 1);
    let region = emitter.region();
    if load.reading == Reading::Snapshots {
        let mut snapshots = Snapshots::new(region);
        while !done.load(Acquire) {
            snapshots.take();
            thread::yield_now();
        }
        snapshots.finish();
        return (Collector::rewound(region), snapshots.taken(), snapshots.gaps().collect());
    }
    let mut collector = Collector::new(region);
    while !done.load(Acquire) {
        let cpu = random.below(region.geometry().cpus());
        collector.drain_cpu(cpu, !random.one_in(3));
        if load.reading == Reading::Restart && random.one_in(8) {
            collector.restart(cpu);
        }
        if random.one_in(8) {
            thread::yield_now();
        }
    }
    (collector, 0, Vec::new())
}

fn push_around(ids: &[AtomicI32], cpus: &[usize], done: &AtomicBool) {
    for round in 0.. {
        if done.load(Acquire) {
            return;
        }
        for id in ids {
            if let Some(id) = rustix::thread::Pid::from_raw(id.load(Relaxed)) {
                let _ = machine::push(Some(id), &[cpus[round % cpus.len()]]); // it may have ended
            }
        }
    }
}

fn write(part: Part<'_>, load: Load, stays_on: Option<usize>, id: &AtomicI32) {
    part.emitter.enter(part.books[0].writer.load(Relaxed));
    if let Some(cpu) = stays_on {
        let _ = machine::push(None, &[cpu]); // it may be gone
    }
    id.store(rustix::thread::gettid().as_raw_nonzero().get(), Relaxed);
    let signals = load.has_signals.then(|| Signals::start(part));
    let may_switch = part.emitter.shape().protocol != Protocol::Publish;
    for counter in 0..load.each.min(EVENTS) {
        part.emit(0);
        if may_switch && counter % 1024 == 77 {
            part.emitter.force_switch(part.buffer.unwrap_or_else(machine::current_cpu));
        }
    }
    drop(signals);
    id.store(0, Relaxed);
}

thread_local! {
    static INTERRUPTED: Cell<*const Part<'static>> = const { Cell::new(std::ptr::null()) };
}

extern "C" fn on_signal(signal: i32) {
    // SAFETY: null, or what `Signals` has set for the thread that the signal is sent to, and still owns.
    if let Some(part) = unsafe { INTERRUPTED.get().as_ref() } {
        part.emit((signal - libc::SIGRTMIN()) as usize + 1);
    }
}

/// Timers of the calling thread, each sending a signal of its own 10,000 times a second. The handlers
/// interrupt each other.
pub struct Signals {
    timers: Vec<libc::timer_t>,
    _part: Box<Part<'static>>,
}

impl Signals {
    fn start(part: Part<'_>) -> Self {
        // SAFETY: the handlers see it only while `Signals` lives, which ends before what the part refers to.
        let part: Box<Part<'static>> =
            Box::new(unsafe { std::mem::transmute::<Part<'_>, Part<'static>>(part) });
        INTERRUPTED.set(&*part);
        let timers = (0..LEVELS as i32 - 1).map(|level| start_timer(libc::SIGRTMIN() + level)).collect();
        Self { timers, _part: part }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for timer in &self.timers {
            // SAFETY: a timer of `start`, deleted once.
            unsafe { libc::timer_delete(*timer) };
        }
        INTERRUPTED.set(std::ptr::null());
    }
}

fn start_timer(signal: i32) -> libc::timer_t {
    // SAFETY: plain data to fill in; the handler does what handlers may.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        assert_eq!(libc::sigaction(signal, &action, std::ptr::null_mut()), 0);
        let mut event: libc::sigevent = std::mem::zeroed();
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = signal;
        event.sigev_notify_thread_id = rustix::thread::gettid().as_raw_nonzero().get();
        let mut timer: libc::timer_t = std::mem::zeroed();
        assert_eq!(libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer), 0);
        let interval = libc::timespec { tv_sec: 0, tv_nsec: 100_000 };
        let times = libc::itimerspec { it_interval: interval, it_value: interval };
        assert_eq!(libc::timer_settime(timer, 0, &times, std::ptr::null_mut()), 0);
        timer
    }
}
