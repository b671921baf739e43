//! A region that threads write to while it is read: this process's own, through `/proc`.

use std::sync::atomic::{AtomicBool, Ordering::*};
use std::thread;
use std::time::{Duration, Instant};

use tracewing_abi::region::{Clock, Geometry, Protocol};
use tracewing_consumer::memory::SharedMemory;
use tracewing_programs::image::{AddressSpace, Process};
use tracewing_recover::{DamageCause, Region as Found};
use tracewing_ring::{Region, UpTo};
use tracewing_units::Pid;

use crate::{emit, recover};

/// Ends the threads, even if the test fails.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

#[test]
fn only_whole_events_while_writers_overwrite() {
    for geometry in [Geometry::new(1, 4, 1024).unwrap(), Geometry::new(1, 8, 4096).unwrap()] {
        let geometry = geometry.overwriting();
        let memory = SharedMemory::new(geometry.size()).unwrap();
        // SAFETY: new zeroed memory of the region's size, mapped until all threads are done.
        let region =
            unsafe { Region::create(memory.base(), geometry, Protocol::Smp, Clock::Monotonic, [9; 16], 0) };
        let process = Process::open(Pid::from_unsigned(std::process::id())).unwrap();
        let base = memory.base().as_ptr().addr() as u64;
        assert!(process.mappings().iter().any(|mapping| mapping.start == base));
        let found = Found::open(&process, base, geometry.size() as u64).unwrap();
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut number = 0;
                while !done.load(Relaxed) {
                    emit(&region, 0, number);
                    number += 1;
                }
            });
            // Snapshots exchange sub-buffers with the ring.
            scope.spawn(|| {
                // SAFETY: the only reader.
                let mut reader = unsafe { region.reader(0) };
                while !done.load(Relaxed) {
                    reader.rewind();
                    while let Ok(Some(chunk)) = reader.next(UpTo::LastWritten) {
                        reader.give_back(chunk);
                    }
                }
            });
            let _end_of_threads = End(&done);
            let mut events = 0;
            let (mut rounds, begin) = (0, Instant::now());
            while rounds < 1000 || events == 0 && begin.elapsed() < Duration::from_secs(60) {
                rounds += 1;
                let recovered = recover(&found, 0);
                events += recovered.numbers.len();
                for damage in recovered.damages {
                    assert_eq!(damage.cause, DamageCause::Unfinished, "as the writer does all the time");
                }
            }
            assert!(events > 0);
        });
        // No thread writes any more, so nothing may be left out.
        let recovered = recover(&found, 0);
        assert_eq!(recovered.damages, []);
        assert!(recovered.numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{:?}", recovered.numbers);
    }
}

#[test]
fn a_process_that_is_not_there() {
    // No process has this id: the kernel's limit is 2^22 (include/linux/threads.h).
    let error = Process::open(Pid::from_unsigned(u32::MAX >> 1)).unwrap_err().to_string();
    assert!(error.starts_with("there is no process 2147483647"), "{error}");
}
