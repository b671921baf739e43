//! Event record headers of the usual kind: an id, a stamp, and perhaps a variant that the id selects, of which the first
//! option's form (the compact one) is what nearly all event records have. Other headers are walked.

use super::layout::Load;
use super::program::{Integer, Kind, NONE, Node, Program, Role};

/// The usual form of a data stream class's event record headers. What it lacks, it reads as 0.
#[derive(Debug)]
pub(super) struct Header {
    /// Alignment in bits, less one.
    mask: u64,
    id: Load,
    /// First and last id of the event records that have this form.
    ids: (u64, u64),
    /// The stamp's low bits, and a mask of as many.
    stamp: Load,
    stamp_mask: u64,
    /// Size in bits.
    pub(super) bits: u64,
}

/// What a header says.
pub(super) struct Found {
    pub(super) id: u64,
    /// The stamp's low bits, and a mask of as many; both 0 if there is none.
    pub(super) stamp: u64,
    pub(super) stamp_mask: u64,
}

impl Header {
    /// The usual form of a header; `None` if it has to be walked.
    pub(super) fn new(program: &Program) -> Option<Self> {
        let root = program.nodes.first()?;
        let Kind::Structure { first, count, .. } = root.kind else { return None };
        let header = Header {
            mask: u64::from(root.align) - 1,
            id: Load::NOTHING,
            ids: (0, u64::MAX),
            stamp: Load::NOTHING,
            stamp_mask: 0,
            bits: 0,
        };
        let mut draft = Draft { program, header, tags: Vec::new(), tag: None };
        for node in program.nodes.get(first as usize..(first + count) as usize)? {
            draft.node(node)?;
        }
        // The variant's tag must be the id.
        let Draft { header, tag, .. } = draft;
        (root.align >= 8 && tag.is_none_or(|tag| tag == header.id)).then_some(header)
    }

    /// Whether it tells the event record's class.
    pub(super) fn has_id(&self) -> bool {
        self.id != Load::NOTHING
    }

    /// Alignment in bits.
    pub(super) fn align(&self) -> u32 {
        (self.mask + 1) as u32
    }

    /// The bit at which a header behind bit `at` begins.
    #[inline(always)]
    pub(super) fn aligned(&self, at: u64) -> u64 {
        (at + self.mask) & !self.mask
    }

    /// Reads the header that `record` begins with, if it has the usual form and `record` is long enough.
    #[inline(always)]
    pub(super) fn read(&self, record: &[u8]) -> Option<Found> {
        let id = self.id.bits(record)?;
        let usual = self.ids.0 <= id && id <= self.ids.1;
        usual.then_some(Found { id, stamp: self.stamp.bits(record)?, stamp_mask: self.stamp_mask })
    }
}

/// A header under way.
struct Draft<'p> {
    program: &'p Program,
    header: Header,
    /// The slots of numbers that may be tags, and where those are.
    tags: Vec<(u32, Load)>,
    /// Where the tag of the one variant is.
    tag: Option<Load>,
}

impl Draft<'_> {
    fn node(&mut self, node: &Node) -> Option<()> {
        self.header.bits = self.header.bits.checked_next_multiple_of(u64::from(node.align))?;
        match &node.kind {
            Kind::Integer(integer, class) if class.bit_order.is_none() => self.number(integer),
            Kind::Enumeration(integer, class) if class.integer.bit_order.is_none() => self.number(integer),
            Kind::Structure { first, count, .. } => (*first..*first + *count)
                .try_for_each(|member| self.node(self.program.nodes.get(member as usize)?)),
            Kind::Variant(variant) => {
                if self.tag.is_some() || variant.signed {
                    return None;
                }
                self.tag = Some(self.tags.iter().find(|(slot, _)| *slot == variant.slot)?.1);
                let (low, high, option) = *variant.ranges.first()?;
                self.header.ids = (low, high);
                self.node(self.program.nodes.get((variant.first + option) as usize)?)
            }
            _ => None,
        }
    }

    fn number(&mut self, integer: &Integer) -> Option<()> {
        let header = &mut self.header;
        let load = Load::new(header.bits, integer.size, integer.order)?;
        if integer.slot != NONE {
            self.tags.push((integer.slot, load));
        }
        match integer.role {
            Role::None => {}
            Role::EventId => header.id = load,
            Role::Clock if header.stamp_mask == 0 => {
                (header.stamp, header.stamp_mask) = (load, u64::MAX >> (64 - integer.size));
            }
            _ => return None,
        }
        header.bits = header.bits.checked_add(integer.size.into())?;
        Some(())
    }
}
