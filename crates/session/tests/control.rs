//! Changes of a running recording, with programs played by the test: which program gets what, when the asker
//! gets its answer, and what becomes of programs that do not answer, lie, or have more connections than one.

mod common;

use std::fs;
use std::io::Read;
use std::mem::offset_of;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use common::{
    Notes, Program, class, control_socket, hello, in_child, with_programs, with_programs_and_notes,
};
use rustix::net::{RecvFlags, recv};
use tracewing_abi::message::control::{Answer as Reply, Control, decode_answer};
use tracewing_abi::message::grant::{Done, decode_change};
use tracewing_abi::message::join::Join;
use tracewing_abi::message::{Answer, Hello, Joining};
use tracewing_abi::region::RegionHeader;
use tracewing_abi::schema::{Base, Class, Field, Scalar, Shape};
use tracewing_rules::{Action, Majors, Predicate, ProcessPattern, Rule};
use tracewing_session::change::{Change, Changed};
use tracewing_session::running::{AskError, Recordings, Running};
use tracewing_units::Pid;

/// The recording that writes to this folder.
fn running(trace: &Path) -> Running {
    Recordings::find().running.into_iter().find(|one| one.output == trace).unwrap()
}

fn enable(event: &str) -> Change {
    Rule::enable([event]).into()
}

fn disable(event: &str) -> Change {
    Rule::disable([event]).into()
}

/// A rule with a condition.
fn enable_where(event: &str, condition: &str) -> Rule {
    Rule { action: Action::Enable(Some(Predicate::parse(condition).unwrap())), ..Rule::enable([event]) }
}

/// Joins, and describes classes.
fn join(path: &Path, hello: Hello, names: &[&str]) -> (Program, Vec<(u16, bool)>) {
    let program = Program::connect(path);
    assert!(matches!(program.hello(hello).0, Answer::Welcome { .. } | Answer::Known));
    let granted = program.classes(names);
    (program, granted)
}

/// The next change that a program gets, unconfirmed: number, and ids with whether they are on.
fn change(program: &Program) -> (u32, Vec<(u16, bool)>) {
    let message = program.answer();
    let (number, grants) = decode_change(&message).unwrap();
    (number, grants.map(|grant| grant.unwrap()).map(|grant| (grant.id, grant.on)).collect())
}

fn confirm(program: &Program, number: u32) {
    let mut buffer = [0; Done::LARGEST];
    program.send(Done { number, failed: 0, why: "" }.encode(&mut buffer).unwrap());
}

/// Makes a change while a program does something meanwhile.
fn meanwhile<T>(
    recording: &Running,
    change: &Change,
    program: impl FnOnce() -> T,
) -> (Result<Changed, AskError>, T) {
    thread::scope(|scope| {
        let changed = scope.spawn(|| recording.change(change));
        let result = program();
        (changed.join().unwrap(), result)
    })
}

/// Whether nothing is sent to a program for a while.
fn hears_nothing(program: &Program) -> bool {
    thread::sleep(Duration::from_millis(100));
    recv(&program.0, &mut [0u8; 1], RecvFlags::DONTWAIT).is_err()
}

fn metadata(trace: &Path) -> String {
    fs::read_to_string(trace.join("user/metadata")).unwrap()
}

