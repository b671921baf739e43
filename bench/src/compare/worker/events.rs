//! One thread: emits events of one kind in a loop, into tracewing's buffers or a baseline's, or does what the
//! papers compare with: reads the clock, swaps, locks.

use super::cpu_time;
use anyhow::{Result, bail};
use baseline::Scheme;
use baseline::cas::{CasBuffer, Local, Locked, Operations};
use baseline::event::now;
use baseline::geometry::Geometry;
use baseline::k42::K42;
use baseline::memory::Bytes;
use baseline::mutex::MutexBuffer;
use baseline::seqlock::SeqlockBuffer;
use std::hint::black_box;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};
use tracewing::{Event, emit};

/// The size of every buffer in the comparison: 4 sub-buffers of 1 MiB.
pub const GEOMETRY: Geometry = Geometry::new(4, 1 << 20);

/// The event that all sides emit.
#[derive(Event)]
pub struct TwoU64 {
    pub first: u64,
    pub second: u64,
}

/// The same, stamped after a fence.
#[derive(Event)]
#[event(ordered)]
struct TwoU64Ordered {
    first: u64,
    second: u64,
}

#[derive(Event)]
struct Bytes16 {
    payload: [u8; 16],
}

#[derive(Event)]
struct Bytes64 {
    payload: [u8; 64],
}

#[derive(Event)]
struct Bytes256 {
    payload: [u8; 256],
}

#[derive(Event)]
struct Text<'a> {
    text: &'a str,
}

/// A buffer of each scheme.
pub struct Baselines {
    mutex: MutexBuffer,
    seqlock: SeqlockBuffer,
    local: CasBuffer<Local>,
    locked: CasBuffer<Locked>,
    k42: K42<Bytes>,
}

impl Baselines {
    fn new() -> Self {
        Self {
            mutex: MutexBuffer::new(GEOMETRY),
            seqlock: SeqlockBuffer::new(GEOMETRY),
            local: CasBuffer::new(GEOMETRY),
            locked: CasBuffer::new(GEOMETRY),
            k42: K42::new(GEOMETRY, Bytes::new(GEOMETRY)),
        }
    }
}

/// Nanoseconds of CPU time that `count` times `variant` take. Baselines are made when one is first asked for.
pub fn measure(variant: &str, count: u64, baselines: &mut Option<Baselines>) -> Result<u64> {
    if let Some(scheme) = variant.strip_prefix("buffer-") {
        return log(scheme, count, baselines.get_or_insert_with(Baselines::new));
    }
    Ok(match variant {
        "rdtsc" => time(count, |_| {
            black_box(now());
        }),
        "lfence-rdtsc" => time(count, |_| {
            black_box(fenced_time());
        }),
        "local-cas" => exchange::<Local>(count),
        "locked-cas" => exchange::<Locked>(count),
        "mutex" => {
            let mutex = black_box(Mutex::new(0));
            time(count, |i| *mutex.lock().unwrap_or_else(PoisonError::into_inner) = i)
        }
        "two_u64" => time(count, |i| emit!(TwoU64 { first: i, second: i ^ count })),
        "ordered" => time(count, |i| emit!(TwoU64Ordered { first: i, second: i ^ count })),
        "bytes16" => {
            let payload = black_box([1; 16]);
            time(count, |_| emit!(Bytes16 { payload }))
        }
        "bytes64" => {
            let payload = black_box([1; 64]);
            time(count, |_| emit!(Bytes64 { payload }))
        }
        "bytes256" => {
            let payload = black_box([1; 256]);
            time(count, |_| emit!(Bytes256 { payload }))
        }
        "string" => {
            let text = black_box("twenty bytes of text");
            time(count, |_| emit!(Text { text }))
        }
        other => bail!("unknown event `{other}`"),
    })
}

fn log(scheme: &str, count: u64, baselines: &Baselines) -> Result<u64> {
    let tid = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
    Ok(match scheme {
        "mutex" => time(count, |i| baselines.mutex.log(tid, [i, i ^ count])),
        "seqlock" => time(count, |i| baselines.seqlock.log(tid, [i, i ^ count])),
        "local-cas" => time(count, |i| baselines.local.log(tid, [i, i ^ count])),
        "locked-cas" => time(count, |i| baselines.locked.log(tid, [i, i ^ count])),
        "k42" => time(count, |i| baselines.k42.log(tid, [i, i ^ count])),
        other => bail!("unknown scheme `{other}`"),
    })
}

fn exchange<O: Operations>(count: u64) -> u64 {
    let word = black_box(AtomicU64::new(0));
    time(count, |i| {
        black_box(O::exchange(&word, i, i + 1));
    })
}

/// The floor of an ordered event: no earlier instruction is still running when the clock is read.
#[inline(always)]
pub fn fenced_time() -> u64 {
    // SAFETY: every x86-64 processor has the instruction.
    unsafe { std::arch::x86_64::_mm_lfence() };
    now()
}

#[inline(always)]
fn time(count: u64, mut step: impl FnMut(u64)) -> u64 {
    let begin = cpu_time();
    for i in 0..count {
        step(i);
    }
    cpu_time() - begin
}
