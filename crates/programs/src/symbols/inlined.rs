//! Which functions were inlined at an address, from debug information (DWARF 5, 3.3.8.2).
//!
//! The file may be anybody's: nothing here recurses, and what one file can make this hold is limited. The
//! library's own search for inlined functions recurses as deep as the file nests them.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use gimli::{AttributeValue, Dwarf, Error, UnitHeader, UnitRef};

use super::{LONGEST, Reader, demangled};

/// Ranges of addresses that are kept for one file.
const MOST: usize = 1 << 22;
/// Functions inlined into one another that are named at one address.
const DEEPEST: usize = 256;
/// References that are followed from an inlined function to one that has a name.
const HOPS: usize = 8;

/// An entry of `.debug_info`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Entry {
    /// Whether it is in the file that several programs share.
    is_shared: bool,
    offset: usize,
}

/// The calls that a file's compiler has replaced by the functions' code.
pub(super) struct Inlined {
    dwarf: Arc<Dwarf<Reader>>,
    /// In the order of their offsets.
    units: Vec<UnitHeader<Reader>>,
    /// The same of the file that several programs share.
    shared: Vec<UnitHeader<Reader>>,
    /// Code of units, by its begin.
    ranges: Vec<(Range<u64>, usize)>,
    /// Of units that were asked for: their calls by level, and there by begin of their code.
    calls: HashMap<usize, Vec<Call>>,
    names: HashMap<Entry, Option<String>>,
    /// Ranges that may still be kept.
    left: usize,
}

/// A part of the code of an inlined function.
struct Call {
    /// How many other inlined functions it is in.
    level: usize,
    code: Range<u64>,
    function: Option<Entry>,
}

impl Inlined {
    pub(super) fn new(dwarf: Arc<Dwarf<Reader>>) -> Self {
        let shared = dwarf.sup().into_iter().flat_map(|shared| {
            let mut headers = shared.units();
            std::iter::from_fn(move || headers.next().ok().flatten())
        });
        let (shared, units, ranges) = (shared.collect(), Vec::new(), Vec::new());
        let (calls, names) = (HashMap::new(), HashMap::new());
        let mut inlined = Self { dwarf, units, shared, ranges, calls, names, left: MOST };
        let mut headers = inlined.dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            // A unit that cannot be read has no calls.
            let _ = inlined.add_unit(header);
        }
        inlined.ranges.sort_by_key(|(code, _)| code.start);
        inlined
    }

    fn add_unit(&mut self, header: UnitHeader<Reader>) -> Result<(), Error> {
        let number = self.units.len();
        let dwarf = Arc::clone(&self.dwarf);
        self.units.push(header.clone());
        let unit = dwarf.unit(header)?;
        let unit = unit.unit_ref(&dwarf);
        let mut entries = unit.entries_raw(None)?;
        let Some(root) = entries.read_abbreviation()? else { return Ok(()) };
        let mut place = Place::default();
        for attribute in root.attributes() {
            let attribute = entries.read_attribute(*attribute)?;
            place.learn(unit, attribute.name(), attribute.value())?;
        }
        let (ranges, left) = (&mut self.ranges, &mut self.left);
        place.each_range(unit, left, |code| ranges.push((code, number)))
    }

    /// The names of the functions that were inlined at an address, the innermost first; none if the code
    /// there is that of a function as it was compiled by itself.
    pub(super) fn at(&mut self, address: u64) -> Vec<String> {
        let before = self.ranges.partition_point(|(code, _)| code.start <= address);
        let Some((code, number)) = before.checked_sub(1).map(|last| self.ranges[last].clone()) else {
            return Vec::new();
        };
        if !code.contains(&address) {
            return Vec::new();
        }
        if !self.calls.contains_key(&number) {
            let calls = self.read_calls(number).unwrap_or_default();
            self.calls.insert(number, calls);
        }
        let calls = &self.calls[&number];
        let functions: Vec<Entry> = (0..DEEPEST)
            .map_while(|level| innermost(calls, level, address))
            .filter_map(|call| call.function)
            .collect();
        functions.into_iter().rev().filter_map(|function| self.name(function)).collect()
    }

    /// The calls in a unit.
    fn read_calls(&mut self, number: usize) -> Result<Vec<Call>, Error> {
        let dwarf = Arc::clone(&self.dwarf);
        let unit = dwarf.unit(self.units[number].clone())?;
        let unit = unit.unit_ref(&dwarf);
        let mut calls = Vec::new();
        // Functions around the entry at hand: depth of their entries, and level of what is inlined there.
        let mut around: Vec<(isize, usize)> = Vec::new();
        let mut entries = unit.entries_raw(None)?;
        while !entries.is_empty() {
            let depth = entries.next_depth();
            let Some(kind) = entries.read_abbreviation()? else { continue };
            while around.last().is_some_and(|(outer, _)| *outer >= depth) {
                around.pop();
            }
            let level = around.last().map_or(0, |(_, level)| *level);
            match kind.tag() {
                gimli::DW_TAG_inlined_subroutine => {
                    let mut place = Place::default();
                    for attribute in kind.attributes() {
                        let attribute = entries.read_attribute(*attribute)?;
                        place.learn(unit, attribute.name(), attribute.value())?;
                    }
                    let function = place.function;
                    place.each_range(unit, &mut self.left, |code| {
                        calls.push(Call { level, code, function })
                    })?;
                    around.push((depth, level + 1));
                }
                tag => {
                    if tag == gimli::DW_TAG_subprogram {
                        around.push((depth, 0));
                    }
                    entries.skip_attributes(kind.attributes())?;
                }
            }
        }
        calls.sort_by_key(|call| (call.level, call.code.start));
        Ok(calls)
    }

    fn name(&mut self, function: Entry) -> Option<String> {
        if !self.names.contains_key(&function) {
            let name = self.find_name(function).ok().flatten();
            self.names.insert(function, name);
        }
        self.names[&function].clone()
    }

    /// A function's name, which its declaration may have.
    fn find_name(&self, function: Entry) -> Result<Option<String>, Error> {
        let mut at = function;
        for _ in 0..HOPS {
            let (units, dwarf) = match (at.is_shared, self.dwarf.sup()) {
                (false, _) => (&self.units, &*self.dwarf),
                (true, Some(dwarf)) => (&self.shared, dwarf),
                (true, None) => return Ok(None),
            };
            let begin = |unit: &UnitHeader<Reader>| unit.debug_info_offset().map_or(0, |offset| offset.0);
            let after = units.partition_point(|unit| begin(unit) <= at.offset);
            let Some(header) = after.checked_sub(1).map(|last| &units[last]) else { return Ok(None) };
            let offset = gimli::DebugInfoOffset(at.offset).to_unit_offset(header);
            let Some(offset) = offset else { return Ok(None) };
            let unit = dwarf.unit(header.clone())?;
            let unit = unit.unit_ref(dwarf);
            let entry = unit.entry(offset)?;
            if let Some(name) =
                entry.attr_value(gimli::DW_AT_linkage_name).or(entry.attr_value(gimli::DW_AT_name))
            {
                let name = unit.attr_string(name)?;
                let name = String::from_utf8_lossy(name.bytes()).into_owned();
                return Ok((!name.is_empty() && name.len() <= LONGEST).then(|| demangled(&name)));
            }
            let other = entry
                .attr_value(gimli::DW_AT_specification)
                .or(entry.attr_value(gimli::DW_AT_abstract_origin));
            let Some(next) = other.and_then(|other| self::entry(unit, at.is_shared, &other)) else {
                return Ok(None);
            };
            at = next;
        }
        Ok(None)
    }
}

