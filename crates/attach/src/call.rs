//! Borrows a thread: stops it, has it call the entry, restores it.
//!
//! Each step leaves the thread in a state from which it continues by itself if the recorder is killed:
//!
//! | step | the thread alone would |
//! |---|---|
//! | stopped; block written below its red zone | continue its call |
//! | registers set to the entry | make the call, restore itself from the block |
//! | all signals blocked | likewise, and restore its mask |
//! | at the entry's last call, which is made to fail | find that it has failed, and make it again |
//! | mask restored | restore its registers from the block |
//! | registers restored | continue its call |

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tracewing_abi::attach::{BUSY, NOT_READY, RED_ZONE, Saved, UNFINISHED, VECTORS};
use tracewing_programs::image::Process;
use tracewing_units::Pid;

use crate::alarm::Alarm;
use crate::asleep::Asleep;
use crate::filter::{self, SystemCall};
use crate::restart::{Restart, alone, restart, resumed};
use crate::status::{Sleeping, Status};
use crate::threads::{Candidate, Rank, candidates, rank, threads};
use crate::tracee::{NoStop, Registers, Stop, Tracee, is_64_bit};
use crate::turn::{self, Turn};
use crate::{Refusal, Target};

/// How long a thread may take to stop, which has slept in a system call.
const STOPPING: Duration = Duration::from_millis(100);
/// Time between two looks for a thread.
const LOOK: Duration = Duration::from_millis(5);
/// How long a borrowed thread may take for the call.
const CALLING: Duration = Duration::from_secs(2);
/// All signals that can be blocked.
const ALL: u64 = u64::MAX;
/// Size of a signal set with which `rt_sigprocmask` does nothing but fail.
const NO_SIZE: u64 = 0;
/// Flags at a function's entry: interrupts on, which user space cannot change, and nothing else.
const CLEAR_FLAGS: u64 = 0x202;

/// A call that was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Called {
    /// What the function returned.
    pub result: i64,
    /// The thread that made it.
    pub tid: i32,
    /// For how long that thread was stopped; no other thread was.
    pub stopped: Duration,
    /// How many filters for system calls it has, all of which let through what is to be called.
    pub filters: usize,
}

/// What became of a thread that was to be borrowed.
enum Borrowed {
    Called(Called),
    /// It could not be, another may.
    Unfit,
    /// It has not stopped in time.
    Late,
}

impl Target {
    /// Has one of the process's threads call the function of `entry`, the address of an entry that it
    /// contains (`tracewing_abi::attach`). A thread is looked for as long as `patience` says; `calls` are the
    /// system calls that the function makes, and what it starts.
    ///
    /// # Errors
    /// Why there was no call. The process runs as before.
    pub fn call(&self, entry: u64, calls: &[SystemCall], patience: Duration) -> Result<Called, Refusal> {
        if vectors().is_none_or(|bytes| bytes > VECTORS) {
            let why = "this processor's vector registers cannot be saved";
            return Err(Refusal::Unsupported { pid: self.pid(), why });
        }
        let begin = Instant::now();
        let mut late = Vec::new();
        loop {
            // The kernel ties tracees to a thread, and lets them go when it ends.
            let tracer = || {
                turn::hurry();
                self.borrow_one(entry, calls, begin, patience, &mut late)
            };
            let called =
                std::thread::scope(|scope| match std::thread::Builder::new().spawn_scoped(scope, tracer) {
                    Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                    Err(source) => Err(Refusal::System { pid: self.pid(), call: "clone", source }),
                })?;
            if let Some(called) = called {
                return Ok(called);
            }
        }
    }

