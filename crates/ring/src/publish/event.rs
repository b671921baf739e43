//! The event path: an event of constant size, compact form. `docs/explanation/event-path.md` explains its
//! instructions.

use core::arch::asm;

use tracewing_abi::event::{CONTEXT, HEADER, header_word};
use tracewing_abi::region::CONTROL;

use super::MAJORS;

use super::steps::{arm, armed, event_steps, lines, sequence};
use super::{ATTEMPTS, CPU_ID, RSEQ_CS};
use crate::attachment::Attachment;
use crate::enable_word::EnableWord;
use crate::thread::Entry;

/// A step as instructions.
macro_rules! instruction {
    (Key) => {
        lines![
            "mov {t}, fs:[{thread} + {ENTRY_KEY}]"
            "cmp {t}, [{at} + {KEY}]"
            "jne 7f"
        ]
    };
    // Same id; then the bit of the class's major class in the region's mask.
    (Enabled) => {
        lines![
            "cmp {word:x}, [{enabled}]"
            "jne 7f"
            "mov {u}, [{at} + {BASE}]"
            "mov {u}, [{u} + {MAJORS}]"
            "movzx {t:e}, byte ptr [{enabled} + {MAJOR}]"
            "bt {u}, {t}"
            "jnc 5f"
        ]
    };
    // Never above the number of buffers, unless the area was unregistered.
    (Buffer) => {
        lines![
            "mov {cpu:e}, fs:[{rseq} + {CPU_ID}]"
            "cmp {cpu:e}, [{at} + {CPUS}]"
            "jae 7f"
            "imul {cpu}, [{at} + {STRIDE}]"
            "add {cpu}, [{at} + {BASE}]"
        ]
    };
    (Head) => { lines!["mov {head}, [{cpu}]"] };
    (Clock) => {
        lines![
            ".if {ORDERED}"
            "lfence"
            ".endif"
            "rdtsc"
        ]
    };
    // Opened (head % S is not 0) and head % S + length < S, in one comparison.
    (Room) => {
        lines![
            "lea {t}, [{head} - 1]"
            "and {t}, [{at} + {SUB_BUFFER_MASK}]"
            "add {t}, {LENGTH} + 1"
            "cmp {t}, [{at} + {SUB_BUFFER_MASK}]"
            "ja 7f"
        ]
    };
    (Place) => {
        lines![
            "mov {t}, {head}"
            "and {t}, [{at} + {DATA_MASK}]"
            "mov {u}, {t}"
            "and {u}, [{at} + {SUB_BUFFER_BITS}]"
        ]
    };
    (Age) => {
        lines![
            "shl rdx, 32"
            "or rdx, rax"
            "sub rdx, [{cpu} + {u} + {CONTROL}]"
            "shr rdx, 32"
            "jnz 7f"
        ]
    };
    (Header) => {
        lines![
            "add {t}, {cpu}"
            "mov [{t} + {CONTROL}], eax"
            "mov [{t} + {CONTROL} + 4], {word:e}"
        ]
    };
    (Thread) => {
        lines![
            "mov eax, fs:[{thread} + {ENTRY_TID}]"
            "mov [{t} + {CONTROL} + 8], eax"
        ]
    };
    (Payload) => {
        lines![
            ".set .Lat, 0"
            ".rept {LEN} / 8"
            "mov rax, [{payload} + .Lat]"
            "mov [{t} + {CONTROL} + 12 + .Lat], rax"
            ".set .Lat, .Lat + 8"
            ".endr"
            ".if {LEN} & 4"
            "mov eax, [{payload} + .Lat]"
            "mov [{t} + {CONTROL} + 12 + .Lat], eax"
            ".set .Lat, .Lat + 4"
            ".endif"
            ".if {LEN} & 2"
            "mov ax, [{payload} + .Lat]"
            "mov [{t} + {CONTROL} + 12 + .Lat], ax"
            ".set .Lat, .Lat + 2"
            ".endif"
            ".if {LEN} & 1"
            "mov al, [{payload} + .Lat]"
            "mov [{t} + {CONTROL} + 12 + .Lat], al"
            ".endif"
        ]
    };
    (Advance) => { lines!["add {head}, {LENGTH}"] };
    (Armed) => { armed!() };
    (Commit) => { lines!["mov [{cpu}], {head}"] };
}

/// Steps as instructions.
macro_rules! instructions {
    ($($step:ident)+) => { concat!($(instruction!($step)),+) };
}

/// Writes the event `id` with `LEN` bytes of payload, if `enabled` still has that id. Otherwise it does
/// nothing and returns `false`; [`super::gather`] then finds the reason. If the class's major class is off,
/// it also does nothing, and there is nothing left to do.
///
/// The stamp is taken inside the sequence; with `ORDERED` it cannot precede the thread's earlier loads.
///
/// # Safety
/// 1. `payload` points to `LEN` readable bytes.
/// 2. While the key of `attachment` equals that of the calling thread's [`Entry`] at `entry_offset`
///    ([`crate::thread::entry_offset`]), the attached region is mapped, and `rseq_offset` is the distance of
///    the thread's registered `struct rseq` from its thread pointer.
#[inline(always)]
pub unsafe fn fixed<const LEN: usize, const ORDERED: bool>(
    attachment: *const Attachment,
    rseq_offset: isize,
    entry_offset: isize,
    enabled: &EnableWord,
    id: u16,
    payload: *const u8,
) -> bool {
    const { assert!(HEADER + CONTEXT + LEN <= u16::MAX as usize, "event larger than its length field can say") };
    // The event's first word is 32 bits of time and the lower half of this; the upper half counts attempts.
    let word = header_word(0, id, (HEADER + CONTEXT + LEN) as u16) >> 32 | u64::from(ATTEMPTS - 1) << 32;
    // SAFETY: the sequence reads the attachment (obligation 2: valid), the thread's own block and rseq area,
    // and `payload` (obligation 1). It writes the event between `head` and the end of the current sub-buffer,
    // which the comparison with the mask ensures, and `head` itself; the CPU number is bounded by the
    // attachment's. `rseq_cs` is cleared on every way out. All registers it changes are declared.
    unsafe {
        asm!(
            sequence!(
                abort: lines!["mov {t}, 0x100000000" "sub {word}, {t}" "jnc 2f"],
                // Armed only after the thread is known to be attached: before that, the rseq area may not be
                // its own.
                "mov {t}, fs:[{thread} + {ENTRY_KEY}]",
                "cmp {t}, [{at} + {KEY}]",
                "jne {slow}",
                arm!(),
                event_steps!(instructions),
                "5:",
                "mov qword ptr fs:[{rseq} + {RSEQ_CS}], 0",
                "jmp 8f",
                "7:",
                "mov qword ptr fs:[{rseq} + {RSEQ_CS}], 0",
                "jmp {slow}",
                "8:",
            ),
            at = in(reg) attachment,
            rseq = in(reg) rseq_offset,
            thread = in(reg) entry_offset,
            enabled = in(reg) enabled,
            word = inout(reg) word => _,
            payload = in(reg) payload,
            cpu = out(reg) _,
            head = out(reg) _,
            t = out(reg) _,
            u = out(reg) _,
            out("rax") _,
            out("rdx") _,
            slow = label { return false },
            ENTRY_KEY = const Entry::KEY,
            ENTRY_TID = const Entry::TID,
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
            ORDERED = const ORDERED as u32,
            LEN = const LEN,
            LENGTH = const HEADER + CONTEXT + LEN,
            options(nostack),
        );
    }
    true
}
