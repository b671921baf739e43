//! Finds variables in an event class.

use super::Place;
use super::classes::{
    HIGH, LOW, SOME, indexed, is_text, is_wide, is_wide_text, joined, labels, members, names, optional, parts,
};
use crate::open::recording::Trace;
use crate::select::values::{Measure, Path, Step};
use crate::super_trace::Column;
use std::cell::RefCell;
use tracewing_ctf::model::{DataStreamClass, EnvValue, EventRecordClass, FieldClass, Scope, StructureClass};
use tracewing_rules::{Found, Literal, Problem, Schema, Scope as VariableScope, Type, Variable};
use tracewing_vocabulary::context;
use tracewing_vocabulary::environment::{Note, note_key};

/// An event class, and the paths into its events that were asked for.
pub(super) struct ClassSchema<'t> {
    pub(super) trace: &'t Trace,
    pub(super) stream: usize,
    pub(super) event: usize,
    pub(super) paths: RefCell<Vec<Path>>,
}

/// Where contexts are looked for, in this order.
const CONTEXTS: [Scope; 3] = [Scope::SpecificContext, Scope::CommonContext, Scope::PacketContext];

/// Contexts that some tracers write under the second name.
const ALIASES: [[&str; 2]; 3] = [context::CPU, context::TID, context::PROCESS];

impl<'t> ClassSchema<'t> {
    fn stream(&self) -> &'t DataStreamClass {
        &self.trace.class().data_stream_classes[self.stream]
    }

    fn event(&self) -> &'t EventRecordClass {
        &self.stream().event_record_classes[self.event]
    }

    /// The event's name, as errors have it.
    pub(super) fn name(&self) -> &'t str {
        self.event().name.as_deref().unwrap_or("(without name)")
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
        let alias = ALIASES.into_iter().find(|[alias, _]| *alias == name).map(|[_, name]| name);
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
            let members = class.map_or_else(|| members(root), |class| parts(value_class(&mut steps, class)));
            let Some(&(_, found)) = members.iter().find(|(name, _)| *name == part) else {
                return Err(Problem::Missing(variable.clone(), names(&members, &joined(&steps))));
            };
            steps.push(Step::Name(part.to_owned()));
            let mut inner = found;
            for index in words.filter_map(|word| word.parse().ok()) {
                let outer = variable.clone();
                inner = match value_class(&mut steps, inner) {
                    FieldClass::StaticArray(array) if index >= array.length => {
                        return Err(Problem::AfterEnd(outer, array.length));
                    }
                    FieldClass::StaticArray(array) => &array.element,
                    FieldClass::DynamicArray(array) => &array.element,
                    _ => return Err(Problem::Single(outer)),
                };
                steps.push(Step::Index(index));
            }
            class = Some(inner);
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
        class = value_class(&mut steps, class);
        // CTF 1.8 has optional fields as variants: a condition means the value, as in CTF 2.
        if let FieldClass::Variant(variant) = class
            && let Some(some) = optional(variant)
        {
            steps.push(Step::Name(SOME.to_owned()));
            class = some;
        }
        if let Some((index, element)) = indexed(class, variable)? {
            steps.push(Step::Index(index));
            class = value_class(&mut steps, element);
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
        mut steps: Vec<Step>,
        class: &FieldClass,
        variable: &Variable,
    ) -> Result<Found<Place>, Problem> {
        let measure = match class {
            class if is_text(class) => Measure::Length,
            // Inside of other fields, it need not be there.
            FieldClass::StaticArray(array) if steps.len() == 1 => {
                return Ok(Found::Known(Literal::Integer(array.length.into())));
            }
            FieldClass::StaticArray(_) | FieldClass::DynamicArray(_) => Measure::Length,
            FieldClass::Optional(outer) => {
                let from = steps.len();
                let mut inner = &outer.class;
                while let FieldClass::Optional(optional) = inner {
                    steps.push(inside(&steps));
                    inner = &optional.class;
                }
                Measure::HasValue(from)
            }
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
        match self.find_in(Scope::Payload, payload, &variable.name, variable) {
            Err(Problem::Missing(..)) if payload.member(&flat).is_some() => {
                self.find_in(Scope::Payload, payload, &flat, variable)
            }
            found => found,
        }
    }

    fn unit(&self, variable: &Variable) -> Option<&str> {
        if variable.length || variable.scope == VariableScope::Context {
            return None;
        }
        match self.trace.class().env(&note_key(self.event().id, Note::Unit(&variable.name)))? {
            EnvValue::String(unit) => Some(unit.as_str()).filter(|unit| !TYPES.contains(unit)),
            EnvValue::Integer(_) => None,
        }
    }
}

/// Notes on units that say what values are, and no unit.
const TYPES: [&str; 2] = ["bool", "char"];

/// The class of an optional field's value, which is shown inside of the field; `steps` lead there.
fn value_class<'t>(steps: &mut Vec<Step>, mut class: &'t FieldClass) -> &'t FieldClass {
    while let FieldClass::Optional(optional) = class {
        steps.push(inside(steps));
        class = &optional.class;
    }
    class
}

/// The step from an optional field to its value, which has the same name.
fn inside(steps: &[Step]) -> Step {
    match steps.last() {
        Some(Step::Name(name)) => Step::Name(name.clone()),
        // An element has none.
        _ => Step::Index(0),
    }
}
