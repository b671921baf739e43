//! Recordings of a shell, with programs played by the test: honest ones, silent ones, and ones that send rubbish.

use std::fs;
use std::io::{IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, SocketAddrUnix,
    SocketType, connect, recv, recvmsg, send, socket,
};
use tracewing_abi::message::{Answer, ClassesWriter, Hello, MAX_MESSAGE, decode_ids};
use tracewing_abi::region::{Geometry, VERSION};
use tracewing_abi::schema::{Class, Level};
use tracewing_consumer::folder::State;
use tracewing_session::options::Sharing;
use tracewing_session::{Error, Observer, Options, Outcome, record};

#[derive(Default)]
struct Notes(Vec<String>);

impl Observer for Notes {
    fn note(&mut self, line: &str) {
        self.0.push(line.to_owned());
    }
}

fn options(folder: &Path, script: &str) -> Options {
    let mut options = Options::new(folder.join("trace"), ["sh", "-c", script]);
    options.kernel_events = None;
    options
}

/// Records a shell that tells the socket's path and lives until `programs` is done with it.
fn with_programs(adapt: impl FnOnce(&mut Options), programs: impl FnOnce(&Path) + Send) -> Outcome {
    let folder = tempfile::tempdir().unwrap();
    let (told, done) = (folder.path().join("told"), folder.path().join("done"));
    let script = format!(
        "printf %s \"$TRACEWING_SOCKET\" > {0}.new; mv {0}.new {0}; until test -e {1}; do sleep 0.01; done",
        told.display(),
        done.display()
    );
    let mut options = options(folder.path(), &script);
    adapt(&mut options);
    thread::scope(|scope| {
        scope.spawn(|| {
            let _finally = Finally(&done);
            let begin = Instant::now();
            while !told.exists() {
                assert!(begin.elapsed() < Duration::from_secs(30), "the shell did not start");
                thread::sleep(Duration::from_millis(5));
            }
            programs(&PathBuf::from(fs::read_to_string(&told).unwrap()));
        });
        record(&options, &mut Notes::default()).unwrap()
    })
}

/// Lets the shell end also when the programs' part of a test fails.
struct Finally<'a>(&'a Path);

impl Drop for Finally<'_> {
    fn drop(&mut self) {
        fs::write(self.0, "").unwrap();
    }
}

struct Program(OwnedFd);

impl Program {
    fn connect(path: &Path) -> Self {
        let socket = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
        connect(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
        Self(socket)
    }

    fn send(&self, message: &[u8]) {
        send(&self.0, message, SendFlags::NOSIGNAL).unwrap();
    }

    fn answer(&self) -> Vec<u8> {
        let mut buffer = vec![0; MAX_MESSAGE];
        let (len, _) = recv(&self.0, &mut buffer, RecvFlags::empty()).unwrap();
        buffer.truncate(len);
        buffer
    }

    /// The recorder has closed the connection.
    fn is_dropped(&self) -> bool {
        let mut byte = [0];
        matches!(recv(&self.0, &mut byte, RecvFlags::empty()), Ok((0, _)) | Err(_))
    }

    fn hello(&self, hello: Hello) -> (Answer, Option<OwnedFd>) {
        self.send(&hello.encode());
        let mut answer = [0; Answer::SIZE];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC;
        recvmsg(&self.0, &mut [IoSliceMut::new(&mut answer)], &mut control, flags).unwrap();
        let file = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut files) => files.next(),
            _ => None,
        });
        (Answer::decode(&answer).unwrap(), file)
    }

    fn classes(&self, names: &[&str]) -> Vec<u16> {
        let mut buffer = vec![0; MAX_MESSAGE];
        let mut writer = ClassesWriter::new(&mut buffer).unwrap();
        for name in names {
            let class = Class {
                name,
                level: Level::Info,
                description: "",
                print: "",
                file: "",
                line: 0,
                fields: &[],
            };
            writer.push(&class).unwrap();
        }
        self.send(writer.finish());
        decode_ids(&self.answer()).unwrap().collect()
    }
}

