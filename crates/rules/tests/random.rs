//! Random predicates on random events: the compiled and the resolved predicate must agree with a direct
//! evaluation. Also random bytes as filters, which must give some answer.

mod common;

use common::{as_view, class, words};
use proptest::prelude::*;
use std::cmp::Ordering;
use std::fmt::Write as _;
use tracewing_abi::atomic::AtomicU64;
use tracewing_abi::schema::{Base, Field, Label, Scalar, Shape};
use tracewing_rules::filter::{Context, MAX_WORDS, evaluate};
use tracewing_rules::{
    CompileError, Found, Integer, Literal, Predicate, Problem, Schema, Scope, Type, Value, Variable,
};
use tracewing_units::{Cpu, Pid, Tid};

const CONTEXT: Context = Context { tid: Tid(12), pid: Pid(11), cpu: Cpu(u32::MAX) };
const LABELS: &[Label<'static>] =
    &[(0, "idle"), (1, "running"), (2, "run-down"), (2, "fallen"), (127, "gone")];
const TEXTS: [&str; 7] = ["", "x", "shop", "shop-17", "shop-17 and more", "exactly8", "größer als"];
const PATTERNS: [&str; 7] = ["*", "shop*", "*1?*", "", "[a-s]*", "ex*8", "*ö*"];
const NUMBERS: [i128; 16] = [
    0,
    1,
    -1,
    2,
    127,
    128,
    -128,
    255,
    65535,
    -40000,
    1 << 31,
    1 << 53,
    (1 << 53) + 1,
    i64::MIN as i128,
    u64::MAX as i128,
    -(1 << 100),
];
const REALS: [f64; 9] = [0.0, -0.5, 0.5, 1.0, 2.5, 9007199254740992.0, -1e30, 1e300, 127.0];

/// Choices from numbers that proptest generates and can shrink.
struct Choices<'a>(std::slice::Iter<'a, u16>);

impl Choices<'_> {
    fn below(&mut self, count: usize) -> usize {
        usize::from(self.0.next().copied().unwrap_or(0)) % count
    }

    fn of<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// A value with the meaning that a reader of the trace gives it.
#[derive(Debug, Clone, PartialEq)]
enum Plain {
    Unsigned(u128),
    Signed(i128),
    Real(f64),
    Text(String),
    /// An enumeration's number; the labels follow from it.
    State(u128),
}

/// A field of the class, and its value in the event.
#[derive(Debug, Clone)]
struct Part {
    name: String,
    shape: Shape,
    scalar: Scalar,
    values: Vec<Plain>,
}

const SCALARS: [Scalar; 14] = [
    Scalar::U8,
    Scalar::U16,
    Scalar::U32,
    Scalar::U64,
    Scalar::I8,
    Scalar::I16,
    Scalar::I32,
    Scalar::I64,
    Scalar::F32,
    Scalar::F64,
    Scalar::Bool,
    Scalar::Char,
    Scalar::U128,
    Scalar::I128,
];

fn value(choices: &mut Choices<'_>, scalar: Scalar, payload: &mut Vec<u8>) -> Plain {
    let number = if choices.below(4) == 0 { i128::MAX } else { choices.of(&NUMBERS) };
    let extreme = choices.below(8) == 0;
    macro_rules! number {
        ($type:ty, $plain:ident) => {{
            let value = if extreme { <$type>::MAX } else { number as $type };
            payload.extend(value.to_le_bytes());
            Plain::$plain(value.into())
        }};
    }
    match scalar {
        Scalar::U8 => number!(u8, Unsigned),
        Scalar::U16 => number!(u16, Unsigned),
        Scalar::U32 => number!(u32, Unsigned),
        Scalar::U64 => number!(u64, Unsigned),
        Scalar::U128 => number!(u128, Unsigned),
        Scalar::I8 => number!(i8, Signed),
        Scalar::I16 => number!(i16, Signed),
        Scalar::I32 => number!(i32, Signed),
        Scalar::I64 => number!(i64, Signed),
        Scalar::I128 => number!(i128, Signed),
        Scalar::Bool => {
            payload.push(extreme.into());
            Plain::Unsigned(extreme.into())
        }
        Scalar::F32 => {
            let value = if extreme { f32::NAN } else { choices.of(&REALS) as f32 };
            payload.extend(value.to_le_bytes());
            Plain::Real(value.into())
        }
        Scalar::F64 => {
            let value = if extreme { f64::NAN } else { choices.of(&REALS) };
            payload.extend(value.to_le_bytes());
            Plain::Real(value)
        }
        Scalar::Char => {
            let char = choices.of(&['x', 'ö', '€', '😀', '\0']);
            let mut bytes = [0; 4];
            char.encode_utf8(&mut bytes);
            payload.extend(bytes);
            Plain::Text(if char == '\0' { String::new() } else { char.into() })
        }
    }
}

