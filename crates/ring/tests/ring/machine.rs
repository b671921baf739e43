//! Shared memory, CPUs and random numbers for the tests.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering::*};

use tracewing_abi::region::{Clock, Geometry, Protocol};
use tracewing_ring::Region;

/// A region in a new memfd, mapped shared, so that forked children write to the same one. Stays mapped.
pub fn region(geometry: Geometry, protocol: Protocol, clock: Clock) -> Region {
    region_from(geometry, protocol, clock, 0)
}

/// As [`region`], the first sub-buffers having number `origin`.
pub fn region_from(geometry: Geometry, protocol: Protocol, clock: Clock, origin: u64) -> Region {
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
    use rustix::mm::{MapFlags, ProtFlags, mmap};
    let memory = memfd_create("ring-test", MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&memory, geometry.size() as u64).unwrap();
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping wherever the kernel likes.
    let base =
        unsafe { mmap(std::ptr::null_mut(), geometry.size(), protection, MapFlags::SHARED, &memory, 0) };
    // SAFETY: new zeroed memory of the region's size, used by nobody, and never unmapped.
    unsafe {
        let base = NonNull::new(base.unwrap().cast()).unwrap();
        Region::create(base, geometry, protocol, clock, [7; 16], origin)
    }
}

/// CPUs that the machine may have.
pub fn possible_cpus() -> usize {
    // SAFETY: asks for a number.
    unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) as usize }
}

/// CPUs that this process may run on.
pub fn usable_cpus() -> Vec<usize> {
    let set = rustix::thread::sched_getaffinity(None).unwrap();
    (0..possible_cpus()).filter(|cpu| set.is_set(*cpu)).collect()
}

/// Binds the calling thread to some CPUs. No allocation: children call it.
pub fn run_on(cpus: &[usize]) {
    let mut set = rustix::thread::CpuSet::new();
    for cpu in cpus {
        set.set(*cpu);
    }
    rustix::thread::sched_setaffinity(None, &set).unwrap();
}

/// Shared anonymous memory for counters that outlive a killed child. Stays mapped.
pub fn shared<T: Default>() -> &'static T {
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping, large and aligned enough for `T` (a page's alignment), written before it is referred to.
    unsafe {
        let base =
            mmap_anonymous(std::ptr::null_mut(), size_of::<T>(), protection, MapFlags::SHARED).unwrap();
        base.cast::<T>().write(T::default());
        &*base.cast::<T>()
    }
}

/// Runs `run` in a child and gives the child's id. `run` must do only what a signal handler may.
pub fn fork(run: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child calls nothing but `run` and `_exit`.
    match unsafe { libc::fork() } {
        0 => {
            // A panic must not unwind into the harness, of which the child has a copy.
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

/// Waits for a change of state of a child; its raw status.
pub fn wait(pid: i32) -> i32 {
    let mut status = 0;
    // SAFETY: writes the status to a local.
    let got = unsafe { libc::waitpid(pid, &mut status, libc::__WALL) };
    assert_eq!(got, pid, "waitpid failed");
    status
}

/// Kills a child for good, and waits for it.
pub fn kill(pid: i32) {
    // SAFETY: `pid` is an unreaped child of the caller.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    assert!(libc::WIFSIGNALED(wait(pid)));
}

/// Numbers that look random, the same in every run (SplitMix64).
pub struct Random(pub u64);

impl Random {
    /// The next one.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// The next one below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

/// Tells the other threads of a scope to stop, also when the calling one panics: the scope waits for them.
pub struct StopAtEnd<'a>(pub &'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Release);
    }
}
