//! Why a probe is impossible at a place, and why a value cannot be recorded there.

/// Why a request is not a probe.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestFault {
    /// It is not written like a probe.
    #[error(transparent)]
    Syntax(Syntax),
    /// It names no program.
    #[error("it has no colon; {0}")]
    NoColon(Syntax),
    /// It has both an offset and the function's return.
    #[error("a function returns as a whole: +OFFSET and %return cannot be combined; {0}")]
    OffsetAndReturn(Syntax),
}

/// How a request for a probe is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Syntax {
    /// One at a function.
    #[error("PROGRAM:FUNCTION[+OFFSET][%return] [ARGUMENT]... is expected")]
    Function,
    /// One at a USDT probe.
    #[error("[PROGRAM:]PROVIDER:NAME [ARGUMENT]... is expected")]
    Usdt,
}

/// Why a probe is impossible at a place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlaceFault {
    /// The symbol is an indirect function (`STT_GNU_IFUNC`).
    #[error(
        "this symbol is not a function but chooses one for the processor at program start; probe one of the candidates"
    )]
    Chooser,
    /// The offset is past the end of the function, whose size is given.
    #[error("the function has {0} bytes")]
    AfterEnd(u64),
    /// No code segment contains the address.
    #[error("there is no code")]
    NoCode,
    /// The address is inside an instruction.
    #[error("no instruction begins there; the nearest are at +{before:#x} and +{after:#x}")]
    NoInstruction {
        /// Offset in the function of the previous instruction.
        before: u64,
        /// Offset in the function of the next instruction.
        after: u64,
    },
    /// The address is in a restartable sequence.
    #[error(
        "it is in a restartable sequence, which loses its protection when the kernel executes a probed instruction elsewhere"
    )]
    InSequence,
    /// The address is the site of this tracewing event.
    #[error(
        "it is the site of the event {0}, which the probe would disable; record the event instead, with -e '{0}'"
    )]
    Site(String),
    /// The kernel's probe of a return writes an address into the stack, and Go looks for callers there.
    #[error(
        "it is in a Go program, whose stacks move when they grow: a return probe would crash it; record the calls, without %return"
    )]
    Go,
    /// The address of its instruction in a USDT probe's note does not exist.
    #[error("its instruction is not in the file")]
    NoInstructionInFile,
    /// The address of its semaphore in a USDT probe's note does not exist.
    #[error("its semaphore is not in the file")]
    NoSemaphoreInFile,
}

/// Why a value cannot be recorded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ValueFault {
    /// The request for it is unclear.
    #[error(transparent)]
    Request(#[from] ArgumentFault),
    /// The kernel cannot fetch this argument of a USDT probe.
    #[error(transparent)]
    Operand(#[from] OperandFault),
    /// A variable has no location, or one from which the kernel cannot fetch it.
    #[error(transparent)]
    Variable(#[from] VariableFault),
}

/// Why it is unclear which value is requested.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArgumentFault {
    /// Two values have the same name.
    #[error("another field is named {name}; name this one, as other_{name}={text}")]
    SecondName {
        /// The name.
        name: String,
        /// The second value, as requested.
        text: String,
    },
    /// An expression in the kernel's syntax needs a name.
    #[error("it needs a name: NAME=%di")]
    NoName,
    /// The text matches no known form.
    #[error("this is not the name of a variable")]
    NoVariable,
    /// The name cannot be that of a field.
    #[error("field names consist of letters, digits and underscores")]
    Name,
    /// A return value, at a USDT probe.
    #[error("nothing returns here")]
    NoReturn,
    /// A return value, at the beginning of a function.
    #[error("nothing is returned here; add %return to the function")]
    NotAtReturn,
    /// A variable, at the return of a function.
    #[error("a function's arguments are gone when it returns; probe where it begins, or record $retval")]
    AtReturn,
    /// A USDT probe does not have this argument; it has fewer.
    #[error("the probe has {0} arguments, arg1 and so on")]
    NoArgument(usize),
}

/// Why the kernel cannot fetch an argument of a USDT probe.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OperandFault {
    /// The note is malformed.
    #[error("its description is malformed")]
    Malformed,
    /// A floating-point register holds it.
    #[error("the kernel cannot read floating-point registers")]
    Float,
    /// A register that the kernel cannot name holds it.
    #[error("the kernel cannot read {0}")]
    Register(String),
    /// Its address in memory is computed with an index.
    #[error("its address has an index, which the kernel cannot compute")]
    Index,
    /// It is in memory without a symbol.
    #[error("it has no symbol")]
    NoSymbol,
    /// It is in memory at a symbol that was stripped.
    #[error("its symbol {0} was stripped from the file")]
    StrippedSymbol(String),
}

