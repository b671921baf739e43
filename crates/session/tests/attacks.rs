//! What other users can do to a recording of root, and what a user can do whose program is recorded in it. A
//! thread becomes that user by the bare system call, which the C library does not pass on to the other
//! threads.

mod common;

use std::fs;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use common::{
    Notes, Program, class, control_socket, hello, in_child, with_programs, with_programs_and_notes,
};
use rustix::net::{
    AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, send, socket, socket_with,
};
use serde_json::Value;
use tracewing_abi::message::control::Control;
use tracewing_abi::message::snapshot::{Asker, LeftOut, Question};
use tracewing_abi::message::{Answer, ClassesWriter, Hello, MAX_MESSAGE};
use tracewing_abi::region::{CpuControl, VERSION};
use tracewing_session::options::{Listed, SnapshotOn};
use tracewing_session::running::{Recordings, Running};
use tracewing_session::{Options, Outcome};
use tracewing_testing::{NOBODY, STRANGER, become_user, is_root};

/// Does something as another user.
fn as_user<T: Send>(uid: u32, work: impl FnOnce() -> T + Send) -> T {
    let work = move || {
        become_user(uid);
        work()
    };
    thread::scope(|scope| scope.spawn(work).join().unwrap())
}

fn try_connect(path: &Path) -> Option<Program> {
    let socket = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
    connect(&socket, &SocketAddrUnix::new(path).ok()?).ok()?;
    Some(Program(socket))
}

fn flight_recorder(options: &mut Options) {
    options.flight_recorder = Some(SnapshotOn { signal: false, exit: false, panic: true });
}

/// Everything by which a stranger might reach the recorder of a folder: what the kernel lists, and what may
/// lie in it.
fn listed(folder: &Path) -> Vec<PathBuf> {
    let sockets = fs::read_to_string("/proc/net/unix").unwrap();
    let kernels = sockets.lines().filter_map(|line| line.split(' ').next_back()).map(PathBuf::from);
    let kernels = kernels.filter(|path| path.starts_with(folder) || path.starts_with("/proc"));
    let names = ["socket", "join", "control"].map(|name| folder.join(name));
    let inside = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    kernels.chain(inside).chain(names).collect()
}

fn notes(outcome: &Outcome) -> String {
    outcome.summary.notes.join("\n")
}

/// An owner's program joins, and its class gets an id; gives how long that took.
fn owner_joins(path: &Path, name: &str) -> Duration {
    let begin = Instant::now();
    let program = Program::connect(path);
    assert!(matches!(program.hello(Hello { copy: 99, ..hello() }).0, Answer::Welcome { .. }));
    let granted = program.classes(&[name]);
    assert!(granted[0].0 != 0 && granted[0].1, "{granted:?}");
    begin.elapsed()
}

#[test]
fn strangers_reach_no_recorder() {
    if !is_root() {
        return;
    }
    let outcome = with_programs(flight_recorder, |path, trace| {
        assert!(try_connect(path).is_some());
        let attack = || {
            let listed = listed(path.parent().unwrap()).into_iter();
            let reached: Vec<_> = listed.filter(|path| try_connect(path).is_some()).collect();
            for path in &reached {
                let asker = try_connect(path).unwrap();
                asker.send(&Question::Snapshot(Asker::Command).encode());
                asker.answer();
            }
            assert_eq!(reached, Vec::<PathBuf>::new());
        };
        [STRANGER, NOBODY].into_iter().for_each(|user| as_user(user, attack));
        assert!(!trace.join("snapshot-1").exists());
    });
    assert_eq!(outcome.summary.snapshots.unwrap().len(), 0);
}

#[test]
fn programs_of_other_users_may_neither_ask_nor_change() {
    if !is_root() {
        return;
    }
    let outcome = with_programs(flight_recorder, |path, _| {
        as_user(STRANGER, || {
            let mut pause = vec![0; 100];
            let len = Control::Pause.encode(&mut pause).unwrap();
            let questions =
                [Question::Status, Question::Snapshot(Asker::Program), Question::Snapshot(Asker::Command)];
            let mut messages: Vec<Vec<u8>> = questions.iter().map(|one| one.encode().to_vec()).collect();
            messages.push(pause[..len].to_vec());
            for message in messages {
                let asker = Program::connect(path);
                asker.send(&message);
                assert!(asker.is_dropped());
            }
            assert!(try_connect(&control_socket(path)).is_none());
        });
    });
    assert_eq!(outcome.summary.snapshots.unwrap().len(), 0);
}

