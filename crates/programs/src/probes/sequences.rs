//! Restartable sequences, in which probes are forbidden: those of `tracewing_ring` and all others.
//!
//! The kernel executes the instruction under a probe elsewhere, where a thread that is preempted is no longer
//! in its sequence: the sequence continues without protection. The descriptors of all sequences are in the
//! section `__rseq_cs` (as the kernel's own tests and librseq have it): `struct rseq_cs { u32 version, flags;
//! u64 start_ip, post_commit_offset, abort_ip; }`.

use std::collections::HashMap;

use object::elf::R_X86_64_RELATIVE;
use object::{Object, ObjectSection, RelocationFlags};

use crate::probes::file::Elf;

const SECTION: &str = "__rseq_cs";
const DESCRIPTOR: usize = 32;

/// The address ranges of restartable sequences.
#[derive(Debug, Default)]
pub(crate) struct Sequences(Vec<std::ops::Range<u64>>);

impl Sequences {
    pub(crate) fn of(elf: &Elf<'_>) -> Self {
        let Some(section) = elf.section_by_name(SECTION) else { return Self::default() };
        let Ok(bytes) = section.data() else { return Self::default() };
        let begin = section.address();
        let inside = begin..begin + section.size();
        // Addresses that the dynamic linker fills in.
        let relocations = elf.dynamic_relocations().into_iter().flatten();
        let relative: HashMap<u64, u64> = relocations
            .filter(|(at, relocation)| {
                inside.contains(at)
                    && matches!(relocation.flags(), RelocationFlags::Elf { r_type, .. } if r_type == R_X86_64_RELATIVE)
            })
            .map(|(at, relocation)| (at, relocation.addend().cast_unsigned()))
            .collect();
        let descriptors = bytes.chunks_exact(DESCRIPTOR).zip((begin..).step_by(DESCRIPTOR));
        let range = |(descriptor, at): (&[u8], u64)| {
            let word = |offset: usize| {
                let stored = descriptor[offset..].first_chunk().copied().map_or(0, u64::from_le_bytes);
                relative.get(&(at + offset as u64)).copied().unwrap_or(stored)
            };
            let start = word(8);
            start..start.saturating_add(word(16))
        };
        Self(descriptors.map(range).collect())
    }

    pub(crate) fn contain(&self, address: u64) -> bool {
        self.0.iter().any(|sequence| sequence.contains(&address))
    }
}