fn hello() -> Hello {
    Hello { version: VERSION, pid: std::process::id(), can_publish: true, rejoin: false }
}

#[test]
fn programs_join_and_get_ids() {
    let outcome = with_programs(
        |options| options.events = vec!["a:*".into()],
        |path| {
            let program = Program::connect(path);
            let (answer, file) = program.hello(hello());
            let size = fs::File::from(file.unwrap()).metadata().unwrap().len();
            assert!(matches!(answer, Answer::Welcome { size: told, .. } if told == size));
            assert_eq!(program.classes(&["a:x", "b:x", "a:y"]), [1, 0, 2]);
            let other = Program::connect(path);
            assert!(matches!(other.hello(hello()).0, Answer::Welcome { .. }));
            assert_eq!(other.classes(&["a:y", "a:z"]), [2, 3]);
        },
    );
    assert_eq!((outcome.exit_status, outcome.summary.processes), (0, 2));
    assert_eq!(outcome.summary.state, State::Complete);
}

#[test]
fn rubbish_and_silence_harm_nobody() {
    let outcome = with_programs(
        |_| {},
        |path| {
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
            assert_eq!(honest.classes(&["a:b"]), [1]);
            drop(silent);
        },
    );
    assert_eq!(outcome.exit_status, 0);
    assert_eq!(outcome.summary.notes.len(), 1, "{:?}", outcome.summary.notes);
    assert!(outcome.summary.notes[0].contains("version"), "{:?}", outcome.summary.notes);
}

#[test]
fn two_thousand_programs_join() {
    let outcome = with_programs(
        |_| {},
        |path| {
            thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        for _ in 0..500 {
                            let program = Program::connect(path);
                            assert!(matches!(program.hello(hello()).0, Answer::Welcome { .. }));
                            assert_eq!(program.classes(&["a:b"]), [1]);
                        }
                    });
                }
            });
        },
    );
    assert_eq!((outcome.exit_status, outcome.summary.processes), (0, 2000));
}

#[test]
fn who_cannot_share_buffers_gets_its_own() {
    let size = |adapt: fn(&mut Options), hellos: [Hello; 2]| {
        let same = std::sync::Mutex::new(None);
        with_programs(adapt, |path| {
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
    assert!(size(|_| {}, [publish, publish]));
    assert!(!size(|_| {}, [publish, smp]));
    assert!(!size(|_| {}, [smp, smp]));
    // One process twice: two copies of the library in it.
    assert!(size(|options| options.sharing = Sharing::Process, [publish, publish]));
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
fn the_command_finds_signals_environment_and_files_as_it_would_without_us() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let script = format!(
        "{{ grep -E 'Sig(Blk|Ign)' /proc/self/status; ulimit -n; ls /proc/self/fd | wc -l; }} > {}",
        out.display()
    );
    let read = || {
        let mut text = String::new();
        fs::File::open(&out).unwrap().read_to_string(&mut text).unwrap();
        // The C library ignores two real-time signals of its own as it likes.
        let own = |line: &str| {
            let ignored = line.strip_prefix("SigIgn:\t").and_then(|mask| u64::from_str_radix(mask, 16).ok());
            ignored.map_or_else(|| line.to_owned(), |mask| format!("{:x}", mask & !(3 << 31)))
        };
        text.lines().map(own).collect::<Vec<_>>()
    };
    let status = std::process::Command::new("sh").args(["-c", &script]).status().unwrap();
    assert!(status.success());
    let without = read();
    record(&options(folder.path(), &script), &mut Notes::default()).unwrap();
    assert_eq!(read(), without);
}

#[test]
fn a_geometry_too_large_for_the_machine_is_the_programs_loss_only() {
    let outcome = with_programs(
        |options| options.geometry = Geometry::new(8192, 256, 1 << 30).unwrap(),
        |path| assert_eq!(Program::connect(path).hello(hello()).0, Answer::Refused),
    );
    assert_eq!(outcome.exit_status, 0);
    assert!(outcome.summary.notes[0].contains("shared memory"), "{:?}", outcome.summary.notes);
}
