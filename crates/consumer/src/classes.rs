//! Event classes of a recording: their ids.
//!
//! Equal descriptions are one class with one id, whichever program sent them. Every class gets an id when it
//! is first described, so that it can be enabled at any time; it is added to the metadata
//! ([`crate::metadata`]) when it is first enabled. A flight recorder has no metadata; its snapshots get
//! theirs when they are taken.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use tracewing_abi::class_table;
use tracewing_abi::event::{LOCATED, MAX_ID};
use tracewing_abi::first::{self, Key};
use tracewing_abi::schema::ClassView;
use tracewing_abi::wire::WireError;
use tracewing_ctf::model::{ClockClass, Uuid};
use tracewing_files::Dir;
use tracewing_vocabulary::{Class, function, lock, recorder, user_thread};

use crate::Error;
use crate::ids::Ids;
use crate::mapping::{self, Unfit};
use crate::metadata::{Metadata, replace};

/// Maximum bytes of class descriptions in a recording; bounds the metadata.
const MOST_DESCRIPTIONS: usize = 64 << 20;
/// Maximum number of refused classes that are named, and characters of a name.
const MOST_NAMED: usize = 16;
const LONGEST_NAME: usize = 100;

/// The classes of a recording's user trace.
pub struct Classes {
    ids: HashMap<Arc<[u8]>, u16>,
    keys: HashMap<Key, u16>,
    /// Classes by id, beginning with 1.
    described: Vec<Described>,
    /// Bytes of all descriptions.
    size: usize,
    metadata: Metadata,
    /// Identity of the recording, which buffers have; the trace's own changes with each rotation.
    recording: Uuid,
    /// Folder and name of the class table that is kept up to date, for buffers in files.
    table: Option<(Dir, &'static str)>,
    refused: u64,
    /// Names of the first refused classes.
    refused_names: Vec<String>,
    /// Whether events have the addresses of their sites.
    with_sites: bool,
    /// Those whose events are state ([`Class::is_state`]).
    of_state: Arc<Ids>,
}

struct Described {
    id: u16,
    bytes: Arc<[u8]>,
    key: Key,
    /// Whether the metadata contains it.
    is_enabled: bool,
}

/// Result of [`Classes::describe`]: ids for the program, reasons for the user.
pub struct Registered {
    /// One id per description; 0 if the class cannot be recorded.
    pub ids: Vec<u16>,
    /// Refused descriptions with reasons; at most a few of them.
    pub refused: Vec<String>,
}

/// Why a class gets no id.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error(transparent)]
    Description(#[from] WireError),
    #[error(transparent)]
    Unfit(#[from] Unfit),
    #[error("the recording has too many classes")]
    Full,
    #[error("its program, or its user, has the maximum number of classes")]
    Quota,
}

impl Classes {
    /// An empty set of classes. The metadata is written into each of these folders, now and whenever it gets
    /// a new class.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn new(folders: &[&Dir], recording: Uuid, clock: ClockClass) -> Result<Self, Error> {
        let metadata = Metadata::new(folders, recording, clock);
        let (ids, keys, described) = (HashMap::new(), HashMap::new(), Vec::new());
        let this = Self {
            ids,
            keys,
            described,
            size: 0,
            recording,
            metadata,
            table: None,
            refused: 0,
            refused_names: Vec::new(),
            with_sites: false,
            of_state: Arc::new(Ids::new()),
        };
        this.write_metadata()?;
        Ok(this)
    }

    /// With the address of its site in each event of a program's own classes, which have [`LOCATED`] in their
    /// ids. The events of libraries (locks, functions, user threads) have their places in fields, and are
    /// emitted in those libraries. To be called before any class is described.
    pub fn with_sites(mut self, with_sites: bool) -> Self {
        self.with_sites = with_sites;
        self
    }

    /// The classes whose events are state, also those that are described later.
    pub(crate) fn of_state(&self) -> &Arc<Ids> {
        &self.of_state
    }

    fn of(&self, id: u16) -> Option<&Described> {
        self.described.get(place(id)?).filter(|described| described.id == id)
    }

    /// Assigns ids to the classes with these descriptions (the bytes that
    /// [`decode_classes`](tracewing_abi::message::decode_classes) returns). No events of them may be emitted
    /// before [`Classes::enable`] was called for their ids. `may` is called for each new class, with the size
    /// of its description, and decides whether its program may have one more.
    pub fn describe<'a>(
        &mut self,
        descriptions: impl IntoIterator<Item = &'a [u8]>,
        mut may: impl FnMut(usize) -> bool,
    ) -> Registered {
        const MOST_REASONS: usize = 8;
        let mut registered = Registered { ids: Vec::new(), refused: Vec::new() };
        for description in descriptions {
            let id = self.id_of(description, &mut may).unwrap_or_else(|reason| {
                self.refused += 1;
                let name = ClassView::decode(description).map_or("(unreadable)", |view| view.name);
                let name: String = name.chars().take(LONGEST_NAME).collect();
                if self.refused_names.len() < MOST_NAMED && !self.refused_names.contains(&name) {
                    self.refused_names.push(name.clone());
                }
                if registered.refused.len() < MOST_REASONS {
                    registered.refused.push(format!("event {name:?} is not recorded: {reason}"));
                }
                0
            });
            registered.ids.push(id);
        }
        registered
    }

