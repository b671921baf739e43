//! Evaluates predicates on events, in the traces of any tracer: finds the variables in the class, and their
//! values in each event. [`tracewing_rules`] defines the grammar and the comparisons.
//!
//! A variable's path may lead through structures, variants (by the option's name) and an array. Values that
//! tracewing writes as several fields are combined again: an optional field, and an integer of 128 bits.

use crate::open::recording::Trace;
use crate::select::values::{Measure, Path, Step, Values, value};
use crate::super_trace::{Column, Seen};
use std::cell::RefCell;
use std::collections::HashSet;
use tracewing_ctf::decode::{Event, MemberHandle};
use tracewing_ctf::model::{
    DataStreamClass, Encoding, EnumerationClass, EnvValue, EventRecordClass, FieldClass, IntegerClass,
    Member, Scope, StructureClass, VariantClass,
};
use tracewing_rules::{
    CompileError, Condition, Found, Integer, Literal, Predicate, Problem, Schema, Scope as VariableScope,
    Type, Value, Variable,
};

/// A predicate for the events of one class.
#[derive(Debug)]
pub(crate) struct EventCondition {
    condition: Condition<Place>,
    paths: Vec<Path>,
}

/// Where an event has a value.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// A member of a scope's structure.
    Member(MemberHandle),
    /// What is at the end of a path, by its index.
    Inner(usize),
    /// The two halves of an integer, likewise; the low one is unsigned.
    Halves(usize, usize),
    /// What the super-trace says of the event.
    Derived(Column),
}

impl EventCondition {
    /// Fits a predicate to an event class, which is given by its indices.
    ///
    /// # Errors
    /// It holds for no event of the class.
    pub(crate) fn new(
        predicate: &Predicate,
        trace: &Trace,
        stream: usize,
        event: usize,
    ) -> Result<Self, CompileError> {
        let class = ClassSchema { trace, stream, event, paths: RefCell::default() };
        let name = class.event().name.as_deref().unwrap_or("(without name)");
        let condition = predicate.resolve(name, &class)?;
        Ok(Self { condition, paths: class.paths.into_inner() })
    }

    /// The variables of the predicate that the class lacks.
    pub(crate) fn lacking(
        predicate: &Predicate,
        trace: &Trace,
        stream: usize,
        event: usize,
    ) -> HashSet<Variable> {
        predicate.lacking_in(&ClassSchema { trace, stream, event, paths: RefCell::default() })
    }

    /// Whether it uses columns that only the super-trace provides.
    pub(crate) fn asks_for_places(&self) -> bool {
        let mut asks = false;
        self.condition.places(&mut |place| asks |= matches!(place, Place::Derived(_)));
        asks
    }

    /// Whether it holds for an event of the class, which is `seen` if it asks for places. `values` is memory
    /// that is used again and again.
    pub(crate) fn holds(&self, event: &Event<'_>, seen: Option<&Seen<'_>>, values: &mut Values) -> bool {
        values.read(event, &self.paths);
        let values = &*values;
        self.condition.holds(&mut |place| place.value(event, seen, values))
    }
}

/// The value of a variable in the events of one class.
#[derive(Debug)]
pub(crate) struct EventValue {
    found: Found<Place>,
    paths: Vec<Path>,
}

impl EventValue {
    /// What the super-trace says of any event.
    pub(crate) fn derived(column: Column) -> Self {
        Self { found: Found::Value(Place::Derived(column), column.kind()), paths: Vec::new() }
    }

    /// Finds a variable in an event class, which is given by its indices.
    ///
    /// # Errors
    /// Why the class does not have it.
    pub(crate) fn new(
        variable: &Variable,
        trace: &Trace,
        stream: usize,
        event: usize,
    ) -> Result<Self, Problem> {
        let class = ClassSchema { trace, stream, event, paths: RefCell::default() };
        let found = class.find(variable)?;
        Ok(Self { found, paths: class.paths.into_inner() })
    }

