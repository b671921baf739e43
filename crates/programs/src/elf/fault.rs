//! Why a file or memory is no object that could have sites.

/// What is there instead, or what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ElfFault {
    /// A folder, a pipe, a device.
    #[error("not a file")]
    NotAFile,
    /// A script.
    #[error("a script, not a program: give the program that it starts")]
    Script,
    /// Something else.
    #[error("not an ELF file: a program, a shared library or a plug-in is needed")]
    NotElf,
    /// Of 32 bits, or big-endian.
    #[error("not for a 64-bit little-endian processor, as programs with sites are")]
    WordSize,
    /// For a processor other than those of [`Processor`](super::Processor).
    #[error("for a processor (ELF machine {0}) that has no sites")]
    Machine(u16),
    /// A compiler's output, before the linker.
    #[error("an object file that is not linked yet")]
    NotLinked,
    /// A core dump.
    #[error("a core dump: give the program")]
    CoreDump,
    /// Of a type that is not known.
    #[error("an ELF file of the unknown type {0}")]
    Type(u16),
    /// Its bytes end too early.
    #[error("cut off within its {0}")]
    CutOff(&'static str),
    /// More program headers than linkers make.
    #[error("damaged: it has {0} program headers")]
    ManyHeaders(u16),
    /// Program headers of another size.
    #[error("damaged: its program headers have an impossible size")]
    HeaderSize,
    /// More relocations than programs have.
    #[error("damaged: it has {0} relocations")]
    ManyRelocations(u64),
}
