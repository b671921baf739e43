//! The events that a recording opens (`perf_event_open(2)`), each as a small request, so that another process
//! can open it ([`open_by`]): one with the right to do so, which reads no data of programs. The request says
//! what is to be opened, not how: what it cannot say, that process does not open.

use std::fs::File;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::OnceLock;

use perf_event_open_sys as sys;
use sys::bindings::{self as abi, perf_event_attr};
use tracewing_units::{Cpu, Tid};

use crate::record::STACK_REGISTERS;

/// Has another process open an event, given [`Opening::encode`].
type Opener = Box<dyn Fn(&[u8]) -> io::Result<OwnedFd> + Send + Sync>;

static OPENER: OnceLock<Opener> = OnceLock::new();

/// From now on, events of this process are opened by `opener`, which gives [`open`]'s result. It gets a
/// request of [`REQUEST`] bytes. Only the first call has an effect.
pub fn open_by(opener: impl Fn(&[u8]) -> io::Result<OwnedFd> + Send + Sync + 'static) {
    let _ = OPENER.set(Box::new(opener));
}

/// Opens the event that a request asks for, which may come from any process.
///
/// # Errors
/// The kernel's, or `EINVAL` if the request is none.
pub fn open(request: &[u8]) -> io::Result<OwnedFd> {
    if request == SYMBOLS {
        return Ok(File::open(TABLE)?.into());
    }
    Opening::decode(request).ok_or(io::ErrorKind::InvalidInput)?.here()
}

/// Opens the kernel's table of symbols; the kernel decides now which addresses it shows.
pub(crate) fn symbols() -> io::Result<OwnedFd> {
    OPENER.get().map_or_else(|| open(&SYMBOLS), |opener| opener(&SYMBOLS))
}

/// Bytes of a request.
pub const REQUEST: usize = 10 * size_of::<u32>();

/// Asks for the kernel's table of symbols.
const SYMBOLS: [u8; REQUEST] = [0xff; REQUEST];
const TABLE: &str = "/proc/kallsyms";

/// What an event does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Takes samples, and reports mappings, names and forks.
    Sample {
        /// Samples a second.
        hertz: u32,
        /// Bytes of a copy of the stack; 0 to follow frame pointers.
        stack: u32,
        /// Whether mappings are reported with build ids.
        build_ids: bool,
        /// Clock of the records.
        clock: libc::clockid_t,
    },
    /// Nothing: its buffer receives the records of other events with this clock.
    Collect { clock: libc::clockid_t },
    /// Counts. `(value, time enabled, time running)` can be read from it.
    Count,
}

/// What applies to a thread and to what it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heirs {
    /// Nothing: all threads of a CPU are meant.
    None,
    /// The threads of its process.
    Threads,
    /// All that it starts.
    All,
    /// The same, from its next `exec` on.
    FromExec,
}

/// An event that is to be opened. It is disabled at first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Opening {
    pub(crate) purpose: Purpose,
    /// Type and number of what it counts: of the processor's or of the kernel's own counters.
    pub(crate) event: (u32, u32),
    pub(crate) heirs: Heirs,
    /// Whether what the kernel does is meant, too.
    pub(crate) kernel: bool,
    /// 0 for the calling thread, -1 for all.
    pub(crate) tid: Tid,
    /// `None` for any.
    pub(crate) cpu: Option<Cpu>,
}

impl Opening {
    /// Opens it, here or in the process that does so for this one.
    pub(crate) fn open(self) -> io::Result<OwnedFd> {
        let Some(opener) = OPENER.get() else { return self.here() };
        let own = Tid(rustix::thread::gettid().as_raw_nonzero().get());
        let tid = if self.tid == Tid(0) { own } else { self.tid };
        opener(&Self { tid, ..self }.encode())
    }

