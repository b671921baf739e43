//! What other programs read in exported files: states of threads and tasks, events and links, each by readers
//! that are not ours.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Nanoseconds by what they were spent on, as `tracewing threads` calls it.
pub type Times = BTreeMap<&'static str, u64>;

/// What a file says, in terms that all formats have.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Shown {
    /// By `TID` and `PROCESS/TASK`.
    pub times: BTreeMap<String, Times>,
    /// How many events have a name.
    pub events: BTreeMap<String, u64>,
    /// The only field of each `reactivity:received_msg`, by time.
    pub messages: Vec<u64>,
    /// Wakes that lead from one line to another.
    pub links: u64,
    /// The most threads that wait for a CPU.
    pub waiting: u64,
    /// Nanoseconds of functions and of locks, by the line's label and what it says there.
    pub parts: BTreeMap<(String, String), u64>,
    /// Samples by their call chains.
    pub samples: BTreeMap<String, u64>,
    /// The last values of other counters.
    pub counters: BTreeMap<String, u64>,
}

/// The counter of which [`Shown::waiting`] is.
const WAITING: &str = "waiting threads";

impl Shown {
    fn state(&mut self, line: &str, state: &str, ns: u64) {
        let what = match state {
            "unknown" => "unknown_ns",
            "preempted" | "waiting" => "waiting_ns",
            "nested" => "nested_ns",
            "user" | "running" => "running_ns",
            _ if state.starts_with("interrupt") || state.starts_with("spinning on ") => "running_ns",
            _ if state.starts_with("system call ") => "running_ns",
            _ if state.starts_with("blocked") => "blocked_ns",
            _ => panic!("a state `{state}`"),
        };
        *self.times.entry(line.to_owned()).or_default().entry(what).or_default() += ns;
    }

    /// A slice, of a thread or of what belongs to it.
    fn slice(&mut self, label: &str, name: &str, ns: u64) {
        if ["functions", "locks", "more"].contains(&label.split(' ').next().unwrap_or_default()) {
            *self.parts.entry((label.to_owned(), name.to_owned())).or_default() += ns;
        } else {
            self.state(last_word(label), name, ns);
        }
    }

    fn counter(&mut self, name: &str, value: u64) {
        match name {
            WAITING => self.waiting = self.waiting.max(value),
            _ => drop(self.counters.insert(name.to_owned(), value)),
        }
    }

    fn sample<'c>(&mut self, chain: impl Iterator<Item = &'c str>) {
        let chain: Vec<&str> = chain.collect();
        *self.samples.entry(chain.join(" < ")).or_default() += 1;
    }

    fn event(&mut self, name: &str) {
        *self.events.entry(name.to_owned()).or_default() += 1;
    }
}

/// The last word of a label is what is unique.
fn last_word(label: &str) -> &str {
    label.rsplit(' ').next().unwrap_or_default()
}

/// As pajeng's `pj_dump` reads it, which says on standard error what it cannot understand.
pub fn paje(file: &Path) -> Shown {
    check_order(&std::fs::read_to_string(file).expect("the file is text"));
    let output = Command::new("pj_dump").args(["-l", "9", "-u"]).arg(file).output().expect("pj_dump starts");
    let text = String::from_utf8(output.stdout).expect("pj_dump prints text");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "pj_dump: {errors}");
    let mut shown = Shown::default();
    for line in text.lines() {
        let words: Vec<&str> = line.split(", ").collect();
        match words[..] {
            ["State", container, kind, begin, end, _, _, ref name @ ..] if kind != "CPU State" => {
                shown.slice(container, &name.join(", "), nanoseconds(end) - nanoseconds(begin));
            }
            ["State", _, "CPU State", ..] | ["Container", ..] => {}
            ["Event", _, "CPU Event", _, name, _] if name.ends_with("lost events") => shown.event(name),
            // A sample's fields are its chain.
            ["Event", _, kind, _, name, chain] if kind.ends_with(" Event") && !chain.starts_with('{') => {
                assert!(chain.starts_with(name), "{line}");
                shown.sample(chain.split(" < "));
            }
            ["Event", _, kind, _, name, ref fields @ ..] if kind.ends_with(" Event") => {
                shown.event(name);
                if name == "reactivity:received_msg" {
                    let [field] = fields else { panic!("fields {fields:?}") };
                    let number = field.strip_prefix("{'message':").and_then(|rest| rest.strip_suffix("}"));
                    shown.messages.push(number.and_then(|number| number.parse().ok()).expect("a number"));
                }
            }
            ["Link", "Machine", _, begin, end, _, "wake", ..] => {
                assert!(nanoseconds(begin) <= nanoseconds(end), "{line}");
                shown.links += 1;
            }
            ["Variable", "Machine", name, _, _, _, value] => {
                let (whole, _) = value.split_once('.').expect("a point");
                shown.counter(name, whole.parse().expect("a count"));
            }
            _ => panic!("pj_dump says `{line}`"),
        }
    }
    shown
}

