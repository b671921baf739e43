//! An event of any size, from segments, compact or extended, with a registration of the caller's choice.

use core::arch::asm;
use core::ptr;

use tracewing_abi::event::{CONTEXT, EXTENDED_HEADER, EXTENDED_ID, HEADER, header_word};
use tracewing_abi::region::CONTROL;
use tracewing_units::Cpu;

use super::steps::{arm, armed, count_attempts, event_steps, lines, sequence};
use super::{ATTEMPTS, CPU_ID, Destination, MAJORS, Outcome, RSEQ_CS};
use crate::attachment::Attachment;
use crate::copy::Segment;
use crate::enable_word::EnableWord;

/// Inputs that the sequence reads from memory, because registers are scarce.
#[repr(C)]
struct Request {
    key: u64,
    enabled: *const EnableWord,
    word: u64,
    id: u64,
    tid: u64,
    header: u64,
    length: u64,
    segments: *const Segment,
    end: *const Segment,
}

const WRITTEN: u32 = 0;
const DETACHED: u32 = 1;
const FULL: u32 = 2;
const EXTEND: u32 = 3;
const INTERRUPTED: u32 = 4;
const UNWANTED: u32 = 5;

/// A step as instructions.
macro_rules! instruction {
    (Key) => {
        lines![
            "mov {t}, [{request} + {R_KEY}]"
            "cmp {t}, [{at} + {KEY}]"
            "mov {status:e}, {DETACHED}"
            "jne 9f"
        ]
    };
    // As in `fixed`.
    (Enabled) => {
        lines![
            "mov {t}, [{request} + {R_ENABLED}]"
            "mov rax, [{request} + {R_ID}]"
            "mov {status:e}, {UNWANTED}"
            "cmp ax, [{t}]"
            "jne 9f"
            "movzx eax, byte ptr [{t} + {MAJOR}]"
            "mov {t}, [{at} + {BASE}]"
            "mov {t}, [{t} + {MAJORS}]"
            "bt {t}, rax"
            "jnc 9f"
        ]
    };
    (Buffer) => {
        lines![
            "mov ecx, fs:[{rseq} + {CPU_ID}]"
            "cmp ecx, [{at} + {CPUS}]"
            "jae 9f"
            "mov {base}, rcx"
            "imul {base}, [{at} + {STRIDE}]"
            "add {base}, [{at} + {BASE}]"
        ]
    };
    (Head) => { lines!["mov {head}, [{base}]"] };
    (Clock) => {
        lines![
            ".if {ORDERED}"
            "lfence"
            ".endif"
            "rdtsc"
            "shl rdx, 32"
            "or rdx, rax"
        ]
    };
    (Room) => {
        lines![
            "lea {t}, [{head} - 1]"
            "and {t}, [{at} + {SUB_BUFFER_MASK}]"
            "add {t}, [{request} + {R_LENGTH}]"
            "inc {t}"
            "mov {status:e}, {FULL}"
            "cmp {t}, [{at} + {SUB_BUFFER_MASK}]"
            "ja 9f"
        ]
    };
    (Place) => {
        lines![
            "mov {t}, {head}"
            "and {t}, [{at} + {DATA_MASK}]"
            "mov rdi, {t}"
            "and rdi, [{at} + {SUB_BUFFER_BITS}]"
            "lea {t}, [{base} + {t} + {CONTROL}]"
        ]
    };
    // A clock that stepped back (suspend, restore) never gives a stamp below the sub-buffer's beginning.
    (Age) => {
        lines![
            "mov rsi, [{base} + rdi + {CONTROL}]"
            "cmp qword ptr [{request} + {R_HEADER}], {HEADER}"
            "jne 20f"
            "mov rdi, rdx"
            "sub rdi, rsi"
            "shr rdi, 32"
            "mov {status:e}, {EXTEND}"
            "jnz 9f"
            "jmp 21f"
            "20:"
            "cmp rdx, rsi"
            "cmovb rdx, rsi"
            "21:"
        ]
    };
    (Header) => {
        lines![
            "mov eax, edx"
            "or rax, [{request} + {R_WORD}]"
            "mov [{t}], rax"
            "cmp qword ptr [{request} + {R_HEADER}], {HEADER}"
            "je 22f"
            "mov [{t} + {HEADER}], rdx"
            "mov rsi, [{request} + {R_ID}]"
            "mov [{t} + {HEADER} + 8], si"
            "22:"
            "add {t}, [{request} + {R_HEADER}]"
        ]
    };
    (Thread) => {
        lines![
            "mov eax, [{request} + {R_TID}]"
            "mov [{t}], eax"
            "add {t}, 4"
        ]
    };
    // The segments: whole words, then the rest as a last word that overlaps, or bit by bit of a short length.
    (Payload) => {
        lines![
            "mov rdi, [{request} + {R_SEGMENTS}]"
            "12:"
            "cmp rdi, [{request} + {R_END}]"
            "je 16f"
            "mov rsi, [rdi + {S_START}]"
            "mov rax, [rdi + {S_LEN}]"
            "add rdi, {S_SIZE}"
            "cmp rax, 8"
            "jb 14f"
            "13:"
            "mov rdx, [rsi]"
            "mov [{t}], rdx"
            "add rsi, 8"
            "add {t}, 8"
            "sub rax, 8"
            "cmp rax, 8"
            "jae 13b"
            "test rax, rax"
            "jz 12b"
            "mov rdx, [rsi + rax - 8]"
            "mov [{t} + rax - 8], rdx"
            "add {t}, rax"
            "jmp 12b"
            "14:"
            "test al, 4"
            "jz 15f"
            "mov edx, [rsi]"
            "mov [{t}], edx"
            "add rsi, 4"
            "add {t}, 4"
            "15:"
            "test al, 2"
            "jz 17f"
            "mov dx, [rsi]"
            "mov [{t}], dx"
            "add rsi, 2"
            "add {t}, 2"
            "17:"
            "test al, 1"
            "jz 12b"
            "mov dl, [rsi]"
            "mov [{t}], dl"
            "inc {t}"
            "jmp 12b"
            "16:"
        ]
    };
    (Advance) => {
        lines![
            "mov rdi, {head}"
            "add rdi, [{request} + {R_LENGTH}]"
        ]
    };
    (Armed) => { armed!() };
    (Commit) => { lines!["mov [{base}], rdi"] };
}

