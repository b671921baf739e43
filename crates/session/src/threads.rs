//! The threads of programs: each reports its process and its name once, which a flight recorder overwrites in
//! time, and which a rotated recording has in an earlier archive. Snapshots and archives get them from here,
//! as they get them from the kernel's state dump where the kernel is recorded.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use tracewing_abi::message::{ClassesWriter, decode_classes};
use tracewing_abi::schema::{Class, Field, Scalar, Shape};
use tracewing_consumer::Error;
use tracewing_consumer::classes::Classes;
use tracewing_consumer::snapshot::Snapshot;
use tracewing_units::{Pid, Tid};
use tracewing_vocabulary::FieldKind;
use tracewing_vocabulary::recorder::KnownThread;

/// The stream of the events that name them.
pub(crate) const STREAM: &str = "threads";

/// Minimum time between two looks; at least 100 times as long as a look takes.
const INTERVAL: Duration = Duration::from_millis(100);
/// Above this number, threads that have ended are forgotten.
const MOST: usize = 1 << 16;

const CLASS: Class<'_> = Class {
    description: "A thread of a recorded program, as the recorder has last seen it",
    print: "thread {name} of process {pid}",
    fields: &[field(0), field(1), field(2)],
    ..Class::named(KnownThread::NAME)
};

const fn field(place: usize) -> Field<'static> {
    let field = KnownThread::FIELDS[place];
    match field.kind {
        FieldKind::Text => Field::plain(field.name, Shape::Text, Scalar::U8),
        _ => Field::plain(field.name, Shape::One, Scalar::I32),
    }
}

/// All threads that were seen.
pub(crate) struct Threads {
    known: BTreeMap<Tid, Thread>,
    due: Instant,
}

struct Thread {
    process: Pid,
    name: String,
    is_there: bool,
}

impl Threads {
    pub(crate) fn new() -> Self {
        Self { known: BTreeMap::new(), due: Instant::now() }
    }

    /// Looks at the threads of processes, if it is time for that.
    pub(crate) fn look(&mut self, processes: impl Iterator<Item = Pid>) {
        let begin = Instant::now();
        if begin >= self.due {
            self.look_now(processes);
            self.due = begin + INTERVAL.max(100 * begin.elapsed());
        }
    }

    pub(crate) fn look_now(&mut self, processes: impl Iterator<Item = Pid>) {
        self.known.values_mut().for_each(|thread| thread.is_there = false);
        for process in processes {
            let Ok(tasks) = fs::read_dir(format!("/proc/{process}/task")) else { continue };
            for task in tasks.flatten() {
                let tid = task.file_name().to_str().and_then(|tid| tid.parse().ok());
                if let (Some(tid), Ok(name)) = (tid, fs::read(task.path().join("comm"))) {
                    let name = String::from_utf8_lossy(&name).trim_end_matches('\n').to_owned();
                    self.known.insert(tid, Thread { process, name, is_there: true });
                }
            }
        }
        if self.known.len() > MOST {
            self.known.retain(|_, thread| thread.is_there);
        }
    }

    /// Writes them into a snapshot.
    ///
    /// # Errors
    /// A file of it cannot be written.
    pub(crate) fn write_names(&self, classes: &mut Classes, snapshot: &mut Snapshot) -> Result<(), Error> {
        let Some(id) = class(classes) else { return Ok(()) };
        snapshot.add_own_events(STREAM, id, self.events())
    }

    /// The events that name them, each with its thread and payload.
    pub(crate) fn events(&self) -> impl Iterator<Item = (Tid, Vec<u8>)> {
        self.known.iter().map(|(tid, Thread { process, name, .. })| {
            let name = name.bytes().filter(|byte| *byte != 0).chain([0]);
            (*tid, [tid.0, process.0].into_iter().flat_map(i32::to_le_bytes).chain(name).collect())
        })
    }
}

/// The id of the class of these events.
pub(crate) fn class(classes: &mut Classes) -> Option<u16> {
    let mut message = [0; 512];
    let message = ClassesWriter::new(&mut message).and_then(|mut writer| {
        writer.push(&CLASS)?;
        Ok(writer.finish())
    });
    let class = message.ok().and_then(|message| decode_classes(message).ok()?.next()?.ok())?;
    classes.register([class]).ok()?.ids.pop().filter(|id| *id != 0)
}
