//! Opening the next sub-buffer of a CPU: rare, and a sequence of its own.

use core::arch::asm;
use core::mem::offset_of;

use tracewing_abi::region::{Loss, SUB_BUFFER_HEADER, SubBufferHeader};

use super::{ATTEMPTS, CPU_ID, Destination, Opened, RSEQ_CS, sequence};
use crate::Region;
use crate::attachment::Attachment;
use crate::region::Claim;
use crate::sync::AtomicU64;
use crate::sync::Ordering::*;

/// Inputs that the sequence reads from memory, for want of registers.
#[repr(C)]
struct Request {
    key: u64,
    cpu: u64,
    head: u64,
    new_head: u64,
    control: *const AtomicU64,
    old: *const SubBufferHeader,
    new: *const SubBufferHeader,
    used: u64,
    sequence: u64,
    lost: u64,
    before: u64,
}

const RETRY: u32 = 0;
const INTERRUPTED: u32 = 1;

/// Closes the sub-buffer of `cpu` that an event found full at position `head`, and opens the next one, unless the
/// reader still has that.
///
/// The begin time of the new sub-buffer is the end time of the old one, which is never below the old one's begin.
///
/// # Safety
/// As for [`super::gather`], with `region` the attached region while the attachment's key is `to.key`; and `region`
/// stays mapped during the call whatever the key.
#[cold]
#[inline(never)]
pub unsafe fn open(to: Destination, region: &Region, cpu: u32, head: u64) -> Opened {
    let buffer = region.cpu(cpu as usize);
    let geometry = region.geometry();
    let (current, used) = (geometry.sequence(head), geometry.at(head));
    let next = if used == 0 { current } else { geometry.later(current, 1) };
    let physical = match buffer.claim(next) {
        Claim::Granted(physical) => physical,
        Claim::Stale => return Opened::Retry,
        Claim::Full => {
            buffer.count_loss(Loss::Full);
            return Opened::Full;
        }
    };
    // The very first sub-buffer has none before it to close: its own header takes those two stores, and then its
    // begin replaces nothing that anybody reads.
    let new = buffer.header(physical);
    let (old, written) = match used {
        0 => (new, 0),
        _ => (buffer.header(geometry.physical(head)), (used - SUB_BUFFER_HEADER) as u64),
    };
    let request = Request {
        key: to.key,
        cpu: cpu.into(),
        head,
        new_head: geometry.position(next, physical, SUB_BUFFER_HEADER),
        control: &raw const buffer.control().head,
        old,
        new,
        used: used as u64,
        sequence: next + 1,
        lost: buffer.lost_total(),
        // Nobody changes it while `head` is what it was.
        before: old.before.load(Relaxed).wrapping_add(written),
    };
    let status: u32;
    // SAFETY: the sequence reads the attachment, the task's rseq area (obligation of the caller) and `request`; it
    // writes two sub-buffer headers and `head` of `region`, which stays mapped, and only while the thread runs on that
    // CPU and `head` is what it was, so no other writer uses the new sub-buffer and the reader has released it.
    unsafe {
        asm!(
            sequence!(
                "mov {attempts:e}, {ATTEMPTS}",
                "2:",
                "lea {t}, [rip + 3b]",
                "mov fs:[{rseq} + {RSEQ_CS}], {t}",
                "4:",
                "mov {status:e}, {RETRY}",
                "mov {t}, [{request} + {R_KEY}]",
                "cmp {t}, [{at} + {KEY}]",
                "jne 9f",
                "mov {t:e}, fs:[{rseq} + {CPU_ID}]",
                "cmp {t:e}, [{request} + {R_CPU}]",
                "jne 9f",
                "mov {control}, [{request} + {R_CONTROL}]",
                "mov {t}, [{request} + {R_HEAD}]",
                "cmp {t}, [{control}]",
                "jne 9f",
                "lfence",
                "rdtsc",
                "shl rdx, 32",
                "or rax, rdx",
                // Close the old one: end = max(now, begin), used.
                "mov {t}, [{request} + {R_OLD}]",
                "cmp rax, [{t} + {BEGIN}]",
                "cmovb rax, [{t} + {BEGIN}]",
                "mov [{t} + {END}], rax",
                "mov rdx, [{request} + {R_USED}]",
                "mov [{t} + {USED}], rdx",
                // Open the new one: begin, number, losses so far.
                "mov {t}, [{request} + {R_NEW}]",
                "mov [{t} + {BEGIN}], rax",
                "mov rdx, [{request} + {R_SEQUENCE}]",
                "mov [{t} + {SEQUENCE}], rdx",
                "mov rdx, [{request} + {R_LOST}]",
                "mov [{t} + {LOST}], rdx",
                "mov rdx, [{request} + {R_BEFORE}]",
                "mov [{t} + {BEFORE}], rdx",
                "mov rdx, [{request} + {R_NEW_HEAD}]",
                "lea {t}, [rip + 3b]",
                "cmp {t}, fs:[{rseq} + {RSEQ_CS}]",
                "jne 6b",
                "mov [{control}], rdx",
                "5:",
                "jmp 9f",
                "7:",
                "mov {status:e}, {INTERRUPTED}",
                "9:",
                "mov qword ptr fs:[{rseq} + {RSEQ_CS}], 0",
            ),
            at = in(reg) to.attachment,
            rseq = in(reg) to.rseq_offset,
            request = in(reg) &request,
            attempts = out(reg) _,
            status = out(reg) status,
            control = out(reg) _,
            t = out(reg) _,
            out("rax") _,
            out("rdx") _,
            ATTEMPTS = const ATTEMPTS,
            RETRY = const RETRY,
            INTERRUPTED = const INTERRUPTED,
            KEY = const Attachment::KEY,
            RSEQ_CS = const RSEQ_CS,
            CPU_ID = const CPU_ID,
            R_KEY = const offset_of!(Request, key),
            R_CPU = const offset_of!(Request, cpu),
            R_HEAD = const offset_of!(Request, head),
            R_NEW_HEAD = const offset_of!(Request, new_head),
            R_CONTROL = const offset_of!(Request, control),
            R_OLD = const offset_of!(Request, old),
            R_NEW = const offset_of!(Request, new),
            R_USED = const offset_of!(Request, used),
            R_SEQUENCE = const offset_of!(Request, sequence),
            R_LOST = const offset_of!(Request, lost),
            R_BEFORE = const offset_of!(Request, before),
            BEGIN = const offset_of!(SubBufferHeader, begin),
            END = const offset_of!(SubBufferHeader, end),
            SEQUENCE = const offset_of!(SubBufferHeader, sequence),
            USED = const offset_of!(SubBufferHeader, used),
            LOST = const offset_of!(SubBufferHeader, lost),
            BEFORE = const offset_of!(SubBufferHeader, before),
            options(nostack),
        );
    }
    if status == RETRY { Opened::Retry } else { Opened::Interrupted }
}
