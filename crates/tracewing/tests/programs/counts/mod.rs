//! Counts of emitted events, in memory that a process, its children, and what they execute share.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Names the descriptor of the memory to programs that are executed.
const VARIABLE: &str = "COUNTS";
const PLACES: usize = 64;

/// Per place in the program: events begun, and emitted.
#[derive(Clone, Copy)]
pub struct Counts(&'static [[AtomicU64; 2]; PLACES]);

impl Counts {
    /// Those of the program that executed this one, or new ones.
    pub fn get() -> Self {
        let inherited = std::env::var(VARIABLE).ok().and_then(|number| number.parse().ok());
        let file = inherited.unwrap_or_else(|| {
            // SAFETY: a NUL-terminated name; the descriptor is to survive exec.
            let file = unsafe { libc::memfd_create(c"counts".as_ptr(), 0) };
            // SAFETY: a descriptor just made; no other thread of the program runs yet.
            unsafe {
                assert_eq!(libc::ftruncate(file, 4096), 0);
                std::env::set_var(VARIABLE, file.to_string());
            }
            file
        });
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping.
        let memory = unsafe { libc::mmap(std::ptr::null_mut(), 4096, access, libc::MAP_SHARED, file, 0) };
        assert_ne!(memory, libc::MAP_FAILED, "{}", io::Error::last_os_error());
        // SAFETY: a page, aligned, never unmapped; any bytes are atomics.
        Self(unsafe { &*memory.cast() })
    }

    /// Calls `emit` with the place's next number, and counts.
    #[inline(always)]
    pub fn around(self, place: u32, emit: impl FnOnce(u64)) {
        let [begun, emitted] = &self.0[place as usize];
        emit(begun.fetch_add(1, Relaxed));
        emitted.fetch_add(1, Relaxed);
    }

    /// Events that were emitted at a place.
    #[allow(dead_code, reason = "not every program looks")]
    pub fn emitted(self, place: u32) -> u64 {
        self.0[place as usize][1].load(Relaxed)
    }

    /// A line per place that was used: its number, events begun, events emitted.
    pub fn print(self) {
        for (place, [begun, emitted]) in self.0.iter().enumerate() {
            if begun.load(Relaxed) > 0 {
                println!("{place} {} {}", begun.load(Relaxed), emitted.load(Relaxed));
            }
        }
    }
}
