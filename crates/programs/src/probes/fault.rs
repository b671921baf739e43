//! Why a probe cannot be at a place, and why a value cannot be recorded there.

/// Why a request is no probe.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestFault {
    /// It is not written as a probe is: the syntax.
    #[error("{0}")]
    Syntax(&'static str),
    /// No program is named.
    #[error("it has no colon; {0}")]
    NoColon(&'static str),
    /// An offset, and the function's return.
    #[error("a function returns as a whole: +OFFSET and %return do not go together; {0}")]
    OffsetAndReturn(&'static str),
}

/// Why there can be no probe at a place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlaceFault {
    /// The symbol is of an indirect function (`STT_GNU_IFUNC`).
    #[error(
        "this is not the function, but what chooses one for the processor when the program starts; probe one of those"
    )]
    Chooser,
    /// The offset is larger than the function.
    #[error("the function has {0} bytes")]
    Behind(u64),
    /// No segment with code has the address.
    #[error("there is no code")]
    NoCode,
    /// It is inside an instruction.
    #[error("no instruction begins there; those around it are at +{before:#x} and +{behind:#x}")]
    NoInstruction {
        /// Offset in the function of the instruction before.
        before: u64,
        /// Of the one after.
        behind: u64,
    },
    /// It is in a restartable sequence.
    #[error(
        "it is in a restartable sequence, which loses its protection where the kernel executes an instruction elsewhere"
    )]
    InSequence,
    /// It is the site of an event.
    #[error(
        "it is the site of the event {0}, which would not be recorded any more; record that, with -e '{0}'"
    )]
    Site(String),
    /// What a USDT probe's note names is not there.
    #[error("its {0} is not in the file")]
    NotInFile(&'static str),
}

/// Why a value cannot be recorded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ValueFault {
    /// It cannot be told what is asked for.
    #[error(transparent)]
    Request(#[from] ArgumentFault),
    /// The kernel cannot fetch an argument of a USDT probe.
    #[error(transparent)]
    Operand(#[from] OperandFault),
    /// A variable is nowhere, or where the kernel cannot fetch it.
    #[error(transparent)]
    Variable(#[from] VariableFault),
}

/// Why it cannot be told which value is asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArgumentFault {
    /// Values of one name.
    #[error("another field is called {name}; give it a name, as other_{name}={text}")]
    SecondName {
        /// The name.
        name: String,
        /// The value, as it is asked for.
        text: String,
    },
    /// The kernel's words do not name it.
    #[error("it needs a name: NAME=%di")]
    NoName,
    /// It is written as nothing that is known.
    #[error("this is no variable's name")]
    NoVariable,
    /// Its name cannot be a field's.
    #[error("the name of a field has letters, digits and underscores")]
    Name,
    /// What is returned, at a USDT probe.
    #[error("nothing returns here")]
    NothingReturns,
    /// What is returned, where a function begins.
    #[error("nothing is returned here; add %return to the function")]
    NotAtReturn,
    /// A variable, where a function returns.
    #[error("a function's arguments are gone when it returns; probe where it begins, or record $retval")]
    AtReturn,
    /// An argument that a USDT probe does not have.
    #[error("the probe has {0} arguments, arg1 and so on")]
    NoArgument(usize),
}

/// Why the kernel cannot fetch an argument of a USDT probe.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OperandFault {
    /// The note is not written as one is.
    #[error("its description makes no sense")]
    Malformed,
    /// It is in a floating-point register.
    #[error("the kernel cannot read floating-point registers")]
    Float,
    /// It is in a register that the kernel has no word for.
    #[error("the kernel cannot read {0}")]
    Register(String),
    /// It is in memory whose address is computed.
    #[error("its address has an index, which the kernel cannot compute")]
    Index,
    /// It is in memory that nothing names.
    #[error("it lies at no symbol")]
    NoSymbol,
    /// It is in memory at a symbol that was stripped.
    #[error("its symbol {0} is not in the file any more")]
    StrippedSymbol(String),
}

