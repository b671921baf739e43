//! Runs the programs that the user has named for archives and triggers: this process itself, or where it
//! gives up the rights that they are to have, a process that it has started before. That one runs these
//! programs and no others, and for no other folders than those that the recording makes ([`folders`]).
//!
//! Each runs for a limited time, and those of triggers not longer than the recording: they are killed then,
//! with what they have started, as far as that is in their process group. What a program has left running in
//! its group is killed when the recording ends.

mod folders;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open, waitid,
};
use tracewing_helper::{Fields, Helper, Reply, Request, Server, Text};
use tracewing_proc::Stat;

pub(crate) use folders::Folders;

/// Longest path of an archive or snapshot (`PATH_MAX`), and longest reason for a failure.
const LONGEST: u16 = 4096;
/// How long a program may run at most: for a year.
const MOST_TIME: Duration = Duration::from_secs(365 * 24 * 60 * 60);
const STARTING: Duration = Duration::from_secs(5);
/// In place of a program's number: programs of this purpose are killed.
const END: u32 = u32::MAX;
/// Time that the process has for that.
const ENDING: Duration = Duration::from_secs(2);
/// How long a program that is killed may take to end: one whose disk does not answer does not.
const DYING: Duration = Duration::from_secs(1);
/// Time that a reply about a program may take, in addition to its limit.
const REPLYING: Duration = Duration::from_secs(4);
/// Programs that have ended, and have left others running: with one more, what the first one has left is
/// killed.
const MOST_LEFT: usize = 64;

/// Why a program is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Purpose {
    /// For an archive: also after the recording.
    Archive,
    /// For a trigger: not longer than the recording.
    Trigger,
}

impl Purpose {
    const ALL: [Self; 2] = [Self::Archive, Self::Trigger];
}

/// Runs programs. Clones run them in the same process.
#[derive(Debug, Clone, Default)]
pub(crate) struct Runner {
    elsewhere: Option<Arc<Elsewhere>>,
    /// Those that run here, by [`Purpose`].
    here: Arc<[Programs; 2]>,
}

/// Programs that run, and what those have left that have ended.
#[derive(Debug, Default)]
struct Programs(Mutex<Groups>);

#[derive(Debug, Default)]
struct Groups {
    /// The process groups of those that run. None is collected while it is here.
    running: Vec<Pid>,
    /// Those that have ended, and have others in their process group. Until they are collected, no other
    /// group gets the number.
    left: Vec<Child>,
    /// No more are run.
    is_over: bool,
}

#[derive(Debug)]
struct Elsewhere {
    helper: Arc<Helper>,
    commands: Vec<OsString>,
}

impl Runner {
    /// Starts a process that runs these programs for these folders; none if there are no programs.
    ///
    /// # Errors
    /// The system refuses a process or a descriptor.
    pub(crate) fn start(commands: Vec<OsString>, folders: Folders) -> io::Result<Self> {
        if commands.is_empty() {
            return Ok(Self::default());
        }
        let known = commands.clone();
        let helper =
            Helper::start_with_all_rights(c"tracewing-runs", |server| serve(&server, known, folders))?;
        // Now, before the recorder reads anything of programs: later requests bring no descriptors.
        let output = helper.begin(&[], &[io::stderr().as_fd()])?;
        helper.wait(output, STARTING)?;
        let elsewhere = Some(Arc::new(Elsewhere { helper: Arc::new(helper), commands }));
        Ok(Self { elsewhere, ..Self::default() })
    }

    /// The process, if there is one.
    pub(crate) fn helper(&self) -> Option<&Arc<Helper>> {
        self.elsewhere.as_ref().map(|elsewhere| &elsewhere.helper)
    }

    /// Runs a program until it ends, for so long at most, or until [`Runner::end`], and gives why it has
    /// failed. What it prints goes where the recorder's messages go. It has a process group of its own, so
    /// that Ctrl-C ends the recording and not what it does.
    pub(crate) fn run(
        &self,
        purpose: Purpose,
        command: &OsStr,
        path: Option<&Path>,
        limit: Duration,
    ) -> Option<String> {
        let limit = limit.min(MOST_TIME);
        match &self.elsewhere {
            None => run(command, path, io::stderr().as_fd(), &self.here[purpose as usize], limit),
            Some(elsewhere) => {
                elsewhere.run(purpose, command, path, limit).unwrap_or_else(|error| Some(error.to_string()))
            }
        }
    }

