//! Fields of events as the readers of `tracewing-vocabulary` ask for them.

use crate::merge::event::EventRef;
use tracewing_ctf::decode::{Compound, Decoder, MemberHandle, Record, RecordField, Value, Visitor};
use tracewing_ctf::model::Scope;
use tracewing_units::Pid;
use tracewing_vocabulary::{Class, Field, Fields, Reader};

/// By stream and event class: what is known of the classes of a recording, found out when the first event of
/// each comes.
#[derive(Debug, Clone)]
pub struct Classes<T>(Vec<Vec<Option<T>>>);

impl<T> Default for Classes<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Classes<T> {
    /// What is known of a class, by [`EventRef::stream_index`] and
    /// [`Event::class_index`](tracewing_ctf::decode::Event::class_index).
    #[inline]
    pub fn get(&self, stream: usize, class: usize) -> Option<&T> {
        self.0.get(stream)?.get(class)?.as_ref()
    }

    /// What is known of an event's class; `learn` finds it out.
    #[inline]
    pub fn of(&mut self, event: &EventRef<'_>, learn: impl FnOnce(&EventRef<'_>) -> T) -> &T {
        let (stream, (class, _)) = (event.stream_index(), event.record());
        if self.get(stream, class).is_none() {
            self.set(stream, class, learn(event));
        }
        self.get(stream, class).expect("it was set just now if it was not before")
    }

    /// Remembers what is known of a class.
    #[cold]
    pub fn set(&mut self, stream: usize, class: usize, known: T) {
        if self.0.len() <= stream {
            self.0.resize_with(stream + 1, Vec::new);
        }
        let classes = &mut self.0[stream];
        if classes.len() <= class {
            classes.resize_with(class + 1, || None);
        }
        classes[class] = Some(known);
    }
}

/// Where the fields of a class's events lie.
#[derive(Debug)]
pub struct Places(Vec<Option<Place>>);

/// Where one field lies.
#[derive(Debug)]
pub(crate) struct Place {
    name: &'static str,
    member: MemberHandle,
    /// Its location in events that need no walk.
    field: Option<RecordField>,
}

impl Place {
    fn of(name: &'static str, member: MemberHandle, decoder: &Decoder) -> Self {
        Self { name, member, field: decoder.record_field(member) }
    }

    /// The first of these names that is a field of `scope` in events of the class of `event`.
    #[cold]
    pub(crate) fn find(event: &EventRef<'_>, scope: Scope, names: &[&'static str]) -> Option<Self> {
        let streams = &event.trace().class().data_stream_classes;
        let stream = streams.iter().position(|class| class.id == event.stream().class_id())?;
        let decoder = event.trace().decoder();
        let class = event.decoded().class_index();
        names
            .iter()
            .find_map(|name| Some(Self::of(name, decoder.member(stream, class, scope, name)?, decoder)))
    }

    /// Its value in an event, if that is an integer and fits.
    #[inline]
    pub(crate) fn integer(&self, event: &EventRef<'_>, record: Option<&Record<'_>>) -> Option<i64> {
        match (&self.field, record) {
            (Some(field), Some(record)) => field.integer(record),
            _ => self.walked_integer(event),
        }
    }

    #[inline(never)]
    fn walked_integer(&self, event: &EventRef<'_>) -> Option<i64> {
        match event.decoded().member(self.member)? {
            Value::Unsigned(number, _) | Value::UnsignedEnumeration(number, _) => i64::try_from(number).ok(),
            Value::Signed(number, _) | Value::SignedEnumeration(number, _) => Some(number),
            Value::Boolean(is_true) => Some(is_true.into()),
            _ => None,
        }
    }
}

/// The field of a class's context with the thread or process that recorded the event.
#[derive(Debug)]
pub struct Actor(Place);

impl Actor {
    /// Where the context has the first of these numbers of [`tracewing_vocabulary::context`] that it has.
    pub fn of(event: &EventRef<'_>, names: &[&'static str]) -> Option<Self> {
        Place::find(event, Scope::CommonContext, names).map(Self)
    }

    /// The process in an event.
    pub fn process(&self, event: &EventRef<'_>) -> Option<Pid> {
        self.number(event, event.record().1.as_ref()).map(Pid)
    }

    /// The number of the thread or process in an event whose [`EventRef::record`] is available; the kernel
    /// assigns none below 0.
    #[inline]
    pub(crate) fn number(&self, event: &EventRef<'_>, record: Option<&Record<'_>>) -> Option<i32> {
        i32::try_from(self.0.integer(event, record)?).ok().filter(|number| *number >= 0)
    }
}

