//! Lines of the super-trace, in every format: the situation of the paper's Figure 3.

mod common;

use common::{Event, Packet};
use tracewing_ctf::model::{
    EnumerationClass, EventRecordClass, FieldClass, IntegerClass, StructureClass, TraceClass,
};
use tracewing_trace::{Format, Listing, Recording, Style, Zone};

fn with(mut class: TraceClass, domain: &str, events: Vec<EventRecordClass>) -> TraceClass {
    class.set_env("domain", domain);
    class.data_stream_classes[0].event_record_classes = events;
    class
}

fn kernel() -> TraceClass {
    let switch = StructureClass::new()
        .with("prev_comm", FieldClass::string())
        .with("prev_tid", FieldClass::signed(32))
        .with("prev_state", FieldClass::signed(64))
        .with("next_comm", FieldClass::string())
        .with("next_tid", FieldClass::signed(32));
    let irq = StructureClass::new().with("irq", FieldClass::signed(32));
    let events = vec![
        EventRecordClass::new(20, "sched_switch").with_payload(switch),
        EventRecordClass::new(21, "irq_handler_entry").with_payload(irq),
        EventRecordClass::new(23, "irq_handler_exit").with_payload(StructureClass::new()),
        EventRecordClass::new(22, "syscall_entry_select").with_payload(StructureClass::new()),
    ];
    with(common::class(Some(1), 1_000_000_000), "kernel", events)
}

fn user() -> TraceClass {
    let thread = StructureClass::new().with("pid", FieldClass::signed(32)).with("name", FieldClass::string());
    let create = StructureClass::new()
        .with("thread", FieldClass::unsigned(64))
        .with("origin", FieldClass::unsigned(64));
    let origin =
        StructureClass::new().with("origin", FieldClass::unsigned(64)).with("name", FieldClass::string());
    let cause = EnumerationClass::new(IntegerClass::unsigned(8)).with("none", 0, 0).with("yielded", 3, 3);
    let switch = StructureClass::new()
        .with("prev", FieldClass::unsigned(64))
        .with("next", FieldClass::unsigned(64))
        .with("cause", cause);
    let events = vec![
        EventRecordClass::new(0, "tracewing:thread").with_payload(thread),
        EventRecordClass::new(1, "user_thread:create").with_payload(create),
        EventRecordClass::new(2, "user_thread:switch").with_payload(switch),
        EventRecordClass::new(3, "app:received_msg").with_payload(StructureClass::new()),
        EventRecordClass::new(4, "user_thread:origin").with_payload(origin),
    ];
    with(common::class(Some(2), 1_000_000_000), "ust", events)
}

fn event(stamp: u64, id: u16, tid: i32, payload: &[&[u8]]) -> Event {
    Event { stamp, id, tid, payload: payload.concat() }
}

/// LWP 2732 on CPU 1 runs `work/6`, then `daemon`; CPU 0 has an interrupt meanwhile.
fn write(folder: &std::path::Path) {
    let number = |number: i32| number.to_le_bytes();
    let switch =
        |prev: u64, next: u64, cause: u8| [&prev.to_le_bytes()[..], &next.to_le_bytes(), &[cause]].concat();
    let packet = |uuid, cpu, events: &[Event]| Packet::new(uuid, cpu, 100, 900).bytes(events);
    let sched =
        event(100, 20, 0, &[b"swapper\0", &number(0), &0_i64.to_le_bytes(), b"worker\0", &number(2732)]);
    common::write_trace(
        &folder.join("kernel"),
        &kernel(),
        &[
            ("channel_0", packet(1, 0, &[event(700, 21, 1630, &[&number(24)])])),
            ("channel_1", packet(1, 1, &[sched, event(600, 22, 2732, &[])])),
        ],
    );
    let events = [
        event(200, 0, 2732, &[&number(2700), b"worker\0"]),
        event(300, 4, 2732, &[&6_u64.to_le_bytes(), b"work/6\0"]),
        event(300, 1, 2732, &[&8_u64.to_le_bytes(), &6_u64.to_le_bytes()]),
        event(400, 1, 2732, &[&1_u64.to_le_bytes(), &7_u64.to_le_bytes()]),
        event(400, 4, 2732, &[&7_u64.to_le_bytes(), b"dae\x1bmon\0"]), // after the first that has it
        event(450, 2, 2732, &[&switch(0, 8, 0)]),
        event(500, 2, 2732, &[&switch(8, 1, 3)]),
        event(800, 3, 2732, &[]),
    ];
    common::write_trace(&folder.join("user"), &user(), &[("stream_1", packet(2, 1, &events))]);
}

fn print(listing: Listing) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder");
    write(folder.path());
    let recording = Recording::open(&[folder.path()]).expect("a trace");
    let mut style = Style::default();
    style.clock.zone = Zone::Utc;
    let (mut out, mut warnings) = (Vec::new(), Vec::new());
    let listing = Listing { super_trace: true, style, ..listing };
    listing.print(&recording, &mut (&mut out, &mut warnings)).expect("it prints");
    assert_eq!(String::from_utf8_lossy(&warnings), "");
    String::from_utf8(out).expect("text")
}