    /// Kills the programs that run for this purpose, and what others have left, and runs no more for it.
    pub(crate) fn end(&self, purpose: Purpose) {
        match &self.elsewhere {
            None => self.here[purpose as usize].end(),
            Some(elsewhere) => {
                // If it does not answer, it is killed itself after the recording.
                let _ = elsewhere.helper.ask(&request(END, purpose, Duration::ZERO, b""), ENDING);
            }
        }
    }

    /// The same for all purposes.
    pub(crate) fn end_all(&self) {
        Purpose::ALL.into_iter().for_each(|purpose| self.end(purpose));
    }
}

/// A request to the process that runs the programs.
fn request(place: u32, purpose: Purpose, limit: Duration, path: &[u8]) -> Vec<u8> {
    let mut request = place.to_ne_bytes().to_vec();
    request.push(purpose as u8);
    request.extend((limit.as_millis() as u64).to_ne_bytes());
    request.put_bytes(path, LONGEST);
    request
}

impl Elsewhere {
    fn run(
        &self,
        purpose: Purpose,
        command: &OsStr,
        path: Option<&Path>,
        limit: Duration,
    ) -> io::Result<Option<String>> {
        let place = self.commands.iter().position(|known| known == command);
        let place = place.ok_or_else(|| io::Error::other("it was not named when the recording began"))?;
        let path = path.map(std::path::absolute).transpose()?.unwrap_or_default();
        let request = request(place as u32, purpose, limit, path.as_os_str().as_bytes());
        let number = self.helper.begin(&request, &[])?;
        let why = String::from_utf8_lossy(&self.helper.wait(number, limit + REPLYING)?.bytes).into_owned();
        Ok((!why.is_empty()).then_some(why))
    }
}

impl Groups {
    /// Collects those that have ended and have left nothing, by the groups in which processes run. If these
    /// are not known, all have to be taken for such that have left something.
    fn collect(&mut self, living: io::Result<Vec<i32>>) {
        if let Ok(living) = living {
            let gone = self.left.extract_if(.., |left| !living.contains(&(left.id() as i32)));
            gone.for_each(end);
        }
        let more = self.left.len().saturating_sub(MOST_LEFT);
        self.left.drain(..more).for_each(end);
    }
}

impl Programs {
    fn lock(&self) -> MutexGuard<'_, Groups> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a program to its end, for so long at most. Gives its status, or why it was killed.
    fn run(&self, program: &mut Command, limit: Duration) -> io::Result<Result<ExitStatus, String>> {
        let (child, group) = self.start(program)?;
        let is_late = is_late(group, limit);
        let seconds = limit.as_secs();
        if !matches!(is_late, Ok(false)) {
            let _ = kill_process_group(group, Signal::KILL);
            if self::is_late(group, DYING).unwrap_or(false) {
                self.has_ended(child, group);
                return Ok(Err(format!(
                    "killed, since it ran for longer than {seconds} s, but it does not end"
                )));
            }
        }
        // It is not collected: what it has left may have its number.
        let ended =
            retry_on_intr(|| waitid(WaitId::Pid(group), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT));
        let is_over = self.has_ended(child, group);
        let Some(ended) = ended? else { return Err(io::ErrorKind::NotFound.into()) };
        let (code, signal) = (ended.exit_status().unwrap_or(0), ended.terminating_signal().unwrap_or(0));
        Ok(if is_late? {
            Err(format!("killed, since it ran for longer than {seconds} s"))
        } else if is_over && signal == Signal::KILL.as_raw() {
            Err("killed, since it was not over when the recording ended".to_owned())
        } else {
            // As wait(2) gives it.
            Ok(ExitStatus::from_raw(code << 8 | signal))
        })
    }

    /// Starts a program, whose process group is then known.
    fn start(&self, program: &mut Command) -> io::Result<(Child, Pid)> {
        if self.lock().is_over {
            return Err(io::Error::other("the recording is over"));
        }
        // Without the lock: its file may be on a disk that does not answer.
        let child = program.spawn()?;
        let group = Pid::from_raw(child.id() as i32).ok_or(io::ErrorKind::InvalidInput)?;
        let mut groups = self.lock();
        if groups.is_over {
            let _ = kill_process_group(group, Signal::KILL);
        }
        groups.running.push(group);
        drop(groups);
        Ok((child, group))
    }