#[test]
fn the_last_rule_decides_and_the_metadata_has_what_was_ever_wanted() {
    let outcome = with_programs(
        |options| options.rules.push(Rule::enable(["a:*"])),
        |path, trace| {
            let recording = running(trace);
            let (program, granted) = join(path, hello(), &["a:x", "a:y", "b:z"]);
            assert_eq!(granted, [(1, true), (2, true), (3, false)]);
            assert!(metadata(trace).contains("a:y") && !metadata(trace).contains("b:z"));

            let (changed, ()) = meanwhile(&recording, &enable("b:*"), || {
                let (number, grants) = change(&program);
                assert_eq!((number, grants), (1, vec![(3, true)]));
                assert!(metadata(trace).contains("b:z"), "the grant came before the description");
                confirm(&program, number);
            });
            let changed = changed.unwrap();
            assert_eq!((changed.programs, changed.classes, changed.is_everywhere()), (1, 3, true));

            let (changed, ()) = meanwhile(&recording, &disable("*:y"), || {
                let (number, grants) = change(&program);
                assert_eq!((number, grants), (2, vec![(2, false)]));
                confirm(&program, number);
            });
            assert_eq!(changed.unwrap().classes, 2);
            // A later program finds the same rules.
            let later = Hello { copy: 6, ..hello() };
            assert_eq!(join(path, later, &["a:y", "b:z"]).1, [(2, false), (3, true)]);
            let rules = recording.change(&Change::Nothing).unwrap().rules;
            assert_eq!(rules.len(), 3, "{rules:?}");
            assert!(rules[2].starts_with("disable") && rules[2].contains("*:y"), "{rules:?}");
        },
    );
    assert_eq!(outcome.exit_status, 0);
}

#[test]
fn a_change_is_answered_when_all_programs_have_confirmed_it() {
    with_programs(
        |_| {},
        |path, trace| {
            let recording = running(trace);
            let programs: Vec<Program> =
                (0..3).map(|copy| join(path, Hello { copy, ..hello() }, &["a:x"]).0).collect();
            let changed = thread::scope(|scope| {
                let asker = scope.spawn(|| (recording.change(&disable("*")).unwrap(), Instant::now()));
                let reported: Vec<_> = programs.iter().map(change).collect();
                thread::sleep(Duration::from_millis(200));
                let confirmed = Instant::now();
                programs.iter().zip(reported).for_each(|(program, (number, _))| confirm(program, number));
                let (changed, answered) = asker.join().unwrap();
                assert!(answered > confirmed, "the answer came before the programs had confirmed");
                changed
            });
            assert_eq!((changed.programs, changed.classes, changed.is_everywhere()), (1, 0, true));
        },
    );
}

#[test]
fn a_program_that_does_not_answer_is_named_and_gets_all_missed_changes() {
    with_programs(
        |_| {},
        |path, trace| {
            let recording = running(trace);
            let (program, _) = join(path, hello(), &["a:x", "a:y"]);
            let changed = recording.change(&disable("a:x")).unwrap();
            let [unanswered] = &changed.unanswered[..] else { panic!("{changed:?}") };
            assert_eq!(unanswered.pid, Pid::from_unsigned(std::process::id()));
            assert!(unanswered.name.starts_with("control-"), "{unanswered:?}");
            assert!(!changed.is_everywhere());
            // Meanwhile there are two changes more; it gets their sum, once it has confirmed the first.
            for change in [disable("*"), enable("a:y")] {
                assert_eq!(recording.change(&change).unwrap().unanswered.len(), 1);
            }
            let (first, grants) = change(&program);
            assert_eq!(grants, [(1, false)]);
            confirm(&program, first);
            let (second, grants) = change(&program);
            assert_eq!((second, grants), (first + 1, vec![(1, false), (2, true)]));
            confirm(&program, second);
            let changed = recording.change(&Change::Nothing).unwrap();
            assert!(changed.is_everywhere() && hears_nothing(&program));
        },
    );
}

#[test]
fn sites_that_cannot_be_switched_are_reported() {
    with_programs(
        |_| {},
        |path, trace| {
            let recording = running(trace);
            let (program, _) = join(path, hello(), &["a:x"]);
            let (changed, ()) = meanwhile(&recording, &disable("*"), || {
                let (number, _) = change(&program);
                let mut buffer = [0; Done::LARGEST];
                let done = Done { number, failed: 3, why: "the kernel forbids it" };
                program.send(done.encode(&mut buffer).unwrap());
            });
            let changed = changed.unwrap();
            let failures = &changed.failures;
            assert!(
                failures[0].contains("3 sites could not be switched: the kernel forbids it"),
                "{failures:?}"
            );
            assert!(!changed.is_everywhere());
        },
    );
}

