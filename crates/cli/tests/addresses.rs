//! `--context ip`: each event of a program has the address of the code that emits it. The program is this
//! test itself, started again with a variable set; it prints where its functions are.

mod harness;
mod recorded;

use harness::{Printed, RunExt};
use recorded::{Recording, ended, recorder};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use tracewing::dynamic;
use tracewing::{Event, emit, event};

const ROLE: &str = "TRACEWING_TEST_ADDRESSES";
/// Bytes that none of the functions below exceeds.
const LARGEST: u64 = 1 << 16;
/// How often each function is called.
const ROUNDS: usize = 200;

#[derive(Event)]
#[event(provider = "addresses")]
struct Number {
    number: u64,
}

#[derive(Event)]
#[event(provider = "addresses")]
struct Large {
    number: u64,
    words: [u64; 12],
}

#[derive(Event)]
#[event(provider = "addresses")]
struct Text<'t> {
    number: u64,
    text: &'t str,
}

/// Functions with a site each; the number of an event is its function's.
const FUNCTIONS: [fn(); 7] = [number, again, large, text, ad_hoc, many, ordered];

#[inline(never)]
fn number() {
    emit!(Number { number: 0 });
}

#[inline(never)]
fn again() {
    emit!(Number { number: 1 });
}

#[inline(never)]
fn large() {
    emit!(Large { number: 2, words: [7; 12] });
}

#[inline(never)]
fn text() {
    emit!(Text { number: 3, text: "text" });
}

#[inline(never)]
fn ad_hoc() {
    event!("addresses:ad_hoc", number = 4_u64, text = "text");
}

#[inline(never)]
fn many() {
    let t = "text";
    event!(
        "addresses:many",
        number = 5_u64,
        a = t,
        b = t,
        c = t,
        d = t,
        e = t,
        f = t,
        g = t,
        h = t,
        i = t,
        j = t,
    );
}

#[derive(Event)]
#[event(provider = "addresses", ordered)]
struct Ordered {
    number: u64,
}

#[inline(never)]
fn ordered() {
    emit!(Ordered { number: 6 });
}

/// A class that is made at run time: its first event comes before its id.
fn made() {
    use tracewing_abi::schema::{Class, Field, Level, Scalar, Shape};
    let fields = Box::leak(Box::new([Field::plain("number", Shape::One, Scalar::U64)]));
    let class = Class {
        name: "addresses:made",
        level: Level::Info,
        major: 0,
        description: "",
        print: "",
        file: "",
        line: 0,
        fields,
    };
    let class = dynamic::register(class).unwrap();
    for _ in 0..100 {
        dynamic::record_bytes(class, &99_u64.to_le_bytes(), made as fn() as usize);
    }
}

/// The program.
#[test]
fn program() {
    if std::env::var(ROLE).is_err() {
        return;
    }
    println!("functions {:?}", FUNCTIONS.map(|function| function as usize));
    println!("made {}", made as fn() as usize);
    for _ in 0..ROUNDS {
        FUNCTIONS.iter().for_each(|function| function());
    }
    made();
}

fn command() -> [String; 6] {
    let this = std::env::current_exe().unwrap().display().to_string();
    let options = ["program", "--exact", "--nocapture"].map(str::to_owned);
    let [program, exact, shown] = options;
    ["env".to_owned(), format!("{ROLE}=1"), this, program, exact, shown]
}

/// Events by number, each with its address.
fn addresses(trace: &Path) -> BTreeMap<u64, Vec<Option<u64>>> {
    let output = harness::of(trace, &["list", "--format", "json", "-e", "addresses:*"]).ran();
    assert!(output.status.success(), "{}", output.notes());
    let mut all: BTreeMap<u64, Vec<Option<u64>>> = BTreeMap::new();
    for line in output.text().lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        let number = event["payload"]["number"].as_u64().unwrap();
        all.entry(number).or_default().push(event["specific_context"]["ip"].as_u64());
    }
    all
}

/// What the program has printed: where its functions are, and the function that makes a class.
fn functions(printed: &str) -> (Vec<u64>, u64) {
    let rest = |start: &str| printed.lines().find_map(|line| line.split_once(start)).unwrap().1.to_owned();
    let list = rest("functions [");
    let all = list.trim_end_matches(']').split(", ").map(|address| address.parse().unwrap()).collect();
    (all, rest("made ").parse().unwrap())
}

/// Each address lies in the function that has emitted the event.
fn check(trace: &Path, printed: &str) {
    let (functions, made) = functions(printed);
    let all = addresses(trace);
    for (number, function) in functions.iter().enumerate() {
        let found = all.get(&(number as u64)).unwrap_or_else(|| panic!("no {number}: {:?}", all.keys()));
        assert_eq!(found.len(), ROUNDS);
        for address in found {
            let address = address.unwrap();
            let nearest = functions.iter().filter(|begin| **begin <= address).max();
            assert!(nearest == Some(function) && address - function < LARGEST, "{number}: {address:#x}");
        }
    }
    // Of first events, which the recorder has put in, it is not known.
    let (first, later): (Vec<&Option<u64>>, Vec<_>) =
        all[&99].iter().partition(|address| **address == Some(0));
    assert_eq!(first.len() + later.len(), 100);
    assert!(!first.is_empty() && later.iter().all(|address| **address == Some(made)), "{later:x?}");
}

fn record(options: &[&str]) -> Recording {
    let folder = tempfile::tempdir().unwrap();
    let options = [&["--context", "ip"], options].concat();
    let recorder = recorder(folder.path(), &options).args(command()).spawn().unwrap();
    ended(folder, recorder)
}

#[test]
fn each_event_has_the_address_of_its_site() {
    let with_conditions = ["-e", "addresses:*", "--where", "number < 200"];
    for options in [&[][..], &["--clock", "mono"], &["--buffers", "user"], &with_conditions] {
        let recording = record(options);
        check(&recording.trace(), &recording.stdout);
        recording.compare_with_babeltrace2();
    }
}

#[test]
fn snapshots_and_archives_have_them_too() {
    let recording = record(&["--flight-recorder", "--snapshot-on", "exit"]);
    let snapshot = std::fs::read_dir(recording.trace()).unwrap().next().unwrap().unwrap().path();
    check(&snapshot, &recording.stdout);
    let recording = record(&["--rotate-size", "64K"]);
    check(&recording.trace(), &recording.stdout);
}

/// A program in two recordings, of which one asks for addresses: the other is as without it.
#[test]
fn other_recordings_of_the_program_are_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    let mut outer = recorder(folder.path(), &[]);
    outer.args([harness::TRACEWING, "record", "--no-kernel", "-q", "--context", "ip", "-o"]).arg(&inner);
    let recording = ended(folder, outer.arg("--").args(command()).spawn().unwrap());
    check(&inner, &recording.stdout);
    let plain = addresses(&recording.trace());
    assert!(plain.values().flatten().all(Option::is_none));
    assert_eq!(plain.values().map(Vec::len).sum::<usize>(), FUNCTIONS.len() * ROUNDS + 100);
}
