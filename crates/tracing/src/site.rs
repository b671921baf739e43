//! The call sites of a program, found by the address of their metadata.
//!
//! `tracing` passes a call site's metadata with every event, always the same `static`, and offers no other
//! key. So the process has one table from such addresses to [`Site`]s, which is read without a lock. A table
//! of twice the size replaces it when it is half full; tables and sites are never freed, since a reader may
//! be anywhere in them.

use crate::classes::{Classes, Description};
use crate::name;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering::*};
use std::sync::{Mutex, OnceLock, PoisonError};
use tracewing::Level;
use tracewing::dynamic::{self, EventClass};
use tracewing_vocabulary::span as vocabulary;
use tracing_core::Metadata;

/// What an event of a call site reports. The names for spans are those of `docs/reference/spans.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Occasion {
    /// An event of the program's.
    Event,
    /// A new span exists.
    New,
    /// Fields of a span get these values.
    Record,
    /// The thread enters the span.
    Enter,
    /// The thread leaves the span.
    Exit,
    /// The last handle of the span is dropped.
    Close,
    /// Another span led to this one.
    Follows,
}

impl Occasion {
    /// The class of a span's event.
    fn of_span(self) -> Option<vocabulary::Class> {
        Some(match self {
            Self::Event => return None,
            Self::New => vocabulary::Class::New,
            Self::Record => vocabulary::Class::Record,
            Self::Enter => vocabulary::Class::Enter,
            Self::Exit => vocabulary::Class::Exit,
            Self::Close => vocabulary::Class::Close,
            Self::Follows => vocabulary::Class::Follows,
        })
    }

    fn describe(self, metadata: &Metadata<'_>) -> String {
        let what = match self {
            Self::Event if name::is_of_log(metadata) => return name::RECORD_OF_LOG.to_owned(),
            Self::Event => "event",
            Self::New => "new span",
            Self::Record => "values of span",
            Self::Enter => "thread enters span",
            Self::Exit => "thread leaves span",
            Self::Close => "end of span",
            Self::Follows => "cause of span",
        };
        format!("{what} `{}` of target `{}`", metadata.name(), metadata.target())
    }
}

/// A call site of `tracing`, and the event classes made for it.
pub(crate) struct Site {
    metadata: &'static Metadata<'static>,
    /// Classes of the program's events, or of new spans.
    pub first: Classes,
    /// The other classes of a span.
    pub span: Option<Box<SpanClasses>>,
}

/// The classes of what happens to a span after its beginning.
pub(crate) struct SpanClasses {
    pub record: Classes,
    pub enter: Class,
    pub exit: Class,
    pub close: Class,
    pub follows: Class,
}

/// A class with ids, but without fields of the call site.
pub(crate) struct Class {
    description: Description,
    class: OnceLock<Option<&'static EventClass>>,
}

impl Class {
    fn new(metadata: &'static Metadata<'static>, occasion: Occasion) -> Self {
        Self { description: describe(metadata, occasion), class: OnceLock::new() }
    }

    /// The class, if it is known and some recording enables it.
    #[inline]
    pub(crate) fn if_on(&self) -> Option<&'static EventClass> {
        self.class.get().copied().flatten().filter(|class| class.is_on())
    }

    fn make_known(&self) {
        self.class.get_or_init(|| self.description.register([]));
    }
}

impl SpanClasses {
    fn without_fields(&self) -> [&Class; 4] {
        [&self.enter, &self.exit, &self.close, &self.follows]
    }

    /// Registers the classes that have no fields of the call site.
    pub(crate) fn make_known(&self) {
        self.without_fields().into_iter().for_each(Class::make_known);
    }
}

impl Site {
    fn new(metadata: &'static Metadata<'static>) -> Self {
        let fields = name::of_fields(metadata, vocabulary::New::FIELDS);
        let fields: Vec<&'static str> = fields.into_iter().map(|field| &*field.leak()).collect();
        let classes = |occasion| Classes::new(describe(metadata, occasion), fields.clone());
        let class = |occasion| Class::new(metadata, occasion);
        let span = metadata.is_span().then(|| {
            Box::new(SpanClasses {
                record: classes(Occasion::Record),
                enter: class(Occasion::Enter),
                exit: class(Occasion::Exit),
                close: class(Occasion::Close),
                follows: class(Occasion::Follows),
            })
        });
        let first = classes(if span.is_some() { Occasion::New } else { Occasion::Event });
        Self { metadata, first, span }
    }

