//! Debug information as nodes with references between them, also into other units and into a file that
//! several programs share (`.gnu_debugaltlink`, which dwz writes).

use std::borrow::Cow;
use std::rc::Rc;

use gimli::{AttributeValue, DebugInfoOffset, DwAt, DwTag, EndianSlice, LittleEndian, Operation, UnitOffset};
use object::read::ReadCache;
use object::{Object, ObjectSection};

use crate::elf::{Blocks, shared_file};
use crate::probes::file::Elf;

pub(super) type Reader<'d> = EndianSlice<'d, LittleEndian>;
pub(super) type Dwarf<'d> = gimli::Dwarf<Reader<'d>>;
type Unit<'d> = gimli::Unit<Reader<'d>>;

/// Maximum number of references to follow from a node.
const LONGEST_CHAIN: usize = 16;
/// Maximum nesting of blocks.
const DEEPEST: usize = 64;

/// The bytes of all debug sections.
pub(crate) struct Sections<'a> {
    own: gimli::DwarfSections<Cow<'a, [u8]>>,
    shared: Option<gimli::DwarfSections<Cow<'a, [u8]>>>,
}

impl<'a> Sections<'a> {
    /// Loads the sections of this file; `None` if it has no debug information.
    pub(super) fn load(elf: &'a Elf<'a>) -> Option<Self> {
        elf.section_by_name(".debug_info")?;
        let own = gimli::DwarfSections::load(|id| data(elf, id)).ok()?;
        Some(Self { own, shared: shared(elf) })
    }

    pub(super) fn with<T>(&self, with: impl FnOnce(&Dwarf<'_>) -> T) -> T {
        with(&self.own.borrow_with_sup(self.shared.as_ref(), |bytes| EndianSlice::new(bytes, LittleEndian)))
    }
}

fn data<'a>(elf: &'a Elf<'a>, id: gimli::SectionId) -> Result<Cow<'a, [u8]>, object::Error> {
    elf.section_by_name(id.name()).map_or(Ok(Cow::Borrowed(&[])), |section| section.uncompressed_data())
}

fn shared(elf: &Elf<'_>) -> Option<gimli::DwarfSections<Cow<'static, [u8]>>> {
    let bytes = ReadCache::new(Blocks::new(tracewing_files::open_regular(&shared_file(elf)?).ok()?));
    let elf = Elf::parse(&bytes).ok()?;
    gimli::DwarfSections::load(|id| data(&elf, id).map(|bytes| Cow::Owned(bytes.into_owned()))).ok()
}

/// One entry of the debug information.
#[derive(Clone)]
pub(crate) struct Node<'d> {
    dwarf: &'d Dwarf<'d>,
    unit: Rc<Unit<'d>>,
    offset: UnitOffset,
}

/// The location of a variable.
pub(super) struct Location<'d> {
    pub(super) operations: Vec<Operation<Reader<'d>>>,
    /// Whether it is valid for all addresses of the variable; otherwise only around the requested one.
    pub(super) everywhere: bool,
}

/// The function that begins at an address.
pub(super) fn function<'d>(dwarf: &'d Dwarf<'d>, address: u64) -> Option<Node<'d>> {
    let mut headers = dwarf.units();
    while let Some(header) = headers.next().ok()? {
        let Ok(unit) = dwarf.unit(header) else { continue };
        if !covers(dwarf, &unit, address) {
            continue;
        }
        let unit = Rc::new(unit);
        let mut entries = unit.entries();
        while let Ok(Some(entry)) = entries.next_dfs() {
            if entry.tag() == gimli::DW_TAG_subprogram {
                let node = Node { dwarf, unit: unit.clone(), offset: entry.offset() };
                let begin =
                    node.own(gimli::DW_AT_low_pc).and_then(|value| dwarf.attr_address(&unit, value).ok()?);
                if begin == Some(address) {
                    return Some(node);
                }
            }
        }
    }
    None
}

fn covers(dwarf: &Dwarf<'_>, unit: &Unit<'_>, address: u64) -> bool {
    let Ok(mut ranges) = dwarf.unit_ranges(unit) else { return false };
    while let Ok(Some(range)) = ranges.next() {
        if (range.begin..range.end).contains(&address) {
            return true;
        }
    }
    false
}

impl<'d> Node<'d> {
    fn at(dwarf: &'d Dwarf<'d>, offset: DebugInfoOffset) -> Option<Self> {
        let mut headers = dwarf.units();
        while let Some(header) = headers.next().ok()? {
            if let Some(offset) = offset.to_unit_offset(&header) {
                return Some(Self { dwarf, unit: Rc::new(dwarf.unit(header).ok()?), offset });
            }
        }
        None
    }