fn part(choices: &mut Choices<'_>, name: String, payload: &mut Vec<u8>) -> Part {
    let shapes = [Shape::One, Shape::Text, Shape::Array, Shape::Slice, Shape::Optional, Shape::Enumeration];
    let shape = choices.of(&shapes);
    let mut scalar = choices.of(&SCALARS);
    let mut values = Vec::new();
    match shape {
        Shape::One => values.push(value(choices, scalar, payload)),
        Shape::Text => {
            scalar = Scalar::U8;
            let text = choices.of(&TEXTS);
            payload.extend(text.bytes());
            payload.push(0);
            values.push(Plain::Text(text.into()));
        }
        Shape::Array => {
            let count = choices.below(4);
            values.extend((0..count).map(|_| value(choices, scalar, payload)));
        }
        Shape::Slice => {
            let count = choices.below(4);
            payload.extend((count as u16).to_le_bytes());
            values.extend((0..count).map(|_| value(choices, scalar, payload)));
        }
        Shape::Optional => {
            let count = choices.below(2);
            payload.push(count as u8);
            values.extend((0..count).map(|_| value(choices, scalar, payload)));
        }
        Shape::Enumeration => {
            scalar = choices.of(&[Scalar::U8, Scalar::I8, Scalar::U32, Scalar::I64]);
            let number = choices.of(&[0_u8, 1, 2, 3, 127]);
            payload.push(number);
            payload.resize(payload.len() + scalar.size() - 1, 0);
            values.push(Plain::State(number.into()));
        }
    }
    Part { name, shape, scalar, values }
}

