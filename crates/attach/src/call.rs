//! Borrows a thread: stops it, has it call the entry, restores it.
//!
//! Each step leaves the thread in a state from which it continues by itself if the recorder is killed:
//!
//! | step | the thread alone would |
//! |---|---|
//! | stopped; block written below its red zone | continue its call |
//! | registers set to the entry | make the call, spin, restore itself from the block |
//! | signals blocked | likewise, and restore its mask |
//! | stopped while it spins | likewise |
//! | mask restored | likewise |
//! | registers restored | continue its call |
//!
//! While the function runs, the recorder looks at the block: a stop at each of its system calls would take
//! longer than the calls.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tracewing_abi::attach::{BUSY, NOT_READY, VECTORS};
use tracewing_proc::{Sleeping, Status};
use tracewing_programs::image::{Memory, Process};
use tracewing_units::Tid;

use crate::alarm::Alarm;
use crate::asleep::Asleep;
use crate::filter::SystemCall;
use crate::stopped::Stopped;
use crate::threads::{Candidate, Rank, candidates, threads};
use crate::tracee::{NoStop, Stop, Tracee};
use crate::turn::{self, Turn};
use crate::{Refusal, Target, Unsupported};

/// How long a thread may take to stop, which has slept in a system call.
const STOPPING: Duration = Duration::from_millis(100);
/// Bytes of the entry's code that are compared.
const CODE: usize = 16;
/// Time between two looks for a thread.
const LOOK: Duration = Duration::from_millis(5);

/// Where a process is entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The address of an entry that it contains (`tracewing_abi::attach`).
    pub entry: u64,
    /// The address of a word, and its value. Nothing is called if it is another one when the thread has
    /// stopped: the object with the entry is unloaded, or another one is loaded there, or was being loaded
    /// when the word was read. Other threads run on, and may still unload it.
    pub word: Option<(u64, u64)>,
}

impl Place {
    /// The entry's code, if it is there.
    fn code(&self, process: &Process) -> Option<Vec<u8>> {
        if let Some((at, value)) = self.word
            && Memory::read(process, at, size_of_val(&value)) != Some(value.to_ne_bytes().into())
        {
            return None;
        }
        Memory::read(process, self.entry, CODE)
    }
}

/// A call that was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Called {
    /// What the function returned.
    pub result: i64,
    /// The thread that made it.
    pub tid: Tid,
    /// For how long that thread was stopped; no other thread was.
    pub stopped: Duration,
    /// Number of its seccomp filters, all of which allow the system calls of the function.
    pub filters: usize,
}

/// Result of an attempt to borrow a thread.
enum Borrowed {
    Called(Called),
    /// This thread cannot be borrowed; another one may.
    Unfit,
    /// It has not stopped in time.
    Late,
}