#[test]
fn a_hang_up_ends_a_connection_and_nothing_else() {
    let outcome = with_programs(
        |_| {},
        |path, trace| {
            let recording = running(trace);
            let (program, _) = join(path, hello(), &["a:x"]);
            assert_eq!(recording.change(&Change::Nothing).unwrap().programs, 1);
            drop(program);
            // The process lives, and may write to the buffers that it has.
            let changed = recording.change(&disable("*")).unwrap();
            assert_eq!((changed.programs, changed.unreachable.len()), (0, 1));
            assert_eq!(changed.unreachable[0].pid, Pid::from_unsigned(std::process::id()));
            // As soon as it is there again, it gets the present rules.
            assert_eq!(join(path, hello(), &["a:x"]).1, [(1, false)]);
        },
    );
    assert_eq!(outcome.summary.processes, 1);
}

#[test]
fn a_program_that_is_welcome_and_stays_away_is_named() {
    let mut notes = Notes::default();
    with_programs_and_notes(
        |_| {},
        |path, trace| {
            let recording = running(trace);
            Program::connect(path).hello(hello());
            let begin = Instant::now();
            while recording.change(&Change::Nothing).unwrap().unreachable.is_empty() {
                assert!(begin.elapsed() < Duration::from_secs(60), "its hang-up is not seen");
            }
        },
        &mut notes,
    );
    let named = format!("process {} (control", std::process::id());
    assert!(
        notes.0.iter().any(|note| note.starts_with(&named) && note.contains("is not recorded")),
        "{:?}",
        notes.0
    );
}

#[test]
fn classes_that_came_later_are_not_forgotten_when_rules_change_meanwhile() {
    with_programs(
        |_| {},
        |path, trace| {
            let recording = running(trace);
            let (program, _) = join(path, hello(), &["a:x"]);
            let (more, granted) = join(path, Hello { joining: Joining::More, ..hello() }, &["a:later"]);
            assert_eq!(granted, [(2, true)]);
            thread::scope(|scope| {
                let asker = scope.spawn(|| (recording.change(&disable("a:*")).unwrap(), Instant::now()));
                let (number, grants) = change(&program);
                assert_eq!(grants, [(1, false)]);
                confirm(&program, number);
                // The grants for the later class were sent before the change, and may not be in force yet.
                assert!(hears_nothing(&program) && hears_nothing(&more));
                drop(more);
                let (number, grants) = change(&program);
                assert_eq!(grants, [(2, false)]);
                thread::sleep(Duration::from_millis(100));
                let confirmed = Instant::now();
                confirm(&program, number);
                let (changed, answered) = asker.join().unwrap();
                assert!(changed.is_everywhere() && answered > confirmed, "{changed:?}");
            });
            let (changed, ()) = meanwhile(&recording, &enable("*"), || {
                let (number, grants) = change(&program);
                assert_eq!(grants, [(1, true), (2, true)]);
                confirm(&program, number);
            });
            assert_eq!(changed.unwrap().classes, 2);
        },
    );
}

#[test]
fn a_forked_child_gets_its_parents_rules_and_all_changes() {
    with_programs(
        |_| {},
        |path, trace| {
            let recording = running(trace);
            let (program, _) = join(path, hello(), &["a:x", "a:y"]);
            let _other = join(path, Hello { copy: 9, ..hello() }, &["c:z"]);
            // Nothing has changed since: there is nothing to send.
            in_child(|| {
                let child = Program::connect(path);
                child.hello(Hello { joining: Joining::Sharer, ..hello() }).0 == Answer::Known
                    && hears_nothing(&child)
            })();
            let (changed, ()) =
                meanwhile(&recording, &disable("a:y"), || confirm(&program, change(&program).0));
            changed.unwrap();
            for joining in [Joining::Sharer, Joining::Child] {
                let end = in_child(|| {
                    let child = Program::connect(path);
                    child.hello(Hello { joining, ..hello() });
                    let (number, grants) = change(&child);
                    confirm(&child, number);
                    let (next, later) = change(&child);
                    confirm(&child, next);
                    grants == [(1, true), (2, false)] && later == [(2, true)]
                });
                // It is one more that gets changes from now on.
                let begin = Instant::now();
                while recording.change(&Change::Nothing).unwrap().programs < 2 {
                    assert!(begin.elapsed() < Duration::from_secs(60));
                }
                let (changed, ()) =
                    meanwhile(&recording, &enable("a:y"), || confirm(&program, change(&program).0));
                assert!(changed.unwrap().unanswered.is_empty());
                end();
                let (changed, ()) =
                    meanwhile(&recording, &disable("a:y"), || confirm(&program, change(&program).0));
                assert!(changed.unwrap().is_everywhere(), "the child is dead");
            }
        },
    );
}