/// A predicate, independent of the crate's own tree.
#[derive(Debug, Clone)]
enum Tree {
    Any(Vec<Tree>),
    All(Vec<Tree>),
    Not(Box<Tree>),
    True(Side),
    Compare(Side, &'static str, Side),
    Match(Side, &'static str, bool),
}

#[derive(Debug, Clone)]
enum Side {
    Literal(Plain),
    /// A field by its number, an element of it, its length, and the mask.
    Field(usize, Option<usize>, bool, Option<u128>),
    /// A field that only events of other classes have.
    Elsewhere,
    Context(&'static str, u32),
}

const RELATIONS: [&str; 6] = ["==", "!=", "<", "<=", ">", ">="];

fn side(choices: &mut Choices<'_>, parts: &[Part]) -> Side {
    if choices.below(12) == 0 || parts.is_empty() {
        return choices
            .of(&[("tid", 12), ("pid", 11), ("cpu", u32::MAX)].map(|(name, id)| (name, id)))
            .into();
    }
    if choices.below(10) == 0 {
        return Side::Elsewhere;
    }
    let number = choices.below(parts.len());
    let part = &parts[number];
    let several = matches!(part.shape, Shape::Array | Shape::Slice);
    if choices.below(6) == 0 && !matches!(part.shape, Shape::One | Shape::Enumeration) {
        return Side::Field(number, None, true, None);
    }
    let index = several.then(|| choices.below(3));
    let mask = (choices.below(5) == 0).then(|| choices.of(&[0, 1, 0xf0, u64::MAX.into(), u128::MAX]));
    Side::Field(number, index, false, mask)
}

impl From<(&'static str, u32)> for Side {
    fn from((name, id): (&'static str, u32)) -> Self {
        Self::Context(name, id)
    }
}

/// A side that can be compared with `side` in most cases.
fn other(choices: &mut Choices<'_>, side: &Side, parts: &[Part]) -> Side {
    let texts = match side {
        Side::Field(number, _, false, None) => {
            matches!((parts[*number].shape, parts[*number].scalar), (Shape::Text, _) | (_, Scalar::Char))
        }
        _ => false,
    };
    let labels =
        matches!(side, Side::Field(number, _, _, None) if parts[*number].shape == Shape::Enumeration);
    Side::Literal(match choices.below(7) {
        0 => return self::side(choices, parts),
        1 if labels => Plain::Text(choices.of(LABELS).1.into()),
        // Of another type in most cases.
        6 => Plain::Text(choices.of(&["walking", "shop"]).into()),
        _ if texts => Plain::Text(choices.of(&TEXTS).into()),
        2 => Plain::Real(choices.of(&REALS)),
        3 => Plain::Unsigned(u128::MAX),
        _ => Plain::Signed(choices.of(&NUMBERS)),
    })
}

fn tree(choices: &mut Choices<'_>, parts: &[Part], depth: u32) -> Tree {
    let several = |choices: &mut Choices<'_>| {
        (0..2 + choices.below(2)).map(|_| tree(choices, parts, depth + 1)).collect()
    };
    let kind = if depth > 3 { 4 + choices.below(5) } else { choices.below(9) };
    match kind {
        0 | 1 => Tree::Any(several(choices)),
        2 | 3 => Tree::All(several(choices)),
        4 => Tree::True(side(choices, parts)),
        5 if depth <= 3 => Tree::Not(Box::new(tree(choices, parts, depth + 1))),
        6 => Tree::Match(side(choices, parts), choices.of(&PATTERNS), choices.below(2) == 0),
        _ => {
            let left = side(choices, parts);
            let right = other(choices, &left, parts);
            let relation = choices.of(&RELATIONS);
            if choices.below(3) == 0 {
                Tree::Compare(right, relation, left)
            } else {
                Tree::Compare(left, relation, right)
            }
        }
    }
}

/// The predicate as a user writes it.
fn write(tree: &Tree, parts: &[Part], out: &mut String) {
    let joined = |trees: &[Tree], sign: &str, out: &mut String| {
        for (index, tree) in trees.iter().enumerate() {
            out.push_str(if index == 0 { "(" } else { sign });
            write(tree, parts, out);
        }
        out.push(')');
    };
    match tree {
        Tree::Any(trees) => joined(trees, " || ", out),
        Tree::All(trees) => joined(trees, " && ", out),
        Tree::Not(tree) => {
            out.push_str("!(");
            write(tree, parts, out);
            out.push(')');
        }
        Tree::True(side) => write_side(side, parts, out),
        Tree::Compare(left, relation, right) => {
            write_side(left, parts, out);
            write!(out, " {relation} ").unwrap();
            write_side(right, parts, out);
        }
        Tree::Match(side, pattern, negated) => {
            write_side(side, parts, out);
            write!(out, " {} {pattern:?}", if *negated { "!~" } else { "=~" }).unwrap();
        }
    }
}

fn write_side(side: &Side, parts: &[Part], out: &mut String) {
    match side {
        Side::Literal(Plain::Unsigned(number) | Plain::State(number)) => write!(out, "{number:#x}"),
        Side::Literal(Plain::Signed(number)) => write!(out, "{number}"),
        Side::Literal(Plain::Real(number)) => write!(out, "{number:e}"),
        Side::Literal(Plain::Text(text)) => write!(out, "{text:?}"),
        Side::Context(name, _) => write!(out, "${name}"),
        Side::Elsewhere => write!(out, "elsewhere"),
        Side::Field(number, index, length, mask) => {
            let name = &parts[*number].name;
            let _ = if *length { write!(out, "len({name})") } else { write!(out, "{name}") };
            index.map(|index| write!(out, "[{index}]"));
            mask.map_or(Ok(()), |mask| write!(out, " & {mask}"))
        }
    }
    .unwrap();
}

/// The event's value there; `None` if it has none, or none with such bits.
fn plain(side: &Side, parts: &[Part]) -> Option<Plain> {
    match side {
        Side::Literal(value) => Some(value.clone()),
        Side::Context(_, id) => Some(Plain::Unsigned((*id).into())),
        Side::Elsewhere => None,
        Side::Field(number, _, true, _) => Some(Plain::Unsigned(match &parts[*number].values[..] {
            [Plain::Text(text)] if parts[*number].shape == Shape::Text => text.len() as u128,
            values => values.len() as u128,
        })),
        Side::Field(number, index, false, mask) => {
            let value = parts[*number].values.get(index.unwrap_or(0)).cloned()?;
            let Some(mask) = mask else { return Some(value) };
            match value {
                Plain::Unsigned(number) | Plain::State(number) => Some(Plain::Unsigned(number & mask)),
                Plain::Signed(number) => Some(Plain::Unsigned(number as u128 & mask)),
                Plain::Real(_) | Plain::Text(_) => None,
            }
        }
    }
}

/// Whether each event has its own value there, and whether of that only some bits are compared.
fn is_value(side: &Side, parts: &[Part]) -> (bool, bool) {
    match side {
        Side::Literal(_) => (false, false),
        Side::Field(number, _, length, mask) => {
            (!(*length && parts[*number].shape == Shape::Array), mask.is_some())
        }
        Side::Context(..) | Side::Elsewhere => (true, false),
    }
}

fn integers(left: &Plain, right: &Plain) -> Option<Ordering> {
    Some(match (left, right) {
        (Plain::Unsigned(left) | Plain::State(left), Plain::Unsigned(right) | Plain::State(right)) => {
            left.cmp(right)
        }
        (Plain::Signed(left), Plain::Signed(right)) => left.cmp(right),
        (Plain::Signed(left), Plain::Unsigned(right) | Plain::State(right)) => {
            u128::try_from(*left).map_or(Ordering::Less, |left| left.cmp(right))
        }
        (Plain::Unsigned(_) | Plain::State(_), Plain::Signed(_)) => integers(right, left)?.reverse(),
        _ => return None,
    })
}

/// Compares an integer and a floating-point number: first the integral part, then the fraction.
fn mixed(left: &Plain, right: f64) -> Option<Ordering> {
    let whole = right.trunc();
    let order = if whole >= 2_f64.powi(128) {
        Ordering::Less
    } else if whole < -2_f64.powi(127) {
        Ordering::Greater
    } else if whole < 0.0 {
        integers(left, &Plain::Signed(whole as i128))?
    } else {
        integers(left, &Plain::Unsigned(whole as u128))?
    };
    Some(order.then(whole.partial_cmp(&right)?))
}

/// The predicate's truth value by Kleene's logic, node by node: `None` is unknown, as is each comparison of
/// values of other types.
fn truth(tree: &Tree, parts: &[Part]) -> Option<bool> {
    let value = |side: &Side| plain(side, parts);
    match tree {
        Tree::Any(trees) => or(trees.iter().map(|tree| truth(tree, parts))),
        // The law of De Morgan, which Kleene's logic keeps.
        Tree::All(trees) => {
            or(trees.iter().map(|tree| truth(tree, parts).map(|truth| !truth))).map(|truth| !truth)
        }
        Tree::Not(tree) => truth(tree, parts).map(|truth| !truth),
        Tree::True(side) => match value(side)? {
            Plain::Unsigned(number) | Plain::State(number) => Some(number != 0),
            Plain::Signed(number) => Some(number != 0),
            Plain::Real(_) | Plain::Text(_) => None,
        },
        Tree::Match(side, pattern, negated) => {
            let glob = tracewing_rules::Glob::new(*pattern);
            match value(side)? {
                Plain::Text(text) => Some(glob.matches(&text) != *negated),
                Plain::State(number) => Some(labels(number).any(|label| glob.matches(label)) != *negated),
                _ => None,
            }
        }
        Tree::Compare(left, relation, right) => compare(left, relation, right, parts),
    }
}

fn compare(left: &Side, relation: &str, right: &Side, parts: &[Part]) -> Option<bool> {
    let is_pair = match (is_value(left, parts), is_value(right, parts)) {
        ((true, one), (true, other)) if one || other => return None,
        ((one, _), (other, _)) => one && other,
    };
    let equality = ["==", "!="].contains(&relation);
    let equal = |equal| Some(if equal { Ordering::Equal } else { Ordering::Less });
    let (left, right) = (plain(left, parts)?, plain(right, parts)?);
    // Of numbers that are none, no relation holds.
    let order = match (&left, &right) {
        (Plain::Text(left), Plain::Text(right)) if equality => equal(left == right),
        (Plain::State(number), Plain::Text(text)) | (Plain::Text(text), Plain::State(number))
            if equality && !is_pair && LABELS.iter().any(|(_, label)| label == text) =>
        {
            equal(labels(*number).any(|label| label == text))
        }
        (Plain::Text(_), _) | (_, Plain::Text(_)) => return None,
        (Plain::Real(left), Plain::Real(right)) => left.partial_cmp(right),
        (Plain::Real(_), _) | (_, Plain::Real(_)) if is_pair => return None,
        (Plain::Real(left), right) => mixed(right, *left).map(Ordering::reverse),
        (left, Plain::Real(right)) => mixed(left, *right),
        (left, right) => integers(left, right),
    };
    Some(order.is_some_and(|order| match relation {
        "==" => order.is_eq(),
        "!=" => order.is_ne(),
        "<" => order.is_lt(),
        "<=" => order.is_le(),
        ">" => order.is_gt(),
        _ => order.is_ge(),
    }))
}

/// True if one is true, unknown if one might be.
fn or(truths: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let truths: Vec<Option<bool>> = truths.collect();
    match truths.contains(&Some(true)) {
        true => Some(true),
        false if truths.contains(&None) => None,
        false => Some(false),
    }
}

fn labels(number: u128) -> impl Iterator<Item = &'static str> {
    LABELS.iter().filter(move |(value, _)| u128::from(*value) == number).map(|(_, label)| *label)
}

/// The same class for a reader of decoded values.
struct Decoded<'a>(&'a [Part]);

impl Schema for Decoded<'_> {
    type Place = Variable;

