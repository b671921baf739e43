//! Recordings of a shell, with programs played by the test: honest ones, silent ones, and ones that send
//! rubbish.

mod common;

use std::fs;
use std::thread;

use common::{Notes, Program, class, hello, options, with_programs};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{Shutdown, shutdown};
use tracewing_abi::message::{Answer, ClassesWriter, Hello, MAX_MESSAGE};
use tracewing_abi::region::{Geometry, VERSION};
use tracewing_consumer::description::State;
use tracewing_rules::Rule;
use tracewing_session::options::Sharing;
use tracewing_session::{Error, Options, record};

#[test]
fn programs_join_and_get_ids() {
    let outcome = with_programs(
        |options| options.rules.push(Rule::enable(["a:*"])),
        |path, _| {
            let program = Program::connect(path);
            let (answer, file) = program.hello(hello());
            let size = fs::File::from(file.unwrap()).metadata().unwrap().len();
            assert!(matches!(answer, Answer::Welcome { size: reported, .. } if reported == size));
            assert_eq!(program.classes(&["a:x", "b:x", "a:y"]), [(1, true), (2, false), (3, true)]);
            let other = Program::connect(path);
            assert!(matches!(other.hello(hello()).0, Answer::Welcome { .. }));
            assert_eq!(other.classes(&["a:y", "a:z"]), [(3, true), (4, true)]);
        },
    );
    assert_eq!((outcome.exit_status, outcome.summary.processes), (0, 1));
    assert_eq!(outcome.summary.state, State::Complete);
}

#[test]
fn invalid_messages_and_silence_harm_no_program() {
    let outcome = with_programs(
        |_| {},
        |path, _| {
            let silent: Vec<_> = (0..20).map(|_| Program::connect(path)).collect();
            let halfway = Program::connect(path);
            halfway.hello(hello());
            for message in [&b"GET / HTTP/1.1\r\n"[..], &[0; 1], &[0xff; 4096], b"twHi"] {
                let rubbish = Program::connect(path);
                rubbish.send(message);
                assert!(rubbish.is_dropped());
            }
            let late_rubbish = Program::connect(path);
            late_rubbish.hello(hello());
            late_rubbish.send(b"twCl\xff\xff");
            assert!(late_rubbish.is_dropped());
            let too_long = Program::connect(path);
            too_long.send(&vec![0; MAX_MESSAGE + 100]);
            assert!(too_long.is_dropped());
            let old = Program::connect(path);
            assert_eq!(old.hello(Hello { version: VERSION + 1, ..hello() }).0, Answer::Refused);

            let honest = Program::connect(path);
            honest.hello(hello());
            assert_eq!(honest.classes(&["a:b"]), [(1, true)]);
            drop(silent);
        },
    );
    assert_eq!(outcome.exit_status, 0);
    // The program that is too new, and the one that went no further than its greeting.
    let reported = |part: &str| outcome.summary.notes.iter().any(|note| note.contains(part));
    assert!(reported("version") && reported("takes part"), "{:?}", outcome.summary.notes);
    assert_eq!(outcome.summary.notes.len(), 2, "{:?}", outcome.summary.notes);
}

#[test]
fn programs_that_did_not_wait_for_the_recorder_are_named() {
    for is_welcome in [false, true] {
        let outcome = with_programs(
            |_| {},
            |path, _| {
                let program = Program::connect(path);
                if is_welcome {
                    program.hello(hello());
                }
                // As if it had given up, but for that it lives.
                shutdown(&program.0, Shutdown::Read).unwrap();
                let mut buffer = [0; MAX_MESSAGE];
                let mut classes = ClassesWriter::new(&mut buffer).unwrap();
                classes.push(&class("a:b")).unwrap();
                let message = if is_welcome { classes.finish().to_vec() } else { hello().encode().to_vec() };
                program.send(&message);
                // Nothing but the recorder's hang-up is waited for.
                poll(&mut [PollFd::new(&program.0, PollFlags::empty())], None).unwrap();
            },
        );
        assert_eq!(outcome.summary.processes, usize::from(is_welcome));
        let notes = &outcome.summary.notes;
        assert!(notes.len() == 1 && notes[0].contains(": unknown from "), "{notes:?}");
    }
}

#[test]
fn two_thousand_programs_join() {
    let outcome = with_programs(
        |_| {},
        |path, _| {
            thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        for _ in 0..500 {
                            let program = Program::connect(path);
                            assert!(matches!(program.hello(hello()).0, Answer::Welcome { .. }));
                            assert_eq!(program.classes(&["a:b"]), [(1, true)]);
                        }
                    });
                }
            });
        },
    );
    assert_eq!((outcome.exit_status, outcome.summary.processes), (0, 1));
}

#[test]
fn a_program_that_cannot_share_buffers_gets_its_own() {
    let size = |adapt: fn(&mut Options), hellos: [Hello; 2]| {
        let same = std::sync::Mutex::new(None);
        with_programs(adapt, |path, _| {
            let inode = |hello| {
                use std::os::unix::fs::MetadataExt;
                let (_, file) = Program::connect(path).hello(hello);
                let file = fs::File::from(file.unwrap());
                (file.metadata().unwrap().ino(), file)
            };
            let files = hellos.map(inode);
            *same.lock().unwrap() = Some(files[0].0 == files[1].0);
        });
        same.into_inner().unwrap().unwrap()
    };
    let publish = hello();
    let smp = Hello { can_publish: false, ..publish };
    for sharing in [Sharing::Program, Sharing::User, Sharing::Process] {
        let adapt = match sharing {
            Sharing::Program => |options: &mut Options| options.sharing = Sharing::Program,
            Sharing::User => |options: &mut Options| options.sharing = Sharing::User,
            Sharing::Process => |options: &mut Options| options.sharing = Sharing::Process,
        };
        // Root can become another user.
        let is_root = rustix::process::geteuid().is_root();
        assert_eq!(size(adapt, [publish, publish]), sharing == Sharing::User && !is_root, "{sharing:?}");
        assert!(!size(adapt, [publish, smp]) && !size(adapt, [smp, smp]), "{sharing:?}");
    }
}

#[test]
fn exit_status_is_the_commands() {
    for (script, status) in [("exit 7", 7), ("true", 0), ("kill -9 $$", 137)] {
        let folder = tempfile::tempdir().unwrap();
        let outcome = record(&options(folder.path(), script), &mut Notes::default()).unwrap();
        assert_eq!(outcome.exit_status, status, "{script}");
    }
}

#[test]
fn what_cannot_run_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("broken");
    fs::write(&broken, "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(&broken, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for (command, status) in [("/no/such/file", 127), ("/", 126), (broken.to_str().unwrap(), 127)] {
        let mut options = options(folder.path(), "");
        options.command = vec![command.into()];
        let error = record(&options, &mut Notes::default()).unwrap_err();
        assert!(matches!(error, Error::Command { .. }), "{error}");
        assert_eq!(error.exit_status(), status, "{error}");
        assert!(!options.output.exists());
    }
}

#[test]
fn a_geometry_too_large_for_the_machine_is_the_programs_loss_only() {
    let outcome = with_programs(
        |options| options.geometry = Geometry::new(8192, 256, 1 << 30).unwrap(),
        |path, _| assert_eq!(Program::connect(path).hello(hello()).0, Answer::Refused),
    );
    assert_eq!(outcome.exit_status, 0);
    assert!(outcome.summary.notes[0].contains("shared memory"), "{:?}", outcome.summary.notes);
}
