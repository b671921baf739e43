//! Checks the whole path from the super-trace's input to the exported text, with hand-made and random events.

use crate::change::Change;
use crate::encoder;
use crate::model::{Container, Kind as Of, Model, Use};
use crate::paje::Paje;
use crate::sort::Sorter;
use crate::timeline::Timeline;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use tracewing_analysis::{Analysis, Input, Loss, Pairs, Ran, Threads, Times};
use tracewing_timeline::StateId;
use tracewing_trace::super_trace::TaskState;
use tracewing_trace::super_trace::{
    Activity, Context, Interrupt, Kind, Name, Scope, SuperTrace, SwitchCause, UserThreadKind,
};
use tracewing_units::{Cpu, Duration, Origin, Pid, Task, Tid, Timestamp};

const READ: Name = Name(0);
const MUTEX: Name = Name(1);
const TIMER: Name = Name(2);

/// An event, or a loss that lasts until a later time.
#[derive(Debug, Clone, Copy)]
enum Step {
    Event(i64, u32, i32, Kind<'static>),
    Lost(Scope, i64, i64),
}

/// Feeds all steps to an analysis; returns what is known at the end.
fn feed(story: &[Step], analysis: &mut impl Analysis) -> Ran {
    let mut state = SuperTrace::default();
    let mut ran = Ran::default();
    for (name, text) in [(READ, "read"), (MUTEX, "mutex"), (TIMER, "timer")] {
        ran.names.learn(name, text);
    }
    let mut begin = None;
    for step in story {
        match *step {
            Step::Event(time, cpu, tid, kind) => {
                begin.get_or_insert(time);
                ran.end_ns = ran.end_ns.max(Timestamp::from_ns(time));
                let activity = Activity {
                    time: Timestamp::from_ns(time),
                    cpu: Some(Cpu(cpu)),
                    tid: Some(Tid(tid)),
                    process: None,
                    context: Context::Unknown,
                    kind,
                };
                state.event(&activity, analysis);
            }
            Step::Lost(scope, from, to) => {
                let cpu = if let Scope::Kernel(cpu) = scope { cpu } else { None };
                let lost = Loss {
                    scope,
                    cpu,
                    from: Timestamp::from_ns(from),
                    to: Timestamp::from_ns(to),
                    events: Some(7),
                    is_of_others: false,
                    is_elsewhere: false,
                    is_of_order: false,
                };
                analysis.input(Input::Lost(&lost));
                state.lost(scope, Timestamp::from_ns(from), Timestamp::from_ns(to), analysis);
            }
        }
    }
    (ran.begin_ns, ran.partial) = (Timestamp::from_ns(begin.unwrap_or_default()), state.is_partial());
    state.finish(analysis);
    ran
}

/// The Pajé file of these steps.
fn paje(story: &[Step]) -> String {
    let folder = std::env::temp_dir();
    let mut timeline = Timeline::new(Box::<Paje>::default(), &folder, Pairs::ALL);
    let ran = feed(story, &mut timeline);
    let (mut encoder, model, sorted) = timeline.finish(&ran).expect("a temporary file");
    let mut out = Vec::new();
    let bytes = encoder::write(&mut *encoder, &model, sorted, &mut out, &mut |_| ControlFlow::Continue(()));
    assert_eq!(bytes.expect("memory"), out.len() as u64);
    String::from_utf8(out).expect("text")
}

fn switch(prev: i32, prev_state: i64, next: i32) -> Kind<'static> {
    Kind::Switch {
        prev: Tid(prev),
        prev_name: b"out",
        prev_state: TaskState(prev_state),
        next: Tid(next),
        next_name: b"in",
    }
}

fn runs(prev: u64, next: u64, cause: SwitchCause) -> Kind<'static> {
    Kind::UserThread(UserThreadKind::Switch { prev: Task(prev), next: Task(next), cause })
}