    /// What `then` makes of the value of an event of the class, if that has one. `values` is memory that is
    /// used again and again.
    pub(crate) fn read<T>(
        &self,
        seen: &Seen<'_>,
        values: &mut Values,
        then: impl FnOnce(Value<'_>) -> T,
    ) -> Option<T> {
        let event = seen.event.decoded();
        values.read(&event, &self.paths);
        let value = match &self.found {
            Found::Value(place, _) => place.value(&event, Some(seen), values)?,
            Found::Known(Literal::Integer(number)) => Value::Integer(*number),
            Found::Known(Literal::Real(number)) => Value::Real(*number),
            Found::Known(Literal::Text(text)) => Value::Text(text.as_bytes()),
        };
        Some(then(value))
    }
}

impl Place {
    /// The value of an event there; `values` are those inside it.
    fn value<'v>(self, event: &Event<'v>, seen: Option<&Seen<'v>>, values: &'v Values) -> Option<Value<'v>> {
        match self {
            Place::Member(member) => event.member(member).map(value),
            Place::Inner(path) => values.get(path),
            Place::Derived(column) => column.of(seen?),
            Place::Halves(low, high) => match (values.get(low)?, values.get(high)?) {
                (Value::Integer(low), Value::Integer(high)) => {
                    let bits = low.bits() & u128::from(u64::MAX) | high.bits() << 64;
                    let number = if high.is_negative() { Integer::from(bits as i128) } else { bits.into() };
                    Some(Value::Integer(number))
                }
                _ => None,
            },
        }
    }
}

/// An event class, and the paths into its events that were asked for.
struct ClassSchema<'t> {
    trace: &'t Trace,
    stream: usize,
    event: usize,
    paths: RefCell<Vec<Path>>,
}

/// Where contexts are looked for, in this order.
const CONTEXTS: [Scope; 3] = [Scope::SpecificContext, Scope::CommonContext, Scope::PacketContext];

/// Other names under which tracers write a context.
const ALIASES: [(&str, &str); 3] = [("cpu", "cpu_id"), ("tid", "vtid"), ("pid", "vpid")];

