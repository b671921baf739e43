//! The fragments of a metadata stream (CTF2-SPEC-2.0, sections 5.4 to 5.9).

use std::sync::Arc;

use super::parser::Parser;
use super::roles::{each_role, roles_of};
use super::value::{Object, Value, attributes};
use crate::log_level;
use crate::model::{
    Attribute, ClockClass, ClockOrigin, DataStreamClass, EnvValue, EventRecordClass, FieldClass, Role, Scope,
    StructureClass,
};
use crate::{Error, JsonFault, Needed, RoleFault};
use tracewing_units::Cycles;

impl Parser {
    /// Takes in one fragment; the first one is to be the preamble.
    pub(super) fn fragment(&mut self, value: Value<'_>, first: bool) -> Result<(), Error> {
        let mut fragment = value.object()?;
        let kind = fragment.require("type")?;
        match kind.string()?.as_str() {
            "preamble" if !first => {
                return Err(kind.error(JsonFault::SecondPreamble));
            }
            "preamble" => self.preamble(&mut fragment)?,
            _ if first => return Err(kind.error(JsonFault::NoPreamble)),
            "field-class-alias" => self.alias(&mut fragment)?,
            "trace-class" => self.trace_class(&mut fragment)?,
            "clock-class" => self.clock_class(&mut fragment)?,
            "data-stream-class" => self.data_stream_class(&mut fragment)?,
            "event-record-class" => self.event_record_class(&mut fragment)?,
            other => {
                return Err(kind.error(JsonFault::FragmentType(other.to_owned())));
            }
        }
        fragment.finish()
    }

    fn preamble(&mut self, fragment: &mut Object<'_>) -> Result<(), Error> {
        attributes(fragment)?;
        let version = fragment.require("version")?;
        if version.unsigned()? != 2 {
            return Err(version.error(JsonFault::Expected(Needed::Version)));
        }
        if let Some(uuid) = fragment.get("uuid") {
            let bytes = uuid
                .array()?
                .iter()
                .map(|byte| Ok(byte.integer(0, 255)? as u8))
                .collect::<Result<Vec<u8>, Error>>()?;
            self.trace.uuid =
                Some(bytes.try_into().map_err(|_| uuid.error(JsonFault::Expected(Needed::Uuid)))?);
        }
        Ok(())
    }

    fn alias(&mut self, fragment: &mut Object<'_>) -> Result<(), Error> {
        attributes(fragment)?;
        let place = fragment.require("name")?;
        let name = place.string()?;
        let class = fragment.require("field-class")?;
        let class = self.sized_field_class(class, 1)?;
        if self.aliases.insert(name.clone(), class).is_some() {
            return Err(place.error(JsonFault::SecondAlias(name)));
        }
        Ok(())
    }

    fn trace_class(&mut self, fragment: &mut Object<'_>) -> Result<(), Error> {
        if std::mem::replace(&mut self.has_trace_class, true) {
            return Err(fragment.error(JsonFault::SecondTraceClass));
        }
        if !self.trace.data_stream_classes.is_empty() {
            return Err(fragment.error(JsonFault::LateTraceClass));
        }
        self.trace.attributes = attributes(fragment)?;
        self.trace.namespace = fragment.string("namespace")?;
        self.trace.name = fragment.string("name")?;
        self.trace.uid = fragment.string("uid")?;
        if let Some(environment) = fragment.get("environment") {
            for (name, value) in environment.object()?.entries() {
                let value = match value.is_string() {
                    true => EnvValue::String(value.string()?),
                    // As babeltrace2 does: 64 bits, taken as signed.
                    false => EnvValue::Integer(value.integer(i64::MIN.into(), u64::MAX.into())? as i64),
                };
                self.trace.env.push((name, value));
            }
        }
        self.trace.packet_header =
            self.scope(fragment, "packet-header-field-class", Scope::PacketHeader, false)?;
        Ok(())
    }

    fn clock_class(&mut self, fragment: &mut Object<'_>) -> Result<(), Error> {
        let place = fragment.require("id")?;
        let id = place.string()?;
        if self.trace.clock_class(&id).is_some() {
            return Err(place.error(JsonFault::SecondClock(id)));
        }
        let place = fragment.require("frequency")?;
        let frequency = place.integer(1, u64::MAX.into())? as u64;
        let mut clock = ClockClass { precision: None, name: None, ..ClockClass::new(id, frequency) };
        clock.attributes = attributes(fragment)?;
        clock.namespace = fragment.string("namespace")?;
        clock.name = fragment.string("name")?;
        clock.uid = fragment.string("uid")?;
        clock.description = fragment.string("description")?;
        clock.precision = fragment.unsigned("precision")?.map(Cycles);
        clock.accuracy = fragment.unsigned("accuracy")?.map(Cycles);
        if let Some(origin) = fragment.get("origin") {
            clock.origin = clock_origin(origin)?;
        }
        if let Some(offset) = fragment.get("offset-from-origin") {
            let mut offset = offset.object()?;
            if let Some(seconds) = offset.get("seconds") {
                clock.offset_seconds = seconds.integer(i64::MIN.into(), i64::MAX.into())? as i64;
            }
            if let Some(cycles) = offset.get("cycles") {
                clock.offset_cycles = Cycles(cycles.unsigned()?);
                if clock.offset_cycles.0 >= frequency {
                    return Err(
                        cycles.error(JsonFault::ClockOffset { cycles: clock.offset_cycles, frequency })
                    );
                }
            }
            offset.finish()?;
        }
        self.trace.clock_classes.push(clock);
        Ok(())
    }

