//! Event record headers of the common kinds: an id, a timestamp, and optionally a variant that the id
//! selects, whose options contain the same in more or fewer bits. Other headers are walked.

use super::load::{Load, NEAR};
use super::program::{Integer, Kind, NONE, Node, Program, Role};

/// Options of a variant that are looked at; more have to be walked.
const MOST_FORMS: usize = 8;

/// The forms of a data stream class's event record headers.
#[derive(Debug)]
pub(super) struct Header {
    /// Alignment in bits, less one.
    mask: u64,
    /// That of nearly all event records: the first option of the variant. Its id is the variant's tag.
    common: Form,
    /// Those of further options.
    others: Vec<Form>,
}

/// The positions of a header's values. Missing values are read as 0.
#[derive(Debug)]
struct Form {
    /// First and last tag of the event records that have this form.
    tags: (u64, u64),
    id: Load,
    /// The stamp's low bits, and a mask of as many.
    stamp: Load,
    stamp_mask: u64,
    /// Size in bits.
    bits: u64,
}

/// The common form of a header whose numbers are little-endian and near its beginning.
#[derive(Clone, Copy)]
pub(super) struct Quick {
    mask: u64,
    tags: (u64, u64),
    id: Load,
    stamp: Load,
    pub(super) stamp_mask: u64,
}

impl Quick {
    /// See [`Header::aligned`].
    #[inline(always)]
    pub(super) fn aligned(&self, at: u64) -> u64 {
        (at + self.mask) & !self.mask
    }

    /// The id and the stamp's low bits of a record that begins with a header of the common form.
    #[inline(always)]
    pub(super) fn read(&self, record: &[u8; NEAR]) -> Option<(u64, u64)> {
        let id = self.id.near_bits(record);
        (self.tags.0 <= id && id <= self.tags.1).then(|| (id, self.stamp.near_bits(record)))
    }
}

/// What a header says.
pub(super) struct Found {
    pub(super) id: u64,
    /// The stamp's low bits, and a mask of as many; both 0 if there is none.
    pub(super) stamp: u64,
    pub(super) stamp_mask: u64,
    /// Its size in bits.
    pub(super) bits: u64,
}

impl Header {
    /// The forms of a header; `None` if it has to be walked.
    pub(super) fn new(program: &Program) -> Option<Self> {
        let root = program.nodes.first()?;
        let (common, tag) = Form::new(program, 0)?;
        // The variant's tag must be the id.
        (root.align >= 8 && tag.is_none_or(|tag| tag == common.id)).then_some(())?;
        // If a tag selects several forms, the first one that matches is used, and one that cannot be read
        // hides the later ones. What follows the header must have the same alignment as after the common
        // form.
        let others = (1..MOST_FORMS).map_while(|option| {
            let (form, other) = Form::new(program, option).filter(|_| tag.is_some())?;
            let aligned = form.bits.abs_diff(common.bits).is_multiple_of(root.align.into());
            (other == tag && aligned).then_some(form)
        });
        let others = others.collect();
        Some(Header { mask: u64::from(root.align) - 1, common, others })
    }

    /// Whether it contains the event record's class.
    pub(super) fn has_id(&self) -> bool {
        self.common.id != Load::NOTHING
    }

    /// What is needed to read the common form in a few steps; `None` if that is not possible.
    pub(super) fn quick(&self) -> Option<Quick> {
        let Form { tags, id, stamp, stamp_mask, .. } = self.common;
        let is_near = |load: Load| !load.big && load.is_near();
        (is_near(id) && is_near(stamp)).then_some(Quick { mask: self.mask, tags, id, stamp, stamp_mask })
    }

    /// Alignment in bits.
    pub(super) fn align(&self) -> u32 {
        (self.mask + 1) as u32
    }

    /// Size in bits of the common form.
    pub(super) fn bits(&self) -> u64 {
        self.common.bits
    }

    /// The bit at which a header at or after bit `at` begins.
    #[inline(always)]
    pub(super) fn aligned(&self, at: u64) -> u64 {
        (at + self.mask) & !self.mask
    }

    /// Reads the header that `record` begins with, if it has one of the forms and `record` is long enough.
    #[inline(always)]
    pub(super) fn read(&self, record: &[u8]) -> Option<Found> {
        let id = self.common.id.bits(record)?;
        if self.common.is_of(id) { self.common.read(id, record) } else { self.read_other(id, record) }
    }

    #[inline(never)]
    fn read_other(&self, tag: u64, record: &[u8]) -> Option<Found> {
        let form = self.others.iter().find(|form| form.is_of(tag))?;
        form.read(form.id.bits(record)?, record)
    }
}

impl Form {
    /// The form with the option that the variant's range number `option` selects, and where the variant's tag
    /// is, if there is a variant.
    fn new(program: &Program, option: usize) -> Option<(Self, Option<Load>)> {
        let Kind::Structure { first, count, .. } = program.nodes.first()?.kind else { return None };
        let form =
            Form { tags: (0, u64::MAX), id: Load::NOTHING, stamp: Load::NOTHING, stamp_mask: 0, bits: 0 };
        let align = program.nodes.first()?.align;
        let mut builder = FormBuilder { program, option, align, form, tags: Vec::new(), tag: None };
        for node in program.nodes.get(first as usize..(first + count) as usize)? {
            builder.node(node)?;
        }
        Some((builder.form, builder.tag))
    }

    #[inline(always)]
    fn is_of(&self, tag: u64) -> bool {
        self.tags.0 <= tag && tag <= self.tags.1
    }

    #[inline(always)]
    fn read(&self, id: u64, record: &[u8]) -> Option<Found> {
        Some(Found { id, stamp: self.stamp.bits(record)?, stamp_mask: self.stamp_mask, bits: self.bits })
    }
}

/// A form being built.
struct FormBuilder<'p> {
    program: &'p Program,
    /// Which of a variant's ranges is chosen.
    option: usize,
    /// The header's alignment in bits.
    align: u32,
    form: Form,
    /// The slots of numbers that may be tags, and where those are.
    tags: Vec<(u32, Load)>,
    /// Where the tag of the one variant is.
    tag: Option<Load>,
}

impl FormBuilder<'_> {
    fn node(&mut self, node: &Node) -> Option<()> {
        // An option may be aligned to more than the header: how far from its beginning that is then depends
        // on where that is.
        (node.align <= self.align).then_some(())?;
        self.form.bits = self.form.bits.checked_next_multiple_of(u64::from(node.align))?;
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
                let (low, high, option) = *variant.ranges.get(self.option)?;
                self.form.tags = (low, high);
                self.node(self.program.nodes.get((variant.first + option) as usize)?)
            }
            _ => None,
        }
    }

    fn number(&mut self, integer: &Integer) -> Option<()> {
        let form = &mut self.form;
        let load = Load::new(form.bits, integer.size, integer.order)?;
        if integer.slot != NONE {
            self.tags.push((integer.slot, load));
        }
        match integer.role {
            Role::None => {}
            Role::EventId => form.id = load,
            Role::Clock if form.stamp_mask == 0 => {
                (form.stamp, form.stamp_mask) = (load, u64::MAX >> (64 - integer.size));
            }
            _ => return None,
        }
        form.bits = form.bits.checked_add(integer.size.into())?;
        Some(())
    }
}
