//! The three sequences of protocol `Publish`, left at each of their instructions: for a signal handler that
//! emits, by death, or by an event that the kernel does not treat as an abort. Also the papers' scheme where
//! other writers are faster every time.

use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering::*};

use tracewing_abi::event::{CONTEXT, EXTENDED_HEADER, HEADER};
use tracewing_abi::region::{Loss, Mode, Protocol};
use tracewing_ring::Segment;
use tracewing_ring::publish::{ATTEMPTS, Opened, Outcome};
use tracewing_units::Cpu;

use crate::collector::Collector;
use crate::emitter::{Emitter, Shape};
use crate::events::{Event, payload};
use crate::machine;
use crate::publisher::Publisher;
use crate::tracer::{Tracee, accept};

const MAIN: u32 = 1;
const HANDLER: u32 = 2;
const OTHER: u32 = 3;

/// A sequence under test.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Sequence {
    Fixed,
    Ordered,
    Gather,
    Extended,
    Open,
    FirstOpen,
}

const ALL: [Sequence; 6] = [
    Sequence::Fixed,
    Sequence::Ordered,
    Sequence::Gather,
    Sequence::Extended,
    Sequence::Open,
    Sequence::FirstOpen,
];

static PUBLISHER: AtomicPtr<Publisher> = AtomicPtr::new(std::ptr::null_mut());

extern "C" fn emit_in_handler(_signal: i32) {
    // SAFETY: set by the child before the signal can come; the publisher is the parent's copy, which stays.
    let publisher = unsafe { &*PUBLISHER.load(Relaxed) };
    publisher.emit_fixed::<24, false>(9, &payload(HANDLER, 0)).unwrap();
}

/// A buffer with some events in it, on the CPU that the calling thread is pinned to.
struct Setting {
    publisher: Publisher,
    cpu: usize,
    before: usize,
}

impl Setting {
    fn new(sequence: Sequence) -> Option<Self> {
        let publisher = Publisher::new(8, 512)?;
        let cpu = machine::usable_cpus()[0];
        machine::run_on(&[cpu]);
        publisher.enter(MAIN as i32);
        let before = match sequence {
            Sequence::FirstOpen => 0,
            Sequence::Open => 15, // 28 bytes each: the next one does not fit after the header's 64
            _ => 3,
        };
        for counter in 0..before {
            publisher.emit_fixed::<16, false>(1, &payload(MAIN, counter as u32)).unwrap();
        }
        Some(Self { publisher, cpu, before })
    }

    /// The child's part: the sequence, and then, unless the sequence wrote it, the event by whatever else
    /// works.
    fn run(&self, sequence: Sequence) -> i32 {
        machine::run_on(&[self.cpu]);
        PUBLISHER.store((&raw const self.publisher).cast_mut(), Relaxed);
        // SAFETY: installs a handler that does what handlers may.
        unsafe { libc::signal(libc::SIGUSR1, emit_in_handler as *const () as usize) };
        let publisher = &self.publisher;
        let bytes = payload::<28>(MAIN, self.before as u32);
        // Words, an overlapping rest, and all bits of a short length.
        let segments = [Segment::of(&bytes[..21]), Segment::of(&bytes[21..])];
        let head = publisher.region.buffer(self.cpu).control().head.load(Relaxed);
        accept();
        let written = match sequence {
            Sequence::Fixed => publisher.fixed::<28, false>(5, &bytes),
            Sequence::Ordered => publisher.fixed::<28, true>(5, &bytes),
            Sequence::Gather => publisher.gather(5, &segments, false) == Outcome::Written,
            Sequence::Extended => publisher.gather(5, &segments, true) == Outcome::Written,
            Sequence::Open | Sequence::FirstOpen => {
                assert_eq!(publisher.open(Cpu::at(self.cpu), head), Opened::Retry);
                false
            }
        };
        if !written {
            publisher.emit(5, &segments).unwrap();
        }
        0
    }

    fn tracee(&self, sequence: Sequence) -> Tracee {
        let mut tracee = Tracee::new(|| self.run(sequence));
        tracee.step_to_sequence();
        tracee
    }

    fn events(&self) -> Vec<Event> {
        let mut collector = Collector::new(self.publisher.region);
        let events = collector.drain(true);
        assert_eq!(collector.lost(), 0);
        assert!(events.iter().take(self.before).all(|event| event.writer == MAIN && event.id == 1));
        events[self.before..].to_vec()
    }
}

/// Calls `at` with a fresh child at every instruction of the sequence; the last time after the commit
/// (`false`). Returns the number of instructions.
fn at_each_instruction(sequence: Sequence, at: impl Fn(&Setting, Tracee, bool)) -> usize {
    for steps in 0.. {
        let Some(setting) = Setting::new(sequence) else { return 0 };
        let tracee = setting.tracee(sequence);
        let inside = (0..steps).all(|_| tracee.step_inside());
        at(&setting, tracee, inside);
        if !inside {
            return steps;
        }
    }
    unreachable!()
}

#[test]
fn a_handler_that_emits_at_any_instruction_comes_first() {
    for sequence in ALL {
        let instructions = at_each_instruction(sequence, |setting, tracee, inside| {
            let at = tracee.registers().rip - tracee.sequence.unwrap().1.start;
            tracee.rearm();
            assert_eq!(tracee.finish(libc::SIGUSR1), 0, "{sequence:?}+{at:#x}");
            let writers: Vec<_> = setting.events().iter().map(|event| event.writer).collect();
            // An opened sub-buffer is not an event yet: the handler's event comes first even after that
            // commit.
            let first = inside || matches!(sequence, Sequence::Open | Sequence::FirstOpen);
            let expected = if first { [HANDLER, MAIN] } else { [MAIN, HANDLER] };
            assert_eq!(writers, expected, "{sequence:?}+{at:#x}");
        });
        assert!(instructions == 0 || instructions > 20, "{sequence:?}: {instructions} instructions");
    }
}

