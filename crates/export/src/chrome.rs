//! Chrome's trace events (Google: Trace Event Format): JSON, one object per event.
//!
//! A track is a pair of process and thread. CPUs are threads of a process "CPUs". Tasks are threads of their
//! process with numbers above those that Linux assigns, and so are the functions and locks of a thread. Times
//! are in µs since the beginning of the export, with three decimals.

use crate::change::LinkId;
use crate::encoder::Encoder;
use crate::model::{ContainerId, CounterId, Kind, Model, NameId};
use std::io::Write;
use tracewing_trace::{EventRef, JsonPrinter, json_text, number};
use tracewing_units::{Duration, Pid, Tid, Timestamp};

/// Upper limit of process and thread numbers (`PID_MAX_LIMIT` of `include/linux/threads.h`).
const PIDS: u32 = 4 << 20;

/// The process that holds all CPUs, and the one for threads whose process is unknown.
const CPUS: u32 = PIDS;
const UNKNOWN: u32 = PIDS + 1;

/// First number for tracks that are not Linux threads.
const OTHERS: u32 = PIDS + 2;

#[derive(Debug, Default)]
pub(crate) struct Chrome {
    json: JsonPrinter,
    /// JSON text of each name.
    names: Vec<Vec<u8>>,
    /// Process and thread of each container, as JSON.
    tracks: Vec<Vec<u8>>,
    /// Current state of each container, and since when.
    states: Vec<Option<(NameId, Timestamp)>>,
}

fn process(pid: Option<Pid>) -> u32 {
    pid.and_then(|pid| u32::try_from(pid.0).ok()).unwrap_or(UNKNOWN)
}

fn thread(tid: Tid) -> u32 {
    tid.0.try_into().unwrap_or(UNKNOWN)
}

/// Appends a time or a duration.
fn microseconds(out: &mut Vec<u8>, duration: Duration) {
    let ns = duration.as_ns();
    number::unsigned(out, ns / 1000);
    out.push(b'.');
    number::padded::<3>(out, ns % 1000);
}

fn time(out: &mut Vec<u8>, model: &Model, at: Timestamp) {
    out.extend_from_slice(b",\"ts\":");
    microseconds(out, at - model.begin);
}

/// Appends a metadata event, which names or orders a track.
fn metadata(out: &mut Vec<u8>, track: &[u8], what: &str, key: &str, value: &[u8]) {
    out.extend_from_slice(b",\n{\"ph\":\"M\"");
    out.extend_from_slice(track);
    // Writing to memory cannot fail.
    let _ = write!(out, ",\"name\":\"{what}\",\"args\":{{\"{key}\":");
    out.extend_from_slice(value);
    out.extend_from_slice(b"}}");
}

impl Chrome {
    /// Appends the first members of an event in a container.
    fn start(&self, out: &mut Vec<u8>, phase: &str, of: ContainerId) {
        out.extend_from_slice(b",\n{\"ph\":\"");
        out.extend_from_slice(phase.as_bytes());
        out.push(b'"');
        out.extend_from_slice(&self.tracks[of as usize]);
    }

    fn name(&self, out: &mut Vec<u8>, name: NameId) {
        out.extend_from_slice(b",\"name\":");
        out.extend_from_slice(&self.names[name as usize]);
    }

    /// Appends one end of a flow arrow from the waker to the woken thread or task.
    fn arrow(
        &self,
        out: &mut Vec<u8>,
        phase: &str,
        model: &Model,
        of: ContainerId,
        link: LinkId,
        at: Timestamp,
    ) {
        self.start(out, phase, of);
        time(out, model, at);
        out.extend_from_slice(b",\"cat\":\"wake\",\"name\":\"wake\",\"id\":");
        number::unsigned(out, link);
        out.push(b'}');
    }
}

impl Encoder for Chrome {
    fn fields(&mut self, event: &EventRef<'_>, out: &mut Vec<u8>) {
        self.json.payload(out, event);
    }