    fn data_stream_class(&mut self, fragment: &mut Object<'_>) -> Result<(), Error> {
        let id = fragment.unsigned("id")?.unwrap_or(0);
        if self.streams.insert(id, self.trace.data_stream_classes.len()).is_some() {
            return Err(fragment.error(JsonFault::SecondStream(id)));
        }
        let mut class = DataStreamClass { place: fragment.place(), ..DataStreamClass::new(id) };
        class.attributes = attributes(fragment)?;
        class.namespace = fragment.string("namespace")?;
        class.name = fragment.string("name")?;
        class.uid = fragment.string("uid")?;
        if let Some(clock) = fragment.get("default-clock-class-id") {
            let id = clock.string()?;
            if self.trace.clock_class(&id).is_none() {
                return Err(clock.error(JsonFault::NoClock(id)));
            }
            class.default_clock = Some(id);
        }
        let clock = class.default_clock.is_some();
        class.packet_context =
            self.scope(fragment, "packet-context-field-class", Scope::PacketContext, clock)?;
        class.event_header =
            self.scope(fragment, "event-record-header-field-class", Scope::EventHeader, clock)?;
        class.common_context =
            self.scope(fragment, "event-record-common-context-field-class", Scope::CommonContext, clock)?;
        self.trace.data_stream_classes.push(class);
        Ok(())
    }

    fn event_record_class(&mut self, fragment: &mut Object<'_>) -> Result<(), Error> {
        let id = fragment.unsigned("id")?.unwrap_or(0);
        let stream = fragment.unsigned("data-stream-class-id")?.unwrap_or(0);
        let Some(&parent) = self.streams.get(&stream) else {
            return Err(fragment.error(JsonFault::NoStream(stream)));
        };
        if !self.event_ids.insert((stream, id)) {
            return Err(fragment.error(JsonFault::SecondEvent { event: id, stream }));
        }
        let mut class = EventRecordClass { id, place: fragment.place(), ..EventRecordClass::default() };
        class.attributes = attributes(fragment)?;
        class.namespace = fragment.string("namespace")?;
        class.name = fragment.string("name")?;
        class.uid = fragment.string("uid")?;
        class.specific_context =
            self.scope(fragment, "specific-context-field-class", Scope::SpecificContext, false)?;
        class.payload = self.scope(fragment, "payload-field-class", Scope::Payload, false)?;
        if let Some(Attribute::String(level)) = class.attributes.get(log_level::NAMESPACE, "log-level") {
            class.log_level = log_level::number(level);
        }
        if let Some(Attribute::String(uri)) = class.attributes.get(log_level::NAMESPACE, "emf-uri") {
            class.emf_uri = Some(uri.clone());
        }
        self.trace.data_stream_classes[parent].event_record_classes.push(class);
        Ok(())
    }

    /// The root field class of a scope; `clock` if its data stream class has a default clock.
    fn scope(
        &mut self,
        fragment: &mut Object<'_>,
        name: &str,
        scope: Scope,
        clock: bool,
    ) -> Result<Option<StructureClass>, Error> {
        let Some(value) = fragment.get(name) else { return Ok(None) };
        let FieldClass::Structure(class) = self.field_class(value)? else {
            return Err(value.error(JsonFault::Expected(Needed::Structure)));
        };
        let class = Arc::unwrap_or_clone(class);
        for (index, member) in class.members.iter().enumerate() {
            each_role(&member.class, true, &mut |role, size, direct| {
                let fault = match role {
                    _ if !roles_of(scope).has(role) => RoleFault::Scope,
                    Role::DefaultClockTimestamp | Role::PacketEndDefaultClockTimestamp if !clock => {
                        RoleFault::NoClock
                    }
                    Role::MetadataStreamUuid if size != 16 => RoleFault::UuidSize(size),
                    Role::MetadataStreamUuid if self.trace.uuid.is_none() => RoleFault::NoUuid,
                    Role::PacketMagicNumber if size != 32 => RoleFault::MagicSize(size),
                    Role::PacketMagicNumber if index > 0 || !direct => RoleFault::LateMagic,
                    _ => return Ok(()),
                };
                Err(value.error(JsonFault::Role { role, fault }))
            })?;
        }
        Ok(Some(class))
    }
}

fn clock_origin(value: Value<'_>) -> Result<ClockOrigin, Error> {
    if value.is_string() {
        return value.word(&[("unix-epoch", ())]).map(|()| ClockOrigin::UnixEpoch);
    }
    let mut origin = value.object()?;
    let custom = ClockOrigin::Custom {
        namespace: origin.string("namespace")?,
        name: origin.require("name")?.string()?,
        uid: origin.require("uid")?.string()?,
    };
    origin.finish()?;
    Ok(custom)
}