#[test]
fn a_process_killed_at_any_instruction_leaves_whole_events_only() {
    for sequence in ALL {
        at_each_instruction(sequence, |setting, tracee, inside| {
            tracee.rearm();
            tracee.kill();
            let writes = !matches!(sequence, Sequence::Open | Sequence::FirstOpen);
            let expected = usize::from(writes && !inside);
            assert_eq!(setting.events().len(), expected, "{sequence:?}");
            setting.publisher.emit_fixed::<16, false>(5, &payload(OTHER, 0)).unwrap();
            assert_eq!(setting.publisher.region.buffer(setting.cpu).lost_total(), 0);
        });
    }
}

#[test]
fn a_sequence_that_the_kernel_no_longer_protects_starts_again() {
    for sequence in ALL {
        let unnoticed = AtomicU32::new(0);
        at_each_instruction(sequence, |setting, tracee, inside| {
            let (_, descriptor) = tracee.sequence.unwrap();
            let at = tracee.registers().rip;
            tracee.disarm();
            // Another thread of the CPU writes meanwhile, so the child's write position is out of date. What
            // the child writes there before it comes to the check overwrites that event, which nothing can
            // prevent.
            let buffer = setting.publisher.region.buffer(setting.cpu);
            let head = &buffer.control().head;
            setting.publisher.emit_fixed::<16, false>(5, &payload(OTHER, 0)).unwrap();
            let moved = head.load(Relaxed);
            assert_eq!(tracee.finish(0), 0);
            // Between the check and the commit there is one jump, after which nothing can notice any more.
            let end = descriptor.start + descriptor.len;
            if inside && end - at <= 4 {
                unnoticed.fetch_add(1, Relaxed);
                return;
            }
            let written = head.load(Relaxed).wrapping_sub(moved);
            let extended = if sequence == Sequence::Extended { EXTENDED_HEADER - HEADER } else { 0 };
            // After the commit (`!inside`) the child is done before the other begins.
            let expected = if inside || matches!(sequence, Sequence::Open | Sequence::FirstOpen) {
                (HEADER + CONTEXT + 28 + extended) as u64
            } else {
                0
            };
            assert_eq!(written, expected, "{sequence:?}+{:#x}", at - descriptor.start);
        });
        assert!(unnoticed.load(Relaxed) <= 1, "{sequence:?}: only the commit itself");
    }
}

/// Steps a child to its end; returns its exit code and the number of steps.
fn step_through(run: impl FnOnce() -> i32) -> (i32, u32) {
    const ENOUGH: u32 = 100_000;
    let tracee = Tracee::new(|| {
        accept();
        run()
    });
    for steps in 1..ENOUGH {
        if let Some(status) = tracee.step() {
            assert!(libc::WIFEXITED(status), "{status:#x}");
            return (libc::WEXITSTATUS(status), steps);
        }
    }
    panic!("still not done after {ENOUGH} steps");
}

#[test]
fn a_debugger_that_steps_permanently_costs_one_event() {
    let Some(setting) = Setting::new(Sequence::Open) else { return };
    let publisher = &setting.publisher;
    let bytes = payload::<8>(MAIN, 100);
    let (code, steps) = step_through(|| publisher.fixed::<8, false>(1, &bytes).into());
    assert_eq!(code, 0, "not written");
    assert!(steps > 3 * ATTEMPTS);
    let segments = [Segment::of(&bytes)];
    let (code, _) = step_through(|| (publisher.gather(1, &segments, false) == Outcome::Interrupted).into());
    assert_eq!(code, 1);
    let head = publisher.region.buffer(setting.cpu).control().head.load(Relaxed);
    let (code, _) =
        step_through(|| (publisher.open(Cpu::at(setting.cpu), head) == Opened::Interrupted).into());
    assert_eq!(code, 1);
    assert_eq!(publisher.region.buffer(setting.cpu).control().head.load(Relaxed), head);
    assert_eq!(publisher.region.buffer(setting.cpu).lost_total(), 0);
    let (code, _) =
        step_through(|| (publisher.emit_fixed::<8, false>(1, &bytes) == Err(Loss::Interrupted)).into());
    assert_eq!(code, 1);
    assert_eq!(publisher.region.lost(setting.cpu)[Loss::Interrupted as usize], 1);
    publisher.emit_fixed::<8, false>(1, &bytes).unwrap();
}

#[test]
fn a_writer_that_always_loses_the_race_loses_one_event() {
    const ENOUGH: u32 = 1_000_000;
    for kind in [(Protocol::Smp, Mode::Overwrite), (Protocol::Local, Mode::Overwrite)] {
        let emitter = Emitter::new(Shape::new(kind, 8, 65536)).expect("needs nothing special");
        let tracee = Tracee::new(|| {
            accept();
            (emitter.emit(MAIN, 0, 0) == Err(Loss::Interrupted)).into()
        });
        // An event of another writer between any two instructions: no compare-and-swap finds what was loaded
        // before.
        let status = (0..ENOUGH).find_map(|step| {
            emitter.emit(OTHER, step, 0).unwrap();
            tracee.step()
        });
        assert_eq!(status.map(|status| libc::WEXITSTATUS(status)), Some(1), "{kind:?}");
        assert_eq!(emitter.region().lost(0)[Loss::Interrupted as usize], 1);
        assert_eq!(emitter.region().buffer(0).lost_total(), 1);
    }
}