/// The call at this level that has the code at an address.
fn innermost(calls: &[Call], level: usize, address: u64) -> Option<&Call> {
    let before = calls.partition_point(|call| (call.level, call.code.start) <= (level, address));
    let call = &calls[before.checked_sub(1)?];
    (call.level == level && call.code.contains(&address)).then_some(call)
}

/// The entry to which an attribute in a unit of this or the shared file refers.
fn entry(unit: UnitRef<'_, Reader>, is_shared: bool, value: &AttributeValue<Reader>) -> Option<Entry> {
    match value {
        AttributeValue::UnitRef(offset) => {
            Some(Entry { is_shared, offset: offset.to_debug_info_offset(&unit.header)?.0 })
        }
        AttributeValue::DebugInfoRef(offset) => Some(Entry { is_shared, offset: offset.0 }),
        AttributeValue::DebugInfoRefSup(offset) => Some(Entry { is_shared: true, offset: offset.0 }),
        _ => None,
    }
}

/// Attributes of an entry that has code.
#[derive(Default)]
struct Place {
    begin: Option<u64>,
    end: Option<u64>,
    size: Option<u64>,
    ranges: Option<gimli::RangeListsOffset>,
    function: Option<Entry>,
}

impl Place {
    fn learn(
        &mut self,
        unit: UnitRef<'_, Reader>,
        name: gimli::DwAt,
        value: AttributeValue<Reader>,
    ) -> Result<(), Error> {
        match name {
            gimli::DW_AT_low_pc => self.begin = unit.attr_address(value)?,
            gimli::DW_AT_high_pc => match value {
                AttributeValue::Udata(size) => self.size = Some(size),
                value => self.end = unit.attr_address(value)?,
            },
            gimli::DW_AT_ranges => self.ranges = unit.attr_ranges_offset(value)?,
            gimli::DW_AT_abstract_origin => self.function = entry(unit, false, &value),
            _ => {}
        }
        Ok(())
    }

