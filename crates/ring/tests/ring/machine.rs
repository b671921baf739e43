//! Shared memory, CPUs, children and random numbers for the tests.

use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering::*};

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use tracewing_abi::region::{Clock, Geometry, Protocol};
use tracewing_ring::Region;

/// A region in a new memfd, mapped shared, so that forked children write to the same one.
pub struct Mapped {
    /// The region, valid while this lives.
    pub region: Region,
}

impl Mapped {
    /// A region whose buffers' first sub-buffers have number `origin`.
    pub fn new(geometry: Geometry, protocol: Protocol, clock: Clock, origin: u64) -> Self {
        use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
        let memory = memfd_create("ring-test", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&memory, geometry.size() as u64).unwrap();
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses.
        let base =
            unsafe { mmap(std::ptr::null_mut(), geometry.size(), protection, MapFlags::SHARED, &memory, 0) };
        let base = NonNull::new(base.unwrap().cast()).unwrap();
        // SAFETY: new zeroed memory of the region's size, not yet used, and mapped while the handle is used.
        let region = unsafe { Region::create(base, geometry, protocol, clock, [7; 16], origin) };
        Self { region }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `new`; its users borrow from `self` or end before it.
        let _ = unsafe { munmap(self.region.base().as_ptr().cast(), self.region.geometry().size()) };
    }
}

/// As [`Mapped::new`] from number 0; stays mapped.
pub fn region(geometry: Geometry, protocol: Protocol, clock: Clock) -> Region {
    let mapped = Mapped::new(geometry, protocol, clock, 0);
    let region = mapped.region;
    std::mem::forget(mapped);
    region
}

/// CPUs that the machine may have, online or not.
pub fn possible_cpus() -> usize {
    // SAFETY: only queries a number.
    unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) as usize }
}

/// CPUs that this process may run on.
pub fn usable_cpus() -> Vec<usize> {
    let set = rustix::thread::sched_getaffinity(None).unwrap();
    (0..possible_cpus()).filter(|cpu| set.is_set(*cpu)).collect()
}

/// The calling thread's CPU at the moment.
pub fn current_cpu() -> usize {
    // SAFETY: only queries a number.
    unsafe { libc::sched_getcpu() as usize }
}

/// Binds the calling thread to some CPUs. No allocation: children call it.
pub fn run_on(cpus: &[usize]) {
    push(None, cpus).unwrap();
}

/// Binds a thread to some CPUs; the calling one for `None`. Fails where the thread has ended.
pub fn push(thread: Option<rustix::thread::Pid>, cpus: &[usize]) -> rustix::io::Result<()> {
    let mut set = rustix::thread::CpuSet::new();
    for cpu in cpus {
        set.set(*cpu);
    }
    rustix::thread::sched_setaffinity(thread, &set)
}

/// Shared anonymous memory that outlives a killed child.
pub struct Shared<T>(NonNull<T>);

// SAFETY: gives references to `T` only.
unsafe impl<T: Sync> Sync for Shared<T> {}
// SAFETY: owns a mapping, which is not tied to a thread.
unsafe impl<T: Send> Send for Shared<T> {}

impl<T> Shared<T> {
    /// All zero.
    ///
    /// # Safety
    /// Zero bytes are a valid `T`.
    pub unsafe fn zeroed() -> Self {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, large and aligned enough for `T` (a page's alignment).
        let base =
            unsafe { mmap_anonymous(std::ptr::null_mut(), size_of::<T>(), protection, MapFlags::SHARED) };
        Self(NonNull::new(base.unwrap().cast()).unwrap())
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the mapping is valid while `self` lives, and holds a `T` (obligation of `zeroed`).
        unsafe { self.0.as_ref() }
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `zeroed`.
        let _ = unsafe { munmap(self.0.as_ptr().cast(), size_of::<T>()) };
    }
}

/// Runs `run` in a child and returns the child's id. `run` must work in a copy of a multi-threaded process:
/// it takes no locks except the C library's own.
pub fn fork(run: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child calls nothing but `run` and `_exit`.
    match unsafe { libc::fork() } {
        0 => {
            // When the parent fails or is killed, its children die with it. SAFETY: concerns only this
            // process.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
            // A panic must not unwind into the child's copy of the test harness.
            let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).unwrap_or(101);
            // SAFETY: ends the child.
            unsafe { libc::_exit(code) }
        }
        pid => {
            assert!(pid > 0, "fork failed");
            pid
        }
    }
}

/// Waits for a child to change state; returns its raw status.
pub fn wait(pid: i32) -> i32 {
    let mut status = 0;
    // SAFETY: writes the status to a local.
    let got = unsafe { libc::waitpid(pid, &mut status, libc::__WALL) };
    assert_eq!(got, pid, "waitpid failed");
    status
}

/// Sends a child a signal.
pub fn signal(pid: i32, signal: i32) {
    // SAFETY: `pid` is an unreaped child of the caller.
    unsafe { libc::kill(pid, signal) };
}

/// Kills a child and waits for it.
pub fn kill(pid: i32) {
    signal(pid, libc::SIGKILL);
    let status = wait(pid);
    assert!(libc::WIFSIGNALED(status), "ended before it was killed: {status:#x}");
}

/// A child that does not outlive its owner.
pub struct Child {
    pid: i32,
    is_reaped: bool,
}

impl Child {
    /// As [`fork`].
    pub fn new(run: impl FnOnce() -> i32) -> Self {
        Self { pid: fork(run), is_reaped: false }
    }

    /// Stops the child while `meanwhile` runs.
    pub fn stop_while(&self, meanwhile: impl FnOnce()) {
        signal(self.pid, libc::SIGSTOP);
        meanwhile();
        signal(self.pid, libc::SIGCONT);
    }

    /// Whether the child has ended by itself.
    pub fn has_ended(&self) -> bool {
        // SAFETY: fills in plain data about an unreaped child of the caller, and leaves the child unreaped.
        unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
            assert_eq!(libc::waitid(libc::P_PID, self.pid as u32, &mut info, options), 0);
            info.si_pid() != 0
        }
    }

    /// Kills the child, whatever it is doing.
    pub fn kill(mut self) {
        self.is_reaped = true;
        kill(self.pid);
    }

    /// Waits for the child to end and returns its exit code.
    pub fn code(mut self) -> i32 {
        self.is_reaped = true;
        let status = wait(self.pid);
        assert!(libc::WIFEXITED(status), "{status:#x}");
        libc::WEXITSTATUS(status)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.is_reaped {
            signal(self.pid, libc::SIGKILL);
            wait(self.pid);
        }
    }
}

/// Numbers that look random, the same in every run (SplitMix64).
pub struct Random(pub u64);

impl Random {
    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// The next number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// True once in `bound` times on average.
    pub fn one_in(&mut self, bound: usize) -> bool {
        self.below(bound) == 0
    }
}

/// Stops the other threads of a scope when dropped, also while the calling thread panics: the scope waits for
/// them.
pub struct StopAtEnd<'a>(pub &'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Release);
    }
}
