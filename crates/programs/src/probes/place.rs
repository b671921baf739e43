//! The location of a value at a probe, in the kernel's syntax of fetch arguments (its
//! `Documentation/trace/uprobetracer.rst`).

/// The location of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// In a register, by the kernel's name.
    Register(&'static str),
    /// In memory, at this offset from the address that the other place holds.
    Memory(Box<Place>, i64),
    /// In memory, where this file offset would be if the whole file were loaded at the distance of the
    /// probe's code.
    Static(u64),
    Constant(i64),
    /// The function's return value.
    Returned,
    /// In several places: the number of bytes of each part, and its location, if it has one.
    Pieces(Vec<(u64, Option<Place>)>),
}

impl Place {
    /// The memory at an offset from the address in this place.
    pub(crate) fn memory(self, offset: i64) -> Self {
        Self::Memory(Box::new(self), offset)
    }

    /// The location of a part that begins at `offset` bytes; `None` if the kernel cannot express it, or it
    /// has no location.
    pub(crate) fn part(self, offset: i64) -> Option<Self> {
        match self {
            Self::Memory(base, before) => Some(Self::Memory(base, before.wrapping_add(offset))),
            Self::Static(at) => Some(Self::Static(at.wrapping_add_signed(offset))),
            // A number occupies the lower end of a register.
            Self::Register(_) if offset == 0 => Some(self),
            Self::Pieces(pieces) => {
                let mut begin = 0_u64;
                for (bytes, place) in pieces {
                    let end = begin.saturating_add(bytes);
                    match u64::try_from(offset).ok()? {
                        within if within < end => return place?.part((within - begin).cast_signed()),
                        _ => begin = end,
                    }
                }
                None
            }
            _ => None,
        }
    }

    /// The kernel's expression for a value of type `kind` in this place.
    pub(crate) fn fetch(&self, kind: &str) -> String {
        format!("{}:{kind}", self.words())
    }

    /// The expression for a value whose type the user names. A text is at the pointer in this place.
    pub(crate) fn fetch_as(self, kind: &str) -> String {
        match kind {
            "string" | "ustring" => self.memory(0).fetch(kind),
            _ => self.fetch(kind),
        }
    }

    /// The expression for the location; for several places, that of the first.
    fn words(&self) -> String {
        match self {
            Self::Register(name) => format!("%{name}"),
            Self::Memory(base, offset) => format!("{offset:+}({})", base.words()),
            Self::Static(offset) => format!("@+{offset:#x}"),
            Self::Constant(value) => format!("\\{value}"),
            Self::Returned => "$retval".to_owned(),
            Self::Pieces(pieces) => {
                pieces.first().and_then(|(_, place)| place.as_ref()).map(Self::words).unwrap_or_default()
            }
        }
    }
}

/// The kernel's names of the registers, by DWARF number (psABI x86-64, figure 3.36).
const REGISTERS: [&str; 16] =
    ["ax", "dx", "cx", "bx", "si", "di", "bp", "sp", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"];

/// The registers that pass the first integers and pointers to functions (psABI x86-64, section 3.2.3).
pub(crate) const PARAMETERS: [&str; 6] = ["di", "si", "dx", "cx", "r8", "r9"];

/// A register by its DWARF number.
pub(crate) fn numbered(number: u16) -> Option<&'static str> {
    REGISTERS.get(usize::from(number)).copied()
}

/// A register, or its lower part, in assembler syntax.
pub(crate) fn register(text: &str) -> Option<&'static str> {
    let name = text.strip_prefix('%')?;
    let whole = match name {
        "al" => "ax",
        "bl" => "bx",
        "cl" => "cx",
        "dl" => "dx",
        _ => match name.strip_prefix(['r', 'e']).unwrap_or(name) {
            digits if digits.starts_with(|c: char| c.is_ascii_digit()) => {
                let number = digits.trim_end_matches(['b', 'w', 'd']);
                return REGISTERS.iter().find(|known| known.strip_prefix('r') == Some(number)).copied();
            }
            short => short.strip_suffix('l').unwrap_or(short),
        },
    };
    REGISTERS[..8].iter().find(|known| **known == whole).copied()
}