#[test]
fn rules_are_for_processes() {
    with_programs(
        |options| {
            options.rules.push(Rule {
                processes: vec![ProcessPattern::Id(Pid::from_unsigned(std::process::id()))],
                ..Rule::enable(["a:*"])
            });
        },
        |path, trace| {
            let (program, granted) = join(path, hello(), &["a:x"]);
            assert_eq!(granted, [(1, true)]);
            // A child is another process, whatever it has inherited.
            in_child(|| {
                let child = Program::connect(path);
                child.hello(Hello { joining: Joining::Sharer, ..hello() });
                change(&child).1 == [(1, false)]
            })();
            let name = |name: &str| ProcessPattern::new(name);
            let others = Rule { processes: vec![name("nobody-*")], ..Rule::disable(["*"]) };
            let recording = running(trace);
            recording.change(&others.clone().into()).unwrap();
            assert!(hears_nothing(&program));
            let ours = Rule { processes: vec![name("nobody"), name("control-*")], ..others };
            let (changed, ()) = meanwhile(&recording, &ours.into(), || {
                let (number, grants) = change(&program);
                assert_eq!(grants, [(1, false)]);
                confirm(&program, number);
            });
            changed.unwrap();
        },
    );
}

fn majors(region: &OwnedFd) -> u64 {
    let mut word = [0; 8];
    let file = fs::File::from(region.try_clone().unwrap());
    file.read_exact_at(&mut word, offset_of!(RegionHeader, majors) as u64).unwrap();
    u64::from_le_bytes(word)
}

#[test]
fn major_classes_and_pauses_are_one_word_and_need_no_message() {
    with_programs(
        |options| options.majors = Majors(0b1110),
        |path, trace| {
            let recording = running(trace);
            let program = Program::connect(path);
            let region = program.hello(hello()).1.unwrap();
            program.classes(&["a:x"]);
            assert_eq!(majors(&region), 0b1110);
            let make = |change: Change| recording.change(&change).unwrap();
            let on = |on, mask| Change::Majors { on, majors: Majors(mask) };
            assert_eq!(
                (make(on(true, 1 << 63)).majors.as_str(), majors(&region)),
                ("1-3,63", 1 << 63 | 0b1110)
            );
            assert_eq!(
                (make(on(false, 0b10)).majors.as_str(), majors(&region)),
                ("2-3,63", 1 << 63 | 0b1100)
            );
            let changed = make(Change::Pause);
            assert_eq!((changed.paused, changed.majors.as_str(), majors(&region)), (true, "2-3,63", 0));
            // Changes in a pause, and programs that come, wait for its end.
            make(on(true, 1));
            let other = Program::connect(path);
            let smp = other.hello(Hello { can_publish: false, copy: 6, ..hello() }).1.unwrap();
            assert_eq!((majors(&region), majors(&smp)), (0, 0));
            assert!(!make(Change::Resume).paused);
            assert_eq!([majors(&region), majors(&smp)], [1 << 63 | 0b1101; 2]);
            assert!(hears_nothing(&program));
        },
    );
}

