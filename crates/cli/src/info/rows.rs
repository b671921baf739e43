//! Streams and event classes of a recording as rows, and their columns.

use crate::losses;
use crate::table::{Cell, Column, columns};
use serde_json::json;
use tracewing_trace::{ClassReport, FieldReport, StreamReport, TraceReport, Zone};
use tracewing_units::Timestamp;

pub struct Stream<'r> {
    trace: &'r str,
    report: &'r StreamReport,
    zone: Zone,
}

pub fn stream_columns<'r>() -> Vec<Column<Stream<'r>>> {
    columns! { stream: Stream<'r>;
        text "stream" "stream" key + only_text, "the stream's class, then its number" => stream_id(stream.report).into();
        number "class" "class" extra, "number of the stream's class" => Cell::Count(stream.report.class);
        number "id" "id" extra, "number of the stream" => Cell::Count(stream.report.id);
        number "cpu" "cpu" high, "the CPU, if it is the same for all packets" => Cell::count(stream.report.cpu);
        number "packets" "packets" normal, "number of packets" => Cell::Count(stream.report.packets);
        number "events" "events" key, "number of events" => Cell::Count(stream.report.events);
        number "bytes" "bytes" normal, "size of its files" => Cell::Count(stream.report.bytes);
        number "lost events" "lost_events" high + alarming, "lost events; in text, + means that there were more"
            => losses::events(&stream.report.lost);
        number "lost packets" "lost_packets" normal + alarming, "lost packets; how many events they had is unknown"
            => losses::packets(&stream.report.lost);
        number "least lost events" "least_lost_events" extra, "lower bound of the number of lost events"
            => Cell::Count(stream.report.lost.least_events);
        number "least lost packets" "least_lost_packets" extra, "lower bound of the number of lost packets"
            => Cell::Count(stream.report.lost.least_packets);
        duration "duration" "duration_ns" normal, "from the first stamp to the last" => stream.duration();
        clock "begin" "begin_ns" extra, "the first stamp" => stream.time(stream.report.begin_ns);
        clock "end" "end_ns" extra, "the last stamp" => stream.time(stream.report.end_ns);
        list "file" "files" low + shrinking, "its files in time order; in text, the first one without its folder"
            => stream.files(), in_text: stream.first_file();
        list "losses" "losses" extra, "what was lost, and between which stamps" => stream.losses();
        text "trace" "trace" extra, "trace that it is in" => stream.trace.into();
    }
}

impl<'r> Stream<'r> {
    pub fn new(trace: &'r TraceReport, report: &'r StreamReport, zone: Zone) -> Self {
        Stream { trace: &trace.name, report, zone }
    }

    fn duration(&self) -> Cell {
        let range = self.report.begin_ns.zip(self.report.end_ns);
        Cell::ns(range.and_then(|(begin, end)| end.checked_since(begin)))
    }

    fn time(&self, at: Option<Timestamp>) -> Cell {
        at.map_or(Cell::None, |at| Cell::Time(at, self.zone))
    }

    fn files(&self) -> Cell {
        Cell::list(self.report.files.join(" "), json!(self.report.files))
    }

    fn first_file(&self) -> Cell {
        let name = |file: &String| file.rsplit('/').next().unwrap_or(file).to_owned();
        let text = match &self.report.files[..] {
            [] => "gone".to_owned(),
            [file] => name(file),
            [first, more @ ..] => format!("{} and {} more", name(first), more.len()),
        };
        Cell::list(text, json!(self.report.files))
    }

    fn losses(&self) -> Cell {
        let count = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), |count| count.to_string());
        let text = self.report.losses.iter().map(|loss| format!("{} {}", count(loss.count), loss.what));
        Cell::list(text.collect::<Vec<_>>().join(", "), json!(self.report.losses))
    }
}

pub fn stream_id(stream: &StreamReport) -> String {
    format!("{}:{}", stream.class, stream.id)
}

pub struct Class<'r> {
    pub trace: &'r str,
    pub report: &'r ClassReport,
}

pub fn class_columns<'r>() -> Vec<Column<Class<'r>>> {
    columns! { class: Class<'r>;
        number "stream class" "stream_class" extra, "number of the class of its streams" => Cell::Count(class.report.stream_class);
        number "id" "id" high, "number of the event class within the class of its streams" => Cell::Count(class.report.id);
        text "name" "name" key, "name of the events" => text(&class.report.name);
        number "log level" "log_level" extra, "LTTng's number for the level: 3 error, 4 warn, 6 info, 10 debug, 14 trace"
            => class.report.log_level.map_or(Cell::None, Cell::Number);
        number "major" "major" extra, "major class" => class.report.major.map_or(Cell::None, Cell::Number);
        number "events" "events" key, "events of the class" => Cell::Count(class.report.count);
        text "description" "description" extra, "the author's description" => text(&class.report.description);
        text "print" "print" extra, "the form in which list --pretty prints it" => text(&class.report.print);
        text "source" "source" extra, "file and line of the source" => text(&class.report.source);
        list "fields" "fields" normal + shrinking, "names, types and units of the fields" => fields(&class.report.fields);
        text "trace" "trace" low, "trace that it is in" => class.trace.into();
    }
}

fn text(text: &Option<String>) -> Cell {
    text.as_deref().map_or(Cell::None, Cell::from)
}

fn fields(fields: &[FieldReport]) -> Cell {
    let text: Vec<_> = fields.iter().map(field_text).collect();
    Cell::list(text.join(", "), json!(fields))
}

pub fn field_text(field: &FieldReport) -> String {
    match &field.unit {
        Some(unit) => format!("{} {} ({unit})", field.name, field.class),
        None => format!("{} {}", field.name, field.class),
    }
}
