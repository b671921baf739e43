//! Recorders that other users forge, for root's commands to believe, and processes that are not of one user.

mod forger;
#[path = "../harness/mod.rs"]
mod harness;

use forger::*;
use harness::{Printed, RunExt, run};
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept, bind, connect,
    listen, recv, send, socket_with,
};
use tracewing_abi::message::snapshot::{Figures, LARGEST_ANSWER, Question, Status, Taken};
use tracewing_abi::message::{Answer, Hello, Joining};
use tracewing_abi::region::VERSION;
use tracewing_testing::{NOBODY, STRANGER, become_user, is_root};

#[test]
fn roots_commands_do_not_ask_recorders_of_other_users() {
    if !is_root() {
        return;
    }
    let (outputs, asked) = with_a_forger("a", std::process::id(), || {
        [
            run(&["snapshot", "forged-server"]),
            run(&["pause", "forged-server"]),
            run(&["rules", "forged-server"]),
        ]
    });
    for output in outputs {
        assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
    }
    assert_eq!(asked, 0);
}

#[test]
fn a_recorder_is_the_process_that_it_says_it_is() {
    if !is_root() {
        return;
    }
    let uid = STRANGER.to_string();
    let snapshot = || run(&["snapshot", "forged-server", "--user", &uid]);
    let (output, _) = with_a_forger("b", 1, snapshot);
    assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
    // The process that the user names is asked, and may answer anything about itself.
    let (output, asked) = with_a_forger("c", std::process::id(), snapshot);
    assert_eq!(output.text(), "/forged\n");
    assert!(asked >= 2);
}

/// The address to which programs connect is in their environment, which survives `su` and the recorder.
#[test]
fn programs_of_root_join_no_recorder_of_another_user() {
    if !is_root() {
        return;
    }
    let options = ["-p", "tracewing", "--example", "tasks"];
    let program = tracewing_testing::build(env!("CARGO_TARGET_TMPDIR"), &options).join("examples/tasks");
    let forge = |name: &'static str, user: Option<u32>| {
        let heard = AtomicUsize::new(0);
        thread::scope(|scope| {
            let (to_test, from_forger) = std::sync::mpsc::channel();
            let heard = &heard;
            scope.spawn(move || {
                user.into_iter().for_each(become_user);
                let forged = Forged::new(name, 16);
                to_test.send(forged.folder.join("socket")).unwrap();
                let connection = accept(&forged.sockets[0]).unwrap();
                let (_, len) = recv(&connection, &mut [0; 100], RecvFlags::empty()).unwrap();
                heard.store(len, Relaxed);
            });
            let socket = from_forger.recv().unwrap();
            let run = Command::new(&program).arg("leaf").env("TRACEWING_SOCKET", socket).status();
            assert!(run.unwrap().success());
        });
        heard.into_inner()
    };
    assert_ne!(forge("own", None), 0, "its own user's is asked");
    for user in [STRANGER, NOBODY] {
        assert_eq!(forge("foreign", Some(user)), 0, "the recorder of {user} has heard something");
    }
}

#[test]
fn only_root_may_name_a_user() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let mut command = as_stranger(&program(folder.path()));
    let output = command.args(["snapshot", "--user", "0"]).ran();
    let text = output.notes();
    assert!(!output.status.success() && text.contains("only root"), "{text}");
}

#[test]
fn a_recorder_that_does_not_answer_is_not_waited_for() {
    if !is_root() {
        return;
    }
    let (hold, ready) = (AtomicBool::new(true), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            become_user(STRANGER);
            let (silent, full) = (Forged::new("d", 16), Forged::new("e", 0));
            // One connection waits to be accepted, and there is no room for another.
            let waiting: Vec<OwnedFd> = (0..2).map(|_| socket()).collect();
            for socket in &waiting {
                rustix::io::ioctl_fionbio(socket, true).unwrap();
                let _ = connect(socket, &SocketAddrUnix::new(full.folder.join("control")).unwrap());
            }
            ready.store(true, Release); // with the wait below
            while hold.load(Relaxed) {
                thread::sleep(Duration::from_millis(5));
            }
            drop((silent, full));
        });
        while !ready.load(Acquire) {
            thread::yield_now();
        }
        let begin = Instant::now();
        let output = run(&["snapshot", "--user", &STRANGER.to_string()]);
        let took = begin.elapsed();
        hold.store(false, Relaxed);
        let text = output.notes();
        assert!(!output.status.success() && text.contains("do not answer"), "{text}");
        assert!(took < Duration::from_secs(60), "{took:?}");
    });
}

/// A copy of the program where other users can execute it.
fn program(folder: &Path) -> PathBuf {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
    let copy = folder.join("tracewing");
    tracewing_testing::copy_program(harness::TRACEWING, &copy);
    copy
}

fn as_stranger(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.uid(STRANGER).gid(STRANGER).env_remove("XDG_RUNTIME_DIR").current_dir("/tmp");
    command
}

