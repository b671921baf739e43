//! A recording of a shell that lives as long as the test wants, and programs played by the test.

#![allow(dead_code, reason = "each test file uses its part")]

use std::fs;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, SocketAddrUnix,
    SocketType, connect, recv, recvmsg, send, socket,
};
use tracewing_abi::message::grant::decode_grants;
use tracewing_abi::message::{Answer, ClassesWriter, Hello, Joining, MAX_MESSAGE};
use tracewing_abi::region::VERSION;
use tracewing_abi::schema::Class;
use tracewing_session::{Observer, Options, Outcome, record};

#[derive(Default)]
pub struct Notes(pub Vec<String>);

impl Observer for Notes {
    fn note(&mut self, line: &str) {
        self.0.push(line.to_owned());
    }
}

pub fn options(folder: &Path, script: &str) -> Options {
    let mut options = Options::new(folder.join("trace"), ["sh", "-c", script]);
    options.kernel_events = None;
    options
}

/// Records a shell that prints the socket's path and lives until `programs` is done with it and the trace
/// folder.
pub fn with_programs(
    adapt: impl FnOnce(&mut Options),
    programs: impl FnOnce(&Path, &Path) + Send,
) -> Outcome {
    with_programs_and_notes(adapt, programs, &mut Notes::default())
}

/// As [`with_programs`], where what the recorder says is of interest.
pub fn with_programs_and_notes(
    adapt: impl FnOnce(&mut Options),
    programs: impl FnOnce(&Path, &Path) + Send,
    notes: &mut Notes,
) -> Outcome {
    let folder = tempfile::tempdir().unwrap();
    let (reported, done) = (folder.path().join("reported"), folder.path().join("done"));
    let script = format!(
        "printf %s \"$TRACEWING_SOCKET\" > {0}.new; mv {0}.new {0}; until test -e {1}; do sleep 0.01; done",
        reported.display(),
        done.display()
    );
    let mut options = options(folder.path(), &script);
    adapt(&mut options);
    thread::scope(|scope| {
        scope.spawn(|| {
            let _finally = Finally(&done);
            let begin = Instant::now();
            while !reported.exists() {
                assert!(begin.elapsed() < Duration::from_secs(60), "the shell did not start");
                thread::sleep(Duration::from_millis(5));
            }
            programs(&PathBuf::from(fs::read_to_string(&reported).unwrap()), &folder.path().join("trace"));
        });
        record(&options, notes).unwrap()
    })
}

/// Lets the shell end also when the programs' part of a test fails.
struct Finally<'a>(&'a Path);

impl Drop for Finally<'_> {
    fn drop(&mut self) {
        fs::write(self.0, "").unwrap();
    }
}

/// Where the recorder that listens at a path takes questions and changes.
pub fn control_socket(path: &Path) -> PathBuf {
    path.with_file_name(tracewing_abi::CONTROL_SOCKET)
}

pub struct Program(pub OwnedFd);

impl Program {
    pub fn connect(path: &Path) -> Self {
        let socket = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
        connect(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
        Self(socket)
    }

    pub fn send(&self, message: &[u8]) {
        send(&self.0, message, SendFlags::NOSIGNAL).unwrap();
    }

    pub fn answer(&self) -> Vec<u8> {
        let mut buffer = vec![0; MAX_MESSAGE];
        let (len, _) = recv(&self.0, &mut buffer, RecvFlags::empty()).unwrap();
        buffer.truncate(len);
        buffer
    }

    /// The recorder has closed the connection.
    pub fn is_dropped(&self) -> bool {
        let mut byte = [0];
        matches!(recv(&self.0, &mut byte, RecvFlags::empty()), Ok((0, _)) | Err(_))
    }

    pub fn hello(&self, hello: Hello) -> (Answer, Option<OwnedFd>) {
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

    /// Describes classes of these names, and gives their ids and whether they are on.
    pub fn classes(&self, names: &[&str]) -> Vec<(u16, bool)> {
        self.describe(&names.iter().map(|name| class(name)).collect::<Vec<_>>())
    }

    pub fn describe(&self, classes: &[Class<'_>]) -> Vec<(u16, bool)> {
        let mut buffer = vec![0; MAX_MESSAGE];
        let mut writer = ClassesWriter::new(&mut buffer).unwrap();
        classes.iter().for_each(|class| writer.push(class).unwrap());
        self.send(writer.finish());
        let mut grants = Vec::new();
        while grants.len() < classes.len() {
            let answer = self.answer();
            grants.extend(
                decode_grants(&answer).unwrap().map(|grant| grant.unwrap()).map(|one| (one.id, one.on)),
            );
        }
        grants
    }
}

pub fn class(name: &str) -> Class<'_> {
    Class::named(name)
}

pub fn hello() -> Hello {
    Hello {
        version: VERSION,
        pid: std::process::id(),
        can_publish: true,
        joining: Joining::Program,
        copy: 5,
        waits: [0, u64::MAX],
    }
}

/// Runs something in a forked child.
pub fn in_child(work: impl FnOnce() -> bool) -> impl FnOnce() {
    // SAFETY: the child only uses memory of its own and system calls; the C library's allocator survives
    // forks.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        let ok = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or(false);
        // SAFETY: ends the child, without the test harness's exit handlers.
        unsafe { libc::_exit(i32::from(!ok)) };
    }
    move || {
        let mut status = 0;
        // SAFETY: a pointer to a live number.
        unsafe { libc::waitpid(pid, &mut status, 0) };
        assert_eq!(status, 0, "the child has failed");
    }
}
