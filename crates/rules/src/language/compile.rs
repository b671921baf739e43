//! From a condition to the words of a filter ([`filter`](crate::filter)).
//!
//! A condition becomes tests in the order of the text, each of which continues at one of two places: "and"
//! and "or" are only the choice of those places. A test of an absent value continues at the place for "does
//! not hold", whether the test is expected to be true or false. A position after a field without constant
//! size is computed right before the first test that needs it, and again only where that test may have been
//! skipped.

use super::condition::{Condition, Test};
use super::error::Problem;
use super::integer::Integer;
use super::layout::{Layout, Place, Position, Presence};
use super::relation::Orders;
use crate::filter::{ACCEPT, EQUAL, Instruction, LESS, Load, MAX_WORDS, Operation, REGISTERS, REJECT};
use tracewing_abi::schema::Scalar;

pub(crate) fn compile(condition: &Condition<Place>, layout: &Layout) -> Result<Vec<u8>, Problem> {
    let mut compiler = Compiler::new(condition, layout)?;
    match condition {
        Condition::Constant(true) => return Ok(Vec::new()),
        // A word of zeros is no instruction.
        Condition::Constant(false) => compiler.words.push(0),
        condition => {
            compiler.condition(condition, Target::Fixed(ACCEPT), Target::Fixed(REJECT), &mut Vec::new())?;
        }
    }
    compiler.finish()
}

#[derive(Debug, Clone, Copy)]
enum Target {
    Fixed(u8),
    /// The place with this number, which becomes known later.
    Label(usize),
}

struct Compiler<'l> {
    layout: &'l Layout,
    /// The anchors that are in a register: index `i` is in register `i + 1`.
    registers: Vec<usize>,
    words: Vec<u64>,
    /// The word that each label refers to.
    labels: Vec<Option<u8>>,
    /// Words whose targets (accepted, rejected) are still to be filled in.
    jumps: Vec<(usize, Target, Target)>,
}

impl<'l> Compiler<'l> {
    fn new(condition: &Condition<Place>, layout: &'l Layout) -> Result<Self, Problem> {
        let mut registers = Vec::new();
        condition.places(&mut |place: &Place| registers.push(place.position.anchor));
        registers.retain(|&anchor| anchor != 0);
        registers.sort_unstable();
        registers.dedup();
        if registers.len() >= REGISTERS {
            return Err(Problem::TooManyPositions);
        }
        Ok(Self { layout, registers, words: Vec::new(), labels: Vec::new(), jumps: Vec::new() })
    }

    fn label(&mut self) -> usize {
        self.labels.push(None);
        self.labels.len() - 1
    }

    /// Makes the label refer to the next word.
    fn bind(&mut self, label: usize) -> Result<(), Problem> {
        let at = u8::try_from(self.words.len()).ok().filter(|at| usize::from(*at) < MAX_WORDS);
        self.labels[label] = Some(at.ok_or(Problem::TooLarge)?);
        Ok(())
    }

    /// Compiles a condition. `located` are the anchors that are in their registers, before and afterwards.
    fn condition(
        &mut self,
        condition: &Condition<Place>,
        yes: Target,
        no: Target,
        located: &mut Vec<usize>,
    ) -> Result<(), Problem> {
        match condition {
            // Constants below the root were removed when the condition was built.
            Condition::Constant(_) => Ok(()),
            Condition::Test(test, expected) => self.test(test, *expected, yes, no, located),
            Condition::All(parts) => self.parts(parts, located, |next| (next, no), (yes, no)),
            Condition::Any(parts) => self.parts(parts, located, |next| (yes, next), (yes, no)),
        }
    }

    fn parts(
        &mut self,
        parts: &[Condition<Place>],
        located: &mut Vec<usize>,
        targets: impl Fn(Target) -> (Target, Target),
        last_targets: (Target, Target),
    ) -> Result<(), Problem> {
        let Some((last, parts)) = parts.split_last() else { return Ok(()) };
        let mut inside = located.clone();
        for (index, part) in parts.iter().enumerate() {
            let next = self.label();
            let (yes, no) = targets(Target::Label(next));
            self.condition(part, yes, no, &mut inside)?;
            self.bind(next)?;
            if index == 0 {
                // The following tests may be skipped.
                located.clone_from(&inside);
            }
        }
        self.condition(last, last_targets.0, last_targets.1, &mut inside)
    }

