//! Trace classes: data stream classes, clock classes, event record classes.

use super::attributes::attributes;
use super::field_classes::{FieldWriter, is_shown};
use super::location::Place;
use super::page::{Page, decimal};
use crate::uuid_text;
use tracewing_ctf::model::{
    ClockClass, ClockOrigin, DataStreamClass, EventRecordClass, Role, Scope, StructureClass, TraceClass,
    Version,
};
use tracewing_units::Cycles;

/// Names of log levels, by LTTng's number.
const LOG_LEVELS: [&str; 15] = [
    "Emergency",
    "Alert",
    "Critical",
    "Error",
    "Warning",
    "Notice",
    "Info",
    "Debug (system)",
    "Debug (program)",
    "Debug (process)",
    "Debug (module)",
    "Debug (unit)",
    "Debug (function)",
    "Debug (line)",
    "Debug",
];

/// A trace class to be written.
pub(super) struct Classes<'c> {
    class: &'c TraceClass,
}

impl<'c> Classes<'c> {
    pub(super) fn new(class: &'c TraceClass) -> Self {
        Classes { class }
    }

    pub(super) fn write(&self, page: &mut Page) {
        page.line("Trace class:");
        page.indented(|page| {
            attributes(page, &self.class.attributes);
            let mut streams: Vec<_> = self.class.data_stream_classes.iter().collect();
            streams.sort_by_key(|class| class.id);
            streams.into_iter().for_each(|class| self.stream(page, class));
        });
    }

    fn stream(&self, page: &mut Page, class: &'c DataStreamClass) {
        let stream = class;
        let clock = class.default_clock.as_ref().and_then(|id| self.class.clock_class(id));
        let has = |role| class.packet_context_bits(role).is_some();
        let begin = clock.is_some() && has(Role::DefaultClockTimestamp);
        let end = clock.is_some() && has(Role::PacketEndDefaultClockTimestamp);
        let events = has(Role::DiscardedEventRecordCounterSnapshot);
        let packets = has(Role::PacketSequenceNumber);
        page.line(&format!("Stream class{}:", identity(&class.name, &class.namespace, &class.uid, class.id)));
        page.indented(|page| {
            attributes(page, &class.attributes);
            let mut truth = |name: &str, truth: bool| {
                page.line(&format!("{name}: {}", if truth { "Yes" } else { "No" }));
            };
            truth("Supports packets", true);
            truth("Packets have beginning default clock snapshot", begin);
            truth("Packets have end default clock snapshot", end);
            truth("Supports discarded events", events);
            if events {
                truth("Discarded events have default clock snapshots", begin && end);
            }
            truth("Supports discarded packets", packets);
            if packets {
                truth("Discarded packets have default clock snapshots", begin && end);
            }
            if let Some(clock) = clock {
                page.line("Default clock class:");
                page.indented(|page| clock_lines(page, clock, self.class.version));
            }
            let scope = |page: &mut Page, name, class: Option<&'c StructureClass>, scope, event| {
                let Some(structure) = class else { return };
                let header = self.class.packet_header.as_ref();
                let place = Place { scope, structures: Vec::new(), header, stream, event };
                let plain_names = self.class.version == Version::V1_8;
                FieldWriter { page, place, plain_names }.root(name, structure);
            };
            let context = class.packet_context.as_ref().filter(|context| is_shown(context));
            scope(page, "Packet context field class", context, Scope::PacketContext, None);
            let context = class.common_context.as_ref();
            scope(page, "Event common context field class", context, Scope::CommonContext, None);
            let mut events: Vec<_> = class.event_record_classes.iter().collect();
            events.sort_by_key(|event| event.id);
            for event in events {
                page.line(&format!(
                    "Event class{}:",
                    identity(&event.name, &event.namespace, &event.uid, event.id)
                ));
                page.indented(|page| {
                    event_lines(page, event);
                    let context = event.specific_context.as_ref();
                    scope(page, "Specific context field class", context, Scope::SpecificContext, Some(event));
                    scope(page, "Payload field class", event.payload.as_ref(), Scope::Payload, Some(event));
                });
            }
        });
    }
}

/// ` \`name\` (Namespace \`…\`, UID \`…\`, ID 5)`, with the parts that there are.
fn identity(name: &Option<String>, namespace: &Option<String>, uid: &Option<String>, id: u64) -> String {
    let name = name.as_ref().map(|name| format!(" `{name}`")).unwrap_or_default();
    let part = |what: &str, value: &Option<String>| {
        value.as_ref().map(|value| format!("{what} `{value}`, ")).unwrap_or_default()
    };
    let (namespace, uid) = (part("Namespace", namespace), part("UID", uid));
    format!("{name} ({namespace}{uid}ID {})", decimal(id.into()))
}

fn event_lines(page: &mut Page, class: &EventRecordClass) {
    attributes(page, &class.attributes);
    let level = class.log_level.and_then(|level| usize::try_from(level).ok());
    if let Some(level) = level.and_then(|level| LOG_LEVELS.get(level)) {
        page.line(&format!("Log level: {level}"));
    }
    if let Some(uri) = &class.emf_uri {
        page.line(&format!("EMF URI: {uri}"));
    }
}

fn clock_lines(page: &mut Page, clock: &ClockClass, version: Version) {
    let uid = match version {
        Version::V1_8 => clock.uuid.as_ref().map(uuid_text),
        Version::V2 => clock.uid.clone(),
    };
    let texts = [("Namespace", &clock.namespace), ("Name", &clock.name), ("UID", &uid)];
    for (name, text) in texts {
        if let Some(text) = text {
            page.line(&format!("{name}: {text}"));
        }
    }
    attributes(page, &clock.attributes);
    if let Some(text) = &clock.description {
        page.line(&format!("Description: {text}"));
    }
    page.line(&format!("Frequency (Hz): {}", decimal(clock.frequency.into())));
    for (name, cycles) in [("Precision", clock.precision), ("Accuracy", clock.accuracy)] {
        if let Some(Cycles(cycles)) = cycles {
            page.line(&format!("{name} (cycles): {}", decimal(cycles.into())));
        }
    }
    // Cycles of a whole second count as such.
    let whole = i128::from(clock.offset_cycles.0.checked_div(clock.frequency).unwrap_or(0));
    let rest = clock.offset_cycles.0.checked_rem(clock.frequency).unwrap_or(0);
    page.line(&format!("Offset from origin (s): {}", decimal(i128::from(clock.offset_seconds) + whole)));
    page.line(&format!("Offset from origin (cycles): {}", decimal(rest.into())));
    match &clock.origin {
        ClockOrigin::Unknown => {}
        ClockOrigin::UnixEpoch => page.line("Origin: Unix epoch"),
        ClockOrigin::Custom { namespace, name, uid } => {
            page.line("Origin:");
            page.indented(|page| {
                if let Some(namespace) = namespace {
                    page.line(&format!("Namespace: {namespace}"));
                }
                page.line(&format!("Name: {name}"));
                page.line(&format!("UID: {uid}"));
            });
        }
    }
}