    /// `None` if the calling thread has to end, since a thread has not stopped in time. That one joins those
    /// that are `late`, which are not tried again: it may stop at any later moment, and where it ends, its
    /// process cannot end before its tracer has let it go.
    fn borrow_one(
        &self,
        entry: u64,
        calls: &[SystemCall],
        begin: Instant,
        patience: Duration,
        late: &mut Vec<i32>,
    ) -> Result<Option<Called>, Refusal> {
        let pid = self.pid();
        loop {
            // The threads of one that has ended are there until its parent has collected it.
            let threads = threads(pid).filter(|_| self.is_alive()).ok_or(Refusal::Gone(pid))?;
            let candidates = candidates(pid, self.pidfd(), &threads).map_err(|_| self.not_permitted())?;
            for candidate in candidates.into_iter().filter(|candidate| !late.contains(&candidate.tid)) {
                match self.borrow(candidate, entry, calls)? {
                    Borrowed::Called(called) => return Ok(Some(called)),
                    Borrowed::Unfit => {}
                    Borrowed::Late => {
                        late.push(candidate.tid);
                        return Ok(None);
                    }
                }
            }
            if begin.elapsed() >= patience {
                let seconds = begin.elapsed().as_secs_f64();
                return Err(Refusal::Busy { pid, threads: threads.len(), seconds });
            }
            std::thread::sleep(LOOK);
        }
    }

    fn borrow(&self, candidate: Candidate, entry: u64, calls: &[SystemCall]) -> Result<Borrowed, Refusal> {
        let Candidate { tid, rank: expected } = candidate;
        let process = Process::open(Pid(self.pid())).map_err(|_| self.not_permitted())?;
        let asleep = if expected == Rank::TimedEvents { Asleep::read(self.pid(), tid) } else { None };
        let mut stop_time = StopTime { begin: None, longest: self.longest() };
        let tracee = match Tracee::seize(tid) {
            Ok(tracee) => tracee,
            Err(error) => return self.not_seized(tid, &error),
        };
        let alarm = Alarm::after(STOPPING).map_err(self.failed("timer_create"))?;
        let turn = Turn::short(tid);
        let begin = Instant::now();
        tracee.interrupt().map_err(self.failed("PTRACE_INTERRUPT"))?;
        let stop = match tracee.wait(begin + STOPPING) {
            Ok(stop) => stop,
            Err(NoStop::Ended) => return Ok(Borrowed::Unfit),
            Err(NoStop::Late) => return Ok(Borrowed::Late),
        };
        stop_time.begin = Some(begin);
        if stop != Stop::Interrupted {
            return Ok(Borrowed::Unfit);
        }
        let slept = asleep.filter(|asleep| asleep.lasted(self.pid(), tid)).map(|asleep| asleep.slept);
        let registers = tracee.registers().map_err(self.failed("PTRACE_GETREGS"))?;
        let Some(restart) = self.fitness(&registers, tid, &process)? else { return Ok(Borrowed::Unfit) };
        let is_filtered = Status::of_thread(self.pid(), tid).is_none_or(|status| status.seccomp != 0);
        let filters = if is_filtered { self.check_filters(&tracee, calls)? } else { 0 };
        drop(alarm);
        let _alarm = Alarm::after(CALLING).map_err(self.failed("timer_create"))?;
        let thread = Thread { target: self, tracee: &tracee, registers };
        let (block, mask) = thread.set_off(entry)?;
        let result = thread.finish(block)?;
        let mut registers = resumed(&registers, restart);
        if restart == Restart::Repeated && expected == Rank::TimedEvents {
            shorten(&mut registers, slept.unwrap_or_default() + begin.elapsed());
        }
        tracee.set_mask(mask).map_err(self.failed("PTRACE_SETSIGMASK"))?;
        tracee.set_registers(&registers).map_err(self.failed("PTRACE_SETREGS"))?;
        tracee.detach().map_err(self.failed("PTRACE_DETACH"))?;
        drop(turn);
        match result {
            BUSY => Err(Refusal::Taken(self.pid())),
            NOT_READY => Err(Refusal::NotReady(self.pid())),
            result => Ok(Borrowed::Called(Called { result, tid, stopped: begin.elapsed(), filters })),
        }
    }

