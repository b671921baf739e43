//! Where a value is at a probe, in the kernel's language of fetch arguments (its
//! `Documentation/trace/uprobetracer.rst`).

/// Where a value is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// In a register, by the kernel's name of it.
    Register(&'static str),
    /// In memory, so many bytes behind the address that is in the other place.
    Memory(Box<Place>, i64),
    /// In memory, where this offset of the file would be if all of the file were loaded as the probe's code
    /// is.
    Static(u64),
    /// It is this number.
    Constant(i64),
    /// What the function returns.
    Returned,
    /// In several places: of each part how many bytes, and where that is, if anywhere.
    Pieces(Vec<(u64, Option<Place>)>),
}

impl Place {
    /// Memory at the address in this place, and some bytes further.
    pub(crate) fn memory(self, offset: i64) -> Self {
        Self::Memory(Box::new(self), offset)
    }

    /// The place of a part that begins `offset` bytes behind the beginning; `None` where the kernel has no
    /// word for that, or it is nowhere.
    pub(crate) fn part(self, offset: i64) -> Option<Self> {
        match self {
            Self::Memory(base, before) => Some(Self::Memory(base, before.wrapping_add(offset))),
            Self::Static(at) => Some(Self::Static(at.wrapping_add_signed(offset))),
            // A number is taken from the lower end of a register.
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

    /// The kernel's words for the value of a type in this place.
    pub(crate) fn fetch(&self, kind: &str) -> String {
        format!("{}:{kind}", self.words())
    }

    /// A value as one of a type that the user names. A text is behind the pointer in the place.
    pub(crate) fn fetch_as(self, kind: &str) -> String {
        match kind {
            "string" | "ustring" => self.memory(0).fetch(kind),
            _ => self.fetch(kind),
        }
    }

    /// Of what is in several places, the first one's.
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

/// The kernel's names of the registers, in the order in which DWARF numbers them (psABI x86-64, figure 3.36).
const REGISTERS: [&str; 16] =
    ["ax", "dx", "cx", "bx", "si", "di", "bp", "sp", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"];

/// The registers in which functions get their first integers and pointers (psABI x86-64, section 3.2.3).
pub(crate) const PARAMETERS: [&str; 6] = ["di", "si", "dx", "cx", "r8", "r9"];

/// A register by its number in DWARF.
pub(crate) fn numbered(number: u16) -> Option<&'static str> {
    REGISTERS.get(usize::from(number)).copied()
}

/// A register, or the lower part of one, as the assembler writes it.
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