/// Times never go back in the file, which pajeng asks for within a container only.
fn check_order(text: &str) {
    let mut last = 0;
    let timed = |line: &&str| line.split(' ').next().is_some_and(|kind| matches!(kind.parse(), Ok(6..=14)));
    for line in text.lines().filter(timed) {
        let at = nanoseconds(line.split(' ').nth(1).expect("a time"));
        assert!(at >= last, "{line} stands behind {last} ns");
        last = at;
    }
    assert!(last > 0);
}

/// Seconds with nine digits behind the point.
fn nanoseconds(seconds: &str) -> u64 {
    let (whole, rest) = seconds.split_once('.').expect("a point");
    assert_eq!(rest.len(), 9, "{seconds}");
    whole.parse::<u64>().expect("digits") * 1_000_000_000 + rest.parse::<u64>().expect("digits")
}

/// As any reader of JSON reads it.
pub fn chrome(file: &Path) -> Shown {
    let text = std::fs::read(file).expect("the file can be read");
    let trace: Value = serde_json::from_slice(&text).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("a list");
    let mut shown = Shown::default();
    let mut lines = BTreeMap::new();
    let track = |event: &Value| (event["pid"].as_u64().expect("pid"), event["tid"].as_u64().expect("tid"));
    for event in events.iter().filter(|event| event["name"] == "thread_name") {
        let name = event["args"]["name"].as_str().expect("a name");
        assert_eq!(lines.insert(track(event), name), None, "{event}");
    }
    let (mut begun, mut functions) = (BTreeMap::new(), BTreeMap::new());
    for event in events {
        let at = || micro(&event["ts"]);
        let name = event["name"].as_str().unwrap_or_default();
        match event["ph"].as_str().expect("a phase") {
            "M" => {}
            "X" => {
                // The process that has this number stands for CPUs.
                if track(event).0 != 4 << 20 {
                    shown.slice(lines[&track(event)], name, micro(&event["dur"]));
                }
            }
            "B" => functions.entry(track(event)).or_insert_with(Vec::new).push((name, at())),
            "E" => {
                let (name, begin) = functions.get_mut(&track(event)).and_then(Vec::pop).expect("a begin");
                shown.slice(lines[&track(event)], name, at() - begin);
            }
            "i" if event["cat"] == "sample" => {
                let chain = event["args"]["chain"].as_array().expect("a chain");
                assert_eq!(chain[0], name);
                shown.sample(chain.iter().map(|name| name.as_str().expect("a name")));
            }
            "i" => {
                shown.event(name);
                if name == "reactivity:received_msg" {
                    shown.messages.push(event["args"]["message"].as_u64().expect("a number"));
                }
            }
            "s" => assert_eq!(begun.insert(event["id"].as_u64(), at()), None),
            "f" => {
                assert!(begun.remove(&event["id"].as_u64()).is_some_and(|begin| begin <= at()));
                shown.links += 1;
            }
            "C" => shown.counter(name, event["args"]["value"].as_u64().expect("a count")),
            other => panic!("phase {other}"),
        }
    }
    assert!(begun.is_empty() && functions.values().all(Vec::is_empty));
    shown
}

/// Microseconds with three digits behind the point, as nanoseconds.
fn micro(value: &Value) -> u64 {
    (value.as_f64().expect("a number") * 1000.0).round() as u64
}