/// Steps as instructions.
macro_rules! instructions {
    ($($step:ident)+) => { concat!($(instruction!($step)),+) };
}

/// Writes the event `id` whose payload is the concatenation of `segments`, if `enabled` has that id. The
/// stamp is taken inside the sequence, as by [`super::fixed`].
///
/// # Panics
/// The event does not fit its 16-bit length field; callers check against
/// [`tracewing_abi::region::Geometry::largest_event`] first.
///
/// # Safety
/// 1. Every segment is readable.
/// 2. While the attachment's key is `to.key`, the attached region is mapped, and `to.rseq_offset` leads to a
///    registered `struct rseq` of the calling task, and of no other.
#[inline(never)]
pub unsafe fn gather<const ORDERED: bool>(
    to: Destination<'_>,
    enabled: &EnableWord,
    id: u16,
    segments: &[Segment],
    extended: bool,
) -> Outcome {
    let header = if extended { EXTENDED_HEADER } else { HEADER };
    let length = Segment::total(segments).saturating_add(header + CONTEXT);
    let length16 = u16::try_from(length).expect("the caller bounds the event's size");
    let request = Request {
        key: to.key,
        enabled,
        word: header_word(0, if extended { EXTENDED_ID } else { id }, length16),
        id: id.into(),
        tid: to.tid.0 as u32 as u64,
        header: header as u64,
        length: length as u64,
        segments: segments.as_ptr(),
        end: segments.as_ptr_range().end,
    };
    let (status, cpu, head): (u32, u32, u64);
    // SAFETY: as for `fixed`: what is read is valid by the obligations; what is written lies between `head`
    // and the end of the sub-buffer, since `length` was compared with it and is the sum of everything that is
    // written.
    unsafe {
        asm!(
            sequence!(
                abort: count_attempts!(),
                "mov {attempts:e}, {ATTEMPTS}",
                arm!(),
                event_steps!(instructions),
                "5:",
                "mov {status:e}, {WRITTEN}",
                "jmp 9f",
                "7:",
                "mov {status:e}, {INTERRUPTED}",
                "9:",
                "mov qword ptr fs:[{rseq} + {RSEQ_CS}], 0",
            ),
            at = in(reg) ptr::from_ref(to.attachment),
            rseq = in(reg) to.rseq_offset,
            request = in(reg) &request,
            attempts = out(reg) _,
            status = out(reg) status,
            base = out(reg) _,
            head = out(reg) head,
            t = out(reg) _,
            out("rax") _,
            out("ecx") cpu,
            out("rdx") _,
            out("rsi") _,
            out("rdi") _,
            ORDERED = const ORDERED as u32,
            ATTEMPTS = const ATTEMPTS,
            WRITTEN = const WRITTEN,
            DETACHED = const DETACHED,
            FULL = const FULL,
            EXTEND = const EXTEND,
            INTERRUPTED = const INTERRUPTED,
            UNWANTED = const UNWANTED,
            MAJOR = const EnableWord::MAJOR,
            MAJORS = const MAJORS,
            KEY = const Attachment::KEY,
            BASE = const Attachment::BASE,
            STRIDE = const Attachment::STRIDE,
            CPUS = const Attachment::CPUS,
            SUB_BUFFER_MASK = const Attachment::SUB_BUFFER_MASK,
            SUB_BUFFER_BITS = const Attachment::SUB_BUFFER_BITS,
            DATA_MASK = const Attachment::DATA_MASK,
            RSEQ_CS = const RSEQ_CS,
            CPU_ID = const CPU_ID,
            CONTROL = const CONTROL,
            HEADER = const HEADER,
            R_KEY = const core::mem::offset_of!(Request, key),
            R_ENABLED = const core::mem::offset_of!(Request, enabled),
            R_WORD = const core::mem::offset_of!(Request, word),
            R_ID = const core::mem::offset_of!(Request, id),
            R_TID = const core::mem::offset_of!(Request, tid),
            R_HEADER = const core::mem::offset_of!(Request, header),
            R_LENGTH = const core::mem::offset_of!(Request, length),
            R_SEGMENTS = const core::mem::offset_of!(Request, segments),
            R_END = const core::mem::offset_of!(Request, end),
            S_START = const core::mem::offset_of!(Segment, start),
            S_LEN = const core::mem::offset_of!(Segment, len),
            S_SIZE = const size_of::<Segment>(),
            options(nostack),
        );
    }
    match status {
        WRITTEN => Outcome::Written,
        DETACHED => Outcome::Detached,
        FULL => Outcome::Full { cpu: Cpu(cpu), head },
        EXTEND => Outcome::Extend,
        UNWANTED => Outcome::Disabled,
        _ => Outcome::Interrupted,
    }
}