#[test]
fn a_story_of_two_threads_and_a_task() {
    use Step::Event;
    let story = [
        Event(1000, 0, 10, Kind::Introduction { process: Pid(10), name: b"a \"b\"" }),
        Event(1100, 0, 10, Kind::SystemCall { call: READ }),
        Event(1200, 0, 10, switch(10, 1, 0)),
        Event(1300, 0, 0, Kind::InterruptEntry { kind: Interrupt::Handler, name: TIMER }),
        Event(1310, 0, 0, Kind::Waking { tid: Tid(10), name: b"a" }),
        Event(1320, 0, 0, Kind::InterruptExit(Interrupt::Handler)),
        Event(1400, 0, 0, switch(0, 0, 10)),
        Event(1500, 0, 10, Kind::SystemCallEnd { call: READ }),
        Event(
            1600,
            0,
            10,
            Kind::UserThread(UserThreadKind::Origin { origin: Origin(1), name: b"t", file: b"", line: 0 }),
        ),
        Event(1600, 0, 10, Kind::UserThread(UserThreadKind::Create { thread: Task(7), origin: Origin(1) })),
        Event(1700, 0, 10, runs(0, 7, SwitchCause::Unknown)),
        Event(1900, 0, 10, runs(7, 0, SwitchCause::Blocked)),
        Event(2000, 0, 10, Kind::UserThread(UserThreadKind::Exit { thread: Task(7) })),
    ];
    // n5 is ready, n1 user, n6 blocked: the numbers are those of `state`.
    let expected = "\
6 0.000000000 m M 0 \"Machine\"
6 0.000000000 P3 P m \"in 10\"
6 0.000000000 L0 L P3 \"in 10\"
8 0.000000000 SL L0 n0 
6 0.000000100 C1 C m \"CPU 0\"
8 0.000000100 SL L0 n10 
8 0.000000100 SC C1 n9 
9 0.000000200 SC C1 
8 0.000000200 SL L0 n12 
12 0.000000310 LCL m C1 w 1
8 0.000000310 SL L0 n5 
10 0.000000310 v0 m 1
8 0.000000400 SC C1 n9 
8 0.000000400 SL L0 n10 
13 0.000000400 LCL m L0 w 1
10 0.000000400 v0 m 0
8 0.000000500 SL L0 n1 
6 0.000000600 T2 T P3 \"t 10/7\"
12 0.000000600 LLT m L0 w 2
8 0.000000600 ST T2 n5 
8 0.000000700 ST T2 n1 
13 0.000000700 LLT m T2 w 2
8 0.000000900 ST T2 n6 
9 0.000001000 SL L0 
9 0.000001000 SC C1 
9 0.000001000 ST T2 
7 0.000001000 L L0 
7 0.000001000 C C1 
7 0.000001000 T T2 
7 0.000001000 P P3 
7 0.000001000 M m
";
    let file = paje(&story);
    assert_eq!(file[file.find("\n6 ").expect("a container") + 1..], *expected);
}

#[test]
fn random_events_have_the_times_of_threads() {
    for seed in 1..=60 {
        let story = random(seed);
        let mut threads = Threads::new();
        let ran = feed(&story, &mut threads);
        let table = threads.finish(&ran);
        // A picture names an LWP by its first number, the table by its last: one that executes gets its
        // process's.
        let lwps = table.threads.iter().map(|lwp| (LWP.to_owned(), sums(&lwp.times)));
        let tasks = table.user_threads.iter().map(|task| {
            let process = task.process.map_or("?".to_owned(), |process| process.to_string());
            (format!("{process}/{}", task.thread.expect("a number")), sums(&task.times))
        });
        let mut expected: Vec<_> = lwps.chain(tasks).filter(|(_, times)| *times != [0; 5]).collect();
        expected.sort();
        let mut found = read(&paje(&story));
        for (name, _) in found.iter_mut().filter(|(name, _)| !name.contains('/')) {
            LWP.clone_into(name);
        }
        found.sort();
        let (extra, missing) = (without(&found, &expected), without(&expected, &found));
        assert!(extra.is_empty() && missing.is_empty(), "seed {seed}: {extra:?} in place of {missing:?}");
        assert_eq!(found, expected, "seed {seed}");
    }
}

/// Stands in for the label of every LWP, since the numbers in the labels differ.
const LWP: &str = "an LWP";

/// Elements of `all` that `some` does not contain.
fn without<'a, T: PartialEq>(all: &'a [T], some: &[T]) -> Vec<&'a T> {
    all.iter().filter(|one| !some.contains(one)).collect()
}