/// As `protoc` decodes it.
pub fn perfetto(file: &Path) -> Shown {
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/export_formats");
    let input = std::fs::File::open(file).expect("the file can be read");
    let mut protoc = Command::new("protoc");
    protoc.arg("--decode=Trace").arg(format!("--proto_path={}", schema.display())).arg("perfetto.proto");
    let output = protoc.stdin(input).output().expect("protoc starts");
    assert!(output.status.success(), "protoc: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("protoc prints text");
    let trace = Message::parse(&mut text.lines());
    let mut names = [BTreeMap::new(), BTreeMap::new()];
    let mut tracks: BTreeMap<u64, String> = BTreeMap::new();
    let mut processes = BTreeMap::new();
    for packet in &trace["packet"] {
        for interned in packet.messages("interned_data") {
            for (table, names) in ["event_names", "debug_annotation_names"].iter().zip(&mut names) {
                for name in interned.messages(table) {
                    assert_eq!(
                        names.insert(name.number("iid"), name.text("name")),
                        None,
                        "a number given twice"
                    );
                }
            }
        }
        for track in packet.messages("track_descriptor") {
            let uuid = track.number("uuid");
            if let Some(process) = track.messages("process").next() {
                assert_eq!(processes.insert(uuid, process.number("pid")), None);
            }
            let label = match track.messages("thread").next() {
                Some(thread) => {
                    assert!(processes.values().any(|pid| *pid == thread.number("pid")));
                    thread.number("tid").to_string()
                }
                None => track.text("name"),
            };
            assert_eq!(tracks.insert(uuid, label), None, "a track described twice");
        }
    }
    let mut shown = Shown::default();
    let mut open: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
    let mut flows = BTreeMap::new();
    let mut last = 0;
    for packet in &trace["packet"] {
        let Some(event) = packet.messages("track_event").next() else { continue };
        let (at, track) = (packet.number("timestamp"), event.number("track_uuid"));
        assert!(at >= last, "stamps go back");
        last = at;
        let name = |event: &Message| names[0][&event.number("name_iid")].clone();
        let label = &tracks[&track];
        match event.number("type") {
            1 => {
                let open = open.entry(track).or_default();
                assert!(open.is_empty() || label.starts_with("functions"), "a slice within one");
                open.push((event.number("name_iid"), at));
                for flow in event.numbers("terminating_flow_ids") {
                    assert!(flows.remove(&flow).is_some_and(|begin| begin <= at), "a flow from nowhere");
                    shown.links += 1;
                }
            }
            2 => {
                let (name, begin) = open.get_mut(&track).and_then(Vec::pop).expect("a slice has begun");
                if !label.starts_with("CPU ") {
                    shown.slice(label, &names[0][&name], at - begin);
                }
            }
            3 if name(event) == "wake" => {
                let flow = event.numbers("flow_ids").next().expect("a flow");
                assert_eq!(flows.insert(flow, at), None);
            }
            3 if event.messages("debug_annotations").any(|field| field.text("name") == "chain") => {
                let chain = event.messages("debug_annotations").next().expect("a chain");
                let chain: Vec<_> =
                    chain.messages("array_values").map(|name| name.text("string_value")).collect();
                assert_eq!(chain[0], name(event));
                shown.sample(chain.iter().map(String::as_str));
            }
            3 => {
                let name = name(event);
                if name == "reactivity:received_msg" {
                    let field = event.messages("debug_annotations").next().expect("a field");
                    assert_eq!(names[1][&field.number("name_iid")], "message");
                    shown.messages.push(field.number("uint_value"));
                }
                shown.event(&name);
            }
            4 => shown.counter(label, event.number("counter_value")),
            other => panic!("type {other}"),
        }
    }
    assert!(open.values().all(Vec::is_empty) && flows.is_empty());
    shown
}

/// A message as `protoc --decode` prints it.
#[derive(Default)]
struct Message {
    scalars: Vec<(String, String)>,
    messages: BTreeMap<String, Vec<Message>>,
}

impl Message {
    /// Reads up to the line that ends it.
    fn parse<'t>(lines: &mut impl Iterator<Item = &'t str>) -> Message {
        let mut message = Message::default();
        while let Some(line) = lines.next().map(str::trim).filter(|line| *line != "}") {
            assert!(!line.starts_with(char::is_numeric), "a field that the schema does not have: {line}");
            match line.strip_suffix(" {") {
                Some(name) => {
                    message.messages.entry(name.to_owned()).or_default().push(Message::parse(lines));
                }
                None => {
                    let (name, value) = line.split_once(": ").expect("a name and a value");
                    message.scalars.push((name.to_owned(), value.trim_matches('"').to_owned()));
                }
            }
        }
        message
    }

    fn messages(&self, name: &str) -> impl Iterator<Item = &Message> {
        self.messages.get(name).into_iter().flatten()
    }

    fn numbers(&self, name: &str) -> impl Iterator<Item = u64> {
        let named = self.scalars.iter().filter(move |(known, _)| known == name);
        named.map(|(_, value)| value.parse().expect("a number"))
    }

    fn number(&self, name: &str) -> u64 {
        self.numbers(name).next().unwrap_or_else(|| panic!("no {name} in {:?}", self.scalars))
    }

    /// Empty where there is none, as protocol buffers have it.
    fn text(&self, name: &str) -> String {
        self.scalars.iter().find(|(known, _)| known == name).map(|(_, text)| text.clone()).unwrap_or_default()
    }
}

impl std::ops::Index<&str> for Message {
    type Output = Vec<Message>;

    fn index(&self, name: &str) -> &Vec<Message> {
        &self.messages[name]
    }
}