    /// Adds classes to the metadata. When it returns, the metadata on disk contains all of them. Ids that no
    /// class has are skipped.
    ///
    /// # Errors
    /// The metadata cannot be written; then no event of these classes may be emitted.
    pub fn enable(&mut self, ids: impl IntoIterator<Item = u16>) -> Result<(), Error> {
        let before = self.len();
        for id in ids {
            let described = place(id).and_then(|at| self.described.get_mut(at));
            if let Some(described) = described.filter(|described| described.id == id && !described.is_enabled)
            {
                described.is_enabled = true;
                let bytes = described.bytes.clone();
                // A class that cannot be translated got no id.
                if let Ok(view) = ClassView::decode(&bytes)
                    && let Ok(mapped) = mapping::map(&view)
                {
                    self.metadata.add(id, &view, mapped);
                }
            }
        }
        if self.len() > before { self.write_metadata() } else { Ok(()) }
    }

    /// [`Classes::describe`] and [`Classes::enable`] in one, for all described classes.
    ///
    /// # Errors
    /// The metadata cannot be written; then no id may be used.
    pub fn register<'a>(
        &mut self,
        descriptions: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Registered, Error> {
        let registered = self.describe(descriptions, |_| true);
        self.enable(registered.ids.iter().copied())?;
        Ok(registered)
    }