/// Running, waiting, blocked, nested and unknown time in ns.
fn sums(times: &Times) -> [u64; 5] {
    let Times { running_ns, waiting_ns, blocked_ns, nested_ns, unknown_ns, .. } = times;
    [*running_ns, *waiting_ns, *blocked_ns, *nested_ns, *unknown_ns].map(Duration::as_ns)
}

/// Random events that rarely make sense together, with losses.
fn random(seed: u32) -> Vec<Step> {
    let mut state = seed;
    let mut below = |limit: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % limit
    };
    let mut now = 1_000;
    let mut story = Vec::new();
    for _ in 0..400 {
        now += i64::from(below(30));
        let (cpu, tid) = (below(2), below(5) as i32);
        let (other, task, next) = (1 + below(5) as i32, 1 + u64::from(below(4)), u64::from(below(4)));
        let kind = match below(20) {
            0..4 => switch(tid, [0, 1, 2, 0x100, 0x20][below(5) as usize], other),
            4 => switch(tid, 1, 0),
            5 => Kind::Waking { tid: Tid(other), name: b"w" },
            6 => Kind::Wakeup { tid: Tid(other), name: b"w" },
            7 => Kind::SystemCall { call: READ },
            8 => Kind::SystemCallEnd { call: READ },
            9 => Kind::InterruptEntry { kind: Interrupt::Handler, name: TIMER },
            10 => Kind::InterruptExit(Interrupt::Handler),
            11 => Kind::Introduction { process: Pid(1 + tid / 3), name: b"i" },
            12 => Kind::Fork { child: Tid(other), name: b"f" },
            13 => Kind::UserThread(UserThreadKind::Create { thread: Task(task), origin: Origin(1) }),
            14 | 15 => {
                let cause =
                    [SwitchCause::Blocked, SwitchCause::Yielded, SwitchCause::Nested, SwitchCause::Ended];
                runs(task, next, cause[below(4) as usize])
            }
            16 => Kind::UserThread(UserThreadKind::Wake { thread: Task(task) }),
            17 => Kind::UserThread(UserThreadKind::Wait { kind: MUTEX }),
            18 => Kind::User,
            _ => {
                let until = now + i64::from(below(50));
                let scope =
                    [Scope::User, Scope::Kernel(Some(Cpu(cpu))), Scope::Kernel(None)][below(3) as usize];
                if below(4) == 0 {
                    story.push(Step::Lost(scope, now, until));
                }
                continue;
            }
        };
        story.push(Step::Event(now, cpu, tid, kind));
    }
    story
}

/// Parses a file: the times of each thread and task, with the last word of its label. Also checks what
/// readers of the format rely on.
fn read(text: &str) -> Vec<(String, [u64; 5])> {
    let (mut alive, mut last) = (BTreeMap::new(), 0);
    let (mut links, mut names) = (BTreeSet::new(), BTreeMap::new());
    let mut done = Vec::new();
    for line in text.lines().filter(|line| line.starts_with("5 n")) {
        let (words, quoted): (Vec<_>, Vec<_>) = (line.split(' ').collect(), line.split('"').collect());
        names.insert(words[1], quoted[1]);
    }
    for line in text.lines().skip_while(|line| !line.starts_with("6 ")) {
        let words: Vec<&str> = line.split(' ').collect();
        let at: u64 = words[1].replace('.', "").parse().expect("a time");
        assert!(at >= last, "{line}");
        last = at;
        match words[0] {
            "6" => {
                let parent = words[4];
                assert!(parent == "0" || alive.contains_key(parent), "{line}");
                let label = line.trim_end_matches('"').rsplit([' ', '"']).next().unwrap_or_default();
                let new: Line = (label.to_owned(), None, [0; 5]);
                assert!(alive.insert(words[2], new).is_none(), "{line}");
            }
            "7" => {
                let (label, state, times) = alive.remove(words[3]).expect("it is alive");
                assert_eq!(state, None, "{line}");
                if matches!(words[2], "L" | "T") && times != [0; 5] {
                    done.push((label, times));
                }
            }
            "8" | "9" => {
                let (_, state, times) = alive.get_mut(words[3]).expect("it is alive");
                let next = names.get(words[4]).map(|name| (at, *name));
                assert_eq!(next.is_some(), words[0] == "8", "{line}");
                // Readers refuse the end of a state where there is none.
                assert!(state.is_some() || next.is_some(), "{line}");
                let is_cpu = words[2] == "SC";
                if let Some((since, name)) = std::mem::replace(state, next).filter(|_| !is_cpu) {
                    assert!(at > since, "{line}");
                    times[column(name)] += at - since;
                }
            }
            "12" => {
                assert!(alive.contains_key(words[4]) && links.insert((words[2], words[6])), "{line}");
            }
            "13" => {
                assert!(alive.contains_key(words[4]) && links.remove(&(words[2], words[6])), "{line}");
            }
            "10" => {}
            // A loss, at a CPU.
            "11" => assert!(alive.contains_key(words[3]), "{line}"),
            other => panic!("{other}"),
        }
    }
    assert!(alive.is_empty() && links.is_empty());
    done.sort();
    done
}