impl<'t> ClassSchema<'t> {
    fn stream(&self) -> &'t DataStreamClass {
        &self.trace.class().data_stream_classes[self.stream]
    }

    fn event(&self) -> &'t EventRecordClass {
        &self.stream().event_record_classes[self.event]
    }

    fn structure(&self, scope: Scope) -> Option<&'t StructureClass> {
        match scope {
            Scope::PacketContext => self.stream().packet_context.as_ref(),
            Scope::CommonContext => self.stream().common_context.as_ref(),
            Scope::SpecificContext => self.event().specific_context.as_ref(),
            Scope::Payload => self.event().payload.as_ref(),
            Scope::PacketHeader | Scope::EventHeader => None,
        }
    }

    fn context(&self, variable: &Variable) -> Result<Found<Place>, Problem> {
        let known = |literal| match variable {
            Variable { index: Some(_), .. } => Err(Problem::Single(variable.clone())),
            Variable { length: true, .. } => Err(Problem::NoLength(variable.clone())),
            _ => Ok(Found::Known(literal)),
        };
        let name = variable.name.as_str();
        match (name, &self.event().name, self.event().log_level) {
            ("event", Some(name), _) => return known(Literal::Text(name.clone())),
            ("level", _, Some(level)) => return known(Literal::Integer(level.into())),
            _ => {}
        }
        let alias = ALIASES.into_iter().find(|(alias, _)| *alias == name).map(|(_, name)| name);
        for name in [Some(name), alias].into_iter().flatten() {
            for scope in CONTEXTS {
                if let Some(structure) = self.structure(scope)
                    && structure.member(name.split(['.', '[']).next().unwrap_or_default()).is_some()
                {
                    return self.find_in(scope, structure, name, variable);
                }
            }
            match self.trace.class().env(name) {
                Some(EnvValue::String(text)) => return known(Literal::Text(text.clone())),
                Some(EnvValue::Integer(number)) => return known(Literal::Integer((*number).into())),
                None => {}
            }
        }
        if let Some(column) = Column::named(name) {
            return match variable {
                Variable { index: Some(_), .. } => Err(Problem::Single(variable.clone())),
                Variable { length: true, .. } => Err(Problem::NoLength(variable.clone())),
                _ => Ok(Found::Value(Place::Derived(column), column.kind())),
            };
        }
        let mut names = vec!["$event".to_owned()];
        names.extend(self.event().log_level.map(|_| "$level".to_owned()));
        let members = CONTEXTS.into_iter().filter_map(|scope| self.structure(scope)).flat_map(|s| &s.members);
        names.extend(members.map(|member| format!("${}", member.name)));
        names.extend(Column::names().map(|name| format!("${name}")));
        Err(Problem::Missing(variable.clone(), names))
    }

    /// Follows a name from a scope's structure.
    fn find_in(
        &self,
        scope: Scope,
        root: &'t StructureClass,
        name: &str,
        variable: &Variable,
    ) -> Result<Found<Place>, Problem> {
        let mut steps = Vec::new();
        let mut class: Option<&'t FieldClass> = None;
        for part in name.split('.') {
            let mut words = part.split(['[', ']']).filter(|word| !word.is_empty());
            let part = words.next().unwrap_or_default();
            let members = class.map_or_else(|| members(root), parts);
            let Some(&(_, found)) = members.iter().find(|(name, _)| *name == part) else {
                return Err(Problem::Missing(variable.clone(), names(&members, &joined(&steps))));
            };
            steps.push(Step::Name(part.to_owned()));
            class = Some(found);
            while let Some(FieldClass::Optional(optional)) = class {
                // Its field is shown inside of it, with its name.
                steps.push(Step::Name(part.to_owned()));
                class = Some(&optional.class);
            }
            for index in words.filter_map(|word| word.parse().ok()) {
                let outer = variable.clone();
                class = match class {
                    Some(FieldClass::StaticArray(array)) if index >= array.length => {
                        return Err(Problem::AfterEnd(outer, array.length));
                    }
                    Some(FieldClass::StaticArray(array)) => Some(&array.element),
                    Some(FieldClass::DynamicArray(array)) => Some(&array.element),
                    _ => return Err(Problem::Single(outer)),
                };
                steps.push(Step::Index(index));
            }
        }
        let class = class.ok_or_else(|| Problem::Missing(variable.clone(), Vec::new()))?;
        self.end(scope, steps, class, variable)
    }

    /// What is at the end of a path.
    fn end(
        &self,
        scope: Scope,
        mut steps: Vec<Step>,
        mut class: &'t FieldClass,
        variable: &Variable,
    ) -> Result<Found<Place>, Problem> {
        if variable.length {
            return self.length(scope, steps, class, variable);
        }
        // CTF 1.8 has optional fields as variants: a condition means the value, as in CTF 2.
        if let FieldClass::Variant(variant) = class
            && let Some(some) = optional(variant)
        {
            steps.push(Step::Name(SOME.to_owned()));
            class = some;
        }
        if let Some((index, element)) = indexed(class, variable)? {
            steps.push(Step::Index(index));
            class = element;
        }
        let kind = match class {
            class if is_text(class) => Type::Text,
            FieldClass::Integer(_)
            | FieldClass::VariableInteger(_)
            | FieldClass::Boolean(_)
            | FieldClass::BitArray(_)
            | FieldClass::BitMap(_) => Type::Integer,
            FieldClass::Float(_) => Type::Real,
            FieldClass::Enumeration(class) | FieldClass::VariableEnumeration(class) => labels(class),
            FieldClass::Structure(halves) if is_wide(halves) => {
                let half = |name: &str| {
                    let steps = steps.iter().cloned().chain([Step::Name(name.to_owned())]).collect();
                    self.path(scope, steps, Measure::Value)
                };
                return Ok(Found::Value(Place::Halves(half(LOW), half(HIGH)), Type::Integer));
            }
            FieldClass::Structure(_) | FieldClass::Variant(_) => {
                let parts = parts(class);
                return Err(Problem::Parts(variable.clone(), names(&parts, &joined(&steps))));
            }
            _ => return Err(Problem::Several(variable.clone())),
        };
        // A member at the top of its scope has a handle, which reads it faster than a path.
        let member = match &steps[..] {
            [Step::Name(name)] if !is_wide_text(class) => {
                self.trace.decoder().member(self.stream, self.event, scope, name)
            }
            _ => None,
        };
        let place =
            member.map_or_else(|| Place::Inner(self.path(scope, steps, Measure::Value)), Place::Member);
        Ok(Found::Value(place, kind))
    }

    fn length(
        &self,
        scope: Scope,
        steps: Vec<Step>,
        class: &FieldClass,
        variable: &Variable,
    ) -> Result<Found<Place>, Problem> {
        let measure = match class {
            class if is_text(class) => Measure::Length,
            FieldClass::StaticArray(array) => {
                return Ok(Found::Known(Literal::Integer(array.length.into())));
            }
            FieldClass::DynamicArray(_) => Measure::Length,
            FieldClass::Variant(variant) if optional(variant).is_some() => Measure::IsOption(SOME),
            _ => return Err(Problem::NoLength(variable.clone())),
        };
        Ok(Found::Value(Place::Inner(self.path(scope, steps, measure)), Type::Integer))
    }

    fn path(&self, scope: Scope, steps: Vec<Step>, measure: Measure) -> usize {
        let mut paths = self.paths.borrow_mut();
        paths.push(Path { scope, steps, measure });
        paths.len() - 1
    }
}

impl Schema for ClassSchema<'_> {
    type Place = Place;

    fn find(&self, variable: &Variable) -> Result<Found<Place>, Problem> {
        if variable.scope == VariableScope::Context {
            return self.context(variable);
        }
        let Some(payload) = self.structure(Scope::Payload) else {
            return Err(Problem::Missing(variable.clone(), Vec::new()));
        };
        // A program's field may have a name for which CTF has no place; this is how it is written then.
        let letter = |char: char| if char.is_ascii_alphanumeric() { char } else { '_' };
        let flat: String = variable.name.chars().map(letter).collect();
        let name = if payload.member(&flat).is_some() { &flat } else { &variable.name };
        self.find_in(Scope::Payload, payload, name, variable)
    }
}

