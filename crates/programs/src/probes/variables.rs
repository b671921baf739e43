//! Variables of a function by name, from its debug information (DWARF 5, chapters 2.6, 3 and 5): their
//! location at an instruction and their type, in the kernel's syntax.
//!
//! | debug information | location at the instruction |
//! |---|---|
//! | a register | the register |
//! | memory at a register, or in the frame | that memory; the unwind tables locate the frame |
//! | a parameter in the frame, at the function's first instruction | not there yet, but in its register by the psABI |
//! | an address | that address |
//! | pieces, which are registers | these; for a parameter of two words, the two next ones |
//! | anything else: computations, earlier values of another place | refused |

mod dwarf;
mod kind;

use std::cell::OnceCell;

use gimli::{
    AttributeValue, BaseAddresses, CfaRule, EhFrame, EndianSlice, LittleEndian, Operation, UnwindContext,
    UnwindSection,
};
use object::{Object, ObjectSection};

use crate::elf::Segment;
use crate::probes::VariableFault;
use crate::probes::file::Elf;
use crate::probes::place::{PARAMETERS, Place, numbered};
use crate::probes::request::Member;
use dwarf::{Node, Sections};
use kind::{Kind, Passed};

/// A function's variables at a probe.
pub(crate) struct Variables<'a> {
    elf: &'a Elf<'a>,
    debug: Option<&'a Elf<'a>>,
    /// Address of the function.
    function: u64,
    /// Address of the probe.
    address: u64,
    segment: Segment,
    sections: OnceCell<Option<Sections<'a>>>,
}

impl<'a> Variables<'a> {
    pub(crate) fn new(
        elf: &'a Elf<'a>,
        debug: Option<&'a Elf<'a>>,
        function: u64,
        address: u64,
        segment: Segment,
    ) -> Self {
        Self { elf, debug, function, address, segment, sections: OnceCell::new() }
    }