#[test]
fn the_number_of_snapshots_is_limited() {
    let outcome = with_programs(flight_recorder, |path, _| {
        let begin = Instant::now();
        for _ in 0..200 {
            let asker = Program::connect(&control_socket(path));
            asker.send(&Question::Snapshot(Asker::Program).encode());
            asker.answer();
        }
        eprintln!("200 questions took {:?}", begin.elapsed());
    });
    let taken = outcome.summary.snapshots.unwrap().len();
    assert!((32..100).contains(&taken), "{taken} snapshots");
}

/// Describes classes until no more are taken.
fn use_up_classes(path: &Path) -> usize {
    let program = Program::connect(path);
    program.hello(Hello { copy: 7, ..hello() });
    let mut taken = 0;
    for first in (0..70_000).step_by(1000) {
        let names: Vec<String> = (first..first + 1000).map(|number| format!("evil:c{number}")).collect();
        let mut buffer = vec![0; MAX_MESSAGE];
        let mut writer = ClassesWriter::new(&mut buffer).unwrap();
        names.iter().for_each(|name| writer.push(&class(name)).unwrap());
        assert_eq!(usize::from(writer.count()), names.len());
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        taken += program.classes(&names).iter().filter(|(id, _)| *id != 0).count();
    }
    taken
}

#[test]
fn another_user_does_not_use_up_classes_and_notes() {
    if !is_root() {
        return;
    }
    let outcome = with_programs(
        // What is off costs no metadata.
        |options| options.rules.push(tracewing_rules::Rule::enable(["good:*"])),
        |path, _| {
            let taken = as_user(STRANGER, || {
                // Notes: of each refused class one.
                let program = Program::connect(path);
                program.hello(Hello { copy: 6, ..hello() });
                for number in 0..300 {
                    let name = format!("no\"name{number}");
                    let mut buffer = vec![0; MAX_MESSAGE];
                    let mut writer = ClassesWriter::new(&mut buffer).unwrap();
                    writer.push(&class(&name)).unwrap();
                    program.send(writer.finish());
                    program.answer();
                }
                use_up_classes(path)
            });
            assert!((1000..10_000).contains(&taken), "{taken} classes");
            owner_joins(path, "good:x");
            // What goes wrong with a program of the owner is still noted.
            in_child(|| {
                let old = Program::connect(path);
                old.hello(Hello { version: 1, ..hello() }).0 == Answer::Refused
            })();
        },
    );
    let notes = notes(&outcome);
    assert!(notes.contains("version 1 of the protocol"), "{notes}");
    assert!(notes.contains("number of events unknown"), "{notes}");
    assert!(outcome.summary.notes.len() < 60, "{notes}");
}

#[test]
fn a_process_gets_so_many_buffers_and_others_get_theirs() {
    if !is_root() {
        return;
    }
    let join = |path: &Path, copy| {
        let program = Program::connect(path);
        let (answer, file) = program.hello(Hello { copy, ..hello() });
        matches!(answer, Answer::Welcome { .. }).then_some((program, file))
    };
    let outcome = with_programs(
        |_| {},
        |path, _| {
            as_user(STRANGER, || {
                let held: Vec<_> = (0..150).map_while(|copy| join(path, copy)).collect();
                assert_eq!(held.len(), 64);
                in_child(|| join(path, 0).is_some())();
                drop(held);
                // They are given back once the kernel says that no process can write to them.
                let begin = Instant::now();
                while join(path, 1).is_none() {
                    assert!(begin.elapsed() < Duration::from_secs(60), "none was given back");
                    thread::sleep(Duration::from_millis(20));
                }
            });
            in_child(|| join(path, 0).is_some())();
        },
    );
    let notes = notes(&outcome);
    assert!(notes.contains("has the maximum number of buffers"), "{notes}");
}