impl Target {
    /// Has one of the process's threads call the function of the entry at `place`. Looks for a suitable
    /// thread for up to `patience`; `calls` are the system calls of the function and of the threads that it
    /// starts.
    ///
    /// # Errors
    /// Why there was no call. The process runs as before.
    pub fn call(&self, place: Place, calls: &[SystemCall], patience: Duration) -> Result<Called, Refusal> {
        if vectors().is_none_or(|bytes| bytes > VECTORS) {
            return Err(Refusal::Unsupported { pid: self.pid(), why: Unsupported::VectorRegisters });
        }
        let begin = Instant::now();
        let mut late = Vec::new();
        loop {
            // The kernel ties tracees to a thread, and lets them go when it ends.
            let tracer = || {
                turn::hurry();
                self.borrow_one(place, calls, begin, patience, &mut late)
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
        place: Place,
        calls: &[SystemCall],
        begin: Instant,
        patience: Duration,
        late: &mut Vec<Tid>,
    ) -> Result<Option<Called>, Refusal> {
        let pid = self.pid();
        loop {
            // The threads of an ended process are listed until its parent has waited for it.
            let threads = threads(pid).filter(|_| self.is_alive()).ok_or(Refusal::Gone(pid))?;
            let candidates = candidates(pid, self.pidfd(), &threads).map_err(|_| self.not_permitted())?;
            for candidate in candidates.into_iter().filter(|candidate| !late.contains(&candidate.tid)) {
                match self.borrow(candidate, place, calls)? {
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

    fn borrow(&self, candidate: Candidate, place: Place, calls: &[SystemCall]) -> Result<Borrowed, Refusal> {
        let Candidate { tid, rank, call } = candidate;
        let process = Process::open(self.pid()).map_err(|_| self.not_permitted())?;
        let code = place.code(&process).ok_or_else(|| self.not_there())?;
        let asleep = if rank == Rank::TimedEvents { Asleep::read(self.pid(), tid) } else { None };
        let since = Instant::now();
        let mut stop_time = StopTime { begin: None, longest: self.longest() };
        let _alarm = Alarm::after(STOPPING).map_err(self.failed("timer_create"))?;
        let turn = Turn::short(tid);
        // It may have come to another call meanwhile, on which a stop has an effect.
        if Sleeping::of(self.pid(), tid).map_err(|_| self.not_permitted())? != Some(call) {
            return Ok(Borrowed::Unfit);
        }
        let tracee = match Tracee::seize(tid) {
            Ok(tracee) => tracee,
            Err(error) => return self.not_seized(tid, &error),
        };
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
        let waited = || slept.map_or_else(|| begin.elapsed(), |slept| slept + since.elapsed());
        let thread = Stopped::new(self, tracee, tid)?;
        let fit = match thread.fit(&process, calls) {
            // Nothing else is there by now: the object may have been unloaded.
            Ok(Some(_)) if place.code(&process) != Some(code) => {
                thread.leave(waited())?;
                return Err(self.not_there());
            }
            Ok(Some(fit)) => fit,
            unfit => {
                thread.leave(waited())?;
                return unfit.map(|_| Borrowed::Unfit);
            }
        };
        let result = thread.call(place.entry, &fit)?;
        thread.give_back(place.entry, &fit, waited)?;
        drop(turn);
        let (stopped, filters) = (begin.elapsed(), fit.filters);
        match result {
            BUSY => Err(Refusal::Taken(self.pid())),
            NOT_READY => Err(Refusal::NotReady(self.pid())),
            result => Ok(Borrowed::Called(Called { result, tid, stopped, filters })),
        }
    }

    /// Why there is no entry: its object is unloaded, or all of the process's memory is gone.
    fn not_there(&self) -> Refusal {
        match Status::of(self.pid()) {
            Some(status) if status.has_memory() => Refusal::NotReady(self.pid()),
            _ => Refusal::Gone(self.pid()),
        }
    }

    /// A thread that has ended, or has a tracer by now, is no reason to give up: others may be fit.
    fn not_seized(&self, tid: Tid, error: &std::io::Error) -> Result<Borrowed, Refusal> {
        let Some(status) = Status::of_thread(self.pid(), tid) else { return Ok(Borrowed::Unfit) };
        match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) if status.tracer().is_none() => Err(self.not_permitted()),
            Some(libc::EPERM) => Target::open(self.pid()).map(|_| Borrowed::Unfit),
            _ => Ok(Borrowed::Unfit),
        }
    }
}

/// Measures an upper bound of the time for which a thread is stopped: from the request to stop, since the
/// time of the stop itself is unknown, until this is dropped, after the thread was released.
struct StopTime<'a> {
    /// Time of the request to stop; `None` if the thread has not stopped.
    begin: Option<Instant>,
    longest: &'a AtomicU64,
}

impl Drop for StopTime<'_> {
    fn drop(&mut self) {
        let stopped = self.begin.map_or(0, |begin| begin.elapsed().as_nanos() as u64);
        self.longest.fetch_max(stopped, Relaxed);
    }
}

/// Bytes that `XSAVE` writes at most on this processor; `None` where it has none.
fn vectors() -> Option<usize> {
    const XSAVE_ENABLED: u32 = 1 << 27;
    let has = std::arch::x86_64::__cpuid(1).ecx & XSAVE_ENABLED != 0;
    has.then(|| std::arch::x86_64::__cpuid_count(0xd, 0).ecx as usize)
}
