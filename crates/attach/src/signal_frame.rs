//! Whether a stopped thread runs a signal handler: the handler may have interrupted the allocator, whose lock
//! the thread then holds.
//!
//! The kernel puts a frame on the stack of a handler (`struct rt_sigframe`,
//! arch/x86/include/asm/sigframe.h): the handler's return address, which is code that calls `rt_sigreturn`
//! (`sa_restorer`; glibc and musl both: `mov rax, 15; syscall`), and the interrupted registers, with the
//! segments among them. A frame left over from an earlier handler looks the same: such a thread is passed
//! over, too.

use tracewing_programs::image::{AddressSpace, Mapping, Memory};

/// Most bytes of a stack that are searched.
const MOST: u64 = 1 << 20;
const WORD: u64 = 8;

/// `mov rax, 15; syscall`, in the two encodings that C libraries use.
const RESTORERS: [&[u8]; 2] =
    [&[0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05], &[0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05]];

/// From the return address to the segments of the interrupted function: the 19th word of `struct sigcontext`,
/// before which `struct ucontext` has 40 bytes.
const SEGMENTS: usize = 8 + 40 + 18 * 8;
/// That word in a 64-bit program: `cs`, `gs`, `fs`, `ss`.
const OF_64_BITS: u64 = 0x002b_0000_0000_0033;

/// Whether the stack from this address on holds a signal handler's frame.
pub(crate) fn is_in_handler(memory: &impl AddressSpace, stack_pointer: u64) -> bool {
    let from = stack_pointer & !(WORD - 1);
    let stack = memory.mappings().iter().find(|mapping| from.wrapping_sub(mapping.start) < mapping.size);
    let Some(stack) = stack else { return true };
    let len = (stack.start + stack.size - from).min(MOST);
    let Some(bytes) = memory.read(from, len as usize) else { return true };
    (0..bytes.len()).step_by(WORD as usize).any(|at| is_frame(memory, &bytes[at..]))
}

/// Whether a stretch of a stack begins with a frame; cheap checks come first.
fn is_frame(memory: &impl AddressSpace, bytes: &[u8]) -> bool {
    let word = |at: usize| bytes.get(at..)?.first_chunk().map(|word| u64::from_le_bytes(*word));
    word(SEGMENTS) == Some(OF_64_BITS)
        && word(0).is_some_and(|address| is_code(memory, address) && is_restorer(memory, address))
}

fn is_code(memory: &impl AddressSpace, address: u64) -> bool {
    let covers =
        |mapping: &Mapping| mapping.is_executable && address.wrapping_sub(mapping.start) < mapping.size;
    memory.mappings().iter().any(covers)
}

fn is_restorer(memory: &impl Memory, address: u64) -> bool {
    RESTORERS.iter().any(|code| memory.read(address, code.len()).is_some_and(|bytes| bytes == *code))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Code at 0x1000, a stack at 0x8000.
    struct Process {
        mappings: [Mapping; 2],
        code: Vec<u8>,
        stack: Vec<u8>,
    }

    impl Memory for Process {
        fn read(&self, address: u64, len: usize) -> Option<Vec<u8>> {
            let (bytes, start) = if address < 0x8000 { (&self.code, 0x1000) } else { (&self.stack, 0x8000) };
            let at = usize::try_from(address.checked_sub(start)?).ok()?;
            Some(bytes.get(at..at + len)?.to_vec())
        }

        fn is_live(&self) -> bool {
            true
        }
    }

    impl AddressSpace for Process {
        fn mappings(&self) -> &[Mapping] {
            &self.mappings
        }
    }

    #[test]
    fn a_handlers_frame_is_found() {
        let mapping =
            |start, size, is_executable| Mapping { start, size, is_executable, ..Mapping::default() };
        let mut process = Process {
            mappings: [mapping(0x1000, 0x100, true), mapping(0x8000, 0x200, false)],
            code: vec![0x90; 0x100],
            stack: vec![0; 0x200],
        };
        process.code[0x40..0x49].copy_from_slice(RESTORERS[0]);
        let mut put = |at: usize, word: u64| process.stack[at..at + 8].copy_from_slice(&word.to_le_bytes());
        // Other code, no code, and the address that `sigaction` was given.
        put(0x10, 0x1041);
        put(0x20, 0x9999);
        put(0x30, 0x1040);
        put(0x10 + SEGMENTS, OF_64_BITS);
        put(0x20 + SEGMENTS, OF_64_BITS);
        assert!(!is_in_handler(&process, 0x8008));
        process.stack[0x80..0x88].copy_from_slice(&0x1040_u64.to_le_bytes());
        process.stack[0x80 + SEGMENTS..][..8].copy_from_slice(&OF_64_BITS.to_le_bytes());
        assert!(is_in_handler(&process, 0x8008));
        assert!(!is_in_handler(&process, 0x8088), "above the stack pointer only");
        assert!(is_in_handler(&process, 0x2000), "a stack that is not there cannot be searched");
    }
}