    /// Shows the ranges of its code to `each`, as long as any are `left`.
    fn each_range(
        &self,
        unit: UnitRef<'_, Reader>,
        left: &mut usize,
        mut each: impl FnMut(Range<u64>),
    ) -> Result<(), Error> {
        let mut keep = |code: Range<u64>| {
            let is_kept = *left > 0;
            *left = left.saturating_sub(1);
            if is_kept && !code.is_empty() {
                each(code);
            }
            is_kept
        };
        if let Some(list) = self.ranges {
            let mut ranges = unit.ranges(list)?;
            while let Some(range) = ranges.next()? {
                if !keep(range.begin..range.end) {
                    break;
                }
            }
        } else if let Some(begin) = self.begin {
            let end = self.size.map_or(self.end, |size| begin.checked_add(size));
            keep(begin..end.unwrap_or(begin));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gimli::{RunTimeEndian, SectionId};

    const SIZE: u64 = 1 << 40;

    /// Debug information with a unit that has these entries, and bytes after its header.
    fn dwarf(entries: &[u8]) -> Dwarf<Reader> {
        // DWARF 5, 7.5.3: code, tag, children, and pairs of attribute and form.
        let abbreviations = [
            &[1, 0x11, 1, 0x11, 0x01, 0x12, 0x07, 0, 0][..], // unit: low_pc, high_pc
            &[2, 0x2e, 1, 0x03, 0x08, 0, 0],                 // function: name
            &[3, 0x1d, 1, 0x31, 0x13, 0x11, 0x01, 0x12, 0x07, 0, 0], // inlined: origin, low_pc, high_pc
            // The same with an origin in the shared file.
            &[4, 0x1d, 1, 0x31, 0xa0, 0x3e, 0x11, 0x01, 0x12, 0x07, 0, 0],
            &[0],
        ]
        .concat();
        let mut unit = (8 + entries.len() as u32).to_le_bytes().to_vec();
        unit.extend([5, 0, 1, 8, 0, 0, 0, 0]); // version, kind, bytes of an address, abbreviations
        unit.extend(entries);
        let load = |id: SectionId| {
            let bytes = match id {
                SectionId::DebugAbbrev => abbreviations.clone(),
                SectionId::DebugInfo => unit.clone(),
                _ => Vec::new(),
            };
            Ok::<_, Error>(Reader::new(bytes.into(), RunTimeEndian::Little))
        };
        Dwarf::load(load).unwrap()
    }

    /// The entries of a unit that is all code from 0 on, with a function, and where that is.
    fn with_function(name: &str) -> (Vec<u8>, u32) {
        let mut entries = vec![1];
        entries.extend([0, SIZE].map(u64::to_le_bytes).concat());
        // The unit's header has 12 bytes.
        let function = 12 + entries.len() as u32;
        entries.extend([&[2][..], name.as_bytes(), &[0]].concat());
        (entries, function)
    }

    /// An inlined call, of an abbreviation, whose origin is at this offset.
    fn call(abbreviation: u8, function: u32, level: u64) -> Vec<u8> {
        let place = [level, SIZE - level].map(u64::to_le_bytes).concat();
        [&[abbreviation][..], &function.to_le_bytes(), &place].concat()
    }

    /// A file with a function that was inlined into itself so often.
    fn nested(depth: u64) -> Inlined {
        let (mut entries, function) = with_function("looped");
        (0..depth).for_each(|level| entries.extend(call(3, function, level)));
        entries.extend(vec![0; depth as usize + 2]);
        Inlined::new(Arc::new(dwarf(&entries)))
    }

    /// dwz moves a function's declaration to a file that several programs share.
    #[test]
    fn functions_of_a_shared_file_are_found() {
        let (mut shared, function) = with_function("shared");
        shared.extend([0; 2]);
        let (mut own, _) = with_function("own");
        own.extend(call(4, function, 7));
        own.extend([0; 3]);
        let mut whole = dwarf(&own);
        assert_eq!(Inlined::new(Arc::new(dwarf(&own))).at(7), Vec::<String>::new());
        whole.set_sup(dwarf(&shared));
        let mut inlined = Inlined::new(Arc::new(whole));
        assert_eq!((inlined.at(7), inlined.at(6)), (vec!["shared".to_owned()], Vec::new()));
    }

    #[test]
    fn functions_are_found_as_deep_as_the_address_is_in_them() {
        let mut inlined = nested(3);
        for (address, count) in [(0, 1), (1, 2), (2, 3), (1000, 3), (1 << 41, 0)] {
            assert_eq!(inlined.at(address), vec!["looped"; count], "{address}");
        }
    }

    #[test]
    fn a_file_that_nests_without_end_is_read() {
        assert_eq!(nested(1_000_000).at(1 << 30).len(), DEEPEST);
    }
}
