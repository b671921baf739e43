//! The event classes of one call site.
//!
//! `tracing` knows the names of a call site's fields but not their types: only the values show them, and a
//! value may be absent. So a class is created when an event first shows the types of its values, and another
//! one of the same name when an event of the call site shows different types, up to [`MOST_CLASSES`] times.
//! Events after that have all their fields as text.

use crate::values::{Kind, Kinds, MOST_FIELDS, TYPED_FIELDS};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering::*};
use tracewing::Level;
use tracewing::dynamic::{self, EventClass};
use tracewing_abi::schema::{Base, Class, Field, Scalar, Shape};
use tracewing_vocabulary::Field as Id;

/// Classes of one call site whose fields have types.
const MOST_CLASSES: usize = 8;

/// The data that all classes of a call site have in common.
pub(crate) struct Description {
    pub name: String,
    pub level: Level,
    pub text: String,
    pub file: &'static str,
    pub line: u32,
    /// The ids before the fields.
    pub ids: &'static [Id],
}

impl Description {
    /// Registers the class with these fields for all recordings. It stays until the program ends. `None` if
    /// its description is too large.
    pub(crate) fn register(
        &self,
        fields: impl IntoIterator<Item = Field<'static>>,
    ) -> Option<&'static EventClass> {
        let leak = |text: &str| -> &'static str { Box::leak(text.into()) };
        let id = |name| Field { base: Base::Hexadecimal, ..field(name, Shape::One, Scalar::U64) };
        let fields: Vec<_> = self.ids.iter().map(|of| id(of.name)).chain(fields).collect();
        dynamic::register(Class {
            name: leak(&self.name),
            level: self.level,
            major: 0,
            description: leak(&self.text),
            print: "",
            file: self.file,
            line: self.line,
            fields: fields.leak(),
        })
    }
}