    pub(super) fn own(&self, name: DwAt) -> Option<AttributeValue<Reader<'d>>> {
        self.unit.entry(self.offset).ok()?.attr_value(name)
    }

    pub(super) fn tag(&self) -> Option<DwTag> {
        Some(self.unit.entry(self.offset).ok()?.tag())
    }

    /// The node that an attribute refers to.
    pub(super) fn follow(&self, name: DwAt) -> Option<Self> {
        match self.own(name)? {
            AttributeValue::UnitRef(offset) => Some(Self { offset, ..self.clone() }),
            AttributeValue::DebugInfoRef(offset) => Self::at(self.dwarf, offset),
            AttributeValue::DebugInfoRefSup(offset) => Self::at(self.dwarf.sup()?, offset),
            _ => None,
        }
    }

    /// The first node that has an attribute, among this one and its origins.
    pub(super) fn inherited(&self, name: DwAt) -> Option<Self> {
        let mut node = self.clone();
        for _ in 0..LONGEST_CHAIN {
            if node.own(name).is_some() {
                return Some(node);
            }
            node = node
                .follow(gimli::DW_AT_abstract_origin)
                .or_else(|| node.follow(gimli::DW_AT_specification))?;
        }
        None
    }

    pub(super) fn has_flag(&self, name: DwAt) -> bool {
        self.inherited(name).is_some()
    }

    pub(super) fn name(&self) -> Option<String> {
        let node = self.inherited(gimli::DW_AT_name)?;
        let text = node.dwarf.attr_string(&node.unit, node.own(gimli::DW_AT_name)?).ok()?;
        Some(text.to_string_lossy().into_owned())
    }

    pub(super) fn number(&self, name: DwAt) -> Option<u64> {
        self.own(name)?.udata_value()
    }

    pub(super) fn is(&self, other: &Self) -> bool {
        self.offset == other.offset && self.unit.header.offset() == other.unit.header.offset()
    }

    pub(super) fn children(&self) -> Vec<Self> {
        let mut children = Vec::new();
        let Ok(mut tree) = self.unit.entries_tree(Some(self.offset)) else { return children };
        let Ok(root) = tree.root() else { return children };
        let mut nodes = root.children();
        while let Ok(Some(child)) = nodes.next() {
            children.push(Self { offset: child.entry().offset(), ..self.clone() });
        }
        children
    }

    pub(super) fn parameters(&self) -> impl Iterator<Item = Self> {
        self.children().into_iter().filter(|child| child.tag() == Some(gimli::DW_TAG_formal_parameter))
    }

    /// Parameters and variables in scope at an address, the innermost last.
    pub(super) fn variables(&self, address: u64) -> Vec<Self> {
        let mut found = Vec::new();
        self.add_variables(address, DEEPEST, &mut found);
        found
    }

    fn add_variables(&self, address: u64, deeper: usize, found: &mut Vec<Self>) {
        for child in self.children() {
            match child.tag() {
                Some(gimli::DW_TAG_formal_parameter | gimli::DW_TAG_variable) => found.push(child),
                Some(gimli::DW_TAG_lexical_block) if deeper > 0 && child.holds(address) => {
                    child.add_variables(address, deeper - 1, found);
                }
                _ => {}
            }
        }
    }

    fn holds(&self, address: u64) -> bool {
        let Ok(entry) = self.unit.entry(self.offset) else { return false };
        let Ok(mut ranges) = self.dwarf.die_ranges(&self.unit, &entry) else { return false };
        while let Ok(Some(range)) = ranges.next() {
            if (range.begin..range.end).contains(&address) {
                return true;
            }
        }
        false
    }

    /// A location at an address; `None` if there is none.
    pub(super) fn location(&self, name: DwAt, address: u64) -> Option<Location<'d>> {
        let value = self.own(name)?;
        let own = value.exprloc_value();
        let everywhere = own.is_some();
        let expression = own.or_else(|| {
            let mut list = self.dwarf.attr_locations(&self.unit, value).ok()??;
            std::iter::from_fn(|| list.next().ok().flatten())
                .find(|entry| (entry.range.begin..entry.range.end).contains(&address))
                .map(|entry| entry.data)
        })?;
        let mut parser = expression.operations(self.unit.encoding());
        let mut operations = Vec::new();
        while let Some(operation) = parser.next().ok()? {
            operations.push(operation);
        }
        Some(Location { operations, everywhere })
    }

    /// Whether its unit was written in Rust.
    pub(super) fn is_rust(&self) -> bool {
        let mut entries = self.unit.entries();
        let root = entries.next_dfs().ok().flatten();
        let language = root.and_then(|root| root.attr_value(gimli::DW_AT_language));
        matches!(language, Some(AttributeValue::Language(gimli::DW_LANG_Rust)))
    }

    /// How often this function was inlined in its unit.
    pub(super) fn inlined_copies(&self) -> usize {
        let origin = |value: AttributeValue<Reader<'d>>| match value {
            AttributeValue::UnitRef(offset) => offset.to_debug_info_offset(&self.unit.header),
            AttributeValue::DebugInfoRef(offset) => Some(offset),
            _ => None,
        };
        let Some(own) = self.own(gimli::DW_AT_abstract_origin).and_then(origin) else { return 0 };
        let mut entries = self.unit.entries();
        let mut copies = 0;
        while let Ok(Some(entry)) = entries.next_dfs() {
            let of = entry.attr_value(gimli::DW_AT_abstract_origin).and_then(origin);
            copies += usize::from(entry.tag() == gimli::DW_TAG_inlined_subroutine && of == Some(own));
        }
        copies
    }
}
