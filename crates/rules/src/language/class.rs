//! The variables that a predicate can use for events of a program's class.

use super::check::{Found, Schema, Type};
use super::error::Problem;
use super::integer::Integer;
use super::layout::{Layout, Place, Position, Presence};
use super::tree::{Literal, Scope, Variable};
use crate::filter::Load;
use tracewing_abi::schema::{ClassView, FieldView, Scalar, Shape};
use tracewing_vocabulary::context;

pub(super) const TID: &str = context::TID[0];
pub(super) const PID: &str = context::PROCESS[0];
const CPU: &str = context::CPU[0];

/// A class description with the positions of its fields.
pub(crate) struct ClassSchema<'a> {
    class: ClassView<'a>,
    fields: Vec<(FieldView<'a>, Position)>,
    pub(crate) layout: Layout,
}

impl<'a> ClassSchema<'a> {
    pub(crate) fn new(class: &ClassView<'a>) -> Self {
        let (layout, fields) = Layout::new(class);
        Self { class: *class, fields, layout }
    }

    fn context(&self, variable: &Variable) -> Result<Found<Place>, Problem> {
        let load = match variable.name.as_str() {
            TID => Load::TID,
            PID => Load::PID,
            CPU => Load::CPU,
            "event" => return single(variable, Found::Known(Literal::Text(self.class.name.to_owned()))),
            "level" => {
                return single(variable, Found::Known(Literal::Integer((self.class.level as u8).into())));
            }
            _ => {
                let known = [TID, PID, CPU, "event", "level"].map(|name| format!("${name}"));
                return Err(Problem::Missing(variable.clone(), known.into()));
            }
        };
        let position = Position { anchor: 0, offset: 0 };
        let place = Place { load, scalar: Scalar::U32, position, presence: Presence::Always };
        single(variable, Found::Value(place, Type::Integer))
    }

    fn field(&self, variable: &Variable) -> Result<Found<Place>, Problem> {
        let Some((field, position)) = self.fields.iter().find(|(field, _)| field.name == variable.name)
        else {
            let known = self.fields.iter().map(|(field, _)| field.name.to_owned()).collect();
            return Err(Problem::Missing(variable.clone(), known));
        };
        if variable.length {
            return length(variable, field, *position);
        }
        let at = |position, presence| Place {
            load: Load::scalar(field.scalar),
            scalar: field.scalar,
            position,
            presence,
        };
        let size = field.scalar.size() as u32;
        let found = |place| Found::Value(place, scalar_type(field.scalar));
        match (field.shape, variable.index) {
            (Shape::One, _) => single(variable, found(at(*position, Presence::Always))),
            (Shape::Optional, _) => single(variable, found(at(position.plus(1), Presence::Flag(*position)))),
            (Shape::Text, _) => {
                let place = Place { load: Load::TEXT, ..at(*position, Presence::Always) };
                single(variable, Found::Value(place, Type::Text))
            }
            (Shape::Enumeration, _) => {
                single(variable, Found::Value(at(*position, Presence::Always), enumeration(field)))
            }
            (Shape::Array | Shape::Slice, None) => Err(Problem::Several(variable.clone())),
            (Shape::Array, Some(index)) if index >= field.length => {
                Err(Problem::AfterEnd(variable.clone(), field.length.into()))
            }
            (Shape::Array, Some(index)) => {
                Ok(found(at(position.plus(index.saturating_mul(size)), Presence::Always)))
            }
            (Shape::Slice, Some(index)) => {
                let index =
                    u16::try_from(index).map_err(|_| Problem::AfterEnd(variable.clone(), u16::MAX.into()))?;
                let element = position.plus(2 + u32::from(index) * size);
                Ok(found(at(element, Presence::Counted(*position, index))))
            }
        }
    }
}

impl Schema for ClassSchema<'_> {
    type Place = Place;

    fn find(&self, variable: &Variable) -> Result<Found<Place>, Problem> {
        match variable.scope {
            Scope::Context => self.context(variable),
            Scope::Field => self.field(variable),
        }
    }

    fn unit(&self, variable: &Variable) -> Option<&str> {
        let is_meant = variable.scope == Scope::Field && !variable.length;
        let mut fields = self.fields.iter().filter(|_| is_meant);
        let (field, _) = fields.find(|(field, _)| field.name == variable.name)?;
        Some(field.unit).filter(|unit| !unit.is_empty())
    }
}

fn single<P>(variable: &Variable, found: Found<P>) -> Result<Found<P>, Problem> {
    match variable {
        Variable { index: Some(_), .. } => Err(Problem::Single(variable.clone())),
        Variable { length: true, .. } => Err(Problem::NoLength(variable.clone())),
        _ => Ok(found),
    }
}

fn length(variable: &Variable, field: &FieldView<'_>, position: Position) -> Result<Found<Place>, Problem> {
    let (load, scalar) = match field.shape {
        Shape::Text => (Load::LENGTH, Scalar::U64),
        Shape::Slice => (Load::scalar(Scalar::U16), Scalar::U16),
        Shape::Optional => (Load::scalar(Scalar::U8), Scalar::U8),
        Shape::Array => return Ok(Found::Known(Literal::Integer(u64::from(field.length).into()))),
        Shape::One | Shape::Enumeration => return Err(Problem::NoLength(variable.clone())),
    };
    Ok(Found::Value(Place { load, scalar, position, presence: Presence::Always }, Type::Integer))
}

fn scalar_type(scalar: Scalar) -> Type {
    match scalar {
        Scalar::F32 | Scalar::F64 => Type::Real,
        Scalar::Char => Type::Text,
        _ => Type::Integer,
    }
}

fn enumeration(field: &FieldView<'_>) -> Type {
    let signed = matches!(field.scalar, Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64);
    let value = |bits: u64| if signed { Integer::from(bits as i64) } else { Integer::from(bits) };
    match scalar_type(field.scalar) {
        Type::Integer => {
            let labels = field.labels().map(|(bits, label)| (value(bits)..=value(bits), label.to_owned()));
            Type::Enumeration(labels.collect())
        }
        other => other,
    }
}
