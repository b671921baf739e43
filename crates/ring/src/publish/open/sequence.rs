//! The sequence that opens a sub-buffer.

use core::arch::asm;
use core::mem::offset_of;
use core::ptr;

use tracewing_abi::region::SubBufferHeader;

use super::Request;
use crate::attachment::Attachment;
use crate::publish::steps::{arm, armed, count_attempts, lines, open_steps, sequence};
use crate::publish::{ATTEMPTS, CPU_ID, Destination, Opened, RSEQ_CS};

const RETRY: u32 = 0;
const INTERRUPTED: u32 = 1;

/// A step as instructions.
macro_rules! instruction {
    (Key) => {
        lines![
            "cmp {key}, [{at} + {KEY}]"
            "jne 9f"
        ]
    };
    (SameCpu) => {
        lines![
            "mov {t:e}, fs:[{rseq} + {CPU_ID}]"
            "cmp {t:e}, [{request} + {R_CPU}]"
            "jne 9f"
        ]
    };
    (SameHead) => {
        lines![
            "mov {control}, [{request} + {R_CONTROL}]"
            "mov {t}, [{request} + {R_HEAD}]"
            "cmp {t}, [{control}]"
            "jne 9f"
        ]
    };
    (Clock) => {
        lines![
            "lfence"
            "rdtsc"
            "shl rdx, 32"
            "or rax, rdx"
        ]
    };
    // The end is never below the beginning, even where the clock stepped back.
    (Close) => {
        lines![
            "mov {t}, [{request} + {R_OLD}]"
            "cmp rax, [{t} + {BEGIN}]"
            "cmovb rax, [{t} + {BEGIN}]"
            "mov [{t} + {END}], rax"
            "mov rdx, [{request} + {R_USED}]"
            "mov [{t} + {USED}], rdx"
        ]
    };
    (Open) => {
        lines![
            "mov {t}, [{request} + {R_NEW}]"
            "mov [{t} + {BEGIN}], rax"
            "mov rdx, [{request} + {R_SEQUENCE}]"
            "mov [{t} + {SEQUENCE}], rdx"
            "mov rdx, [{request} + {R_LOST}]"
            "mov [{t} + {LOST}], rdx"
            "mov rdx, [{request} + {R_BEFORE}]"
            "mov [{t} + {BEFORE}], rdx"
        ]
    };
    (Armed) => {
        concat!("mov rdx, [{request} + {R_NEW_HEAD}]\n", armed!())
    };
    (Commit) => { lines!["mov [{control}], rdx"] };
}

/// Steps as instructions.
macro_rules! instructions {
    ($($step:ident)+) => { concat!($(instruction!($step)),+) };
}

/// Carries out the request, if nothing has changed since it was made.
///
/// # Safety
/// As for [`super::open`]; `request` was made for the region that is attached while the key is `to.key`.
pub(super) unsafe fn run(to: Destination<'_>, request: &Request) -> Opened {
    let status: u32;
    // SAFETY: the sequence reads the attachment, the task's rseq area (obligation of the caller) and
    // `request`; it writes two sub-buffer headers and `head` of `region`, which stays mapped, and only while
    // the thread runs on that CPU and `head` is what it was, so no other writer uses the new sub-buffer and
    // the reader has released it.
    unsafe {
        asm!(
            sequence!(
                abort: count_attempts!(),
                "mov {attempts:e}, {ATTEMPTS}",
                arm!(),
                "mov {status:e}, {RETRY}",
                open_steps!(instructions),
                "5:",
                "jmp 9f",
                "7:",
                "mov {status:e}, {INTERRUPTED}",
                "9:",
                "mov qword ptr fs:[{rseq} + {RSEQ_CS}], 0",
            ),
            at = in(reg) ptr::from_ref(to.attachment),
            rseq = in(reg) to.rseq_offset,
            key = in(reg) to.key,
            request = in(reg) request,
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