#[test]
fn the_folder_contains_the_rules_and_every_change() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("kept");
    with_programs(
        |options| {
            options.rules.push(Rule::enable(["a:*"]));
            options.output.clone_from(&kept);
        },
        |path, _| {
            let recording = running(&kept);
            let (_program, _) = join(path, hello(), &["a:x"]);
            recording.change(&enable("b:*")).unwrap();
            recording.change(&Change::Pause).unwrap();
            recording.change(&Change::Nothing).unwrap();
            recording.change(&Change::Majors { on: false, majors: Majors(0b11000) }).unwrap();
        },
    );
    let text = fs::read_to_string(kept.join("tracewing.json")).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(value["event_rules"][0].as_str().unwrap().contains("a:*"), "{text}");
    let changes = value["changes"].as_array().unwrap();
    let whats: Vec<&str> = changes.iter().map(|change| change["change"].as_str().unwrap()).collect();
    assert!(whats[0].starts_with("enable") && whats[0].contains("b:*"), "{whats:?}");
    assert_eq!(whats[1..], ["pause", "disable --major 3-4"]);
    let times: Vec<u64> = changes.iter().map(|change| change["time_cycles"].as_u64().unwrap()).collect();
    assert!(times.is_sorted() && times[0] > value["clock"]["begin"]["cycles"].as_u64().unwrap());
}

fn with_depth(name: &str) -> Class<'_> {
    const FIELDS: &[Field<'_>] = &[
        Field {
            name: "depth",
            shape: Shape::One,
            scalar: Scalar::U32,
            length: 0,
            base: Base::Decimal,
            unit: "",
            labels: &[],
        },
        Field {
            name: "customer",
            shape: Shape::Text,
            scalar: Scalar::U8,
            length: 0,
            base: Base::Decimal,
            unit: "",
            labels: &[],
        },
    ];
    Class { fields: FIELDS, ..class(name) }
}

#[test]
fn left_out_and_unmatched_events_of_a_condition_are_reported() {
    let outcome = with_programs(
        |options| {
            let mut rule = enable_where("a:*", "depth > 3");
            rule.events.push(tracewing_rules::Glob::new("nothing:*"));
            options.rules.push(rule);
        },
        |path, trace| {
            let recording = running(trace);
            let program = Program::connect(path);
            program.hello(hello());
            let granted = program.describe(&[with_depth("a:x"), class("a:y"), class("b:z")]);
            assert_eq!(granted, [(1, true), (2, false), (3, false)]);
            let (changed, ()) = meanwhile(&recording, &enable_where("a:*", "depth == 'x'").into(), || {
                let (number, grants) = change(&program);
                assert_eq!(grants, [(1, false), (2, false)]);
                confirm(&program, number);
            });
            let notes = changed.unwrap().notes;
            assert!(
                notes[0].contains("none of the events that it names can satisfy the condition"),
                "{notes:?}"
            );
            let either = enable_where("a:*", "customer < 'x' || $cpu >= 0").into();
            let (changed, ()) = meanwhile(&recording, &either, || {
                let (number, grants) = change(&program);
                assert_eq!(grants, [(1, true), (2, true)], "the other side can be true");
                confirm(&program, number);
            });
            let notes = changed.unwrap().notes;
            let [note] = &notes[..] else { panic!("{notes:?}") };
            assert!(note.contains("a comparison is unknown for all events that it names"), "{note}");
            assert!(note.contains("event \"a:x\": `customer` is a text"), "{note}");
            let notes = recording.change(&enable("nobody:*")).unwrap().notes;
            assert!(notes[0].contains("no event of the recorded programs matches"), "{notes:?}");
        },
    );
    let notes = outcome.summary.notes;
    assert!(notes.iter().any(|note| note.contains("no event matched -e 'nothing:*'")), "{notes:?}");
    assert!(!notes.iter().any(|note| note.contains("a:*'")), "{notes:?}");

    let outcome = with_programs(
        |options| options.rules.push(enable_where("a:*", "depth > 3")),
        |path, _| {
            let program = Program::connect(path);
            program.hello(hello());
            program.describe(&[with_depth("a:x"), class("a:y"), class("b:z")]);
        },
    );
    let notes = outcome.summary.notes;
    let [note] = &notes[..] else { panic!("{notes:?}") };
    assert!(
        note.contains("1 of the 2 events that it names cannot satisfy the condition") && note.contains("a:y"),
        "{note}"
    );
}