    /// Whether some recording may enable something that happens here. The values that a span has before its
    /// first `record` are treated as all it ever has: nothing else is as expensive as a span.
    pub(crate) fn may_be_enabled(&self) -> bool {
        let Some(span) = &self.span else { return self.first.may_be_enabled() };
        let is_enabled = |class: &Class| class.if_on().is_some();
        !self.first.is_known() && dynamic::is_recorded()
            || self.first.is_enabled()
            || span.without_fields().into_iter().any(is_enabled)
    }
}

fn describe(metadata: &'static Metadata<'static>, occasion: Occasion) -> Description {
    use tracing_core::Level as Of;
    let class = occasion.of_span();
    Description {
        name: name::of_class(metadata, class.map_or("", vocabulary::Class::name)),
        level: match *metadata.level() {
            Of::ERROR => Level::Error,
            Of::WARN => Level::Warn,
            Of::INFO => Level::Info,
            Of::DEBUG => Level::Debug,
            Of::TRACE => Level::Trace,
        },
        text: occasion.describe(metadata),
        file: metadata.file().unwrap_or_default(),
        line: metadata.line().unwrap_or_default(),
        ids: class.map_or(vocabulary::WITHIN, vocabulary::Class::fields),
    }
}

/// An open-addressing hash table from addresses to sites.
struct Table {
    slots: Box<[AtomicPtr<Site>]>,
    /// The shift that turns a product into an index.
    shift: u32,
}

/// The table in use; null before the first call site.
static TABLE: AtomicPtr<Table> = AtomicPtr::new(ptr::null_mut());

impl Table {
    fn with_slots(count: usize) -> Self {
        let slots = (0..count).map(|_| AtomicPtr::default()).collect();
        Self { slots, shift: u64::BITS - count.trailing_zeros() }
    }

    /// The site with this metadata, or the slot where it would be.
    #[inline]
    fn find(&self, metadata: &'static Metadata<'static>) -> Result<&'static Site, &AtomicPtr<Site>> {
        // Fibonacci hashing: statics are at small distances from each other.
        let product = (ptr::from_ref(metadata) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut at = (product >> self.shift) as usize;
        loop {
            let slot = &self.slots[at & (self.slots.len() - 1)];
            // SAFETY: null, or a site that was leaked; the acquire pairs with the release in `add`.
            match unsafe { slot.load(Acquire).as_ref() } {
                Some(site) if ptr::eq(site.metadata, metadata) => return Ok(site),
                Some(_) => at += 1, // half of the slots are empty
                None => return Err(slot),
            }
        }
    }
}

/// The call site with this metadata, registered on first use.
#[inline]
pub(crate) fn of(metadata: &'static Metadata<'static>) -> &'static Site {
    // SAFETY: null, or a table that was leaked; the acquire pairs with the release in `add`.
    let table = unsafe { TABLE.load(Acquire).as_ref() };
    match table.and_then(|table| table.find(metadata).ok()) {
        Some(site) => site,
        None => add(metadata),
    }
}

#[cold]
fn add(metadata: &'static Metadata<'static>) -> &'static Site {
    static SITES: Mutex<Vec<&'static Site>> = Mutex::new(Vec::new());
    const FIRST: usize = 256;
    let mut sites = SITES.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: as in `of`; the lock keeps other threads from replacing it.
    let mut table = unsafe { TABLE.load(Relaxed).as_ref() };
    if table.is_none_or(|table| sites.len() * 2 >= table.slots.len()) {
        let larger = Table::with_slots(table.map_or(FIRST, |table| table.slots.len() * 2));
        for site in sites.iter() {
            if let Err(slot) = larger.find(site.metadata) {
                slot.store(ptr::from_ref(*site).cast_mut(), Relaxed); // published with the table
            }
        }
        let larger: &'static Table = Box::leak(Box::new(larger));
        TABLE.store(ptr::from_ref(larger).cast_mut(), Release); // partner: the acquire in `of`
        table = Some(larger);
    }
    match table.map(|table| table.find(metadata)) {
        Some(Ok(site)) => site, // added since the caller looked
        found => {
            let site: &'static Site = Box::leak(Box::new(Site::new(metadata)));
            sites.push(site);
            if let Some(Err(slot)) = found {
                slot.store(ptr::from_ref(site).cast_mut(), Release); // partner: the acquire in `find`
            }
            site
        }
    }
}