/// A recording of some threads does not say that a CPU without one of them is idle, or how long it runs a
/// thread that is not followed. An extract may begin with that time, and end with it.
#[test]
fn a_cpu_is_in_no_state_while_it_may_run_others() {
    let mut model = Model { partial: true, ..Model::default() };
    let [runs, stranger] = ["a 10", "b 20"].map(|name| model.names.add(name.to_owned(), Use::Container));
    let cpu = Container::new(Of::Cpu { number: Cpu(0) }, runs);
    let [begin, end] = [1000, 1040].map(Timestamp::from_ns);
    (model.begin, model.end) = (begin, end);
    model.containers.push(Container { begin, end, shown: true, ..cpu });
    for (tid, label, followed) in [(10, runs, true), (20, stranger, false)] {
        let lwp = Container::new(Of::Lwp { tid: Tid(tid) }, label);
        model.containers.push(Container { followed, ended: true, ..lwp });
    }
    let mut sorter = Sorter::new(&std::env::temp_dir());
    for (time, name) in [(1000, StateId::IDLE.0), (1010, runs), (1020, StateId::IDLE.0), (1024, stranger)] {
        let change = Change::State { of: 0, name, woken: None };
        change.push(Timestamp::from_ns(time), &mut sorter).expect("memory");
    }
    Change::NoState { of: 0 }.push(Timestamp::from_ns(1030), &mut sorter).expect("memory");
    let mut out = Vec::new();
    let sorted = sorter.finish().expect("memory");
    let proceed = &mut |_| ControlFlow::Continue(());
    encoder::write(&mut Paje::default(), &model, sorted, &mut out, proceed).expect("memory");
    let text = String::from_utf8(out).expect("text");
    let states: Vec<&str> = text.lines().filter(|line| line.contains(" SC C0 ")).collect();
    assert_eq!(states, ["8 0.000000010 SC C0 n9 ", "9 0.000000020 SC C0 "]);
}

#[test]
fn a_loss_is_an_event_of_its_cpu() {
    let story = [
        Step::Event(1000, 0, 10, Kind::Introduction { process: Pid(10), name: b"a" }),
        Step::Event(1050, 0, 0, switch(0, 0, 10)),
        Step::Lost(Scope::Kernel(Some(Cpu(0))), 1100, 1200),
        Step::Event(1300, 0, 10, Kind::SystemCall { call: READ }),
    ];
    let text = paje(&story);
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let named =
        text.lines().find(|line| line.contains("EC \"7 lost events\"")).unwrap_or_else(|| panic!("{text}"));
    let of_cpu = text.lines().find(|line| line.ends_with(" C m \"CPU 0\"")).expect("the CPU is there");
    let reported = format!("11 0.000000100 EC {} {} ", words(of_cpu)[2], words(named)[1]);
    assert!(text.lines().any(|line| line.starts_with(&reported)), "{reported}: {text}");
}

/// A container's label, its current state and since when, and its times by [`sums`]'s columns.
type Line<'t> = (String, Option<(u64, &'t str)>, [u64; 5]);

/// The index in [`sums`] that a state belongs to.
fn column(state: &str) -> usize {
    match state {
        "user" | "running" => 0,
        _ if state.starts_with("interrupt") => 0,
        "preempted" | "ready" => 1,
        "nested" => 3,
        "unknown" => 4,
        _ if state.starts_with("system call ") => 0,
        _ if state.starts_with("blocked") => 2,
        other => panic!("{other}"),
    }
}
