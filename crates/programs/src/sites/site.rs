//! The description of a site.

use std::fmt;
use std::sync::Arc;

use tracewing_abi::schema::{Base, Level, Scalar, Shape};
use tracewing_abi::site::Kind;

/// One copy of a site: the compiler creates several if it inlines the code around a site, or instantiates it
/// for several types.
#[derive(Debug, Clone)]
pub struct Site {
    /// The class of events recorded there.
    pub class: Arc<Class>,
    /// What the site does when it is on.
    pub kind: Kind,
    /// Source file of the site.
    pub file: String,
    /// Line of the site in that file.
    pub line: u32,
    /// Index in the image's objects.
    pub object: usize,
    /// Address of its instruction: in a file the file's own, in a process the process's. `None` on processors
    /// where the site has no instruction of its own.
    pub address: Option<u64>,
    /// Whether the site is on.
    pub state: State,
}

/// Whether a site is switched on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The site does nothing.
    Off,
    /// At least one recording or callback uses the site.
    On,
    /// A debugger or a uprobe has put a breakpoint on the instruction. A uprobe keeps the site from working.
    Breakpoint {
        /// Whether the site is on under the breakpoint.
        is_on: bool,
    },
    /// The instruction does not belong to a site: it starts with this byte.
    Unknown(u8),
}

impl fmt::Display for State {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => out.pad("off"),
            Self::On => out.pad("on"),
            Self::Breakpoint { is_on: false } => out.pad("off (breakpoint)"),
            Self::Breakpoint { is_on: true } => out.pad("on (breakpoint)"),
            Self::Unknown(byte) => out.pad(&format!("unknown ({byte:#04x})")),
        }
    }
}

/// An event class; see [`tracewing_abi::schema::Class`] for each member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// Full name, `provider:event`.
    pub name: String,
    /// Severity.
    pub level: Level,
    /// Major class, 0 to 63.
    pub major: u8,
    /// What the event means; may be empty.
    pub description: String,
    /// The author's format for printing; may be empty.
    pub print: String,
    /// Source file in which it is declared.
    pub file: String,
    /// Line of the declaration.
    pub line: u32,
    /// Fields in payload order.
    pub fields: Vec<Field>,
}

/// A field; see [`tracewing_abi::schema::Field`] for each member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Name, unique in the class.
    pub name: String,
    /// Single value, array, slice or optional.
    pub shape: Shape,
    /// Type of each value.
    pub scalar: Scalar,
    /// Number of values of an array.
    pub length: u32,
    /// Numeric base for printing integers.
    pub base: Base,
    /// Unit in words; may be empty.
    pub unit: String,
    /// Values and labels of an enumeration.
    pub labels: Vec<(u64, String)>,
}

/// The field's type in Rust syntax, as far as possible: `u64`, `str`, `[u8; 6]`, `[u32]`, `Option<u64>`,
/// `enum u8`.
impl fmt::Display for Field {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scalar = format!("{:?}", self.scalar).to_lowercase();
        match self.shape {
            Shape::One => out.write_str(&scalar),
            Shape::Text => out.write_str("str"),
            Shape::Array => write!(out, "[{scalar}; {}]", self.length),
            Shape::Slice => write!(out, "[{scalar}]"),
            Shape::Optional => write!(out, "Option<{scalar}>"),
            Shape::Enumeration => write!(out, "enum {scalar}"),
        }
    }
}
