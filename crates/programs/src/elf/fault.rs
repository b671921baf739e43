//! Why a file or memory is not an object that could have sites.

/// What it is instead, or what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ElfFault {
    /// A folder, a pipe or a device.
    #[error("not a file")]
    NotAFile,
    /// A script, which starts with `#!`.
    #[error("a script, not a program: give the program that it starts")]
    Script,
    /// Neither an ELF file nor a script.
    #[error("not an ELF file: a program, a shared library or a plug-in is needed")]
    NotElf,
    /// An ELF file of 32 bits, or big-endian.
    #[error("not for a 64-bit little-endian processor, as programs with sites are")]
    WordSize,
    /// For a processor other than those of [`Processor`](super::Processor).
    #[error("for a processor (ELF machine {0}) that has no sites")]
    Machine(u16),
    /// A compiler's output that has not been linked.
    #[error("an object file that is not yet linked")]
    NotLinked,
    /// A core dump, not a program.
    #[error("a core dump: give the program")]
    CoreDump,
    /// An ELF file of unknown type.
    #[error("an ELF file of the unknown type {0}")]
    Type(u16),
    /// The file ends too early; the string names the part.
    #[error("cut off within its {0}")]
    CutOff(&'static str),
    /// More program headers than linkers make.
    #[error("damaged: it has {0} program headers")]
    ManyHeaders(u16),
    /// Program headers of an unknown size.
    #[error("damaged: its program headers have an impossible size")]
    HeaderSize,
    /// More relocations than programs have.
    #[error("damaged: it has {0} relocations")]
    ManyRelocations(u64),
}
