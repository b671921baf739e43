//! Several threads at once: each runs the loop as often, and the CPU time of all of them is added up. Schemes
//! that are not tracewing's have a buffer for each CPU, chosen by the number of the CPU that the thread runs
//! on at that moment, or one for all threads.

use super::cpu_time;
use super::events::{GEOMETRY, TwoU64};
use anyhow::{Context, Result, bail, ensure};
use baseline::Scheme;
use baseline::event::now;
use baseline::k42::K42;
use baseline::memory::Bytes;
use baseline::mutex::MutexBuffer;
use baseline::padded::Padded;
use rustix::thread::sched_getcpu;
use std::hint::black_box;
use std::sync::Barrier;
use tracewing::emit;

/// `rest` is `THREADS VARIANT`; gives nanoseconds of CPU time of all threads together.
pub fn run(count: u64, rest: &str) -> Result<u64> {
    let (threads, variant) = rest.split_once(' ').context("how many threads, and doing what?")?;
    let threads = threads.parse().context("no number of threads")?;
    ensure!((1..=1024).contains(&threads), "between 1 and 1024 threads");
    Ok(match variant {
        "rdtsc" => together(threads, count, |_, _| {
            black_box(now());
        }),
        "two_u64" => together(threads, count, |_, i| emit!(TwoU64 { first: i, second: i ^ count })),
        "buffer-mutex" => per_cpu(threads, count, || MutexBuffer::new(GEOMETRY)),
        "shared-mutex" => {
            let buffer = MutexBuffer::new(GEOMETRY);
            together(threads, count, |tid, i| buffer.log(tid, [i, i ^ count]))
        }
        "buffer-k42" => per_cpu(threads, count, || K42::new(GEOMETRY, Bytes::new(GEOMETRY))),
        other => bail!("unknown event `{other}`"),
    })
}

fn per_cpu<S: Scheme>(threads: usize, count: u64, new: impl Fn() -> S) -> u64 {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let buffers: Vec<Padded<S>> = (0..cpus).map(|_| Padded(new())).collect();
    together(threads, count, |tid, i| buffers[sched_getcpu() % cpus].0.log(tid, [i, i ^ count]))
}

fn together(threads: usize, count: u64, step: impl Fn(u32, u64) + Sync) -> u64 {
    let barrier = Barrier::new(threads);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    let tid = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
                    // A thread's first event introduces it; that is no part of what an event costs.
                    step(tid, 0);
                    barrier.wait();
                    let begin = cpu_time();
                    for i in 0..count {
                        step(tid, i);
                    }
                    cpu_time() - begin
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|p| std::panic::resume_unwind(p))).sum()
    })
}