    fn begin(&mut self, out: &mut Vec<u8>, model: &Model) {
        for (_, name, _) in model.names.all() {
            let mut text = Vec::new();
            json_text(&mut text, name.as_bytes());
            self.names.push(text);
        }
        self.states.resize(model.containers.len(), None);
        for (id, container) in (0..).zip(&model.containers) {
            let (pid, tid) = match container.kind {
                Kind::Cpu { .. } => (CPUS, OTHERS + id),
                Kind::Process { pid } => (process(pid), process(pid)),
                Kind::Lwp { tid } => (process(container.process), thread(tid)),
                Kind::Task { .. } | Kind::Functions { .. } | Kind::Locks { .. } => {
                    (process(container.process), OTHERS + id)
                }
            };
            self.tracks.push(format!(",\"pid\":{pid},\"tid\":{tid}").into_bytes());
        }
        // Writing to memory cannot fail.
        let _ = write!(
            out,
            "{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"begin_ns\":\"{}\"}},\"traceEvents\":[\n\
             {{\"ph\":\"M\",\"pid\":{CPUS},\"tid\":{CPUS},\"name\":\"process_name\",\"args\":{{\"name\":\"CPUs\"}}}}",
            model.begin.as_ns()
        );
        for (id, container) in model.shown() {
            let track = &self.tracks[id as usize];
            let what = match container.kind {
                Kind::Process { .. } => "process_name",
                _ => "thread_name",
            };
            metadata(out, track, what, "name", &self.names[container.label as usize]);
            let place: u64 = match container.kind {
                Kind::Process { .. } => continue,
                Kind::Cpu { number } => number.0.into(),
                Kind::Lwp { .. } | Kind::Functions { .. } | Kind::Locks { .. } => id.into(),
                // Tasks are listed below all threads.
                Kind::Task { .. } => u64::from(OTHERS + id),
            };
            metadata(out, track, "thread_sort_index", "sort_index", place.to_string().as_bytes());
        }
    }

    fn state(
        &mut self,
        out: &mut Vec<u8>,
        model: &Model,
        of: ContainerId,
        name: Option<NameId>,
        woken: Option<(LinkId, ContainerId)>,
        at: Timestamp,
    ) {
        let state = &mut self.states[of as usize];
        if let Some((before, since)) = std::mem::replace(state, name.map(|name| (name, at))) {
            self.start(out, "X", of);
            time(out, model, since);
            out.extend_from_slice(b",\"dur\":");
            microseconds(out, at - since);
            self.name(out, before);
            out.push(b'}');
        }
        if let Some((link, _)) = woken {
            self.arrow(out, "f\",\"bp\":\"e", model, of, link, at);
        }
    }

    fn function(
        &mut self,
        out: &mut Vec<u8>,
        model: &Model,
        of: ContainerId,
        name: Option<NameId>,
        at: Timestamp,
    ) {
        self.start(out, if name.is_some() { "B" } else { "E" }, of);
        time(out, model, at);
        name.into_iter().for_each(|name| self.name(out, name));
        out.push(b'}');
    }

    fn wake(
        &mut self,
        out: &mut Vec<u8>,
        model: &Model,
        of: ContainerId,
        _: ContainerId,
        link: LinkId,
        at: Timestamp,
    ) {
        self.arrow(out, "s", model, of, link, at);
    }

    fn event(
        &mut self,
        out: &mut Vec<u8>,
        model: &Model,
        of: ContainerId,
        name: NameId,
        fields: &[u8],
        at: Timestamp,
    ) {
        self.start(out, "i\",\"s\":\"t", of);
        time(out, model, at);
        self.name(out, name);
        out.extend_from_slice(b",\"args\":");
        out.extend_from_slice(if fields.is_empty() { b"{}" } else { fields });
        out.push(b'}');
    }

    fn sample(&mut self, out: &mut Vec<u8>, model: &Model, of: ContainerId, chain: &[NameId], at: Timestamp) {
        let Some(innermost) = chain.first() else { return };
        self.start(out, "i\",\"s\":\"t", of);
        time(out, model, at);
        self.name(out, *innermost);
        out.extend_from_slice(b",\"cat\":\"sample\",\"args\":{\"chain\":[");
        for (number, name) in chain.iter().enumerate() {
            if number > 0 {
                out.push(b',');
            }
            out.extend_from_slice(&self.names[*name as usize]);
        }
        out.extend_from_slice(b"]}}");
    }

    fn counter(&mut self, out: &mut Vec<u8>, model: &Model, counter: CounterId, value: u64, at: Timestamp) {
        // Writing to memory cannot fail.
        let _ = write!(out, ",\n{{\"ph\":\"C\",\"pid\":{CPUS},\"tid\":{CPUS}");
        time(out, model, at);
        out.extend_from_slice(b",\"name\":");
        json_text(out, model.counters[counter as usize].label().as_bytes());
        let _ = write!(out, ",\"args\":{{\"value\":{value}}}}}");
    }

    fn container_ends(&mut self, out: &mut Vec<u8>, model: &Model, id: ContainerId, at: Timestamp) {
        self.state(out, model, id, None, None, at);
    }

    fn end(&mut self, out: &mut Vec<u8>, _: &Model) {
        out.extend_from_slice(b"\n]}\n");
    }
}