    /// A program has ended, or does not although it was killed: it is collected, once nothing is left in its
    /// process group. Whether all are over.
    fn has_ended(&self, child: Child, group: Pid) -> bool {
        let mut groups = self.lock();
        groups.running.retain(|known| *known != group);
        groups.left.push(child);
        let living = if groups.is_over { Ok(Vec::new()) } else { living_groups() };
        groups.collect(living);
        groups.is_over
    }

    fn end(&self) {
        let mut groups = self.lock();
        groups.is_over = true;
        for group in &groups.running {
            let _ = kill_process_group(*group, Signal::KILL);
        }
        groups.left.drain(..).for_each(end);
    }
}

/// Waits until a program ends, for so long at most. Whether it has not.
fn is_late(program: Pid, limit: Duration) -> io::Result<bool> {
    let process = pidfd_open(program, PidfdFlags::empty())?;
    let until = Instant::now() + limit;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let wait = Timespec::try_from(left).ok();
        if poll(&mut [PollFd::new(&process, PollFlags::IN)], wait.as_ref()).is_ok_and(|ready| ready > 0) {
            return Ok(false);
        }
        if left.is_zero() {
            return Ok(true);
        }
    }
}

/// Kills what a program that has ended has left in its process group, and collects it.
fn end(mut left: Child) {
    let Some(group) = Pid::from_raw(left.id() as i32) else { return };
    let _ = kill_process_group(group, Signal::KILL);
    if is_late(group, DYING).is_ok_and(|is_late| !is_late) {
        let _ = left.wait();
    }
}

/// The process groups in which processes run.
///
/// # Errors
/// That of one is not known.
fn living_groups() -> io::Result<Vec<i32>> {
    const GROUP: usize = 5; // proc_pid_stat(5)
    let mut groups = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let entry = entry?;
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        match Stat::of(tracewing_units::Pid(pid)) {
            Some(stat) if stat.has_ended() => {}
            Some(stat) => groups.extend(stat.field::<i32>(GROUP)),
            None if entry.path().exists() => return Err(io::ErrorKind::Other.into()),
            None => {}
        }
    }
    Ok(groups)
}

/// In the process that runs the programs: each on a thread of its own, since one may take long.
fn serve(server: &Server, commands: Vec<OsString>, folders: Folders) {
    let Some(first) = server.next() else { return };
    let Some(output) = first.files.into_iter().next() else { return };
    if server.replier().reply(first.number, &Reply::default()).is_err() {
        return;
    }
    let service = Arc::new(Service { commands, folders, output, programs: Default::default() });
    while let Some(request) = server.next() {
        let (number, replier) = (request.number, server.replier());
        let Some(order) = decode(&request, service.commands.len()) else { break };
        if order.place == END {
            service.programs[order.purpose as usize].end();
            let _ = replier.reply(number, &Reply::default());
            continue;
        }
        let service = service.clone();
        let body = move || {
            let mut why = service.run(&order).unwrap_or_default();
            why.truncate(why.floor_char_boundary(LONGEST.into()));
            let _ = replier.reply(number, &Reply::new(why));
        };
        if std::thread::Builder::new().spawn(body).is_err() {
            let _ = server.replier().reply(number, &Reply::new("there is no thread for it"));
        }
    }
    service.programs.iter().for_each(Programs::end);
}

/// What the process that runs the programs was given at its start.
struct Service {
    commands: Vec<OsString>,
    folders: Folders,
    /// Where programs print to.
    output: OwnedFd,
    /// By [`Purpose`].
    programs: [Programs; 2],
}

impl Service {
    /// Runs a program, and gives why it has failed.
    fn run(&self, Order { place, purpose, limit, path }: &Order) -> Option<String> {
        if path.as_deref().is_some_and(|path| !self.folders.is_there(path)) {
            return Some("it is no folder of this session, is not there, or is a link".to_owned());
        }
        let command = &self.commands[*place as usize];
        run(command, path.as_deref(), self.output.as_fd(), &self.programs[*purpose as usize], *limit)
    }
}

/// What is to be run.
struct Order {
    /// The program's number, or [`END`].
    place: u32,
    purpose: Purpose,
    limit: Duration,
    /// To be one of [`Folders`], which are absolute: no program takes them for an option.
    path: Option<PathBuf>,
}