    fn find(&self, variable: &Variable) -> Result<Found<Variable>, Problem> {
        let value = |kind| Ok(Found::Value(variable.clone(), kind));
        if variable.scope == Scope::Context {
            return value(Type::Integer);
        }
        let Some(part) = self.0.iter().find(|part| part.name == variable.name) else {
            let known = self.0.iter().map(|part| part.name.clone()).collect();
            return Err(Problem::Missing(variable.clone(), known));
        };
        if variable.length && part.shape == Shape::Array {
            return Ok(Found::Known(Literal::Integer((part.values.len() as u64).into())));
        }
        if variable.length {
            return value(Type::Integer);
        }
        if part.shape == Shape::Array && variable.index.unwrap() as usize >= part.values.len() {
            return Err(Problem::AfterEnd(variable.clone(), part.values.len() as u64));
        }
        value(match (part.shape, part.scalar) {
            (Shape::Text, _) | (_, Scalar::Char) => Type::Text,
            (_, Scalar::F32 | Scalar::F64) => Type::Real,
            (Shape::Enumeration, _) => Type::Enumeration(
                LABELS
                    .iter()
                    .map(|(value, label)| {
                        (Integer::from(*value)..=Integer::from(*value), (*label).to_owned())
                    })
                    .collect(),
            ),
            _ => Type::Integer,
        })
    }
}