fn field(name: &'static str, shape: Shape, scalar: Scalar) -> Field<'static> {
    Field::plain(name, shape, scalar)
}

fn field_of_kind(name: &'static str, kind: Kind) -> Option<Field<'static>> {
    let (shape, scalar) = match kind {
        Kind::Absent => return None,
        Kind::U64 => (Shape::One, Scalar::U64),
        Kind::I64 => (Shape::One, Scalar::I64),
        Kind::F64 => (Shape::One, Scalar::F64),
        Kind::Bool => (Shape::One, Scalar::Bool),
        Kind::U128 => (Shape::One, Scalar::U128),
        Kind::I128 => (Shape::One, Scalar::I128),
        Kind::Text => (Shape::Text, Scalar::U8),
        Kind::Bytes => (Shape::Slice, Scalar::U8),
    };
    Some(field(name, shape, scalar))
}

/// One class, in a list that only grows.
struct Variant {
    /// `None`: all fields are text.
    kinds: Option<Kinds>,
    /// `None`: its events cannot be recorded.
    class: Option<&'static EventClass>,
    next: AtomicPtr<Variant>,
}

/// The classes of a call site's events of one sort.
pub(crate) struct Classes {
    description: Description,
    fields: Vec<&'static str>,
    first: AtomicPtr<Variant>,
    /// Whether an event had a value for each field, so that its class describes the call site's events.
    is_settled: AtomicBool,
    /// Whether an event had values that [`numbers`](crate::numbers) does not handle.
    has_others: AtomicBool,
}

/// The class for an event.
#[derive(Clone, Copy)]
pub(crate) struct Found {
    /// `None`: it cannot be recorded.
    pub class: Option<&'static EventClass>,
    /// Whether the class has all fields as text: the values must be collected that way.
    pub is_text: bool,
    /// Whether the class has just been created.
    pub is_new: bool,
}

impl Classes {
    /// No class yet, for events with these fields.
    pub(crate) fn new(description: Description, mut fields: Vec<&'static str>) -> Self {
        fields.truncate(MOST_FIELDS);
        Self {
            description,
            fields,
            first: AtomicPtr::default(),
            is_settled: AtomicBool::new(false),
            has_others: AtomicBool::new(false),
        }
    }

    /// Number of fields, without those that are not recorded.
    #[inline]
    pub(crate) fn fields(&self) -> usize {
        self.fields.len()
    }

    /// Whether all events so far had few values, all of them numbers.
    #[inline]
    pub(crate) fn have_numbers_only(&self) -> bool {
        !self.has_others.load(Relaxed) // a hint
    }

    /// Notes that an event had other values.
    #[cold]
    pub(crate) fn have_others(&self) {
        self.has_others.store(true, Relaxed);
    }

    /// Whether some recording may enable events of this call site: of a known class, or of one that is not
    /// yet known.
    #[inline]
    pub(crate) fn may_be_enabled(&self) -> bool {
        // First, and with the release in `add`: if it is settled, its class is seen. The other way round,
        // another thread could make the class known in between, and this event would be lost.
        !self.is_settled.load(Acquire) && dynamic::is_recorded() || self.is_enabled()
    }

    /// Whether any class exists yet.
    pub(crate) fn is_known(&self) -> bool {
        !self.first.load(Relaxed).is_null() // not followed
    }

    /// Whether some recording enables a known class.
    #[inline]
    pub(crate) fn is_enabled(&self) -> bool {
        self.variants().any(|variant| variant.class.is_some_and(EventClass::is_on))
    }

    /// The class of values of these kinds, which may be new.
    #[inline]
    pub(crate) fn find(&self, kinds: Kinds) -> Found {
        match self.variants().find(|variant| variant.kinds == Some(kinds)) {
            Some(variant) => Found { class: variant.class, is_text: false, is_new: false },
            None => self.add(kinds),
        }
    }

    #[inline]
    fn variants(&self) -> impl Iterator<Item = &'static Variant> {
        // SAFETY: null, or a variant that was leaked; the acquire pairs with the release in `add`.
        let at = |pointer: &AtomicPtr<Variant>| unsafe { pointer.load(Acquire).as_ref() };
        core::iter::successors(at(&self.first), move |variant| at(&variant.next))
    }

    #[cold]
    fn add(&self, kinds: Kinds) -> Found {
        // Retried if another thread has added one meanwhile: at most once per class. Not a lock, since a
        // child that is forked while the recorder learns of the class would find it locked permanently.
        let (kinds, class) = loop {
            let (mut last, mut count) = (&self.first, 0);
            for variant in self.variants() {
                // Added since the caller looked, or the last one, which takes all other kinds.
                if variant.kinds.is_none_or(|others| others == kinds) {
                    return Found { class: variant.class, is_text: variant.kinds.is_none(), is_new: false };
                }
                (last, count) = (&variant.next, count + 1);
            }
            let kinds = (count < MOST_CLASSES).then_some(kinds);
            let class = self.register(kinds);
            let variant = Box::new(Variant { kinds, class, next: AtomicPtr::new(ptr::null_mut()) });
            let variant = Box::into_raw(variant);
            // Release: partner is the acquire in `variants`.
            if last.compare_exchange(ptr::null_mut(), variant, Release, Relaxed).is_ok() {
                break (kinds, class);
            }
            // SAFETY: made above, and not shared with any thread.
            drop(unsafe { Box::from_raw(variant) });
        };
        let mut typed = 0..self.fields.len().min(TYPED_FIELDS);
        if kinds.is_none_or(|kinds| typed.all(|index| kinds.get(index) != Kind::Absent)) {
            self.is_settled.store(true, Release); // with `may_be_enabled`
        }
        Found { class, is_text: kinds.is_none(), is_new: true }
    }

    /// Registers a class of all fields for which values of these kinds exist.
    fn register(&self, kinds: Option<Kinds>) -> Option<&'static EventClass> {
        let kind = |index| match kinds {
            Some(kinds) if index < TYPED_FIELDS => kinds.get(index),
            _ => Kind::Text,
        };
        let fields = self.fields.iter().enumerate();
        self.description.register(fields.filter_map(|(index, name)| field_of_kind(name, kind(index))))
    }
}
