//! Protocol `Publish` in one process: threads, signals and migration. What is read and what is lost is what
//! was emitted.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use std::thread;

use crate::collector::Collector;
use crate::machine::{self, Random, StopAtEnd};
use crate::publisher::Publisher;

/// Runs `writers` together with a reader. Each returns the events that it tried to emit and those reported to
/// it as lost.
fn run(publisher: &Publisher, writers: &[&(dyn Fn(u32) -> (u64, u64) + Sync)]) -> Collector {
    let done = AtomicBool::new(false);
    let (mut collector, emitted, lost) = thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut collector = Collector::new(publisher.region);
            let mut random = Random(3);
            while !done.load(Acquire) {
                collector.drain(random.below(4) != 0);
                if random.below(8) == 0 {
                    thread::yield_now();
                }
            }
            collector
        });
        let threads: Vec<_> = (1..)
            .zip(writers)
            .map(|(writer, run)| {
                scope.spawn(move || {
                    publisher.enter(writer as i32);
                    run(writer)
                })
            })
            .collect();
        let counts: Vec<_> = {
            let _done = StopAtEnd(&done); // also when a writer fails: the scope waits for the reader
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        };
        let sum = |part: fn(&(u64, u64)) -> u64| counts.iter().map(part).sum::<u64>();
        (reader.join().unwrap(), sum(|count| count.0), sum(|count| count.1))
    });
    collector.drain(true);
    assert!(collector.is_drained());
    assert_eq!(collector.lost(), lost, "the buffers count the losses that writers noticed");
    assert_eq!(collector.read + lost, emitted);
    assert!(collector.read > 0);
    collector
}

fn emit_many(publisher: &Publisher, writer: u32, count: u32) -> (u64, u64) {
    let lost = (0..count).filter(|counter| publisher.emit_any(writer, *counter).is_err()).count();
    (count.into(), lost as u64)
}

#[test]
fn threads_pinned_and_free() {
    let cpus = machine::usable_cpus();
    for (sub_buffers, bytes) in [(2, 256), (4, 512), (8, 4096), (4, 65536)] {
        let Some(publisher) = Publisher::new(sub_buffers, bytes) else { return };
        let free = |writer| emit_many(&publisher, writer, 20_000);
        let pinned = |writer: u32| {
            machine::run_on(&[cpus[writer as usize % cpus.len()]]);
            emit_many(&publisher, writer, 20_000)
        };
        run(&publisher, &[&pinned, &free, &pinned, &free]);
    }
}

#[test]
fn a_thread_that_migrates_while_it_emits() {
    let cpus = machine::usable_cpus();
    if cpus.len() < 2 {
        return tracewing_testing::skip(tracewing_testing::Cause::OneCpu, "one CPU only");
    }
    let Some(publisher) = Publisher::new(4, 1024) else { return };
    let stop = AtomicBool::new(false);
    let ids: [AtomicU64; 2] = Default::default();
    let pushed = |writer: u32| {
        ids[writer as usize - 1].store(rustix::thread::gettid().as_raw_nonzero().get() as u64, Relaxed);
        let counts = emit_many(&publisher, writer, 60_000);
        ids[writer as usize - 1].store(0, Relaxed);
        counts
    };
    let (publisher, ids, stop, cpus) = (&publisher, &ids, &stop, &cpus);
    thread::scope(|scope| {
        scope.spawn(move || {
            for round in 0.. {
                if stop.load(Relaxed) {
                    break;
                }
                for id in ids {
                    if let Some(id) = rustix::thread::Pid::from_raw(id.load(Relaxed) as i32) {
                        // The thread may have ended meanwhile.
                        let _ = machine::push(Some(id), &[cpus[round % cpus.len()]]);
                    }
                }
            }
        });
        // Also when the run fails: the scope waits for the thread above.
        let _stop = StopAtEnd(stop);
        run(publisher, &[&pushed, &pushed]);
    });
}

thread_local! {
    static PUBLISHER: Cell<*const Publisher> = const { Cell::new(std::ptr::null()) };
    static WRITER: Cell<u32> = const { Cell::new(0) };
    static EMITTED: Cell<u32> = const { Cell::new(0) };
    static LOST: Cell<u64> = const { Cell::new(0) };
}

extern "C" fn on_timer(_signal: i32) {
    // SAFETY: null, or set by the thread that the signal is sent to, whose test has not ended.
    let Some(publisher) = (unsafe { PUBLISHER.get().as_ref() }) else { return };
    let counter = EMITTED.replace(EMITTED.get() + 1);
    if publisher.emit_any(WRITER.get(), counter).is_err() {
        LOST.set(LOST.get() + 1);
    }
}

/// Sends the calling thread a signal 10,000 times a second.
fn start_timer() -> libc::timer_t {
    // SAFETY: plain data to fill in; the handler does what handlers may.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_timer as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        assert_eq!(libc::sigaction(libc::SIGUSR2, &action, std::ptr::null_mut()), 0);
        let mut event: libc::sigevent = std::mem::zeroed();
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = libc::SIGUSR2;
        event.sigev_notify_thread_id = libc::syscall(libc::SYS_gettid) as i32;
        let mut timer: libc::timer_t = std::mem::zeroed();
        assert_eq!(libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer), 0);
        let interval = libc::timespec { tv_sec: 0, tv_nsec: 100_000 };
        let times = libc::itimerspec { it_interval: interval, it_value: interval };
        assert_eq!(libc::timer_settime(timer, 0, &times, std::ptr::null_mut()), 0);
        timer
    }
}

#[test]
fn signal_handlers_emit_in_the_middle_of_events() {
    let Some(publisher) = Publisher::new(8, 1024) else { return };
    let interrupted = |writer: u32| {
        WRITER.set(writer | 1 << 31);
        PUBLISHER.set(&publisher);
        let timer = start_timer();
        let (mut emitted, mut lost) = (0, 0);
        for round in 0_u32.. {
            let first = round * 10_000;
            lost +=
                (first..first + 10_000).filter(|n| publisher.emit_any(writer, *n).is_err()).count() as u64;
            emitted += 10_000;
            if EMITTED.get() > 3000 || round == 300 {
                break;
            }
        }
        // SAFETY: the timer made above.
        unsafe { libc::timer_delete(timer) };
        PUBLISHER.set(std::ptr::null());
        assert!(EMITTED.get() > 0);
        (emitted + u64::from(EMITTED.get()), lost + LOST.get())
    };
    run(&publisher, &[&interrupted, &interrupted]);
}
