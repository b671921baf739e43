//! What is told of a site.

use std::fmt;
use std::sync::Arc;

use tracewing_abi::schema::{Base, Level, Scalar, Shape};
use tracewing_abi::site::Kind;

/// One copy of a site: the compiler makes several where it inlines the code around a site, or instantiates it
/// for several types.
#[derive(Debug, Clone)]
pub struct Site {
    /// What is recorded there.
    pub class: Arc<Class>,
    /// What happens there.
    pub kind: Kind,
    /// Source file of the site.
    pub file: String,
    /// Line in it.
    pub line: u32,
    /// In which of the image's objects it is.
    pub object: usize,
    /// Its instruction's address: in a file that of the file, in a process that of the process. `None` on
    /// processors where the site is no instruction of its own.
    pub address: Option<u64>,
    /// On or off.
    pub state: State,
}

/// Whether a site is switched on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Nothing happens there.
    Off,
    /// Somebody wants it.
    On,
    /// A debugger, or a uprobe, has put its breakpoint onto the instruction. A uprobe keeps the site from
    /// doing anything.
    Breakpoint {
        /// Whether the site is on beneath it.
        is_on: bool,
    },
    /// The instruction is not a site's: it has this byte, which nobody puts there.
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

/// An event class; see [`tracewing_abi::schema::Class`] for each part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// `provider:event`.
    pub name: String,
    /// How severe.
    pub level: Level,
    /// Its major class.
    pub major: u8,
    /// What it means, or empty.
    pub description: String,
    /// How its author wants it shown, or empty.
    pub print: String,
    /// Source file in which it is declared.
    pub file: String,
    /// Line in it.
    pub line: u32,
    /// Its fields, in order.
    pub fields: Vec<Field>,
}

/// A field; see [`tracewing_abi::schema::Field`] for each part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// How many values.
    pub shape: Shape,
    /// Of which type.
    pub scalar: Scalar,
    /// Number of values of an array.
    pub length: u32,
    /// How to show integers.
    pub base: Base,
    /// Unit in words, or empty.
    pub unit: String,
    /// Labels of an enumeration.
    pub labels: Vec<(u64, String)>,
}

/// The field's type as Rust would write it, as far as it can: `u64`, `str`, `[u8; 6]`, `[u32]`,
/// `Option<u64>`, `enum u8`.
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