    /// A thread that has ended, or has a tracer by now, is no reason to give up: others may be fit.
    fn not_seized(&self, tid: i32, error: &std::io::Error) -> Result<Borrowed, Refusal> {
        let Some(status) = Status::of_thread(self.pid(), tid) else { return Ok(Borrowed::Unfit) };
        match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) if status.tracer == 0 => Err(self.not_permitted()),
            Some(libc::EPERM) => Target::open(self.pid()).map(|_| Borrowed::Unfit),
            _ => Ok(Borrowed::Unfit),
        }
    }

    /// How a stopped thread's call continues, if it can be borrowed.
    fn fitness(
        &self,
        registers: &Registers,
        tid: i32,
        process: &Process,
    ) -> Result<Option<Restart>, Refusal> {
        if !is_64_bit(registers) {
            return Err(Refusal::Bits(self.pid()));
        }
        let Registers { rdi, rsi, rdx, r10, r8, r9, rsp, .. } = *registers;
        let number = registers.orig_rax.cast_signed();
        let call = Sleeping { number, arguments: [rdi, rsi, rdx, r10, r8, r9], stack_pointer: rsp };
        let Some(restart) = restart(registers).filter(|_| rank(self.pid(), &call, self.pidfd()).is_some())
        else {
            return Ok(None);
        };
        // A signal that waits is to be seen by the call; then EINTR is what the program expects.
        let status = Status::of_thread(self.pid(), tid).ok_or(Refusal::Gone(self.pid()))?;
        let is_signalled = status.pending & !status.blocked != 0;
        let is_fit = !is_signalled && !crate::signal_frame::is_in_handler(process, rsp);
        Ok(is_fit.then_some(restart))
    }

    /// Looks whether the thread's filters let the calls through, and gives how many it has.
    fn check_filters(&self, tracee: &Tracee, calls: &[SystemCall]) -> Result<usize, Refusal> {
        let pid = self.pid();
        let filters = filter::filters(tracee).map_err(|source| Refusal::UnknownFilter { pid, source })?;
        match filter::refused(&filters, calls) {
            None => Ok(filters.len()),
            Some(call) => Err(Refusal::Filtered { pid, call }),
        }
    }
}

/// Measures for how long a thread is stopped, at most: the moment in which it stops is not known, only that
/// in which it is asked to. Dropped after the thread was let go.
struct StopTime<'a> {
    /// When it was asked to stop; `None` where it has not stopped.
    begin: Option<Instant>,
    longest: &'a AtomicU64,
}

impl Drop for StopTime<'_> {
    fn drop(&mut self) {
        let stopped = self.begin.map_or(0, |begin| begin.elapsed().as_nanos() as u64);
        self.longest.fetch_max(stopped, Relaxed);
    }
}

/// A stopped thread, and its registers as they were.
struct Thread<'a> {
    target: &'a Target,
    tracee: &'a Tracee,
    registers: Registers,
}