fn decode(Request { bytes, files, .. }: &Request, commands: usize) -> Option<Order> {
    let mut fields = Fields::of(bytes);
    let place = fields.u32()?;
    let purpose = fields.u8()?;
    let purpose = Purpose::ALL.into_iter().find(|known| *known as u8 == purpose)?;
    let limit = Duration::from_millis(fields.u64()?);
    let path = Path::new(OsStr::from_bytes(fields.bytes(LONGEST)?));
    let path = (path != Path::new("")).then(|| path.to_owned());
    let is_known = (place as usize) < commands || place == END;
    let is_right = is_known && limit <= MOST_TIME && fields.is_end() && files.is_empty();
    is_right.then_some(Order { place, purpose, limit, path })
}

/// Runs a program with this output, which is also for its errors, and without the signals that its recorder
/// or this process has blocked, as one of these.
fn run(
    command: &OsStr,
    path: Option<&Path>,
    output: BorrowedFd<'_>,
    programs: &Programs,
    limit: Duration,
) -> Option<String> {
    let file = || output.try_clone_to_owned().map_or_else(|_| Stdio::null(), Stdio::from);
    let mut program = Command::new(command);
    program.args(path).stdin(Stdio::null()).stdout(file()).stderr(file()).process_group(0);
    // SAFETY: between `fork` and `exec`, only functions are called that may be (signal-safety(7)), with a set
    // that the first one initialises.
    unsafe {
        program.pre_exec(|| {
            let mut none = std::mem::zeroed();
            libc::sigemptyset(&raw mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
            Ok(())
        });
    }
    match programs.run(&mut program, limit) {
        Err(error) => Some(error.to_string()),
        Ok(Err(why)) => Some(why),
        Ok(Ok(status)) if status.success() => None,
        Ok(Ok(status)) => Some(match (status.code(), status.signal()) {
            (Some(code), _) => format!("exit status {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "no exit status".to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive_names::FOLDER;
    use std::os::fd::AsRawFd;
    use tracewing_testing::wait_until;

    const ARCHIVE: Purpose = Purpose::Archive;
    const LONG: Duration = MOST_TIME;

    /// One for this recorder's folder, which has it in another process.
    fn elsewhere(commands: &[&OsStr], output: &Path) -> Runner {
        let commands: Vec<OsString> = commands.iter().map(|command| (*command).to_owned()).collect();
        Runner::start(commands, Folders::of(output, true, false)).unwrap()
    }

    /// The archive with this number of a recorder's folder.
    fn archive(output: &Path, number: usize) -> PathBuf {
        let path = output.join(FOLDER).join(format!("20260101T000000Z-{number}"));
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    #[test]
    fn programs_run_as_here_and_in_another_process() {
        let commands = ["rmdir", "mkdir", "false", "/no/such/command"].map(OsStr::new);
        let place = tempfile::tempdir().unwrap();
        let folder = archive(place.path(), 1);
        for runner in [Runner::default(), elsewhere(&commands, place.path())] {
            let run = |command: &str| runner.run(ARCHIVE, command.as_ref(), Some(&folder), LONG);
            assert_eq!(run("rmdir"), None);
            assert!(!folder.is_dir());
            assert_eq!(archive(place.path(), 1), folder);
            assert_eq!(run("mkdir").unwrap(), "exit status 1", "it is there");
            assert_eq!(run("false").unwrap(), "exit status 1");
            assert!(run("/no/such/command").unwrap().contains("No such file"));
        }
    }

    #[test]
    fn nothing_else_runs_in_the_other_process() {
        let place = tempfile::tempdir().unwrap();
        let start = || elsewhere(&["true".as_ref()], place.path());
        assert_eq!(start().run(ARCHIVE, "true".as_ref(), None, LONG), None);
        assert!(start().run(ARCHIVE, "false".as_ref(), None, LONG).unwrap().contains("not named"));
        assert!(Runner::start(Vec::new(), Folders::default()).unwrap().helper().is_none());
        let ask = |runner: &Runner, place: u32, path: &[u8], files: &[BorrowedFd<'_>]| {
            let helper = runner.helper().unwrap();
            let number = helper.begin(&request(place, ARCHIVE, LONG, path), files).unwrap();
            helper.wait(number, LONG).map(|reply| reply.bytes).map_err(|error| error.kind())
        };
        let (here, moved) = (archive(place.path(), 1), archive(place.path(), 2));
        std::fs::remove_dir(&moved).unwrap();
        let around = here.join("../20260101T000000Z-1");
        // Each is answered, and so are later ones.
        let runner = start();
        for path in [&moved, &around, place.path(), "/etc".as_ref(), "--option".as_ref()] as [&Path; 5] {
            let why = ask(&runner, 0, path.as_os_str().as_bytes(), &[]).unwrap();
            let why = String::from_utf8(why).unwrap();
            assert_eq!(why, "it is no folder of this session, is not there, or is a link", "{path:?}");
        }
        let own = here.as_os_str().as_bytes();
        assert_eq!(ask(&runner, 0, own, &[]), Ok(Vec::new()));
        let asked = |place: u32, path: &[u8], files: &[BorrowedFd<'_>]| ask(&start(), place, path, files);
        let refused = Err(io::ErrorKind::BrokenPipe);
        assert_eq!(asked(1, b"", &[]), refused, "no such program");
        assert_eq!(asked(0, own, &[io::stderr().as_fd()]), refused, "another output");
    }

    #[test]
    fn a_program_of_limited_time_is_killed_with_what_it_has_started() {
        let place = tempfile::tempdir().unwrap();
        let script = place.path().join("hangs");
        std::fs::write(&script, "#!/bin/sh\nsleep 1000 &\necho $! > $1/pid\nwait\n").unwrap();
        rustix::fs::chmod(&script, rustix::fs::Mode::RWXU).unwrap();
        for (first, runner) in [(1, Runner::default()), (5, elsewhere(&[script.as_os_str()], place.path()))] {
            let all = ["late", "ended", "more", "other"];
            let at = |what: &str| all.iter().position(|one| *one == what).unwrap();
            let out = |what: &str| archive(place.path(), first + at(what));
            let started = |path: &Path| {
                let text = std::fs::read_to_string(path.join("pid")).unwrap_or_default();
                text.trim().parse::<u32>().ok()
            };
            let is_gone = |path: &Path| {
                let stat = std::fs::read_to_string(format!("/proc/{}/stat", started(path).unwrap()));
                stat.is_ok_and(|stat| stat.contains(") Z ")) || !place_of(started(path).unwrap()).exists()
            };
            let short = Duration::from_secs(1);
            let run = |runner: &Runner, purpose, out: &Path, limit| {
                runner.run(purpose, script.as_os_str(), Some(out), limit)
            };
            let why = run(&runner, ARCHIVE, &out("late"), short).unwrap();
            assert_eq!(why, "killed, since it ran for longer than 1 s");
            wait_until("what it has started is gone", || is_gone(&out("late")));
            std::thread::scope(|scope| {
                let thread = scope.spawn(|| run(&runner, Purpose::Trigger, &out("ended"), LONG));
                wait_until("it runs", || started(&out("ended")).is_some());
                runner.end(ARCHIVE);
                let why = run(&runner, Purpose::Trigger, &out("other"), short).unwrap();
                assert_eq!(why, "killed, since it ran for longer than 1 s", "that was another purpose");
                runner.end(Purpose::Trigger);
                let why = thread.join().unwrap().unwrap();
                assert_eq!(why, "killed, since it was not over when the recording ended");
            });
            wait_until("what it has started is gone", || is_gone(&out("ended")));
            let why = run(&runner, Purpose::Trigger, &out("more"), short).unwrap();
            assert_eq!(why, "the recording is over");
        }
    }

    #[test]
    fn what_a_program_has_left_is_killed_at_the_end() {
        let place = tempfile::tempdir().unwrap();
        let script = place.path().join("leaves");
        std::fs::write(&script, "#!/bin/sh\nsleep 1000 &\necho $! > $1/pid\n").unwrap();
        rustix::fs::chmod(&script, rustix::fs::Mode::RWXU).unwrap();
        for (name, runner) in
            [("here", Runner::default()), ("there", elsewhere(&[script.as_os_str()], place.path()))]
        {
            let left = Purpose::ALL.map(|purpose| {
                let out = archive(place.path(), 1 + purpose as usize);
                assert_eq!(runner.run(purpose, script.as_os_str(), Some(&out), LONG), None);
                std::fs::read_to_string(out.join("pid")).unwrap().trim().parse::<i32>().unwrap()
            });
            let lives = |pid: i32| Stat::of(tracewing_units::Pid(pid)).is_some_and(|stat| !stat.has_ended());
            assert!(left.iter().all(|pid| lives(*pid)), "{name}");
            runner.end_all();
            left.iter().for_each(|pid| wait_until("it is killed", || !lives(*pid)));
        }
    }

    /// As one whose file is on a disk that does not answer.
    #[test]
    fn the_end_does_not_wait_for_a_program_that_is_being_executed() {
        let pipe = || rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
        let ((is_there, there), (continues, go)) = (pipe(), pipe());
        let (to, from, other) = (there.as_raw_fd(), continues.as_raw_fd(), go.as_raw_fd());
        let mut program = Command::new("sleep");
        program.arg("1000").process_group(0);
        // SAFETY: between `fork` and `exec`, only system calls are made, with descriptors that are open.
        unsafe {
            program.pre_exec(move || {
                // Without an own end for it, it notices that the test has failed.
                libc::close(other);
                libc::write(to, [0_u8; 1].as_ptr().cast(), 1);
                match libc::read(from, [0_u8; 1].as_mut_ptr().cast(), 1) {
                    1 => Ok(()),
                    _ => libc::_exit(1),
                }
            });
        }
        let programs = Arc::new(Programs::default());
        let (starting, ending) = (programs.clone(), programs.clone());
        let started = std::thread::spawn(move || starting.run(&mut program, LONG));
        rustix::io::read(&is_there, &mut [0; 1]).unwrap();
        let ended = std::thread::spawn(move || ending.end());
        wait_until("the end does not wait", || ended.is_finished());
        rustix::io::write(&go, &[0]).unwrap();
        let why = started.join().unwrap().unwrap().unwrap_err();
        assert_eq!(why, "killed, since it was not over when the recording ended");
        assert!(programs.lock().running.is_empty());
    }

    #[test]
    fn what_a_program_has_left_stays_while_it_is_not_known_what_runs() {
        let mut groups = Groups::default();
        groups.left.push(Command::new("sleep").arg("1000").process_group(0).spawn().unwrap());
        groups.collect(Err(io::ErrorKind::Other.into()));
        assert_eq!(groups.left.len(), 1);
        let living = living_groups().unwrap();
        assert!(living.contains(&(groups.left[0].id() as i32)));
        groups.collect(Ok(living));
        assert_eq!(groups.left.len(), 1);
        groups.collect(Ok(Vec::new()));
        assert!(groups.left.is_empty());
    }

    #[test]
    fn no_more_than_some_programs_leave_others() {
        let place = tempfile::tempdir().unwrap();
        let script = place.path().join("leaves");
        std::fs::write(&script, "#!/bin/sh\nsleep 1000 &\necho $! >> $1\n").unwrap();
        rustix::fs::chmod(&script, rustix::fs::Mode::RWXU).unwrap();
        let (runner, out) = (Runner::default(), place.path().join("out"));
        for _ in 0..=MOST_LEFT {
            assert_eq!(runner.run(ARCHIVE, script.as_os_str(), Some(&out), LONG), None);
        }
        assert_eq!(runner.run(ARCHIVE, "true".as_ref(), None, LONG), None, "it leaves none");
        let left = runner.here[0].lock().left.iter().map(Child::id).collect::<Vec<_>>();
        assert_eq!(left.len(), MOST_LEFT);
        let text = std::fs::read_to_string(&out).unwrap();
        let pids: Vec<i32> = text.lines().map(|line| line.parse().unwrap()).collect();
        let lives = |pid: i32| Stat::of(tracewing_units::Pid(pid)).is_some_and(|stat| !stat.has_ended());
        wait_until("the first one is killed", || !lives(pids[0]));
        assert!(pids[1..].iter().all(|pid| lives(*pid)));
        runner.end(ARCHIVE);
        pids.iter().for_each(|pid| wait_until("it is killed", || !lives(*pid)));
    }

    fn place_of(pid: u32) -> PathBuf {
        format!("/proc/{pid}").into()
    }

    #[test]
    fn no_signal_is_blocked_in_what_runs() {
        let place = tempfile::tempdir().unwrap();
        let script = place.path().join("status");
        std::fs::write(&script, "#!/bin/sh\ngrep ^Sig /proc/self/status > \"$1/status\"\n").unwrap();
        rustix::fs::chmod(&script, rustix::fs::Mode::RWXU).unwrap();
        for runner in [Runner::default(), elsewhere(&[script.as_os_str()], place.path())] {
            let out = archive(place.path(), 1);
            assert_eq!(runner.run(ARCHIVE, script.as_os_str(), Some(&out), LONG), None);
            let status = std::fs::read_to_string(out.join("status")).unwrap();
            assert!(status.contains("SigBlk:\t0000000000000000\n"), "{status}");
        }
    }
}