fn resolved(predicate: &Predicate, parts: &[Part]) -> Result<bool, CompileError> {
    let condition = predicate.resolve("shop:order", &Decoded(parts))?;
    let side = |variable: &Variable| match variable.scope {
        Scope::Context => Side::Context(
            "",
            [("tid", 12), ("pid", 11), ("cpu", u32::MAX)]
                .into_iter()
                .find(|(name, _)| *name == variable.name)
                .unwrap()
                .1,
        ),
        Scope::Field => {
            let number = parts.iter().position(|part| part.name == variable.name).unwrap();
            Side::Field(number, variable.index.map(|index| index as usize), variable.length, None)
        }
    };
    let mut memory = Vec::new();
    condition.places(&mut |place| memory.push((place.clone(), plain(&side(place), parts))));
    Ok(condition.holds(&mut |place| {
        let (_, value) = memory.iter().find(|(other, _)| other == place).unwrap();
        Some(match value.as_ref()? {
            Plain::Unsigned(number) | Plain::State(number) => Value::Integer((*number).into()),
            Plain::Signed(number) => Value::Integer((*number).into()),
            Plain::Real(number) => Value::Real(*number),
            Plain::Text(text) => Value::Text(text.as_bytes()),
        })
    }))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn compiled_resolved_and_plain_predicates_agree(choices in proptest::collection::vec(any::<u16>(), 0..160)) {
        let mut choices = Choices(choices.iter());
        let mut payload = Vec::new();
        let parts: Vec<Part> = (0..1 + choices.below(6))
            .map(|number| part(&mut choices, format!("f{number}"), &mut payload))
            .collect();
        let fields: Vec<Field<'_>> = parts
            .iter()
            .map(|part| Field {
                name: &part.name,
                shape: part.shape,
                scalar: part.scalar,
                length: if part.shape == Shape::Array { part.values.len() as u32 } else { 0 },
                base: Base::Decimal,
                unit: "",
                labels: if part.shape == Shape::Enumeration { LABELS } else { &[] },
            })
            .collect();
        let tree = tree(&mut choices, &parts, 0);
        let mut text = String::new();
        write(&tree, &parts, &mut text);
        let predicate = Predicate::parse(&text).unwrap_or_else(|error| panic!("{error}"));
        let compiled = as_view(&class(&fields), |view| predicate.compile(view));
        let resolved = resolved(&predicate, &parts);
        let expected = truth(&tree, &parts) == Some(true);
        match compiled {
            Err(CompileError { problem: Problem::TooLarge | Problem::TooManyPositions, .. }) => {}
            Err(error) => {
                prop_assert!(!expected, "left out: {} on {:?}", text, parts);
                prop_assert_eq!(resolved.unwrap_err(), error, "{}", text);
            }
            Ok(filter) => {
                prop_assert_eq!(resolved, Ok(expected), "resolved: {} on {:?}", text, parts);
                let program = words(&filter);
                let whole = evaluate(&program, std::iter::once(&payload[..]), &CONTEXT);
                prop_assert_eq!(whole, expected, "compiled: {} on {:?}", text, parts);
                let size = 1 + choices.below(9);
                prop_assert_eq!(evaluate(&program, payload.chunks(size), &CONTEXT), expected, "in pieces: {}", text);
            }
        }
    }

    #[test]
    fn any_words_are_a_filter(
        words in proptest::collection::vec(word(), 0..40),
        payload in proptest::collection::vec(any::<u8>(), 0..60),
        size in 1_usize..60,
    ) {
        let program: Vec<AtomicU64> = words.into_iter().map(AtomicU64::new).collect();
        evaluate(&program, payload.chunks(size), &CONTEXT);
    }
}

