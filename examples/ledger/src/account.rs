//! The account: counters in memory that the processes share, so that they show what a killed process had
//! done.

use std::io;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};

/// Kinds of events.
#[derive(Clone, Copy)]
pub enum Kind {
    Deposit,
    Transfer,
    Remark,
}

impl Kind {
    pub const ALL: [Self; 3] = [Self::Deposit, Self::Transfer, Self::Remark];
    const NAMES: [&str; 3] = ["ledger:deposit", "ledger:transfer", "ledger:remark"];
}

/// The counters of one task.
#[derive(Default)]
struct Account {
    pid: AtomicI32,
    tid: AtomicI32,
    begun: [AtomicU64; 3],
    emitted: [AtomicU64; 3],
}

/// The accounts of all tasks.
pub struct Ledger {
    accounts: &'static [Account],
}

impl Ledger {
    /// Accounts for `tasks` tasks, all empty, in memory that forked children share.
    pub fn new(tasks: usize) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping at an address that the kernel chooses.
        let memory =
            unsafe { libc::mmap(std::ptr::null_mut(), tasks * size_of::<Account>(), access, flags, -1, 0) };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: as large, aligned to a page, and never unmapped; zeroes are valid atomics.
        Ok(Self { accounts: unsafe { std::slice::from_raw_parts(memory.cast(), tasks) } })
    }

    /// Opens the account of the calling task.
    pub fn open(&self, task: usize) {
        // SAFETY: no arguments, cannot fail.
        let (pid, tid) = unsafe { (libc::getpid(), libc::syscall(libc::SYS_gettid) as i32) };
        self.accounts[task].pid.store(pid, Relaxed);
        self.accounts[task].tid.store(tid, Relaxed);
    }

    /// Notes that an event is about to be emitted.
    pub fn begin(&self, task: usize, kind: Kind) {
        self.accounts[task].begun[kind as usize].fetch_add(1, Relaxed);
    }

    /// Notes that the event was emitted.
    pub fn end(&self, task: usize, kind: Kind) {
        self.accounts[task].emitted[kind as usize].fetch_add(1, Relaxed);
    }

    /// Events that a task has emitted so far.
    pub fn emitted(&self, task: usize) -> u64 {
        self.accounts[task].emitted.iter().map(|count| count.load(Relaxed)).sum()
    }

    /// `[{"pid": …, "tid": …, "begun": {EVENT: COUNT, …}, "emitted": {…}}, …]`
    pub fn to_json(&self) -> serde_json::Value {
        let counts = |counts: &[AtomicU64; 3]| -> serde_json::Value {
            Kind::NAMES
                .iter()
                .zip(counts)
                .map(|(name, count)| (name.to_string(), count.load(Relaxed)))
                .collect()
        };
        let account = |account: &Account| {
            serde_json::json!({
                "pid": account.pid.load(Relaxed),
                "tid": account.tid.load(Relaxed),
                "begun": counts(&account.begun),
                "emitted": counts(&account.emitted),
            })
        };
        self.accounts.iter().map(account).collect()
    }
}
