//! Perfetto's trace format: a `Trace` of `TracePacket`s with `TrackDescriptor`s and `TrackEvent`s
//! (protos/perfetto/trace of Perfetto; the numbers of fields are those of its messages).
//!
//! Every container is a track: threads and processes have their own kinds, CPUs are below a track "CPUs", and
//! tasks, functions and locks are below their processes. States are slices. Events and samples are instants;
//! their fields and call chains are debug annotations. A wake is an instant with a flow to the slice that it
//! leads to. Names are interned. Timestamps are those of the recording; a clock snapshot declares that they
//! count from the Unix epoch.

use crate::change::LinkId;
use crate::encoder::Encoder;
use crate::model::{ContainerId, CounterId, Kind, Model, NameId};
use crate::protobuf::{begin, end, fixed, message, real, signed, text, unsigned};
use std::collections::BTreeMap;
use tracewing_ctf::decode::{Compound, Value, Visitor};
use tracewing_ctf::model::Scope;
use tracewing_trace::EventRef;
use tracewing_units::Timestamp;

/// `Trace.packet`.
const PACKET: u32 = 1;
/// Fields of `TracePacket`.
const CLOCK_SNAPSHOT: u32 = 6;
const TIMESTAMP: u32 = 8;
const SEQUENCE: u32 = 10;
const TRACK_EVENT: u32 = 11;
const INTERNED_DATA: u32 = 12;
const SEQUENCE_FLAGS: u32 = 13;
const TRACK_DESCRIPTOR: u32 = 60;
/// `SEQ_INCREMENTAL_STATE_CLEARED`, `SEQ_NEEDS_INCREMENTAL_STATE`.
const CLEARED: u64 = 1;
const NEEDS_STATE: u64 = 2;
/// Fields of `TrackEvent`.
const DEBUG_ANNOTATIONS: u32 = 4;
const TYPE: u32 = 9;
const NAME_IID: u32 = 10;
const TRACK_UUID: u32 = 11;
const COUNTER_VALUE: u32 = 30;
const FLOW_IDS: u32 = 47;
const TERMINATING_FLOW_IDS: u32 = 48;
/// Fields of `InternedData`.
const EVENT_NAMES: u32 = 2;
const DEBUG_ANNOTATION_NAMES: u32 = 3;
/// Values of `TrackEvent.type`.
const SLICE_BEGIN: u64 = 1;
const SLICE_END: u64 = 2;
const INSTANT: u64 = 3;
const COUNTER: u64 = 4;
/// `CLOCK_REALTIME` and `CLOCK_BOOTTIME` as Perfetto numbers them.
const REALTIME: u64 = 1;
const BOOTTIME: u64 = 6;

/// The track that groups the CPUs; tracks of containers follow it, then those of counters.
const CPUS: u64 = 1;
const FIRST: u64 = 2;

/// The only packet sequence.
const WRITER: u64 = 1;

/// Maximum size of an event's fields in bytes; readers refuse messages of some hundred MiB.
const FIELDS: usize = 16 << 20;

#[derive(Debug, Default)]
pub(crate) struct Perfetto {
    /// Names of fields, with their ids, which begin at 1.
    fields: BTreeMap<String, u64>,
    /// Per container: whether a slice is open.
    open: Vec<bool>,
    /// Id of the name "wake".
    wake: u64,
}

fn track(id: ContainerId) -> u64 {
    FIRST + u64::from(id)
}

fn counter_track(model: &Model, counter: CounterId) -> u64 {
    FIRST + model.containers.len() as u64 + u64::from(counter)
}

fn name_iid(name: NameId) -> u64 {
    u64::from(name) + 1
}

fn descriptor(out: &mut Vec<u8>, uuid: u64, write: impl FnOnce(&mut Vec<u8>)) {
    message(out, PACKET, |out| {
        unsigned(out, SEQUENCE, WRITER);
        message(out, TRACK_DESCRIPTOR, |out| {
            unsigned(out, 1, uuid);
            write(out);
        });
    });
}

/// Appends a name. Each gets a packet of its own, since all together might exceed the maximum size of a
/// packet.
fn interned(out: &mut Vec<u8>, table: u32, iid: u64, name: &str) {
    message(out, PACKET, |out| {
        unsigned(out, SEQUENCE, WRITER);
        unsigned(out, SEQUENCE_FLAGS, NEEDS_STATE);
        message(out, INTERNED_DATA, |out| {
            message(out, table, |out| {
                unsigned(out, 1, iid);
                text(out, 2, name);
            });
        });
    });
}

/// A timestamp in Perfetto's encoding: nanoseconds since the clock's origin; earlier times become 0.
fn since_origin(at: Timestamp) -> u64 {
    (at - Timestamp::ORIGIN).as_ns()
}

#[inline]
fn track_event(out: &mut Vec<u8>, at: Timestamp, track: u64, kind: u64, write: impl FnOnce(&mut Vec<u8>)) {
    message(out, PACKET, |out| {
        unsigned(out, TIMESTAMP, since_origin(at));
        unsigned(out, SEQUENCE, WRITER);
        unsigned(out, SEQUENCE_FLAGS, NEEDS_STATE);
        message(out, TRACK_EVENT, |out| {
            unsigned(out, TYPE, kind);
            unsigned(out, TRACK_UUID, track);
            write(out);
        });
    });
}