    fn here(self) -> io::Result<OwnedFd> {
        let mut attribute = self.attribute();
        // One that is out of range yields an error about an absent CPU.
        let cpu = self.cpu.map_or(-1, |cpu| cpu.0.try_into().unwrap_or(libc::c_int::MAX));
        let flags = abi::PERF_FLAG_FD_CLOEXEC.into();
        // SAFETY: the attribute is as long as its `size` says, zero where nothing is set, and borrowed
        // exclusively.
        let descriptor = unsafe { sys::perf_event_open(&mut attribute, self.tid.0, cpu, -1, flags) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just opened it for us.
        Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
    }

    fn attribute(self) -> perf_event_attr {
        let mut attribute = perf_event_attr {
            type_: self.event.0,
            size: size_of::<perf_event_attr>() as u32,
            config: self.event.1.into(),
            ..Default::default()
        };
        attribute.set_disabled(1);
        attribute.set_inherit((self.heirs != Heirs::None).into());
        attribute.set_inherit_thread((self.heirs == Heirs::Threads).into());
        attribute.set_enable_on_exec((self.heirs == Heirs::FromExec).into());
        attribute.set_exclude_kernel((!self.kernel).into());
        attribute.set_exclude_hv(1);
        match self.purpose {
            Purpose::Sample { hertz, stack, build_ids, clock } => {
                attribute.set_exclude_idle(1);
                sample(&mut attribute, hertz, stack);
                attribute.set_build_id(build_ids.into());
                attribute.clockid = clock;
                attribute.set_use_clockid(1);
                attribute.set_exclude_callchain_kernel((!self.kernel).into());
            }
            Purpose::Collect { clock } => {
                attribute.clockid = clock;
                attribute.set_use_clockid(1);
            }
            Purpose::Count => {
                attribute.set_exclude_idle(1);
                let times = abi::PERF_FORMAT_TOTAL_TIME_ENABLED | abi::PERF_FORMAT_TOTAL_TIME_RUNNING;
                attribute.read_format = times.into();
            }
        }
        attribute
    }

    fn encode(self) -> [u8; REQUEST] {
        let (purpose, hertz, stack, build_ids, clock) = match self.purpose {
            Purpose::Sample { hertz, stack, build_ids, clock } => (0, hertz, stack, build_ids, clock),
            Purpose::Collect { clock } => (1, 0, 0, false, clock),
            Purpose::Count => (2, 0, 0, false, 0),
        };
        let switches = u32::from(self.kernel) | u32::from(build_ids) << 1;
        let cpu = self.cpu.map_or(-1, |cpu| cpu.0.try_into().unwrap_or(i32::MAX));
        let (clock, tid, cpu) = (clock.cast_unsigned(), self.tid.0.cast_unsigned(), cpu.cast_unsigned());
        let (kind, number) = self.event;
        let words = [purpose, hertz, stack, switches, clock, kind, number, self.heirs as u32, tid, cpu];
        let mut bytes = [0; REQUEST];
        bytes.as_chunks_mut().0.iter_mut().zip(words).for_each(|(place, word)| *place = word.to_le_bytes());
        bytes
    }

    /// What [`Opening::encode`] has made, or any other bytes.
    fn decode(request: &[u8]) -> Option<Self> {
        let words: Vec<u32> = request.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
        let [purpose, hertz, stack, switches, clock, kind, number, heirs, tid, cpu] = words[..] else {
            return None;
        };
        let clock = clock.cast_signed();
        let purpose = match purpose {
            0 => Purpose::Sample { hertz, stack, build_ids: switches & 2 != 0, clock },
            1 => Purpose::Collect { clock },
            2 => Purpose::Count,
            _ => return None,
        };
        let all = [Heirs::None, Heirs::Threads, Heirs::All, Heirs::FromExec];
        let heirs = *all.get(heirs as usize)?;
        let is_counter = [abi::PERF_TYPE_HARDWARE, abi::PERF_TYPE_SOFTWARE].contains(&kind);
        let cpu = u32::try_from(cpu.cast_signed()).ok().map(Cpu);
        let (kernel, tid) = (switches & 1 != 0, Tid(tid.cast_signed()));
        is_counter.then_some(Self { purpose, event: (kind, number), heirs, kernel, tid, cpu })
    }
}

/// What a sample has, and which records come besides samples.
fn sample(attribute: &mut perf_event_attr, hertz: u32, stack: u32) {
    attribute.__bindgen_anon_1.sample_freq = hertz.into();
    let sample = abi::PERF_SAMPLE_IP
        | abi::PERF_SAMPLE_TID
        | abi::PERF_SAMPLE_TIME
        | abi::PERF_SAMPLE_PERIOD
        | abi::PERF_SAMPLE_CALLCHAIN;
    attribute.sample_type = sample.into();
    if stack > 0 {
        attribute.sample_type |= u64::from(abi::PERF_SAMPLE_REGS_USER | abi::PERF_SAMPLE_STACK_USER);
        attribute.sample_regs_user = STACK_REGISTERS;
        attribute.sample_stack_user = stack;
        attribute.set_exclude_callchain_user(1);
    }
    attribute.set_freq(1);
    attribute.set_mmap(1);
    attribute.set_mmap2(1);
    attribute.set_comm(1);
    attribute.set_comm_exec(1);
    attribute.set_task(1);
    attribute.set_sample_id_all(1);
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLER: Opening = Opening {
        purpose: Purpose::Sample {
            hertz: 997,
            stack: 4096,
            build_ids: true,
            clock: libc::CLOCK_MONOTONIC_RAW,
        },
        event: (abi::PERF_TYPE_SOFTWARE, abi::PERF_COUNT_SW_CPU_CLOCK),
        heirs: Heirs::Threads,
        kernel: true,
        tid: Tid(-1),
        cpu: Some(Cpu(3)),
    };

    #[test]
    fn requests_say_all_that_is_to_be_opened() {
        let silent = Opening { purpose: Purpose::Collect { clock: 4 }, heirs: Heirs::None, ..SAMPLER };
        let counter = Opening { purpose: Purpose::Count, tid: Tid(7), cpu: None, kernel: false, ..SAMPLER };
        for opening in [SAMPLER, silent, counter, Opening { heirs: Heirs::FromExec, ..SAMPLER }] {
            assert_eq!(Opening::decode(&opening.encode()), Some(opening));
        }
    }

    #[test]
    fn other_requests_are_refused() {
        let bytes = SAMPLER.encode();
        let with = |at: usize, byte: u8| {
            let mut bytes = bytes;
            bytes[at] = byte;
            Opening::decode(&bytes)
        };
        assert_eq!(with(0, 3), None, "no such purpose");
        assert_eq!(with(28, 4), None, "no such heirs");
        for kind in [abi::PERF_TYPE_TRACEPOINT, abi::PERF_TYPE_BREAKPOINT, abi::PERF_TYPE_RAW, 8] {
            assert_eq!(with(20, kind as u8), None, "type {kind}");
        }
        for len in 0..REQUEST {
            assert_eq!(Opening::decode(&bytes[..len]), None, "{len}");
        }
        assert_eq!(open(&[]).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