#[test]
fn grants_with_large_filters_come_in_many_messages() {
    const CLASSES: usize = 700;
    let condition = format!("customer == \"{}\"", "x".repeat(900));
    with_programs(
        |options| options.rules.push(enable_where("*", &condition)),
        |path, trace| {
            let recording = running(trace);
            let names: Vec<String> = (0..CLASSES).map(|number| format!("a:{number}")).collect();
            let classes: Vec<Class<'_>> = names.iter().map(|name| with_depth(name)).collect();
            let program = Program::connect(path);
            program.hello(hello());
            let granted = program.describe(&classes);
            assert!(granted.iter().copied().eq((1..=CLASSES as u16).map(|id| (id, true))));
            // As do changes: each is confirmed before the next one comes.
            let (changed, reported) = meanwhile(&recording, &enable_where("*", &condition).into(), || {
                let mut reported = Vec::new();
                while reported.len() < CLASSES {
                    let (number, grants) = change(&program);
                    reported.extend(grants);
                    confirm(&program, number);
                }
                reported
            });
            assert!(changed.unwrap().is_everywhere() && reported == granted);
        },
    );
}

#[test]
fn a_thousand_programs_get_a_change() {
    const PROGRAMS: u64 = 1000;
    with_programs(
        |_| {},
        |path, trace| {
            let recording = running(trace);
            // One process may have so many connections, but not so many buffers.
            let joining = |copy| if copy == 0 { Joining::Program } else { Joining::Sharer };
            let hello = |copy| Hello { copy, joining: joining(copy), ..hello() };
            let programs: Vec<Program> =
                (0..PROGRAMS).map(|copy| join(path, hello(copy), &["a:x", "b:y"]).0).collect();
            for what in [disable("a:*"), enable("a:*")] {
                let (changed, ()) = meanwhile(&recording, &what, || {
                    for program in &programs {
                        let (number, grants) = change(program);
                        assert_eq!(grants.len(), 1);
                        confirm(program, number);
                    }
                });
                changed.unwrap();
            }
            assert_eq!(recording.change(&Change::Nothing).unwrap().classes, 2);
        },
    );
}

#[test]
fn lies_end_a_connection() {
    with_programs(
        |_| {},
        |path, trace| {
            let recording = running(trace);
            let mut copy = 0;
            let mut join = || {
                copy += 1;
                join(path, Hello { copy, ..hello() }, &["a:x"]).0
            };
            let unasked = join();
            confirm(&unasked, 0);
            assert!(unasked.is_dropped());
            let again = join();
            again.send(&hello().encode());
            assert!(again.is_dropped());
            let wrong = join();
            let (changed, ()) = meanwhile(&recording, &disable("*"), || {
                let (number, _) = change(&wrong);
                confirm(&wrong, number + 1);
                assert!(wrong.is_dropped());
            });
            assert!(changed.unwrap().unanswered.is_empty());
            let stopped = join();
            stopped.send(&Control::Pause.encode_to_vec());
            assert!(stopped.is_dropped());
            assert!(!recording.change(&Change::Nothing).unwrap().paused);
        },
    );
}

trait Encoded {
    fn encode_to_vec(&self) -> Vec<u8>;
}

impl Encoded for Control<'_> {
    fn encode_to_vec(&self) -> Vec<u8> {
        let mut buffer = vec![0; 1000];
        let len = self.encode(&mut buffer).unwrap();
        buffer.truncate(len);
        buffer
    }
}

/// What the recorder says to a message from an asker.
fn ask(path: &Path, message: &[u8]) -> Option<String> {
    let asker = Program::connect(&control_socket(path));
    asker.send(message);
    let answer = asker.answer();
    match decode_answer(&answer).ok()?.0 {
        Reply::Refused(why) => Some(why.to_owned()),
        Reply::Changed(_) => None,
    }
}