/// Why a variable has no value that the kernel can fetch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VariableFault {
    /// The debug information does not have the function.
    #[error(
        "there is no debug information about the function; compile with -g, install its debug symbols, or name the place in the \
         kernel's words, as NAME=%di:u64"
    )]
    NoDebug,
    /// The function has none.
    #[error("the function has no variables")]
    NoVariables,
    /// The function has others.
    #[error("there is no such variable; there are {}", .0.join(", "))]
    NoVariable(Vec<String>),
    /// The function returns nothing.
    #[error("the function returns nothing")]
    ReturnsNothing,
    /// The function returns more than a register holds.
    #[error("it is a structure")]
    ReturnsStructure,
    /// The debug information does not say its type.
    #[error("its type is not known")]
    UnknownType,
    /// It is nowhere.
    #[error("the compiler has optimised it out here")]
    OptimisedOut,
    /// It gets its value later.
    #[error("it has no value yet where the function begins; probe after it (+OFFSET)")]
    NoValueYet,
    /// It was somewhere earlier.
    #[error("its place is used for something else here; probe where the function begins")]
    Overwritten,
    /// Its value takes a computation.
    #[error("its value is computed by the debugger")]
    Computed,
    /// Its function's frame takes a computation.
    #[error("its frame is computed by the debugger")]
    ComputedFrame,
    /// Its function's frame is not known.
    #[error("there is no unwind table for this place")]
    NoUnwindTable,
    /// It is in several registers or places in memory.
    #[error("it lies in several places")]
    InPieces,
    /// It is in a register of another kind.
    #[error("it is in a floating-point register, which the kernel cannot read")]
    NoRegister,
    /// The function is called in a way of its own.
    #[error(
        "the compiler passes the function's parameters otherwise; probe after its first instructions (+OFFSET)"
    )]
    OtherConvention,
    /// The calling convention needs more than the debug information says.
    #[error(
        "it is not certain in which register it is passed; probe after the function's first instructions (+OFFSET)"
    )]
    UncertainRegister,
    /// It is a number of a size that the kernel does not fetch.
    #[error("it is a number of {0} bytes")]
    NumberSize(u64),
    /// It is an array of something else than characters.
    #[error("it is an array")]
    Array,
    /// It is a floating-point number.
    #[error("it is a floating-point number, which the kernel cannot read")]
    Float,
    /// It is a structure, of which one member can be had.
    #[error("it is a structure; name one of its members, as VARIABLE.MEMBER: {}", .0.join(", "))]
    Structure(Vec<String>),
    /// It is a reference of Rust's with a length or a table, of which one word can be had.
    #[error(
        "it is two words; name one of them, as VARIABLE.MEMBER: {} (a text of Rust's ends with no NUL, by which the kernel would \
         find its end)", .0.join(", ")
    )]
    TwoWords(Vec<String>),
    /// The member is at the end of a pointer.
    #[error("{0} is reached by a pointer: write ->{0}")]
    BehindPointer(String),
    /// The member is in the structure itself.
    #[error("{0} is not reached by a pointer: write .{0}")]
    BehindNoPointer(String),
    /// What should have the member has none.
    #[error("there is no member {0}: it is no structure")]
    NoStructure(String),
    /// The type is only declared.
    #[error("the members of {0} are not known in this part of the program")]
    Declared(String),
    /// The structure has others.
    #[error("there is no member {name}; there are {}", members.join(", "))]
    NoMember {
        /// The member.
        name: String,
        /// Those that there are.
        members: Vec<String>,
    },
    /// The member does not begin at a byte.
    #[error("{0} is a bit field")]
    BitField(String),
    /// The member's place takes a computation.
    #[error("the place of {0} is computed by the debugger")]
    ComputedMember(String),
    /// The member is a part of a register.
    #[error(
        "{0} is no whole register and not in memory; record the register, in the kernel's words, as NAME=%di:x64"
    )]
    PartOfRegister(String),
}

/// What a file is instead of a program for this machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FileFault {
    /// A folder, a pipe, a device.
    #[error("not a file")]
    NotAFile,
    /// A script.
    #[error("a script: give the program that runs it")]
    Script,
    /// Something else.
    #[error("not a 64-bit ELF file: a program or a shared library is needed")]
    NotElf,
    /// A program for another processor.
    #[error("for the processor {0}: probes are for x86-64")]
    Processor(String),
}
