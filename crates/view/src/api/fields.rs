//! An event for the page: its line in a listing, and its fields one by one, as texts: numbers have 64 bits.

use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::fmt;
use tracewing_units::{Duration, Timestamp};

#[derive(Debug, Serialize)]
pub(super) struct Event {
    /// Since the recording begins; `null` without a clock.
    pub(super) at: Option<Duration>,
    /// The buffer's CPU, and the thread, if the event says so.
    cpu: Option<String>,
    tid: Option<String>,
    pub(super) name: String,
    /// Where its class is declared, as `file:line`; `null` if the recording does not say it.
    pub(super) source: Option<String>,
    /// The rest of the line that `tracewing list --pretty` prints, after the name.
    text: String,
    /// All fields in their order: where they are, and their values.
    fields: Vec<(String, String)>,
}

impl Event {
    /// The event of two lines: one for people, one of JSON.
    pub(super) fn new(pretty: &str, json: &str, begin: Timestamp) -> Option<Self> {
        let Flat(mut fields) = serde_json::from_str(json).ok()?;
        let mut take = |name: &str| {
            let at = fields.iter().position(|(path, _)| path == name)?;
            Some(fields.remove(at).1)
        };
        let (ns, name) = (take("ns"), take("event").unwrap_or_default());
        take("cycles");
        let at = ns.and_then(|ns| ns.parse().ok()).map(|ns| Timestamp::from_ns(ns) - begin);
        let find = |paths: &[&str]| {
            let found = fields.iter().find(|(path, _)| paths.contains(&path.as_str()));
            found.map(|(_, value)| value.clone())
        };
        let cpu = find(&["packet_context.cpu_id"]);
        let tid = find(&["common_context.tid", "common_context.vtid"]);
        // After the stamp and the name.
        let after = pretty.split_once("] ").map_or(pretty, |(_, rest)| rest);
        let text = after.strip_prefix(&name).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(after);
        Some(Event { at, cpu, tid, text: text.to_owned(), name, source: None, fields })
    }
}

/// The leaves of a JSON value with their paths.
#[derive(Debug, Default)]
struct Flat(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Flat {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Flat::default())
    }
}

impl Flat {
    fn of(value: impl fmt::Display) -> Self {
        Flat(vec![(String::new(), value.to_string())])
    }

    /// Adds what lies under a name.
    fn extend(&mut self, name: &str, Flat(parts): Flat) {
        let path = |path: String| match path.as_str() {
            "" => name.to_owned(),
            path if path.starts_with('[') => format!("{name}{path}"),
            path => format!("{name}.{path}"),
        };
        self.0.extend(parts.into_iter().map(|(of, value)| (path(of), value)));
    }
}

impl<'de> Visitor<'de> for Flat {
    type Value = Flat;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Flat, E> {
        Ok(Flat::of(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Flat, E> {
        Ok(Flat::of(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Flat, E> {
        Ok(Flat::of(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Flat, E> {
        Ok(Flat::of(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Flat, E> {
        Ok(Flat::of(value))
    }

    fn visit_unit<E>(self) -> Result<Flat, E> {
        Ok(Flat::of(""))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut values: A) -> Result<Flat, A::Error> {
        let mut at = 0_usize;
        while let Some(value) = values.next_element()? {
            self.extend(&format!("[{at}]"), value);
            at += 1;
        }
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut values: A) -> Result<Flat, A::Error> {
        while let Some((name, value)) = values.next_entry::<String, Flat>()? {
            self.extend(&name, value);
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_fields_have_their_exact_values_and_their_order() {
        let json = r#"{"ns":1007,"cycles":5,"trace":"host","event":"a:b","packet_context":{"cpu_id":3},
            "common_context":{"tid":-1},"payload":{"z":18446744073709551615,"a":-9223372036854775808,"f":[1,{"x":0.5}],"s":"<b>","n":null}}"#;
        let event = Event::new("[00:00] a:b: { z = 1 }", json, Timestamp::from_ns(1000)).unwrap();
        assert_eq!(
            (event.at, event.name.as_str(), event.text.as_str()),
            (Some(Duration::from_ns(7)), "a:b", "{ z = 1 }")
        );
        assert_eq!((event.cpu.as_deref(), event.tid.as_deref()), (Some("3"), Some("-1")));
        let fields: Vec<_> =
            event.fields.iter().map(|(path, value)| (path.as_str(), value.as_str())).collect();
        let expected = [
            ("trace", "host"),
            ("packet_context.cpu_id", "3"),
            ("common_context.tid", "-1"),
            ("payload.z", "18446744073709551615"),
            ("payload.a", "-9223372036854775808"),
            ("payload.f[0]", "1"),
            ("payload.f[1].x", "0.5"),
            ("payload.s", "<b>"),
            ("payload.n", ""),
        ];
        assert_eq!(fields, expected);
    }
}
