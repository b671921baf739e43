//! The headers of an object, from its file or from memory, where a loaded object begins with the same bytes.
//! Only the parts that lead to sites are kept.

use object::LittleEndian;
use object::elf::{
    EM_AARCH64, EM_X86_64, ET_CORE, ET_DYN, ET_EXEC, ET_REL, FileHeader64, PT_DYNAMIC, PT_LOAD, PT_NOTE,
    ProgramHeader64,
};
use object::pod::{from_bytes, slice_from_bytes};
use object::read::elf::{FileHeader, ProgramHeader};

use super::{ElfFault, Segment};

/// Maximum number of program headers; linkers create about ten.
const MOST_SEGMENTS: u16 = 256;

/// An object's headers.
#[derive(Debug, Clone)]
pub struct Elf {
    /// The processor that its code is for.
    pub processor: Processor,
    /// Whether it must be loaded at the addresses in its headers.
    pub fixed: bool,
    /// The loaded segments, by address.
    pub loads: Vec<Segment>,
    /// The segments of its notes.
    pub notes: Vec<Segment>,
    /// The segment of its dynamic section.
    pub dynamic: Option<Segment>,
}

/// The processors whose objects are supported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Processor {
    /// x86-64.
    X86,
    /// 64-bit Arm.
    Arm,
}

impl Elf {
    /// Reads the headers; `read` fills its buffer with bytes of the object, counted from its beginning, if
    /// they are there.
    ///
    /// # Errors
    /// The reason why this is not an object that could have sites.
    pub fn parse(read: impl Fn(u64, &mut [u8]) -> Option<()>) -> Result<Self, ElfFault> {
        let mut magic = [0; 16];
        if read(0, &mut magic).is_none() || !magic.starts_with(b"\x7fELF") {
            return Err(if magic.starts_with(b"#!") { ElfFault::Script } else { ElfFault::NotElf });
        }
        if magic[4] != 2 || magic[5] != 1 {
            return Err(ElfFault::WordSize);
        }
        let mut bytes = [0; size_of::<FileHeader64<LittleEndian>>()];
        read(0, &mut bytes).ok_or(ElfFault::CutOff("header"))?;
        let endian = LittleEndian;
        let (header, _) =
            from_bytes::<FileHeader64<LittleEndian>>(&bytes).map_err(|()| ElfFault::CutOff("header"))?;
        let processor = match header.e_machine(endian) {
            EM_X86_64 => Processor::X86,
            EM_AARCH64 => Processor::Arm,
            other => return Err(ElfFault::Machine(other.0)),
        };
        let fixed = match header.e_type(endian) {
            ET_EXEC => true,
            ET_DYN => false,
            ET_REL => return Err(ElfFault::NotLinked),
            ET_CORE => return Err(ElfFault::CoreDump),
            other => return Err(ElfFault::Type(other.0)),
        };
        let segments = header.e_phnum(endian);
        if segments > MOST_SEGMENTS {
            return Err(ElfFault::ManyHeaders(segments));
        }
        if usize::from(header.e_phentsize(endian)) != size_of::<ProgramHeader64<LittleEndian>>() {
            return Err(ElfFault::HeaderSize);
        }
        let mut table = vec![0; usize::from(segments) * size_of::<ProgramHeader64<LittleEndian>>()];
        read(header.e_phoff(endian), &mut table).ok_or(ElfFault::CutOff("program headers"))?;
        let (table, _) = slice_from_bytes::<ProgramHeader64<LittleEndian>>(&table, usize::from(segments))
            .map_err(|()| ElfFault::CutOff("program headers"))?;
        let of = |kind| {
            let of_kind = table.iter().filter(move |segment| segment.p_type(endian) == kind);
            of_kind.map(Segment::of_header)
        };
        let mut loads: Vec<_> = of(PT_LOAD).collect();
        loads.sort_by_key(|load| load.address);
        let (notes, dynamic) = (of(PT_NOTE).collect(), of(PT_DYNAMIC).next());
        Ok(Self { processor, fixed, loads, notes, dynamic })
    }

    /// The segment that contains an address (without the bias).
    pub fn load(&self, address: u64) -> Option<&Segment> {
        let after = self.loads.partition_point(|load| load.address <= address);
        let load = &self.loads[after.checked_sub(1)?];
        (address - load.address < load.in_memory).then_some(load)
    }
}