impl Places {
    /// Where the fields of the class of `event` lie, which is `class`; `None` if it lacks one that it must
    /// have.
    pub fn of(event: &EventRef<'_>, class: Class) -> Option<Self> {
        Self::of_fields(event, class.fields())
    }

    /// Where these fields lie in events of the class of `event`; `None` if it lacks one that it must have.
    #[cold]
    pub fn of_fields(event: &EventRef<'_>, fields: &[Field]) -> Option<Self> {
        let find = |field: &Field| {
            let names = [Some(field.name), field.also];
            let place = Place::find(event, Scope::Payload, &names.into_iter().flatten().collect::<Vec<_>>());
            (place.is_some() || field.is_optional).then_some(place)
        };
        fields.iter().map(find).collect::<Option<_>>().map(Self)
    }

    /// Reads an event of the class.
    #[inline(always)]
    pub fn read<'e, R: Reader<'e>>(&self, event: &EventRef<'e>) -> Option<R> {
        self.read_record(event, event.record().1)
    }

    /// The same of an event whose [`EventRef::record`] is at hand.
    #[inline(always)]
    pub(crate) fn read_record<'e, R: Reader<'e>>(
        &self,
        event: &EventRef<'e>,
        record: Option<Record<'e>>,
    ) -> Option<R> {
        R::read(&Values { event, record, places: &self.0 })
    }
}

/// The class of an event, if it is one that tracewing knows and has its fields, and where these lie.
#[cold]
pub fn known(event: &EventRef<'_>) -> Option<(Class, Places)> {
    let class = Class::of_name(event.decoded().class().name.as_deref()?)?;
    Some((class, Places::of(event, class)?))
}

struct Values<'v, 'e> {
    event: &'v EventRef<'e>,
    record: Option<Record<'e>>,
    places: &'v [Option<Place>],
}

impl<'e> Values<'_, 'e> {
    #[inline(always)]
    fn place(&self, place: usize) -> Option<&Place> {
        self.places.get(place)?.as_ref()
    }

    #[inline(never)]
    fn member(&self, place: usize) -> Option<Value<'e>> {
        self.event.decoded().member(self.place(place)?.member)
    }
}

impl<'e> Fields<'e> for Values<'_, 'e> {
    #[inline]
    fn integer(&self, place: usize) -> Option<i64> {
        self.place(place)?.integer(self.event, self.record.as_ref())
    }

    #[inline]
    fn unsigned(&self, place: usize) -> Option<u64> {
        match (&self.place(place)?.field, &self.record) {
            (Some(field), Some(record)) => field.unsigned(record).or_else(|| unsigned(self.member(place)?)),
            _ => unsigned(self.member(place)?),
        }
    }

    #[inline]
    fn text(&self, place: usize) -> Option<&'e [u8]> {
        match (&self.place(place)?.field, &self.record) {
            (Some(field), Some(record)) => field.text(record),
            _ => match self.member(place)? {
                Value::Text(text) => Some(text),
                _ => None,
            },
        }
    }

    fn numbers(&self, place: usize, most: usize) -> Option<Vec<u64>> {
        let mut elements = Elements { name: self.place(place)?.name, most, depth: 0, found: None };
        self.event.decoded().visit(Scope::Payload, &mut elements);
        elements.found
    }
}

fn unsigned(value: Value<'_>) -> Option<u64> {
    match value {
        Value::Unsigned(number, _) | Value::UnsignedEnumeration(number, _) => Some(number),
        Value::Signed(number, _) | Value::SignedEnumeration(number, _) => Some(number.cast_unsigned()),
        Value::Boolean(is_true) => Some(is_true.into()),
        _ => None,
    }
}

/// Collects the numbers of one array or sequence of the payload.
struct Elements {
    name: &'static str,
    most: usize,
    /// How deep in the array we are; 0 outside.
    depth: usize,
    found: Option<Vec<u64>>,
}

impl Visitor for Elements {
    fn value(&mut self, _: Option<&str>, value: Value<'_>) {
        if let (1, Some(found), Some(number)) = (self.depth, &mut self.found, unsigned(value))
            && found.len() < self.most
        {
            found.push(number);
        }
    }

    fn begin(&mut self, name: Option<&str>, compound: Compound<'_>) {
        if self.depth > 0 {
            self.depth += 1;
        } else if name == Some(self.name) && matches!(compound, Compound::Array { .. }) {
            self.depth = 1;
            self.found = Some(Vec::new());
        }
    }

    fn end(&mut self, _: Compound<'_>) {
        self.depth = self.depth.saturating_sub(1);
    }
}
