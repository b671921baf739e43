//! The peers' side of the benchmark's protocol: a line `VARIANT COUNT` on standard input makes a peer emit
//! COUNT events; it answers with the nanoseconds of CPU time that its thread took for all of them. It ends
//! with its input. Its argument is the CPU that this thread must stay on; the tracer may start other threads
//! on any CPU.

use std::io::{self, BufRead, Write};
use std::mem::size_of_val;

/// Obeys orders until the input ends. `emit` gets the variant and the count, and says whether it knows the
/// variant.
pub fn obey(mut emit: impl FnMut(&str, u64) -> bool) -> io::Result<()> {
    stay_on(std::env::args().nth(1).and_then(|cpu| cpu.parse().ok()))?;
    let mut output = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let line = line?;
        let order = line.split_once(' ').and_then(|(name, count)| Some((name, count.parse().ok()?)));
        let Some((variant, count)) = order else {
            return Err(io::Error::other(format!("`{line}` is no order")));
        };
        let begin = cpu_time();
        if !emit(variant, count) {
            return Err(io::Error::other(format!("unknown event `{variant}`")));
        }
        writeln!(output, "{}", cpu_time() - begin)?;
        output.flush()?;
    }
    Ok(())
}

/// Confines the calling thread to a CPU.
fn stay_on(cpu: Option<usize>) -> io::Result<()> {
    let Some(cpu) = cpu else { return Err(io::Error::other("the first argument is the CPU to stay on")) };
    let mut cpus = [0_u64; 16];
    *cpus.get_mut(cpu / 64).ok_or_else(|| io::Error::other("no such CPU"))? |= 1 << (cpu % 64);
    // SAFETY: the set is as large as it is said to be; 0 is the calling thread.
    if unsafe { libc::sched_setaffinity(0, size_of_val(&cpus), (&raw const cpus).cast()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// The thread's CPU time in nanoseconds.
fn cpu_time() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: it gets room for its answer; the clock is there in every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
