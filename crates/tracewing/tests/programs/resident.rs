//! A program that runs before a recorder attaches to it: `resident [FILTER...]`. A filter is a list of system
//! calls, of which any other ends the process; or `ERROR:LIST`, system calls that fail so; or `namespaces`,
//! which cannot be made then. Standard input
//! gives orders, one per line; standard output answers each with a line:
//!
//! | order | does | answer |
//! |---|---|---|
//! | `emit N` | emits N events | `emitted` |
//! | `thread N` | a new thread does | `emitted` |
//! | `keep N` | a new thread does, and stays | `emitted` |
//! | `fork N` | a child does, and its child; each waits before it until it has joined | the child's status |
//! | `fork_load PATH` | a child loads the plug-in, which emits 3 events | the child's status |
//! | `exec` | a child executes this program again, which gets all further orders | `ready` |
//! | `load PATH` | loads the plug-in (`plugin.rs`), again if it is loaded | `loaded` |
//! | `plugin N` | it emits N events | `emitted` |
//! | `snapshot` | asks the recorder for a snapshot | its folder, or the error |
//! | `reported` | how often the state was reported | the number |

use std::io::{BufRead, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use tracewing::{Event, emit};

#[derive(Event)]
#[event(provider = "resident")]
struct Step {
    number: u32,
}

/// What was true before any recording.
#[derive(Event)]
#[event(provider = "resident")]
struct Answer {
    number: u32,
}

static REPORTED: AtomicU32 = AtomicU32::new(0);

fn steps(count: u32) {
    (1..=count).for_each(|number| emit!(Step { number }));
}

fn fork(child: impl FnOnce()) -> i32 {
    // SAFETY: this program's threads hold no locks while it forks.
    match unsafe { libc::fork() } {
        0 => {
            child();
            // SAFETY: ends the child.
            unsafe { libc::_exit(0) }
        }
        pid => {
            let mut status = -1;
            // SAFETY: the child just made.
            while unsafe { libc::waitpid(pid, &mut status, 0) } != pid {}
            status
        }
    }
}

/// In a forked child: waits until each thread of the agent sleeps in `read`, as it does once it has joined;
/// for half a second if there is none. Ends the child, and says so, if that takes more than a minute.
fn wait_for_agents() {
    let in_read = format!("{} ", libc::SYS_read);
    for _ in 0..60_000 {
        // The number as `/proc` shows it: the process may be in a namespace.
        let own = std::fs::read_link("/proc/self").unwrap_or_default();
        let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
        let agents: Vec<_> = tasks.map(|task| task.path()).filter(|task| !task.ends_with(&own)).collect();
        let call = |agent: &PathBuf| std::fs::read_to_string(agent.join("syscall")).unwrap_or_default();
        if agents.is_empty() {
            return std::thread::sleep(Duration::from_millis(500));
        }
        if agents.iter().all(|agent| call(agent).starts_with(&in_read)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    eprintln!("resident: after a minute, process {} has not joined", std::process::id());
    // SAFETY: ends this process, in which no other thread of its parent runs.
    unsafe { libc::_exit(101) }
}

/// Loads the plug-in, and gives the function by which it emits.
fn load(path: &str) -> extern "C" fn(u32, u32) {
    let path = std::ffi::CString::new(path).unwrap();
    // SAFETY: the library's initialisers are Rust's; it has these functions.
    unsafe {
        let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        let begin = libc::dlsym(handle, c"plugin_begin".as_ptr());
        std::mem::transmute::<*mut libc::c_void, extern "C" fn()>(begin)();
        std::mem::transmute::<*mut libc::c_void, extern "C" fn(u32, u32)>(libc::dlsym(
            handle,
            c"plugin_emit".as_ptr(),
        ))
    }
}

fn filter(text: &str) {
    if text == "namespaces" {
        return tracewing_testing::refuse_namespaces();
    }
    let (error, listed) = text.split_once(':').unwrap_or(("", text));
    let numbers: Vec<libc::c_long> = listed.split(',').map(|number| number.parse().unwrap()).collect();
    match error.parse::<u32>() {
        Ok(error) => tracewing_testing::fail(&numbers, error),
        Err(_) => tracewing_testing::allow_only(&numbers, true),
    }
}

fn main() {
    tracewing::on_attach(|| {
        REPORTED.fetch_add(1, Relaxed);
        emit!(Answer { number: 42 });
    });
    std::env::args().skip(1).for_each(|text| filter(&text));
    println!("ready");
    let mut plugin: Option<extern "C" fn(u32, u32)> = None;
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let (order, rest) = line.split_once(' ').unwrap_or((&line, ""));
        let number = rest.parse().unwrap_or(0);
        let answer = match order {
            "emit" => {
                steps(number);
                "emitted".to_owned()
            }
            "thread" => {
                std::thread::spawn(move || steps(number)).join().unwrap();
                "emitted".to_owned()
            }
            "keep" => {
                let (send, receive) = std::sync::mpsc::channel();
                std::thread::spawn(move || {
                    steps(number);
                    send.send(()).unwrap();
                    std::thread::sleep(Duration::from_secs(1000));
                });
                receive.recv().unwrap();
                "emitted".to_owned()
            }
            "fork" => {
                let work = move || {
                    wait_for_agents();
                    steps(number);
                };
                fork(move || {
                    work();
                    assert_eq!(fork(work), 0);
                })
                .to_string()
            }
            "exec" => {
                // SAFETY: the child executes a file.
                let child = unsafe { libc::fork() };
                if child == 0 {
                    panic!("{}", std::process::Command::new("/proc/self/exe").exec());
                }
                // It reads the orders from now on.
                let mut status = 0;
                // SAFETY: the child just made.
                while unsafe { libc::waitpid(child, &mut status, 0) } != child {}
                assert_eq!(status, 0);
                return;
            }
            "load" => {
                plugin = Some(load(rest));
                "loaded".to_owned()
            }
            "fork_load" => {
                let work = move || load(rest)(1, 3);
                fork(work).to_string()
            }
            "plugin" => {
                plugin.unwrap()(1, number);
                "emitted".to_owned()
            }
            "snapshot" => match tracewing::snapshot() {
                Ok(folder) => folder.display().to_string(),
                Err(error) => error.to_string(),
            },
            "reported" => REPORTED.load(Relaxed).to_string(),
            other => panic!("no order: {other:?}"),
        };
        println!("{answer}");
        std::io::stdout().flush().unwrap();
    }
}