/// A word that is likely to be an instruction.
fn word() -> impl Strategy<Value = u64> {
    let instruction = (0..40_u8, 0..24_u8, any::<u8>(), 0..48_u8, 0..48_u8, 0..48_u8, 0..64_u16);
    let instruction = instruction.prop_map(|(operation, load, packed, accepted, rejected, extra, offset)| {
        let [low, high] = offset.to_le_bytes();
        u64::from_le_bytes([operation, load, packed, accepted, rejected, extra, low, high])
    });
    prop_oneof![4 => instruction, 1 => any::<u64>()]
}

/// The recorder may replace a filter while it runs.
#[test]
fn a_filter_that_is_overwritten_while_it_runs_gives_an_answer() {
    let program: Vec<AtomicU64> = (0..MAX_WORDS).map(|_| AtomicU64::new(0)).collect();
    let payload: Vec<u8> = (0..200).collect();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = 0x9e37_79b9_7f4a_7c15_u64;
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                for word in &program {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let bytes = random.to_le_bytes();
                    let operation = u64::from(bytes[7] % 40);
                    word.store(random >> 8 << 8 | operation, std::sync::atomic::Ordering::Relaxed);
                }
            }
        });
        for _ in 0..20_000 {
            evaluate(&program, payload.chunks(50), &CONTEXT);
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

/// Values that classes of programs lack, but that classes of traces may have.
#[test]
fn other_schemas_resolve_likewise() {
    /// `$known` is 2.5, everything else an enumeration with ranges.
    struct Other;
    impl Schema for Other {
        type Place = ();
        fn find(&self, variable: &Variable) -> Result<Found<()>, Problem> {
            if variable.scope == Scope::Context {
                return Ok(Found::Known(Literal::Real(2.5)));
            }
            let label = |first: i32, last: i32, name: &str| (first.into()..=last.into(), name.to_owned());
            Ok(Found::Value((), Type::Enumeration(vec![label(-9, -1, "below"), label(5, 9, "above")])))
        }
    }
    let six = || Some(Value::Integer(6.into()));
    for (text, value, expected) in [
        ("$known > 2", None, true),
        ("$known == 2.5", None, true),
        ("3 < $known", None, false),
        ("$known >= 3", None, false),
        ("state == 'above'", six(), true),
        ("state == 'below'", six(), false),
        ("state != 'above'", six(), false),
        ("state != 'below'", six(), true),
        ("state =~ '*o*'", six(), true),
        ("state !~ 'none'", six(), true),
        ("state == 'above'", None, false),
        ("state != 'above'", None, false),
        ("state !~ 'none'", None, false),
    ] {
        let condition = Predicate::parse(text).unwrap().resolve("", &Other).unwrap();
        assert_eq!(condition.holds(&mut |()| value), expected, "{text}");
    }
}
