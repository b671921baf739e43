//! Times single events: the clock is read before and after each, with fences, so that the whole event is
//! included. Page faults are the kernel's count for this thread. System calls are caught by Syscall User
//! Dispatch (prctl(2), Linux 5.11): while a byte in this program's memory says so, the kernel turns each into
//! a signal, whose handler counts it and makes the call. This costs nothing as long as there are no system
//! calls.

use super::events::{TwoU64, fenced_time};
use anyhow::{Context, Result, bail};
use std::cell::Cell;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use tracewing::emit;

/// Read by the kernel at each system call.
static SELECTOR: AtomicU8 = AtomicU8::new(ALLOW);
const ALLOW: u8 = 0; // SYSCALL_DISPATCH_FILTER_ALLOW
const BLOCK: u8 = 1; // SYSCALL_DISPATCH_FILTER_BLOCK
/// Events in which there was a system call. The handler lets everything pass until the next event.
static CAUGHT: AtomicU64 = AtomicU64::new(0);

/// Times `count` events, or nothing as often, and writes a sample for each, in cycles, as `u32`s to `path`.
///
/// Gives page faults and events with system calls: in the first event, then in all others.
pub fn run(count: u64, path: &str, emitting: bool) -> Result<String> {
    let count = usize::try_from(count)?;
    // Not zero: pages that have been written to are there.
    let mut samples = vec![u32::MAX; count];
    let file = File::create(path).with_context(|| format!("cannot create {path}"))?;
    catch_system_calls()?;
    let (first, rest) = samples.split_at_mut(count.min(1));
    let beginning = if emitting { sample(first, emit_one) } else { sample(first, |_| ()) };
    let remainder = if emitting { sample(rest, emit_one) } else { sample(rest, |_| ()) };
    let mut file = BufWriter::new(file);
    for sample in &samples {
        file.write_all(&sample.to_le_bytes())?;
    }
    file.flush()?;
    Ok(format!("{} {} {} {}", beginning.0, beginning.1, remainder.0, remainder.1))
}

#[inline(always)]
fn emit_one(i: u64) {
    emit!(TwoU64 { first: i, second: !i });
}

/// Page faults and events with system calls.
#[inline(never)]
fn sample(samples: &mut [u32], step: impl Fn(u64)) -> (u64, u64) {
    CAUGHT.store(0, Relaxed);
    let before = page_faults();
    for (i, sample) in samples.iter_mut().enumerate() {
        SELECTOR.store(BLOCK, Relaxed);
        let begin = fenced_time();
        step(i as u64);
        let end = fenced_time();
        *sample = u32::try_from(end.wrapping_sub(begin)).unwrap_or(u32::MAX);
    }
    SELECTOR.store(ALLOW, Relaxed);
    (page_faults() - before, CAUGHT.load(Relaxed))
}

fn page_faults() -> u64 {
    // SAFETY: all-zero is a value of this struct of integers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: it gets room for its answer.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    (usage.ru_minflt + usage.ru_majflt).unsigned_abs()
}

/// Has the kernel turn this thread's system calls into SIGSYS where [`SELECTOR`] says so.
fn catch_system_calls() -> Result<()> {
    thread_local!(static CATCHING: Cell<bool> = const { Cell::new(false) });
    if CATCHING.replace(true) {
        return Ok(());
    }
    // SAFETY: all-zero is a value of this struct: no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = caught as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO;
    // SAFETY: the handler makes one system call and changes two static atomics: async-signal-safe.
    if unsafe { libc::sigaction(libc::SIGSYS, &raw const action, std::ptr::null_mut()) } != 0 {
        bail!("cannot handle SIGSYS: {}", std::io::Error::last_os_error());
    }
    const PR_SET_SYSCALL_USER_DISPATCH: i32 = 59;
    const PR_SYS_DISPATCH_ON: usize = 1;
    let selector = SELECTOR.as_ptr();
    // SAFETY: the byte is static, and permanently readable. No range of code is exempt.
    if unsafe { libc::prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 0usize, 0usize, selector) } != 0
    {
        bail!("cannot catch system calls (Linux 5.11 can): {}", std::io::Error::last_os_error());
    }
    Ok(())
}

/// Counts the system call that was held back, and makes it. Everything passes from then on, the handler's
/// return included, until the next event.
extern "C" fn caught(_: i32, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    SELECTOR.store(ALLOW, Relaxed);
    CAUGHT.fetch_add(1, Relaxed);
    // SAFETY: with SA_SIGINFO, the third argument points to the interrupted context, which is this handler's
    // to change.
    let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    let mut result = registers[libc::REG_RAX as usize];
    // SAFETY: the very call, with the very arguments, that the interrupted code was about to make (the
    // kernel's calling convention: number in rax, arguments in rdi, rsi, rdx, r10, r8, r9).
    unsafe {
        std::arch::asm!(
            "syscall",
            inout("rax") result,
            in("rdi") registers[libc::REG_RDI as usize],
            in("rsi") registers[libc::REG_RSI as usize],
            in("rdx") registers[libc::REG_RDX as usize],
            in("r10") registers[libc::REG_R10 as usize],
            in("r8") registers[libc::REG_R8 as usize],
            in("r9") registers[libc::REG_R9 as usize],
            out("rcx") _,
            out("r11") _,
            options(nostack),
        );
    }
    registers[libc::REG_RAX as usize] = result;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_with_a_system_call_is_noticed_and_the_call_is_made() {
        if let Err(error) = catch_system_calls() {
            eprintln!("skipped: {error}");
            return;
        }
        let process = std::process::id();
        let call = |i| {
            if i % 2 == 0 {
                // SAFETY: getpid has no arguments and changes nothing.
                let answer = unsafe { libc::syscall(libc::SYS_getpid) };
                assert_eq!(answer, i64::from(process));
            }
        };
        assert_eq!(sample(&mut [0; 5], call).1, 3);
        assert_eq!(sample(&mut [0; 5], |_| ()).1, 0);
    }
}