#[test]
fn text_has_the_columns_of_sigmund() {
    let expected = "\
type  date                    pid     tid  cpu  thr                 code  name                             param(s)
KERN  04:25:40.123456889        ?       0    1  ?                     20  sched_switch                     { prev_comm = \"swapper\", prev_tid = 0, prev_state = 0, next_comm = \"worker\", next_tid = 2732 }
USER  04:25:40.123456989     2700    2732    1  ?                      0  tracewing:thread                 { pid = 2700, name = \"worker\" }
USER  04:25:40.123457089     2700    2732    1  ?                      4  user_thread:origin               { origin = 6, name = \"work/6\" }
USER  04:25:40.123457089     2700    2732    1  ?                      1  user_thread:create               { thread = 8, origin = 6 }
USER  04:25:40.123457189     2700    2732    1  ?                      1  user_thread:create               { thread = 1, origin = 7 }
USER  04:25:40.123457189     2700    2732    1  ?                      4  user_thread:origin               { origin = 7, name = \"dae\\emon\" }
USER  04:25:40.123457239     2700    2732    1  -                      2  user_thread:switch               { prev = 0, next = 8, cause = ( \"none\" : container = 0 ) }
USER  04:25:40.123457289     2700    2732    1  8(work/6)              2  user_thread:switch               { prev = 8, next = 1, cause = ( \"yielded\" : container = 3 ) }
KERN  04:25:40.123457389     2700    2732    1  1(dae\\u{1b}mon)       22  syscall_entry_select             { }
KERN  04:25:40.123457489        ?    1630    0  -                     21  irq_handler_entry                { irq = 24 }
USER  04:25:40.123457589     2700    2732    1  1(dae\\u{1b}mon)        3  app:received_msg                 { }
";
    assert_eq!(print(Listing::default()), expected);
}

#[test]
fn columns_stand_below_their_names() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    write(folder.path());
    let recording = Recording::open(&[folder.path()]).expect("a trace");
    for (cycles, seconds, date) in
        [(false, false, false), (true, false, false), (false, true, false), (false, false, true)]
    {
        let mut style = Style::default();
        (style.clock.cycles, style.clock.seconds, style.clock.date) = (cycles, seconds, date);
        let listing = Listing { super_trace: true, style, ..Listing::default() };
        let mut out = (Vec::new(), Vec::new());
        listing.print(&recording, &mut out).expect("it prints");
        let text = String::from_utf8(out.0).expect("text");
        let mut lines = text.lines();
        let name = lines.next().and_then(|header| header.find("name")).expect("a header");
        let begins = |line: &str| line[..name].ends_with("  ") && !line[name..].starts_with(' ');
        assert!(lines.all(begins), "{text}");
    }
}

#[test]
fn what_is_not_printed_counts_all_the_same() {
    let mut listing = Listing { count: Some(1), ..Listing::default() };
    listing.filter.events = vec!["app:*".into()];
    listing.filter.set_range(Some("+650ns"), None).expect("a time");
    let json = print(Listing { format: Format::Json, ..listing.clone() });
    let expected = r#"{"type":"USER","ns":1795235140123457589,"cycles":800,"pid":2700,"tid":2732,"cpu":1,"thr":1,"thr_name":"dae\u001bmon","mode":"user","call":null,"code":3,"name":"app:received_msg","params":{}}"#;
    assert_eq!(json, expected.to_owned() + "\n");
    let csv = print(Listing { format: Format::Csv, ..listing });
    let expected = "type,ns,cycles,pid,tid,cpu,thr,thr_name,mode,call,code,name,params\n\
                    USER,1795235140123457589,800,2700,2732,1,1,dae\u{1b}mon,user,,3,app:received_msg,{}\n";
    assert_eq!(csv, expected);
}

#[test]
fn a_context_shows_the_process() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut user = user();
    let context =
        StructureClass::new().with("vtid", FieldClass::signed(32)).with("vpid", FieldClass::signed(32));
    user.data_stream_classes[0].common_context = Some(context);
    let app = |stamp, process: i32| event(stamp, 3, 2732, &[&process.to_le_bytes()]);
    let program = Packet::new(2, 1, 100, 900).bytes(&[app(200, 2700), app(500, 0)]);
    common::write_trace(&folder.path().join("user"), &user, &[("stream_1", program)]);
    let calls = Packet::new(1, 1, 100, 900).bytes(&[event(100, 22, 2732, &[]), event(300, 22, 2732, &[])]);
    common::write_trace(&folder.path().join("kernel"), &kernel(), &[("channel_1", calls)]);
    let recording = Recording::open(&[folder.path()]).expect("a trace");
    let listing = Listing { super_trace: true, format: Format::Csv, ..Listing::default() };
    let mut out = (Vec::new(), Vec::new());
    listing.print(&recording, &mut out).expect("it prints");
    let csv = String::from_utf8(out.0).expect("text");
    let processes: Vec<_> = csv.lines().skip(1).filter_map(|line| line.split(',').nth(3)).collect();
    assert_eq!(processes, ["", "2700", "2700", "2700"], "{csv}");
}

#[test]
fn modes_are_reported() {
    let listing = Listing { format: Format::Csv, ..Listing::default() };
    let csv = print(listing);
    let column = |name: &str, column: usize| {
        let line = csv.lines().find(|line| line.contains(name)).expect("such a line");
        line.split(',').nth(column).map(str::to_owned)
    };
    assert_eq!(column("syscall_entry_select", 8).as_deref(), Some("syscall"));
    assert_eq!(column("syscall_entry_select", 9).as_deref(), Some("select"));
    assert_eq!(column("irq_handler_entry", 8).as_deref(), Some("interrupt"));
    assert_eq!(column("sched_switch", 8).as_deref(), Some(""));
    assert_eq!(column("irq_handler_entry", 6).as_deref(), Some("0"));
}