impl Encoder for Perfetto {
    fn fields(&mut self, event: &EventRef<'_>, out: &mut Vec<u8>) {
        let start = out.len();
        let mut annotations = Annotations { out, names: &mut self.fields, open: Vec::new() };
        event.decoded().visit(Scope::Payload, &mut annotations);
        if out.len() - start > FIELDS {
            out.truncate(start);
            let mut annotations = Annotations { out, names: &mut self.fields, open: Vec::new() };
            let start = annotations.begin(Some("fields"));
            text(out, STRING, "too long to be shown");
            end(out, start);
        }
    }

    fn begin(&mut self, out: &mut Vec<u8>, model: &Model) {
        self.open.resize(model.containers.len(), false);
        message(out, PACKET, |out| {
            unsigned(out, SEQUENCE, WRITER);
            message(out, CLOCK_SNAPSHOT, |out| {
                for clock in [BOOTTIME, REALTIME] {
                    message(out, 1, |out| {
                        unsigned(out, 1, clock);
                        unsigned(out, 2, since_origin(model.begin));
                    });
                }
                unsigned(out, 2, BOOTTIME);
            });
        });
        message(out, PACKET, |out| {
            unsigned(out, SEQUENCE, WRITER);
            unsigned(out, SEQUENCE_FLAGS, CLEARED);
        });
        for (id, name, _) in model.names.all() {
            interned(out, EVENT_NAMES, name_iid(id), name);
            self.wake = name_iid(id) + 1;
        }
        interned(out, EVENT_NAMES, self.wake, "wake");
        for (name, iid) in &self.fields {
            interned(out, DEBUG_ANNOTATION_NAMES, *iid, name);
        }
        descriptor(out, CPUS, |out| text(out, 2, "CPUs"));
        for (id, counter) in (0..).zip(&model.counters) {
            descriptor(out, counter_track(model, id), |out| {
                text(out, 2, &counter.label());
                // CounterDescriptor.unit: UNIT_COUNT.
                message(out, 8, |out| unsigned(out, 3, 2));
            });
        }
        // Parents are written before their children.
        let is_inner = |kind| !matches!(kind, Kind::Process { .. });
        for inner in [false, true] {
            for (id, _) in model.shown().filter(|(_, container)| is_inner(container.kind) == inner) {
                describe(out, model, id);
            }
        }
    }

    fn container_ends(&mut self, out: &mut Vec<u8>, model: &Model, id: ContainerId, at: Timestamp) {
        self.state(out, model, id, None, None, at);
    }

    fn state(
        &mut self,
        out: &mut Vec<u8>,
        _: &Model,
        of: ContainerId,
        name: Option<NameId>,
        woken: Option<(LinkId, ContainerId)>,
        at: Timestamp,
    ) {
        if std::mem::replace(&mut self.open[of as usize], name.is_some()) {
            track_event(out, at, track(of), SLICE_END, |_| {});
        }
        if let Some(name) = name {
            track_event(out, at, track(of), SLICE_BEGIN, |out| {
                unsigned(out, NAME_IID, name_iid(name));
                if let Some((link, _)) = woken {
                    fixed(out, TERMINATING_FLOW_IDS, link);
                }
            });
        }
    }

    fn function(
        &mut self,
        out: &mut Vec<u8>,
        _: &Model,
        of: ContainerId,
        name: Option<NameId>,
        at: Timestamp,
    ) {
        let kind = if name.is_some() { SLICE_BEGIN } else { SLICE_END };
        track_event(out, at, track(of), kind, |out| {
            name.into_iter().for_each(|name| unsigned(out, NAME_IID, name_iid(name)));
        });
    }

    fn wake(
        &mut self,
        out: &mut Vec<u8>,
        _: &Model,
        of: ContainerId,
        _: ContainerId,
        link: LinkId,
        at: Timestamp,
    ) {
        track_event(out, at, track(of), INSTANT, |out| {
            unsigned(out, NAME_IID, self.wake);
            fixed(out, FLOW_IDS, link);
        });
    }

    fn event(
        &mut self,
        out: &mut Vec<u8>,
        _: &Model,
        of: ContainerId,
        name: NameId,
        fields: &[u8],
        at: Timestamp,
    ) {
        track_event(out, at, track(of), INSTANT, |out| {
            unsigned(out, NAME_IID, name_iid(name));
            out.extend_from_slice(fields);
        });
    }

    fn sample(&mut self, out: &mut Vec<u8>, model: &Model, of: ContainerId, chain: &[NameId], at: Timestamp) {
        let Some(innermost) = chain.first() else { return };
        track_event(out, at, track(of), INSTANT, |out| {
            unsigned(out, NAME_IID, name_iid(*innermost));
            message(out, DEBUG_ANNOTATIONS, |out| {
                text(out, ANNOTATION_NAME, "chain");
                for name in chain {
                    message(out, ARRAY_VALUES, |out| text(out, STRING, model.names.get(*name)));
                }
            });
        });
    }