impl Thread<'_> {
    /// Prepares the call: gives the block's address, and the thread's signal mask.
    fn set_off(&self, entry: u64) -> Result<(u64, u64), Refusal> {
        let failed = |call| self.target.failed(call);
        let mask = self.tracee.mask().map_err(failed("PTRACE_GETSIGMASK"))?;
        let below = self.registers.rsp.wrapping_sub(RED_ZONE + size_of::<Saved>() as u64);
        let block = below & !(align_of::<Saved>() as u64 - 1);
        let saved = alone(&self.registers, mask);
        self.write(block, &saved).map_err(failed("process_vm_writev"))?;
        let at_entry = Registers {
            rip: entry,
            rdi: block,
            rsp: block,
            rax: 0,
            orig_rax: u64::MAX, // in no call: the kernel repeats none
            eflags: CLEAR_FLAGS,
            ..self.registers
        };
        self.tracee.set_registers(&at_entry).map_err(failed("PTRACE_SETREGS"))?;
        self.tracee.set_mask(ALL).map_err(failed("PTRACE_SETSIGMASK"))?;
        Ok((block, mask))
    }

    /// Lets it run to the entry's last call, and has that fail: it stops where the kernel looks for signals,
    /// as it was stopped before. Gives the function's result.
    fn finish(&self, block: u64) -> Result<i64, Refusal> {
        let failed = |call| self.target.failed(call);
        let until = Instant::now() + CALLING;
        let mask = block + tracewing_abi::attach::at::MASK as u64;
        loop {
            self.tracee.run_to_call().map_err(failed("PTRACE_SYSCALL"))?;
            if self.stop(until)? != Stop::Call {
                continue;
            }
            let registers = self.tracee.registers().map_err(failed("PTRACE_GETREGS"))?;
            let is_last = registers.orig_rax == libc::SYS_rt_sigprocmask.cast_unsigned()
                && registers.rsi == mask
                && registers.rax.cast_signed() == -i64::from(libc::ENOSYS);
            if !is_last {
                continue;
            }
            // Not by a number of no call, which a filter for system calls would be asked about.
            let skipped = Registers { r10: NO_SIZE, ..registers };
            self.tracee.set_registers(&skipped).map_err(failed("PTRACE_SETREGS"))?;
            self.tracee.interrupt().map_err(failed("PTRACE_INTERRUPT"))?;
            self.tracee.run().map_err(failed("PTRACE_CONT"))?;
            while self.stop(until)? != Stop::Interrupted {
                self.tracee.run().map_err(failed("PTRACE_CONT"))?;
            }
            let result = self.read_result(block).map_err(failed("process_vm_readv"))?;
            return Ok(result);
        }
    }

    /// The next stop. All signals are blocked but those that the thread itself causes, which are its end.
    fn stop(&self, until: Instant) -> Result<Stop, Refusal> {
        let pid = self.target.pid();
        self.tracee.wait(until).map_err(|error| match error {
            NoStop::Ended => Refusal::Gone(pid),
            NoStop::Late => Refusal::Late(pid),
        })
    }

    fn write(&self, address: u64, saved: &Saved) -> std::io::Result<()> {
        let local = libc::iovec {
            iov_base: std::ptr::from_ref(saved).cast_mut().cast(),
            iov_len: size_of::<Saved>(),
        };
        let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: size_of::<Saved>() };
        let pid = self.target.pid();
        // SAFETY: the kernel reads `saved`, which is live and plain data; the other address is the target's.
        let written = unsafe { libc::process_vm_writev(pid, &raw const local, 1, &raw const remote, 1, 0) };
        whole(written, size_of::<Saved>())
    }

    fn read_result(&self, block: u64) -> std::io::Result<i64> {
        let mut result = UNFINISHED;
        let local = libc::iovec { iov_base: (&raw mut result).cast(), iov_len: size_of::<i64>() };
        let address = block + tracewing_abi::attach::at::RESULT as u64;
        let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: size_of::<i64>() };
        let pid = self.target.pid();
        // SAFETY: the kernel writes to `result`, for which all bytes are values.
        let read = unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) };
        whole(read, size_of::<i64>()).map(|()| result)
    }
}

fn whole(done: isize, wanted: usize) -> std::io::Result<()> {
    match usize::try_from(done) {
        Ok(done) if done == wanted => Ok(()),
        Ok(_) => Err(std::io::ErrorKind::UnexpectedEof.into()),
        Err(_) => Err(std::io::Error::last_os_error()),
    }
}

/// Takes time that has passed off the time-out of an `epoll_wait`, in milliseconds.
fn shorten(registers: &mut Registers, passed: Duration) {
    let time_out = u64::from(registers.r10 as u32);
    let passed = u64::try_from(passed.as_millis()).unwrap_or(u64::MAX);
    registers.r10 = time_out.saturating_sub(passed);
}

/// Bytes that `XSAVE` writes at most on this processor; `None` where it has none.
fn vectors() -> Option<usize> {
    const XSAVE_ENABLED: u32 = 1 << 27;
    let has = std::arch::x86_64::__cpuid(1).ecx & XSAVE_ENABLED != 0;
    has.then(|| std::arch::x86_64::__cpuid_count(0xd, 0).ecx as usize)
}