/// What the copy of the library with this number says first.
fn hello(copy: u64) -> Hello {
    Hello {
        version: VERSION,
        pid: 1,
        can_publish: true,
        joining: Joining::Program,
        copy,
        waits: [0, u64::MAX],
    }
}

/// Says hello to a recorder from a process with these real, effective and saved users: whether it is welcome.
fn is_welcome(path: &Path, users: [u32; 3]) -> bool {
    let address = SocketAddrUnix::new(path).unwrap();
    let hello = hello(1).encode();
    // SAFETY: the child makes system calls only, on what was made before the fork, and ends.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            let [real, effective, saved] = users;
            let mut answer = [0; Answer::SIZE];
            let is_welcome = libc::syscall(libc::SYS_setresuid, real, effective, saved) == 0
                && socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                    .and_then(|socket| {
                        connect(&socket, &address)?;
                        send(&socket, &hello, SendFlags::NOSIGNAL)?;
                        recv(&socket, &mut answer, RecvFlags::empty())
                    })
                    .is_ok_and(|_| matches!(Answer::decode(&answer), Ok(Answer::Welcome { .. })));
            libc::_exit(is_welcome.into());
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
        libc::WEXITSTATUS(status) == 1
    }
}

/// Records as this command does until `work` is done with the path of its socket.
fn while_recording<T>(recorder: &mut Command, folder: &Path, work: impl FnOnce(&Path) -> T) -> T {
    let (reported, done) = (folder.join("reported"), folder.join("done"));
    let script = format!(
        "printf %s \"$TRACEWING_SOCKET\" > {0}.new; mv {0}.new {0}; until test -e {1}; do sleep 0.01; done",
        reported.display(),
        done.display()
    );
    recorder
        .args(["record", "--no-kernel", "-o"])
        .arg(folder.join("trace"))
        .args(["--", "sh", "-c", &script]);
    let mut recorder = recorder.stderr(Stdio::null()).spawn().unwrap();
    let begin = Instant::now();
    while !reported.exists() {
        assert!(begin.elapsed() < Duration::from_secs(60), "the recorder did not start");
        thread::sleep(Duration::from_millis(5));
    }
    let worked = work(Path::new(&fs::read_to_string(&reported).unwrap()));
    fs::write(&done, "").unwrap();
    assert!(recorder.wait().unwrap().success());
    worked
}

#[test]
fn a_users_recorder_takes_only_processes_that_are_wholly_that_users() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let program = program(folder.path());
    let (welcome, folder_mode) = while_recording(&mut as_stranger(&program), folder.path(), |path| {
        let mode = fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777;
        let users = [[STRANGER; 3], [STRANGER, STRANGER, 0], [0, STRANGER, STRANGER], [0; 3]];
        (users.map(|users| is_welcome(path, users)), mode)
    });
    assert_eq!(welcome, [true, false, false, false]);
    assert_eq!(folder_mode, 0o700);
}

/// A process of another user that joins as often as it can, and keeps what it gets until it is killed.
fn hoard(path: &Path, is_done: &OwnedFd) -> i32 {
    let address = SocketAddrUnix::new(path).unwrap();
    let hellos: Vec<_> = (0..100).map(|copy| hello(copy).encode()).collect();
    // SAFETY: as in `is_welcome`; what the child has opened is closed when it is killed.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::syscall(libc::SYS_setresuid, STRANGER, STRANGER, STRANGER);
            for hello in &hellos {
                let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
                let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
                let Ok(socket) = socket else { break };
                if connect(&socket, &address).is_ok() {
                    let _ = send(&socket, hello, SendFlags::NOSIGNAL);
                }
                std::mem::forget(socket);
                libc::usleep(1000);
            }
            let _ = rustix::io::write(is_done, b"x");
            loop {
                libc::pause();
            }
        }
        child
    }
}

#[test]
fn another_user_does_not_use_up_the_recorders_descriptors() {
    const LIMIT: libc::rlimit = libc::rlimit { rlim_cur: 256, rlim_max: 256 };
    const PROCESSES: usize = 20;
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let mut recorder = harness::tracewing();
    // SAFETY: one system call, which uses nothing of the parent's memory.
    unsafe {
        recorder.pre_exec(|| match libc::setrlimit(libc::RLIMIT_NOFILE, &LIMIT) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        });
    }
    let welcome = while_recording(&mut recorder, folder.path(), |path| {
        let (are_done, is_done) = rustix::pipe::pipe().unwrap();
        let children: Vec<i32> = (0..PROCESSES).map(|_| hoard(path, &is_done)).collect();
        let mut done = 0;
        while done < PROCESSES {
            done += rustix::io::read(&are_done, &mut [0; PROCESSES]).unwrap();
        }
        let welcome = [(); 5].map(|()| is_welcome(path, [0; 3]));
        for child in children {
            // SAFETY: a child of this process, which is not waited for elsewhere.
            unsafe {
                assert!(libc::kill(child, libc::SIGKILL) == 0 && libc::waitpid(child, &mut 0, 0) == child)
            };
        }
        welcome
    });
    assert_eq!(welcome, [true; 5]);
}