#[test]
fn silent_connections_keep_no_program_waiting() {
    if !is_root() {
        return;
    }
    with_programs(
        |_| {},
        |path, _| {
            let held = as_user(STRANGER, || (0..700).map(|_| Program::connect(path)).collect::<Vec<_>>());
            let took = owner_joins(path, "good:x");
            assert!(took < Duration::from_secs(60), "{took:?}");
            // Most of them were turned away, so that descriptors are left.
            let alive = held.iter().filter(|held| send(&held.0, b"x", SendFlags::NOSIGNAL).is_ok()).count();
            assert!(alive <= 64, "{alive} are kept");
        },
    );
}

#[test]
fn a_flood_of_connections_is_taken_at_a_bounded_rate() {
    const TIME: Duration = Duration::from_secs(3);
    // What waits, what is taken at once, and what a second, with some to spare.
    let most = |time: Duration| 4096.0 + 1024.0 + 1.5 * 2000.0 * time.as_secs_f64();
    if !is_root() {
        return;
    }
    with_programs(
        |_| {},
        |path, _| {
            let (connected, time) = as_user(STRANGER, || {
                let (begin, address) = (Instant::now(), SocketAddrUnix::new(path).unwrap());
                let mut connected = 0_u32;
                while begin.elapsed() < TIME {
                    let flags = SocketFlags::NONBLOCK;
                    let socket =
                        socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
                    connected += u32::from(connect(&socket, &address).is_ok());
                }
                (connected, begin.elapsed())
            });
            assert!(f64::from(connected) < most(time), "{connected} connections in {time:?}");
            let took = owner_joins(path, "good:x");
            assert!(took < Duration::from_secs(60), "{took:?}");
        },
    );
}

#[test]
fn a_program_that_is_not_answered_before_the_end_is_noted() {
    let outcome = with_programs(
        |_| {},
        |path, _| {
            let address = SocketAddrUnix::new(path).unwrap();
            let flood = || {
                let flags = SocketFlags::NONBLOCK;
                let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
                connect(&socket, &address)
            };
            // More than are taken at once: the recorder lets them wait.
            let begin = Instant::now();
            let mut is_full = false;
            while !is_full && begin.elapsed() < Duration::from_secs(20) {
                is_full = flood().is_err();
            }
            assert!(is_full);
            Program::connect(path).send(&hello().encode());
        },
    );
    assert!(notes(&outcome).contains(": unknown from "), "{}", notes(&outcome));
}

#[test]
fn no_region_poisons_the_loss_total() {
    let outcome = with_programs(
        |_| {},
        |path, _| {
            let program = Program::connect(path);
            let (_, file) = program.hello(hello());
            program.classes(&["a:x"]);
            let region = fs::File::from(file.unwrap());
            // After the header's page come the words of the first CPU.
            let at = 4096 + offset_of!(CpuControl, lost) as u64;
            region.write_all_at(&u64::MAX.to_le_bytes(), at).unwrap();
            thread::sleep(Duration::from_millis(500));
            region.write_all_at(&(u64::MAX / 2 - 7).to_le_bytes(), at).unwrap();
            thread::sleep(Duration::from_millis(500));
        },
    );
    let summary = &outcome.summary;
    assert_eq!(summary.lost, 0, "{:?}", summary.losses);
    assert!(notes(&outcome).contains("number of lost events unknown"), "{}", notes(&outcome));
}