    fn test(
        &mut self,
        test: &Test<Place>,
        expected: bool,
        yes: Target,
        no: Target,
        located: &mut Vec<usize>,
    ) -> Result<(), Problem> {
        let (first, second) = test.places();
        let places = [Some(first), second].into_iter().flatten();
        // Before the guards: after a guard, a anchor would be in its register only if the guard found a
        // value.
        for place in places.clone() {
            self.locate(place.position.anchor, located)?;
        }
        for place in places {
            self.guard(place, no)?;
        }
        let (yes, no) = if expected { (yes, no) } else { (no, yes) };
        let equality = |negated| if negated { Orders(LESS) } else { Orders(EQUAL) };
        match test {
            Test::Integer { place, mask, orders, right } => {
                self.integer(place, *mask, *orders, *right, yes, no)
            }
            Test::Real { place, orders, right } => {
                self.instruction(Operation::Real, place, *orders, &[right.to_bits()], yes, no)
            }
            Test::Text { place, negated, text } => {
                self.text(Operation::Text, place, equality(*negated), text, yes, no)
            }
            Test::Glob { place, negated, pattern } => {
                self.text(Operation::Glob, place, equality(*negated), pattern.as_str(), yes, no)
            }
            Test::IntegerPair { left, orders, right } => {
                self.pair(Operation::IntegerPair, left, *orders, right, yes, no)
            }
            Test::RealPair { left, orders, right } => {
                self.pair(Operation::RealPair, left, *orders, right, yes, no)
            }
            Test::TextPair { left, negated, right } => {
                self.pair(Operation::TextPair, left, equality(*negated), right, yes, no)
            }
        }
    }

    /// Loads a anchor into its register, starting from the nearest known anchor before it.
    fn locate(&mut self, anchor: usize, located: &mut Vec<usize>) -> Result<(), Problem> {
        if anchor == 0 || located.contains(&anchor) {
            return Ok(());
        }
        let before = located.iter().copied().filter(|&other| other < anchor).max().unwrap_or(0);
        let mut base = self.register(before);
        for next in before + 1..=anchor {
            // A anchor that is not used later shares the register of the next one that is.
            let used = self.registers.iter().copied().find(|&used| used >= next).unwrap_or(anchor);
            let register = self.register(used);
            let step = self.layout.anchors[next - 1];
            self.word(Instruction {
                operation: Operation::Locate,
                load: step.load,
                base,
                orders: step.shape,
                accepted: REJECT,
                rejected: REJECT,
                extra: register,
                offset: offset(step.position)?,
            })?;
            base = register;
            if used == next {
                located.push(next);
            }
        }
        Ok(())
    }

    fn register(&self, anchor: usize) -> u8 {
        // Fewer than `REGISTERS`, so it fits.
        self.registers.iter().position(|&used| used == anchor).map_or(0, |index| index as u8 + 1)
    }

    /// Continues with the next instruction if the value is present.
    fn guard(&mut self, place: &Place, no: Target) -> Result<(), Problem> {
        let (scalar, position, least) = match place.presence {
            Presence::Always => return Ok(()),
            Presence::Flag(position) => (Scalar::U8, position, 1),
            Presence::Counted(position, index) => (Scalar::U16, position, u64::from(index) + 1),
        };
        let present = self.label();
        let place = Place { load: Load::scalar(scalar), scalar, position, presence: Presence::Always };
        let yes = Target::Label(present);
        self.instruction(Operation::Integer, &place, Orders::AT_LEAST, &[least], yes, no)?;
        self.bind(present)
    }

    fn integer(
        &mut self,
        place: &Place,
        mask: Option<u128>,
        orders: Orders,
        right: Integer,
        yes: Target,
        no: Target,
    ) -> Result<(), Problem> {
        let (least, largest) = match mask {
            Some(mask) => (Integer::from(0_u8), Integer::from(mask)),
            None => range(place.scalar),
        };
        let (orders, right) = orders.within(right, least, largest);
        let halves = |bits: u128| [bits as u64, (bits >> 64) as u64];
        let right = halves(right.bits());
        let mask = mask.map(halves);
        match (mask, place.scalar.size() == 16) {
            (None, false) => self.instruction(Operation::Integer, place, orders, &right[..1], yes, no),
            (None, true) => self.instruction(Operation::Wide, place, orders, &right, yes, no),
            (Some([mask, 0]), false) => {
                self.instruction(Operation::Masked, place, orders, &[mask, right[0]], yes, no)
            }
            (Some([low, high]), _) => {
                let operands = [low, high, right[0], right[1]];
                self.instruction(Operation::WideMasked, place, orders, &operands, yes, no)
            }
        }
    }