    /// The class with this id.
    pub fn class(&self, id: u16) -> Option<ClassView<'_>> {
        ClassView::decode(&self.of(id)?.bytes).ok()
    }

    /// The key of the class with this id.
    pub fn key(&self, id: u16) -> Option<Key> {
        Some(self.of(id)?.key)
    }

    /// The id of the class with this key.
    pub fn id(&self, key: Key) -> Option<u16> {
        self.keys.get(&key).copied()
    }

    /// All classes that were described, by id.
    pub fn described(&self) -> impl Iterator<Item = (u16, ClassView<'_>)> {
        let described = self.described.iter();
        described.filter_map(|one| Some((one.id, ClassView::decode(&one.bytes).ok()?)))
    }

    /// A message about refused descriptions.
    pub fn refusals(&self) -> Option<String> {
        let names = self.refused_names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
        (self.refused > 0).then(|| {
            let what = if self.refused == 1 { "event class was" } else { "event classes were" };
            let more = if self.refused > self.refused_names.len() as u64 { ", ..." } else { "" };
            format!("{} {what} refused ({names}{more}): number of events unknown", self.refused)
        })
    }

    /// Number of classes in the metadata.
    pub fn len(&self) -> usize {
        self.metadata.classes().len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.metadata.classes().is_empty()
    }

    fn id_of(&mut self, description: &[u8], may: &mut dyn FnMut(usize) -> bool) -> Result<u16, Refusal> {
        if let Some(&id) = self.ids.get(description) {
            return Ok(id);
        }
        let view = ClassView::decode(description)?;
        mapping::map(&view)?;
        let id = u16::try_from(self.described.len() + 1).ok().filter(|&id| id <= MAX_ID);
        let size = self.size + description.len();
        let id = id.filter(|_| size <= MOST_DESCRIPTIONS).ok_or(Refusal::Full)?;
        if !may(description.len()) {
            return Err(Refusal::Quota);
        }
        let has_place = [recorder::START, lock::START, user_thread::START, function::START];
        let is_located = self.with_sites && !has_place.iter().any(|start| view.name.starts_with(start));
        let id = if is_located { id | LOCATED } else { id };
        if Class::of_name(view.name).is_some_and(Class::is_state) {
            self.of_state.insert(id);
        }
        let bytes: Arc<[u8]> = description.into();
        self.size = size;
        let key = first::key(description);
        self.described.push(Described { id, bytes: bytes.clone(), key, is_enabled: false });
        self.keys.insert(key, id);
        self.ids.insert(bytes, id);
        Ok(id)
    }

    /// Names of classes that are not enabled, from whose absence analyses must not conclude anything.
    fn excluded(&self) -> BTreeSet<String> {
        self.described
            .iter()
            .filter(|described| !described.is_enabled)
            .filter_map(|described| Some(ClassView::decode(&described.bytes).ok()?.name.to_owned()))
            .filter(|name| name.starts_with(lock::START) || name.starts_with(user_thread::START))
            .filter(|name| self.metadata.classes().iter().all(|class| class.name.as_ref() != Some(name)))
            .collect()
    }

    fn write_metadata(&self) -> Result<(), Error> {
        self.metadata.write(self.excluded())?;
        self.table.iter().try_for_each(|(folder, name)| replace(folder, name, &self.table_of_classes()))
    }

    /// Writes ids and descriptions of the metadata's classes into a file (`tracewing_abi::class_table`), now
    /// and whenever the metadata gets a new class.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep_table(&mut self, folder: &Dir, name: &'static str) -> Result<(), Error> {
        replace(folder, name, &self.table_of_classes())?;
        self.table = Some((folder.clone(), name));
        Ok(())
    }

    fn table_of_classes(&self) -> Vec<u8> {
        // Also the class of first events, which are in buffers but never in a trace.
        let is_first = |described: &Described| {
            ClassView::decode(&described.bytes).is_ok_and(|class| class.name == first::NAME)
        };
        let enabled = self.described.iter().filter(|one| one.is_enabled || is_first(one));
        let classes: Vec<(u16, &[u8])> = enabled.map(|one| (one.id, &*one.bytes)).collect();
        let size = classes.iter().map(|(_, class)| class_table::ENTRY + 2 + class.len()).sum::<usize>();
        let mut table = vec![0; class_table::HEADER + size];
        let written = class_table::Writer::new(&mut table, &self.recording).and_then(|mut writer| {
            classes.iter().try_for_each(|(id, class)| writer.push_encoded(*id, class))
        });
        debug_assert!(written.is_ok(), "as large as all entries together");
        table
    }

    /// From now on keeps the metadata of this trace up to date, which the file in the folder has already
    /// ([`Classes::write_into`]), instead of the present one.
    pub fn continue_in(&mut self, folder: &Dir, uuid: Uuid) {
        self.metadata.continue_in(folder, uuid);
    }

    /// Writes the metadata of another trace with the current classes, once.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_into(&self, folder: &Dir, uuid: Uuid) -> Result<(), Error> {
        self.metadata.write_into(folder, uuid, self.excluded())
    }
}

/// Where the class with this id is in the list of all.
fn place(id: u16) -> Option<usize> {
    usize::from(id & !LOCATED).checked_sub(1)
}