/// Gives a file another size, and waits until it has its own again.
fn resize(file: &fs::File, change: impl FnOnce(u64) -> u64) {
    let size = file.metadata().unwrap().len();
    file.set_len(change(size)).unwrap();
    let begin = Instant::now();
    while file.metadata().unwrap().len() != size {
        assert!(begin.elapsed() < Duration::from_secs(60), "it keeps its size");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn buffers_in_files_that_a_program_resizes_end_no_recorder_and_fill_no_disk() {
    for is_flight_recorder in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let outcome = with_programs(
            |options| {
                options.buffers_in = Some(folder.path().join("buffers"));
                if is_flight_recorder {
                    flight_recorder(options);
                }
            },
            |path, _| {
                let join_and_resize = || {
                    let program = Program::connect(path);
                    let (_, file) = program.hello(hello());
                    program.classes(&["a:x"]);
                    let file = fs::File::from(file.unwrap());
                    resize(&file, |size| size + (1 << 30));
                    resize(&file, |_| 0);
                };
                if is_root() {
                    as_user(STRANGER, join_and_resize)
                } else {
                    join_and_resize()
                }
                owner_joins(path, "good:x");
            },
        );
        assert!(notes(&outcome).contains("number of lost events unknown"), "{}", notes(&outcome));
    }
}

/// The recording into this folder, as its recorder describes it.
fn running(trace: &Path) -> Running {
    Recordings::find().running.into_iter().find(|one| one.output == trace).unwrap()
}

/// A process that joins and ends, with this version of the protocol.
fn joins_and_ends(path: &Path, version: u32) {
    in_child(|| {
        let program = Program::connect(path);
        match program.hello(Hello { version, ..hello() }).0 {
            Answer::Welcome { .. } => version == VERSION && program.classes(&["a:x"]).len() == 1,
            _ => version != VERSION,
        }
    })();
}

#[test]
fn damages_of_many_processes_are_noted_when_they_are_found_and_bounded() {
    if !is_root() {
        return;
    }
    let mut seen = Notes::default();
    let outcome = with_programs_and_notes(
        |_| {},
        |path, trace| {
            as_user(STRANGER, || {
                for _ in 0..30 {
                    in_child(|| {
                        let program = Program::connect(path);
                        let (_, file) = program.hello(Hello { can_publish: false, ..hello() });
                        program.classes(&["a:x"]);
                        let at = 4096 + offset_of!(CpuControl, lost) as u64;
                        fs::File::from(file.unwrap()).write_all_at(&u64::MAX.to_le_bytes(), at).is_ok()
                    })();
                }
            });
            let begin = Instant::now();
            while running(trace).figures.left_out.notes < 10 {
                assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", running(trace).figures);
                thread::sleep(Duration::from_millis(20));
            }
        },
        &mut seen,
    );
    let count = |lines: &[String]| lines.iter().filter(|line| line.contains("loss counters")).count();
    assert_eq!((count(&seen.0), count(&outcome.summary.notes)), (20, 20), "{:?}", seen.0);
    let said = notes(&outcome);
    assert!(said.contains("processes cause more notes than they may"), "{said}");
    assert!(said.ends_with("10 more notes are left out"), "{said}");
}

#[test]
fn a_rotated_recording_forgets_programs_and_notes_that_complete_archives_have() {
    let mut seen = Notes::default();
    let mut description = Value::Null;
    let outcome = with_programs_and_notes(
        |options| options.listed = Listed { programs: 20, notes: 10 },
        |path, trace| {
            let join = |count: usize| (0..count).for_each(|_| joins_and_ends(path, VERSION));
            for count in [12, 12] {
                join(count);
                running(trace).rotate().unwrap();
            }
            join(30);
            (0..12).for_each(|_| joins_and_ends(path, 1));
            let LeftOut { notes, programs } = running(trace).figures.left_out;
            assert!((10..=14).contains(&programs) && (2..=6).contains(&notes), "{programs}, {notes}");
            running(trace).rotate().unwrap();
            joins_and_ends(path, VERSION);
            joins_and_ends(path, 1);
            let after = running(trace).figures.left_out;
            assert_eq!(after, LeftOut { notes, programs }, "there is room again");
            let text = fs::read_to_string(trace.join("tracewing.json")).unwrap();
            description = serde_json::from_str(&text).unwrap();
        },
        &mut seen,
    );
    let said = notes(&outcome);
    let (_, rest) = said.split_once("programs have joined ").unwrap_or_else(|| panic!("{said}"));
    let left_out: usize = rest.split(' ').next().unwrap().parse().unwrap();
    assert_eq!(outcome.summary.processes + left_out, 55);
    let listed = description["processes"].as_array().unwrap().len();
    assert_eq!(listed + description["forgotten_processes"].as_u64().unwrap() as usize + left_out, 54);
    assert!(listed <= 4, "{description}");
    assert!(outcome.summary.notes.len() <= 10, "{said}");
    let all = seen.0.join("\n");
    assert!(all.contains("there are 10 notes") && all.contains("there are more programs"), "{all}");
    // That of the last process is not left out.
    assert!(seen.0.iter().filter(|line| line.contains("version 1 of")).count() > 7, "{all}");
}