    fn counter(&mut self, out: &mut Vec<u8>, model: &Model, counter: CounterId, value: u64, at: Timestamp) {
        track_event(out, at, counter_track(model, counter), COUNTER, |out| {
            unsigned(out, COUNTER_VALUE, value);
        });
    }

    fn end(&mut self, _: &mut Vec<u8>, _: &Model) {}
}

/// Appends the descriptor of a container's track: its name and parent.
fn describe(out: &mut Vec<u8>, model: &Model, id: ContainerId) {
    // Fields of TrackDescriptor.
    const NAME: u32 = 2;
    const PROCESS: u32 = 3;
    const THREAD: u32 = 4;
    const PARENT_UUID: u32 = 5;
    let container = &model.containers[id as usize];
    let label = model.names.get(container.label);
    descriptor(out, track(id), |out| match (container.kind, container.process) {
        (Kind::Cpu { .. }, _) => {
            unsigned(out, PARENT_UUID, CPUS);
            text(out, NAME, label);
        }
        (Kind::Process { pid: Some(pid) }, _) => message(out, PROCESS, |out| {
            signed(out, 1, pid.0.into());
            if !container.own_name.is_empty() {
                text(out, 6, &container.own_name);
            }
        }),
        (Kind::Lwp { tid }, Some(process)) => message(out, THREAD, |out| {
            signed(out, 1, process.0.into());
            signed(out, 2, tid.0.into());
            if !container.own_name.is_empty() {
                text(out, 5, &container.own_name);
            }
        }),
        _ => {
            container.parent.into_iter().for_each(|parent| unsigned(out, PARENT_UUID, track(parent)));
            text(out, NAME, label);
        }
    });
}

/// Builds `DebugAnnotation`s from event fields.
struct Annotations<'a> {
    out: &'a mut Vec<u8>,
    names: &'a mut BTreeMap<String, u64>,
    /// Start offsets of the compounds around the next value, `None` for optionals, which write no annotation.
    open: Vec<Option<usize>>,
}

/// Fields of `DebugAnnotation`.
const ANNOTATION_NAME_IID: u32 = 1;
const BOOL: u32 = 2;
const UINT: u32 = 3;
const INT: u32 = 4;
const DOUBLE: u32 = 5;
const STRING: u32 = 6;
const ANNOTATION_NAME: u32 = 10;
const DICT_ENTRIES: u32 = 11;
const ARRAY_VALUES: u32 = 12;

impl Annotations<'_> {
    /// Begins an annotation. Elements of arrays have no name; all other members have one.
    fn begin(&mut self, name: Option<&str>) -> usize {
        let field = match (self.open.is_empty(), name) {
            (true, _) => DEBUG_ANNOTATIONS,
            (false, Some(_)) => DICT_ENTRIES,
            (false, None) => ARRAY_VALUES,
        };
        let start = begin(self.out, field);
        if let Some(name) = name {
            let iid = match self.names.get(name) {
                Some(known) => *known,
                None => {
                    let new = self.names.len() as u64 + 1;
                    self.names.insert(name.to_owned(), new);
                    new
                }
            };
            unsigned(self.out, ANNOTATION_NAME_IID, iid);
        }
        start
    }
}

impl Visitor for Annotations<'_> {
    fn value(&mut self, name: Option<&str>, value: Value<'_>) {
        let start = self.begin(name);
        let out = &mut *self.out;
        let label = |labels: Option<&str>, out: &mut Vec<u8>| {
            labels.is_some_and(|label| {
                text(out, STRING, label);
                true
            })
        };
        match value {
            Value::Unsigned(number, _) | Value::BitArray(number, _) | Value::BitMap(number, _) => {
                unsigned(out, UINT, number);
            }
            Value::Signed(number, _) => signed(out, INT, number),
            Value::UnsignedEnumeration(number, class) => {
                if !label(class.labels(number.into()).next(), out) {
                    unsigned(out, UINT, number);
                }
            }
            Value::SignedEnumeration(number, class) => {
                if !label(class.labels(number.into()).next(), out) {
                    signed(out, INT, number);
                }
            }
            Value::Float32(_) | Value::Float64(_) | Value::Float128(_) => {
                real(out, DOUBLE, value.real().unwrap_or(f64::NAN));
            }
            Value::Boolean(truth) => unsigned(out, BOOL, truth.into()),
            Value::Text(bytes) => text(out, STRING, &String::from_utf8_lossy(bytes)),
            Value::WideText(wide) => text(out, STRING, &wide.to_string()),
            Value::Blob(bytes) => {
                let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                text(out, STRING, &digits);
            }
        }
        end(self.out, start);
    }

    fn begin(&mut self, name: Option<&str>, compound: Compound<'_>) {
        // An optional adds no annotation: its content carries the name.
        let start = match compound {
            Compound::Optional { .. } => None,
            _ => Some(Annotations::begin(self, name)),
        };
        self.open.push(start);
    }

    fn end(&mut self, _: Compound<'_>) {
        if let Some(Some(start)) = self.open.pop() {
            end(self.out, start);
        }
    }
}