/// Why a variable has no value that the kernel can fetch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VariableFault {
    /// The debug information does not contain the function.
    #[error(
        "there is no debug information about the function; compile with -g, install its debug symbols, or give the place in the \
         kernel's syntax, as NAME=%di:u64"
    )]
    NoDebug,
    /// The function has no variables.
    #[error("the function has no variables")]
    NoVariables,
    /// The function has no such variable, but these.
    #[error("there is no such variable; there are {}", .0.join(", "))]
    NoVariable(Vec<String>),
    /// The function returns nothing.
    #[error("the function returns nothing")]
    ReturnsNothing,
    /// The return value does not fit a register.
    #[error("it is a structure")]
    ReturnsStructure,
    /// The debug information does not contain its type.
    #[error("its type is unknown")]
    UnknownType,
    /// It has no location: it was optimised out.
    #[error("the compiler has optimised it out here")]
    OptimisedOut,
    /// It has a location only at later instructions.
    #[error("it has no value yet at the function's beginning; probe a later instruction (+OFFSET)")]
    NoValueYet,
    /// It had a location only at earlier instructions.
    #[error("its place is reused here; probe the function's beginning")]
    Overwritten,
    /// Its value must be computed.
    #[error("only a debugger can compute its value")]
    Computed,
    /// The address of its function's frame must be computed.
    #[error("only a debugger can compute the function's frame")]
    ComputedFrame,
    /// The location of its function's frame is unknown.
    #[error("there is no unwind table for this place")]
    NoUnwindTable,
    /// It is split over several registers or places in memory.
    #[error("it is split over several places")]
    InPieces,
    /// A register of an unsupported kind holds it.
    #[error("it is in a floating-point register, which the kernel cannot read")]
    NoRegister,
    /// The compiler uses its own convention for calls of the function.
    #[error(
        "the compiler does not pass the function's parameters by the standard convention; probe a later instruction (+OFFSET)"
    )]
    OtherConvention,
    /// The debug information does not determine the register by the calling convention.
    #[error("the register that passes it is not certain; probe a later instruction (+OFFSET)")]
    UncertainRegister,
    /// It is a number of a size that the kernel cannot fetch, in bytes.
    #[error("it is a number of {0} bytes")]
    NumberSize(u64),
    /// It is an array of elements other than characters.
    #[error("it is an array")]
    Array,
    /// It is a floating-point number.
    #[error("it is a floating-point number, which the kernel cannot read")]
    Float,
    /// It is a structure; each of the listed members can be recorded.
    #[error("it is a structure; name one of its members, as VARIABLE.MEMBER: {}", .0.join(", "))]
    Structure(Vec<String>),
    /// A fat reference of Rust's: a pointer with a length or a table, whose words are the listed members.
    #[error(
        "it consists of two words; name one of them, as VARIABLE.MEMBER: {} (Rust strings have no NUL, which the kernel needs to \
         find the end)", .0.join(", ")
    )]
    TwoWords(Vec<String>),
    /// The member must be reached through a pointer.
    #[error("{0} is reached through a pointer: write ->{0}")]
    ThroughPointer(String),
    /// The member is in the structure itself and needs no pointer.
    #[error("{0} is not reached through a pointer: write .{0}")]
    NotThroughPointer(String),
    /// The value before the member is not a structure.
    #[error("there is no member {0}: it is not a structure")]
    NoStructure(String),
    /// The type is declared but not defined.
    #[error("this part of the program does not define the members of {0}")]
    Declared(String),
    /// The structure has no such member.
    #[error("there is no member {name}; there are {}", members.join(", "))]
    NoMember {
        /// Name of the member.
        name: String,
        /// The members of the structure.
        members: Vec<String>,
    },
    /// The member is a bit field that does not begin at a byte.
    #[error("{0} is a bit field")]
    BitField(String),
    /// The member's place must be computed.
    #[error("only a debugger can compute the place of {0}")]
    ComputedMember(String),
    /// The member is a part of a register.
    #[error(
        "{0} is neither a whole register nor in memory; record the register, in the kernel's syntax, as NAME=%di:x64"
    )]
    PartOfRegister(String),
}

/// What a file is instead of a program for this machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FileFault {
    /// A folder, a pipe or a device.
    #[error("not a file")]
    NotAFile,
    /// A script, which starts with `#!`.
    #[error("a script: give the program that runs it")]
    Script,
    /// Neither an ELF file nor a script.
    #[error("not a 64-bit ELF file: a program or a shared library is needed")]
    NotElf,
    /// A program for another processor.
    #[error("for the processor {0}: probes are for x86-64")]
    Processor(String),
}