/// The members of a structure.
fn members(class: &StructureClass) -> Vec<(&str, &FieldClass)> {
    class.members.iter().map(|member| (member.name.as_str(), &member.class)).collect()
}

/// The members of a structure, or the options of a variant.
fn parts(class: &FieldClass) -> Vec<(&str, &FieldClass)> {
    match class {
        FieldClass::Structure(class) => members(class),
        FieldClass::Variant(class) => {
            class.options.iter().map(|option| (option.name.as_str(), &option.class)).collect()
        }
        _ => Vec::new(),
    }
}

/// The members that a user may ask for.
fn names(members: &[(&str, &FieldClass)], prefix: &str) -> Vec<String> {
    let shown = members.iter().filter(|(name, _)| !name.starts_with('_'));
    shown.map(|(name, _)| format!("{prefix}{name}")).collect()
}

/// The path so far, as it precedes a member's name.
fn joined(steps: &[Step]) -> String {
    let mut way = String::new();
    for step in steps {
        match step {
            Step::Name(name) if way.is_empty() => way += name,
            Step::Name(name) => way += &format!(".{name}"),
            Step::Index(index) => way += &format!("[{index}]"),
        }
    }
    if way.is_empty() { way } else { way + "." }
}

/// An array of text bytes is decoded to one text; so is a string.
fn is_text(class: &FieldClass) -> bool {
    let byte = |class: &FieldClass| {
        matches!(class, FieldClass::Integer(IntegerClass { size: 8, align: 8, encoding, .. })
            if *encoding != Encoding::None)
    };
    match class {
        FieldClass::String(_) | FieldClass::StaticString(_) | FieldClass::DynamicString(_) => true,
        FieldClass::StaticArray(array) => byte(&array.element),
        FieldClass::DynamicArray(array) => byte(&array.element),
        _ => false,
    }
}

/// Text in UTF-16 or UTF-32 is converted to UTF-8 for the comparison.
fn is_wide_text(class: &FieldClass) -> bool {
    let encoding = match class {
        FieldClass::String(class) => class.encoding,
        FieldClass::StaticString(class) => class.encoding,
        FieldClass::DynamicString(class) => class.encoding,
        _ => return false,
    };
    encoding.unit() > 1
}

/// As `tracewing-consumer` writes an optional field.
const SOME: &str = "some";
const NONE: &str = "none";

/// The value's class, if the variant is an optional field.
fn optional(class: &VariantClass) -> Option<&FieldClass> {
    match &class.options[..] {
        [none, some] if none.name == NONE && some.name == SOME => match &none.class {
            FieldClass::Structure(nothing) if nothing.members.is_empty() => Some(&some.class),
            _ => None,
        },
        _ => None,
    }
}

/// As `tracewing-consumer` writes an integer of 128 bits.
const LOW: &str = "low";
const HIGH: &str = "high";

fn is_wide(class: &StructureClass) -> bool {
    let half = |member: &Member, name: &str| {
        member.name == name && matches!(&member.class, FieldClass::Integer(IntegerClass { size: 64, .. }))
    };
    matches!(&class.members[..], [low, high] if half(low, LOW) && half(high, HIGH))
}

fn labels(class: &EnumerationClass) -> Type {
    let ranges = class.mappings.iter().flat_map(|mapping| {
        mapping.ranges.iter().map(|&(first, last)| (first.into()..=last.into(), mapping.label.clone()))
    });
    Type::Enumeration(ranges.collect())
}

/// The element of an array that the variable's index names; `None` where neither has several values.
fn indexed<'t>(class: &'t FieldClass, variable: &Variable) -> Result<Option<(u64, &'t FieldClass)>, Problem> {
    let element = match class {
        class if is_text(class) => None,
        FieldClass::StaticArray(array) => Some((&array.element, Some(array.length))),
        FieldClass::DynamicArray(array) => Some((&array.element, None)),
        _ => None,
    };
    match (element, variable.index.map(u64::from)) {
        (None, None) => Ok(None),
        (None, Some(_)) => Err(Problem::Single(variable.clone())),
        (Some(_), None) => Err(Problem::Several(variable.clone())),
        (Some((_, Some(length))), Some(index)) if index >= length => {
            Err(Problem::AfterEnd(variable.clone(), length))
        }
        (Some((element, _)), Some(index)) => Ok(Some((index, element))),
    }
}
