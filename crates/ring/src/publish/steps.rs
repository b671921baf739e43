//! The sequences of protocol `Publish`, as lists of steps.
//!
//! Each list is written once. `event` and `gather` (or `open`) turn every step into instructions, in the
//! list's order; `model` turns it into ordinary code on the same words, which the model checker runs and
//! which the single-stepped instructions are compared with.

/// Writing an event.
///
/// | step | does | leaves the sequence when |
/// |---|---|---|
/// | `Key` | compares the attachment's key with the thread's | they differ |
/// | `Buffer` | finds the buffer of the CPU that the thread is on | the region has none |
/// | `Head` | loads the buffer's position | |
/// | `Clock` | reads the time | |
/// | `Enabled` | compares the id with the one in the class's word, looks at the mask of major classes | they differ; the major class is off |
/// | `Room` | compares what is left of the sub-buffer | it is not open, or the event would reach its end |
/// | `Place` | masks the position: the event's address, and the sub-buffer's | |
/// | `Age` | subtracts the sub-buffer's beginning from the time | the difference does not fit 32 bits |
/// | `Header` | writes stamp, id and length | |
/// | `Thread` | writes the thread id | |
/// | `Payload` | writes the payload | |
/// | `Advance` | adds the length to the position | |
/// | `Armed` | looks whether the kernel still protects the sequence | starts again if it does not |
/// | `Commit` | stores the position | |
macro_rules! event_steps {
    ($use_them:ident) => {
        $use_them!(Key Buffer Head Clock Enabled Room Place Age Header Thread Payload Advance Armed Commit)
    };
}
pub(super) use event_steps;

/// Opening a sub-buffer that was claimed.
///
/// | step | does | leaves the sequence when |
/// |---|---|---|
/// | `Key` | compares the attachment's key with the thread's | they differ |
/// | `SameCpu` | compares the CPU with the one that the claim was made for | they differ; all positions start equal |
/// | `SameHead` | compares the position with the one that the claim was made for | they differ |
/// | `Clock` | reads the time | |
/// | `Close` | writes end and size into the old sub-buffer's header | |
/// | `Open` | writes begin, number and counts into the new one's | |
/// | `Armed` | looks whether the kernel still protects the sequence | starts again if it does not |
/// | `Commit` | stores the position after the new header | |
macro_rules! open_steps {
    ($use_them:ident) => {
        $use_them!(Key SameCpu SameHead Clock Close Open Armed Commit)
    };
}
pub(super) use open_steps;

/// Lines of assembly.
#[cfg(all(target_arch = "x86_64", not(loom)))]
macro_rules! lines {
    ($($line:literal)+) => { concat!($($line, "\n"),+) };
}
#[cfg(all(target_arch = "x86_64", not(loom)))]
pub(super) use lines;

/// The assembly that brackets a sequence: the kernel's descriptor of it (`struct rseq_cs`), and the abort
/// handler, preceded by its signature. Labels: 2: attempt; 3: descriptor; 4 to 5: the protected instructions;
/// 6: abort; 7: giving up. First come the instructions that count an abort and jump to 2 if there may be
/// another attempt.
#[cfg(all(target_arch = "x86_64", not(loom)))]
macro_rules! sequence {
    (abort: $count:expr, $($line:expr),+ $(,)?) => {
        concat!(
            // struct rseq_cs { u32 version, flags; u64 start_ip, post_commit_offset, abort_ip; }
            ".pushsection __rseq_cs, \"aw\"\n",
            ".balign 32\n",
            "3: .long 0, 0\n",
            ".quad 4f, 5f - 4f, 6f\n",
            ".popsection\n",
            // The bytes before the signature make it an undefined instruction (ud1) to a disassembler.
            ".pushsection __rseq_failure, \"ax\"\n",
            ".byte 0x0f, 0xb9, 0x3d\n",
            ".long 0x53053053\n",
            "6:\n",
            $count,
            "jmp 7f\n",
            ".popsection\n",
            $($line, "\n"),+
        )
    };
}
#[cfg(all(target_arch = "x86_64", not(loom)))]
pub(super) use sequence;

/// Counts an abort in a register of its own.
#[cfg(all(target_arch = "x86_64", not(loom)))]
macro_rules! count_attempts {
    () => {
        "dec {attempts:e}\njnz 2f\n"
    };
}
#[cfg(all(target_arch = "x86_64", not(loom)))]
pub(super) use count_attempts;

/// Begins an attempt: marks the instructions that follow as the sequence's, for the kernel.
#[cfg(all(target_arch = "x86_64", not(loom)))]
macro_rules! arm {
    () => {
        concat!("2: lea {t}, [rip + 3b]\n", "mov fs:[{rseq} + {RSEQ_CS}], {t}\n", "4:")
    };
}
#[cfg(all(target_arch = "x86_64", not(loom)))]
pub(super) use arm;

/// The step `Armed`. A sequence is not armed if a uprobe or a debugger ran one of its instructions elsewhere.
#[cfg(all(target_arch = "x86_64", not(loom)))]
macro_rules! armed {
    () => {
        concat!("lea {t}, [rip + 3b]\n", "cmp {t}, fs:[{rseq} + {RSEQ_CS}]\n", "jne 6b\n")
    };
}
#[cfg(all(target_arch = "x86_64", not(loom)))]
pub(super) use armed;