#[test]
fn rubbish_changes_nothing() {
    with_programs(
        |_| {},
        |path, trace| {
            let rule = |bytes: &[u8]| ask(path, &Control::Rule(bytes).encode_to_vec()).unwrap();
            assert!(rule(b"").contains("ends in the middle"));
            assert!(rule(&[9; 40]).contains("message ends") || !rule(&[9; 40]).is_empty());
            let mut message = Control::Pause.encode_to_vec();
            message.push(0);
            assert!(ask(path, &message).unwrap().contains("length"));
            message[4] ^= 1;
            assert!(ask(path, &message).unwrap().contains("version"));
            // Whatever bits are wrong: an answer or the end of the connection.
            let mut random = fs::File::open("/dev/urandom").unwrap();
            for _ in 0..300 {
                let mut bytes = Control::Rule(&[0; 60]).encode_to_vec();
                let at = bytes.len() - 60;
                random.read_exact(&mut bytes[at..]).unwrap();
                let asker = Program::connect(&control_socket(path));
                asker.send(&bytes);
                asker.answer();
            }
            let changed = running(trace).change(&Change::Nothing).unwrap();
            assert!(!changed.paused && changed.majors == "0-63", "{changed:?}");
        },
    );
}

/// The path of the next message, an invitation.
fn invitation(program: &Program) -> Vec<u8> {
    Join::decode(&program.answer()).unwrap().path.to_vec()
}

#[test]
fn invitations_reach_those_that_are_there_and_those_that_come() {
    with_programs(
        |_| {},
        |path, trace| {
            let invite = |path: &[u8]| Control::Invite(path).encode_to_vec();
            let (program, _) = join(path, hello(), &["a:x"]);
            let other = tempfile::NamedTempFile::new().unwrap();
            let at = other.path().as_os_str().as_encoded_bytes();
            for nowhere in [&b"/no/such/socket"[..], b"relative", b"", &[b'/'; 200]] {
                assert!(ask(path, &invite(nowhere)).unwrap().contains("no recorder"));
            }
            assert_eq!(ask(path, &invite(at)), None);
            assert_eq!(invitation(&program), at);
            // A later program hears of it first of all.
            let later = Program::connect(path);
            later.hello(Hello { copy: 7, ..hello() });
            assert_eq!(invitation(&later), at);
            assert_eq!(later.classes(&["a:x"]), [(1, true)]);
            // A child has its parent's recorders.
            in_child(|| {
                let child = Program::connect(path);
                child.hello(Hello { joining: Joining::Sharer, ..hello() }).0 == Answer::Known
                    && hears_nothing(&child)
            })();
            for _ in 1..7 {
                assert_eq!(ask(path, &invite(at)), None);
            }
            assert!(ask(path, &invite(at)).unwrap().contains("7 other recordings"));
            // Recorders that have gone are forgotten.
            drop(other);
            let last = Program::connect(path);
            last.hello(Hello { copy: 8, ..hello() });
            assert_eq!(last.classes(&["a:x"]), [(1, true)]);
            assert_eq!(running(trace).change(&Change::Nothing).unwrap().programs, 1);
        },
    );
}

#[test]
fn rules_that_others_make_superfluous_go() {
    with_programs(
        |options| options.rules.push(Rule::enable(["a:*"])),
        |_, trace| {
            let recording = running(trace);
            for _ in 0..300 {
                recording.change(&disable("a:*")).unwrap();
                recording.change(&enable("a:*")).unwrap();
            }
            assert_eq!(recording.change(&Change::Nothing).unwrap().rules.len(), 2);
            for number in 0..254 {
                recording.change(&enable(&number.to_string())).unwrap();
            }
            let error = recording.change(&enable("one too many")).unwrap_err();
            assert!(error.to_string().contains("at most 256"), "{error}");
            recording.change(&enable("*")).unwrap();
            assert_eq!(recording.change(&Change::Nothing).unwrap().rules.len(), 2);
            // The first rule still says what becomes of what no rule matches.
            recording.change(&disable("*")).unwrap();
            assert_eq!(recording.change(&Change::Nothing).unwrap().rules.len(), 2);
        },
    );
}