    fn text(
        &mut self,
        operation: Operation,
        place: &Place,
        orders: Orders,
        text: &str,
        yes: Target,
        no: Target,
    ) -> Result<(), Problem> {
        let words: Vec<u64> = text
            .as_bytes()
            .chunks(8)
            .map(|chunk| {
                let mut word = [0; 8];
                word[..chunk.len()].copy_from_slice(chunk);
                u64::from_le_bytes(word)
            })
            .collect();
        self.instruction(operation, place, orders, &words, yes, no)
    }

    fn pair(
        &mut self,
        operation: Operation,
        left: &Place,
        orders: Orders,
        right: &Place,
        yes: Target,
        no: Target,
    ) -> Result<(), Problem> {
        let other = self.word_for(operation, right, Orders(0), 0)?;
        self.instruction(operation, left, orders, &[other], yes, no)
    }

    fn word_for(
        &self,
        operation: Operation,
        place: &Place,
        orders: Orders,
        extra: u8,
    ) -> Result<u64, Problem> {
        let instruction = Instruction {
            operation,
            load: place.load,
            base: self.register(place.position.anchor),
            orders: orders.0,
            accepted: REJECT,
            rejected: REJECT,
            extra,
            offset: offset(place.position)?,
        };
        Ok(instruction.encode())
    }

    fn instruction(
        &mut self,
        operation: Operation,
        place: &Place,
        orders: Orders,
        operands: &[u64],
        yes: Target,
        no: Target,
    ) -> Result<(), Problem> {
        let extra = u8::try_from(operands.len()).map_err(|_| Problem::TooLarge)?;
        let word = self.word_for(operation, place, orders, extra)?;
        self.jumps.push((self.words.len(), yes, no));
        self.words.push(word);
        self.words.extend_from_slice(operands);
        if self.words.len() > MAX_WORDS { Err(Problem::TooLarge) } else { Ok(()) }
    }

    fn word(&mut self, instruction: Instruction) -> Result<(), Problem> {
        self.words.push(instruction.encode());
        if self.words.len() > MAX_WORDS { Err(Problem::TooLarge) } else { Ok(()) }
    }

    fn finish(mut self) -> Result<Vec<u8>, Problem> {
        let place = |target| match target {
            Target::Fixed(at) => at,
            Target::Label(label) => self.labels[label].unwrap_or(REJECT),
        };
        for &(word, yes, no) in &self.jumps {
            let mut bytes = self.words[word].to_le_bytes();
            (bytes[3], bytes[4]) = (place(yes), place(no));
            self.words[word] = u64::from_le_bytes(bytes);
        }
        Ok(self.words.into_iter().flat_map(u64::to_le_bytes).collect())
    }
}

/// No event is large enough for a position not to fit.
fn offset(position: Position) -> Result<u16, Problem> {
    u16::try_from(position.offset).map_err(|_| Problem::TooLarge)
}

/// The least and the largest value of a type.
fn range(scalar: Scalar) -> (Integer, Integer) {
    let unsigned = |largest: u64| (Integer::from(0_u8), Integer::from(largest));
    let signed =
        |bits: u32| (Integer::from(-1_i128 << (bits - 1)), Integer::from((1_i128 << (bits - 1)) - 1));
    match scalar {
        Scalar::U8 | Scalar::Bool => unsigned(u8::MAX.into()),
        Scalar::U16 => unsigned(u16::MAX.into()),
        Scalar::U32 => unsigned(u32::MAX.into()),
        Scalar::I8 => signed(8),
        Scalar::I16 => signed(16),
        Scalar::I32 => signed(32),
        Scalar::I64 => signed(64),
        Scalar::I128 => (Integer::MIN, Integer::from(i128::MAX)),
        Scalar::U128 => (Integer::from(0_u8), Integer::MAX),
        Scalar::U64 | Scalar::F32 | Scalar::F64 | Scalar::Char => unsigned(u64::MAX),
    }
}
