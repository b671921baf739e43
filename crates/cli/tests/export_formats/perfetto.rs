//! Perfetto traces, as `protoc` decodes them.

use super::*;

/// As `protoc` decodes it.
pub fn perfetto(file: &Path) -> Shown {
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/export_formats");
    let input = std::fs::File::open(file).expect("the file can be read");
    let mut protoc = Command::new("protoc");
    protoc.arg("--decode=Trace").arg(format!("--proto_path={}", schema.display())).arg("perfetto.proto");
    let output = protoc.stdin(input).output().expect("protoc starts");
    assert!(output.status.success(), "protoc: {}", output.notes());
    let text = output.text();
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
