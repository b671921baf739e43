//! Records the kernel events of a command, or with `--system-wide` of everything meanwhile: the smallest use
//! of the crate. `tracewing record` does the same and records the program's own events besides.
//!
//! ```text
//! sudo cargo run -p tracewing-kernel --example kernel-record -- [--system-wide] [-k GLOB]… DIR COMMAND…
//! babeltrace2 DIR
//! ```

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use std::error::Error;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::thread::sleep;
use tracewing_ctf::model::ClockClass;
use tracewing_files::Dir;
use tracewing_kernel::{KernelClock, KernelRecorder, Options, POLL_INTERVAL, Scope, default_buffer_kib};

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("kernel-record: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<ExitCode, Box<dyn Error>> {
    let mut options = Options {
        globs: Vec::new(),
        probes: Vec::new(),
        only_probes: false,
        scope: Scope::Tree,
        clock: KernelClock::Mono,
        clock_class: ClockClass::new("monotonic", 1_000_000_000),
        uuid: *b"kernel-record-ex",
        buffer_kib: default_buffer_kib(),
        sub_buffer_kib: None,
        overwrites: false,
        env: Vec::new(),
    };
    let mut words = std::env::args().skip(1).peekable();
    while let Some(word) = words.next_if(|word| word.starts_with('-')) {
        match word.as_str() {
            "--system-wide" => options.scope = Scope::System,
            "-k" => options.globs.push(words.next().ok_or("-k needs a pattern")?),
            "--buffer-kib" => {
                options.buffer_kib = words.next().ok_or("--buffer-kib needs a number")?.parse()?
            }
            _ => return Err(format!("unknown option {word}").into()),
        }
    }
    let dir = PathBuf::from(words.next().ok_or("which folder?")?);
    let program = words.next().ok_or("which command?")?;

    let (folder, _) = Dir::create(&dir)?;
    let mut recorder = KernelRecorder::start(&folder, "kernel", &options)?;
    recorder.notices().iter().for_each(|notice| eprintln!("{notice}"));

    // The command waits, before it begins, until the recorder knows it.
    let mut child = Command::new("sh")
        .args(["-c", "kill -STOP $$; exec \"$@\"", "sh"])
        .arg(program)
        .args(words)
        .spawn()?;
    let pid = Pid::from_child(&child);
    waitpid(Some(pid), WaitOptions::UNTRACED)?;
    if options.scope == Scope::Tree {
        recorder.set_root_pid(tracewing_units::Pid::from_unsigned(child.id()))?;
    }
    kill_process(pid, Signal::CONT)?;
    let mut polls = 0;
    let status = loop {
        recorder.poll(polls % 4 == 0)?;
        polls += 1;
        match child.try_wait()? {
            Some(status) => break status,
            None => sleep(POLL_INTERVAL),
        }
    };
    for stream in
        recorder.finish()?.streams.iter().filter(|stream| stream.events > 0 || stream.losses.events > 0)
    {
        let lost = stream.losses.events;
        eprintln!("CPU {}: {} events, {lost} lost, {} bytes", stream.cpu, stream.events, stream.bytes);
    }
    Ok(ExitCode::from(status.code().unwrap_or(1) as u8))
}
