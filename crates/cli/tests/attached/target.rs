//! A process that runs before it is recorded: this test's own executable, under another name, with threads.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Set in a process that is to be a target.
const VARIABLE: &str = "TRACEWING_TEST_TARGET";

/// A running target. It is killed when dropped.
pub struct Target {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<std::process::ChildStdout>,
}

/// The program of targets, called `name`, in a folder.
pub fn program(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    if !path.exists() {
        tracewing_testing::copy_program(std::env::current_exe().unwrap(), &path);
    }
    path
}

/// How a target is started; what starts it may be another program, which gets it as its last arguments.
pub fn command(path: &Path, before: &[&str]) -> Command {
    let own = [path.to_str().unwrap(), "--exact", "target::is_run_as_a_target", "--nocapture"];
    let words: Vec<&str> = before.iter().copied().chain(own).collect();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).env(VARIABLE, "1").stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

impl Target {
    pub fn start(folder: &Path, name: &str) -> Self {
        Self::of(command(&program(folder, name), &[]))
    }

    /// The same as another user.
    pub fn start_as(folder: &Path, name: &str, user: u32) -> Self {
        let mut command = command(&program(folder, name), &[]);
        command.uid(user).gid(user);
        Self::of(command)
    }

    pub fn of(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let mut this = Self { child, input, output };
        this.hear("ready");
        this
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its threads, with their names.
    pub fn threads(&self) -> Vec<(i64, String)> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.pid())).unwrap().flatten();
        let thread = |task: fs::DirEntry| {
            let name = fs::read_to_string(task.path().join("comm")).ok()?;
            Some((task.file_name().to_str()?.parse().ok()?, name.trim_end().to_owned()))
        };
        tasks.filter_map(thread).collect()
    }

    /// Has it do something, and waits until it has.
    pub fn order(&mut self, what: &str) {
        writeln!(self.input.as_mut().unwrap(), "{what}").unwrap();
        self.hear(what);
    }

    fn hear(&mut self, word: &str) {
        let mut line = String::new();
        // What the test harness prints by itself comes first.
        while !line.trim_end().ends_with(word) {
            line.clear();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "the target ended before {word:?}");
        }
    }

    /// Ends it, and gives its exit status: not that of a process that was killed.
    pub fn end(mut self) -> Option<i32> {
        drop(self.input.take());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The function that probes are placed at.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn tracewing_test_step(step: u64) -> u64 {
    let mut sum = step;
    for n in 0..50_000_u64 {
        sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(n));
    }
    sum
}

fn work() {
    for step in 0.. {
        std::hint::black_box(tracewing_test_step(step));
        thread::sleep(Duration::from_millis(2));
    }
}

/// Starts a thread; it has its name then, which a new thread gives itself.
fn start(name: &str) {
    let (is_named, named) = mpsc::channel();
    let run = move || {
        is_named.send(()).unwrap();
        work();
    };
    thread::Builder::new().name(name.to_owned()).spawn(run).unwrap();
    named.recv().unwrap();
}

#[test]
fn is_run_as_a_target() {
    if std::env::var_os(VARIABLE).is_none() {
        return;
    }
    start("worker-0");
    start("worker-1");
    println!("ready");
    let mut brief: Option<mpsc::Sender<()>> = None;
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        match line.as_str() {
            // A thread that sleeps until it is to end.
            "brief" => {
                let (end, ends) = mpsc::channel();
                let (is_named, named) = mpsc::channel();
                let run = move || {
                    is_named.send(()).unwrap();
                    let _ = ends.recv();
                };
                thread::Builder::new().name("brief".to_owned()).spawn(run).unwrap();
                named.recv().unwrap();
                brief = Some(end);
            }
            "over" => drop(brief.take()),
            "thread" => start("late"),
            "fork" => {
                let script = "sleep 0.1; exec sleep 0.2";
                Command::new("sh").args(["-c", script]).stdin(Stdio::null()).status().unwrap();
            }
            "leave" => {
                let script = "sleep 0.6; exec sleep 0.6";
                let mut command = Command::new("sh");
                command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::null());
                // It outlives this process.
                std::mem::forget(command.spawn().unwrap());
            }
            other => panic!("{other}"),
        }
        println!("{line}");
    }
    std::process::exit(7);
}
