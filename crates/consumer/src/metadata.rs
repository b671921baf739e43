//! The metadata of a recording's user trace, which describes its event classes.
//!
//! The metadata file is complete at any moment: a new version is written to a temporary file and renamed
//! before any program is allowed to emit events of a new class. So no reader ever sees an event that it
//! cannot look up.

use std::collections::BTreeSet;

use tracewing_abi::event::is_located;
use tracewing_abi::schema::ClassView;
use tracewing_ctf::model::{
    ClockClass, ClockOrigin, DataStreamClass, DisplayBase, EventRecordClass, FieldClass, IntegerClass,
    StructureClass, TraceClass, Uuid,
};
use tracewing_ctf::{tsdl, write};
use tracewing_files::Dir;
use tracewing_vocabulary::context;
use tracewing_vocabulary::environment::{self, Note, note_key};

use crate::Error;
use crate::clock::{Calibration, TraceClock};
use crate::mapping::Mapped;

/// The data stream class that all user streams have.
const USER_STREAM_CLASS: u64 = 0;
/// The metadata's file name.
const METADATA: &str = "metadata";

/// The metadata of the user trace.
pub(crate) struct Metadata {
    trace: TraceClass,
    /// Folders whose metadata is kept up to date.
    folders: Vec<Dir>,
}

impl Metadata {
    /// Metadata without event classes, not yet written.
    pub(crate) fn new(folders: &[&Dir], recording: Uuid, clock: ClockClass) -> Self {
        let mut stream = DataStreamClass::new(USER_STREAM_CLASS);
        stream.packet_context = Some(write::packet_context_class(&clock.id));
        stream.event_header = Some(write::user_event_header_class(&clock.id));
        stream.common_context = Some(StructureClass::new().with(context::TID[0], FieldClass::signed(32)));
        let mut trace = TraceClass::new();
        trace.uuid = Some(recording);
        for (name, value) in about_machine() {
            trace.set_env(name, value);
        }
        trace.clock_classes.push(clock);
        trace.packet_header = Some(write::packet_header_class());
        trace.data_stream_classes.push(stream);
        Self { trace, folders: folders.iter().map(|&folder| folder.clone()).collect() }
    }

    /// From now on is that of another trace, in another folder, where it is written already.
    pub(crate) fn continue_in(&mut self, folder: &Dir, uuid: Uuid) {
        self.folders = vec![folder.clone()];
        self.trace.uuid = Some(uuid);
    }

    /// The event classes, by id.
    pub(crate) fn classes(&self) -> &[EventRecordClass] {
        &self.trace.data_stream_classes[0].event_record_classes
    }

    /// Adds an event class.
    pub(crate) fn add(&mut self, id: u16, view: &ClassView<'_>, mut mapped: Mapped) {
        mapped.class.id = id.into();
        if is_located(id) {
            let address = FieldClass::Integer(IntegerClass::unsigned(64).with_base(DisplayBase::Hexadecimal));
            mapped.class.specific_context = Some(StructureClass::new().with(context::SITE[0], address));
        }
        let texts =
            [(Note::Description, view.description), (Note::Print, view.print), (Note::File, view.file)];
        for (note, text) in texts {
            if !text.is_empty() {
                self.trace.env.push((note_key(id.into(), note), text.into()));
            }
        }
        for (note, number) in [(Note::Line, view.line), (Note::Major, view.major.into())] {
            if number != 0 {
                self.trace.env.push((note_key(id.into(), note), i64::from(number).into()));
            }
        }
        for (field, unit) in mapped.units {
            self.trace.env.push((note_key(id.into(), Note::Unit(&field)), unit.into()));
        }
        let classes = &mut self.trace.data_stream_classes[0].event_record_classes;
        let at = classes.partition_point(|class| class.id < mapped.class.id);
        classes.insert(at, mapped.class);
    }

    /// The trace class, with the names of excluded event classes.
    fn complete(&self, excluded: BTreeSet<String>) -> TraceClass {
        let mut trace = self.trace.clone();
        if !excluded.is_empty() {
            let names: Vec<String> = excluded.into_iter().collect();
            trace.set_env(environment::EXCLUDED, names.join("\n").as_str());
        }
        trace
    }

    /// Writes it into its folders.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(crate) fn write(&self, excluded: BTreeSet<String>) -> Result<(), Error> {
        let text = tsdl::print(&self.complete(excluded));
        self.folders.iter().try_for_each(|folder| replace(folder, METADATA, text.as_bytes()))
    }

    /// Writes the same for another trace, once.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn write_into(
        &self,
        folder: &Dir,
        uuid: Uuid,
        excluded: BTreeSet<String>,
    ) -> Result<(), Error> {
        let trace = TraceClass { uuid: Some(uuid), ..self.complete(excluded) };
        replace(folder, METADATA, tsdl::print(&trace).as_bytes())
    }
}

/// The clock class shared by user and kernel trace, from the calibration at the recording's beginning.
pub fn clock_class(clock: &TraceClock, begin: &Calibration, uuid: Uuid) -> ClockClass {
    let (offset_seconds, offset_cycles) = clock.offset(begin);
    let mut class = ClockClass::new(clock.name(), clock.frequency());
    class.uuid = Some(uuid);
    class.description = Some(
        match clock.kind() {
            tracewing_abi::region::Clock::Tsc => "time stamp counter",
            tracewing_abi::region::Clock::Monotonic => "CLOCK_MONOTONIC",
        }
        .to_owned(),
    );
    class.offset_seconds = offset_seconds;
    class.offset_cycles = offset_cycles;
    class.origin = ClockOrigin::UnixEpoch;
    class
}

/// Replaces a file.
pub(crate) fn replace(folder: &Dir, name: &str, content: &[u8]) -> Result<(), Error> {
    folder.replace(name, content).map_err(Error::file("write", &folder.path().join(name)))
}

/// Entries of the user trace's `env` block about the machine and the tracer.
fn about_machine() -> Vec<(&'static str, String)> {
    let system = rustix::system::uname();
    let text = |value: &std::ffi::CStr| value.to_string_lossy().into_owned();
    vec![
        (environment::HOSTNAME, text(system.nodename())),
        (environment::DOMAIN, environment::USER.to_owned()),
        (environment::TRACER_NAME, environment::TRACEWING.to_owned()),
        (environment::TRACER_VERSION, env!("CARGO_PKG_VERSION").to_owned()),
        (environment::SYSNAME, text(system.sysname())),
        (environment::KERNEL_RELEASE, text(system.release())),
        (environment::ARCHITECTURE, text(system.machine())),
    ]
}