    fn sections(&self) -> Option<&Sections<'a>> {
        let load = || [self.debug, Some(self.elf)].into_iter().flatten().find_map(Sections::load);
        self.sections.get_or_init(load).as_ref()
    }

    /// Calls `with` with the function.
    fn function<T>(
        &self,
        with: impl FnOnce(&Node<'_>) -> Result<T, VariableFault>,
    ) -> Result<T, VariableFault> {
        let sections = self.sections().ok_or(VariableFault::NoDebug)?;
        sections.with(|dwarf| {
            let function = dwarf::function(dwarf, self.function).ok_or(VariableFault::NoDebug)?;
            with(&function)
        })
    }

    /// Number of copies of the function inlined in others, as far as its own unit shows.
    pub(crate) fn inlined_copies(&self) -> usize {
        self.function(|function| Ok(function.inlined_copies())).unwrap_or(0)
    }

    /// The expression for the function's return value.
    pub(crate) fn returned(&self) -> Result<String, VariableFault> {
        if self.sections().is_none() {
            return Ok("$retval".to_owned());
        }
        self.function(|function| {
            let returned =
                function.inherited(gimli::DW_AT_type).and_then(|node| node.follow(gimli::DW_AT_type));
            match Kind::of(&returned.ok_or(VariableFault::ReturnsNothing)?) {
                Kind::Structure(_) | Kind::Array(_) => Err(VariableFault::ReturnsStructure),
                kind => kind.fetch(Place::Returned),
            }
        })
    }

    /// The expression for a variable, or a member of it, with type `kind` if given.
    pub(crate) fn find(
        &self,
        name: &str,
        members: &[Member],
        kind: Option<&str>,
    ) -> Result<String, VariableFault> {
        self.function(|function| {
            let variables = function.variables(self.address);
            let found = variables.iter().rfind(|variable| variable.name().as_deref() == Some(name));
            let variable = found.ok_or_else(|| {
                let names: Vec<_> = variables.iter().filter_map(Node::name).collect();
                match names.is_empty() {
                    true => VariableFault::NoVariables,
                    false => VariableFault::NoVariable(names),
                }
            })?;
            let own = variable.inherited(gimli::DW_AT_type).and_then(|node| node.follow(gimli::DW_AT_type));
            let mut own = own.ok_or(VariableFault::UnknownType)?;
            if let (Kind::Structure(node), None, None) = (Kind::of(&own), members.first(), kind) {
                return Err(kind::without_members(&node));
            }
            let mut place = self.place(function, variable)?;
            for member in members {
                (place, own) = kind::member(place, &own, member)?;
            }
            match (kind, Kind::of(&own)) {
                (None, Kind::Structure(node)) => Err(kind::without_members(&node)),
                _ if matches!(place, Place::Pieces(_)) => Err(VariableFault::InPieces),
                (Some(kind), Kind::Array(_)) => Ok(place.fetch(kind)),
                (Some(kind), _) => Ok(place.fetch_as(kind)),
                (None, own) => own.fetch(place),
            }
        })
    }

    /// The location of a variable at the probe.
    fn place<'d>(&self, function: &Node<'d>, variable: &Node<'d>) -> Result<Place, VariableFault> {
        let at_begin = self.address == self.function;
        let is_parameter = variable.tag() == Some(gimli::DW_TAG_formal_parameter);
        let Some(location) = variable.location(gimli::DW_AT_location, self.address) else {
            return match at_begin && is_parameter && function.has_flag(gimli::DW_AT_external) {
                true => self.passed(function, variable),
                false => Err(VariableFault::OptimisedOut),
            };
        };
        // A place in memory that is valid for the whole function gets its value only from the first
        // instructions.
        let is_later = at_begin && location.everywhere;
        let later = || match is_parameter {
            true => self.passed(function, variable),
            false => Err(VariableFault::NoValueYet),
        };
        let register = |number: gimli::Register| numbered(number.0).ok_or(VariableFault::NoRegister);
        match location.operations[..] {
            [Operation::Register { register: number }] => Ok(Place::Register(register(number)?)),
            [Operation::RegisterOffset { .. }] if is_later => later(),
            [Operation::RegisterOffset { register: number, offset, .. }] => {
                Ok(Place::Register(register(number)?).memory(offset))
            }
            [Operation::FrameOffset { offset }] => match self.frame(function, at_begin)? {
                // Above the return address, where the caller has stored it.
                Some((base, distance)) if !is_later || offset.wrapping_add(distance) >= 8 => {
                    Ok(base.memory(offset.wrapping_add(distance)))
                }
                _ => later(),
            },
            [Operation::Address { address }] => Ok(Place::Static(self.segment.place(address))),
            [Operation::UnsignedConstant { value }, Operation::StackValue] => {
                Ok(Place::Constant(value.cast_signed()))
            }
            [Operation::SignedConstant { value }, Operation::StackValue] => Ok(Place::Constant(value)),
            [Operation::EntryValue { .. }, ..] => Err(VariableFault::Overwritten),
            [] => Err(VariableFault::OptimisedOut),
            ref all if all.iter().any(|operation| matches!(operation, Operation::Piece { .. })) => {
                pieces(all)
            }
            _ => Err(VariableFault::Computed),
        }
    }

    /// The frame base as a register, and the distance from it; `None` while it is still being set up.
    fn frame(&self, function: &Node<'_>, at_begin: bool) -> Result<Option<(Place, i64)>, VariableFault> {
        let base = function.location(gimli::DW_AT_frame_base, self.address);
        match base.map(|base| base.operations).as_deref() {
            Some([Operation::CallFrameCFA]) if at_begin => Ok(Some((Place::Register("sp"), 8))),
            Some([Operation::CallFrameCFA]) => self.call_frame().map(Some),
            // The frame pointer, which will point below the return address and the caller's frame pointer.
            Some([Operation::Register { register }]) if at_begin && register.0 == 6 => {
                Ok(Some((Place::Register("sp"), -8)))
            }
            Some([Operation::Register { .. }]) if at_begin => Ok(None),
            Some([Operation::Register { register }]) => {
                Ok(Some((Place::Register(numbered(register.0).ok_or(VariableFault::NoRegister)?), 0)))
            }
            _ => Err(VariableFault::ComputedFrame),
        }
    }

    /// The address above the return address, by the unwind table.
    fn call_frame(&self) -> Result<(Place, i64), VariableFault> {
        let no = || VariableFault::NoUnwindTable;
        let section = self.elf.section_by_name(".eh_frame").ok_or_else(no)?;
        let bytes = section.uncompressed_data().map_err(|_| no())?;
        let table = EhFrame::from(EndianSlice::new(&bytes, LittleEndian));
        let bases = BaseAddresses::default().set_eh_frame(section.address());
        let mut context = UnwindContext::new();
        let row = table
            .unwind_info_for_address(&bases, &mut context, self.address, EhFrame::cie_from_offset)
            .map_err(|_| no())?;
        match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                Ok((Place::Register(numbered(register.0).ok_or_else(no)?), *offset))
            }
            CfaRule::Expression(_) => Err(VariableFault::ComputedFrame),
        }
    }

    /// The location of a parameter at the function's beginning, by the calling convention (psABI x86-64,
    /// section 3.2.3). Rust's own convention is the same for integers and pointers.
    fn passed<'d>(&self, function: &Node<'d>, requested: &Node<'d>) -> Result<Place, VariableFault> {
        let convention = function.own(gimli::DW_AT_calling_convention);
        if matches!(convention, Some(AttributeValue::CallingConvention(gimli::DW_CC_nocall))) {
            return Err(VariableFault::OtherConvention);
        }
        let type_of = |node: &Node<'d>| {
            node.inherited(gimli::DW_AT_type).and_then(|node| node.follow(gimli::DW_AT_type))
        };
        let passed = |node: &Node<'d>| Kind::of(node).passed(function.is_rust());
        let hidden = match type_of(function) {
            None => 0,
            // The hidden parameter: the address for the return value.
            Some(of) if Kind::of(&of).is_large() => 1,
            Some(of) => match passed(&of) {
                Passed::Register | Passed::Vector | Passed::Pair => 0,
                Passed::Memory | Passed::Unknown => return Err(VariableFault::UncertainRegister),
            },
        };
        let mut registers = PARAMETERS.iter().skip(hidden);
        // After the return address come, in order, the parameters without a register.
        let mut on_stack = Some(8);
        let mut next = |on_stack: &mut Option<i64>| match registers.next() {
            Some(name) => Ok(Place::Register(name)),
            None => {
                let at = *on_stack;
                *on_stack = at.map(|at| at + 8);
                at.map(|at| Place::Register("sp").memory(at)).ok_or(VariableFault::UncertainRegister)
            }
        };
        for parameter in function.parameters() {
            let place = match type_of(&parameter).map_or(Passed::Unknown, |of| passed(&of)) {
                Passed::Register => next(&mut on_stack),
                Passed::Pair => {
                    let words = [next(&mut on_stack), next(&mut on_stack)];
                    Ok(Place::Pieces(words.map(|word| (8, word.ok())).into()))
                }
                Passed::Vector => Err(VariableFault::NoRegister),
                Passed::Memory => {
                    on_stack = None;
                    Err(VariableFault::UncertainRegister)
                }
                Passed::Unknown => return Err(VariableFault::UncertainRegister),
            };
            if parameter.is(requested) {
                return place;
            }
        }
        Err(VariableFault::UncertainRegister)
    }
}

/// The registers that hold a variable of several pieces.
fn pieces(operations: &[Operation<EndianSlice<'_, LittleEndian>>]) -> Result<Place, VariableFault> {
    let mut pieces = Vec::new();
    let mut place = None;
    for operation in operations {
        match operation {
            Operation::Register { register } if place.is_none() => place = numbered(register.0),
            Operation::Piece { size_in_bits, bit_offset: None } => {
                pieces.push((size_in_bits / 8, place.take().map(Place::Register)));
            }
            _ => return Err(VariableFault::InPieces),
        }
    }
    Ok(Place::Pieces(pieces))
}
