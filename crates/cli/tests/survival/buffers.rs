//! A recording whose buffers are in files, and what is left of it.

use super::*;

pub const SMALL: [&str; 4] = ["--sub-buffers", "4", "--sub-buffer-size", "16K"];

/// Events that fit into a packet, which is a sub-buffer of 512 KiB.
pub const PACKET: u64 = (512 << 10) / 28;

/// The program `pilot` under a recorder with buffers in the folder `b`.
pub struct Recorded {
    pub folder: tempfile::TempDir,
    pub recorder: Child,
    pub orders: ChildStdin,
    pub answers: BufReader<ChildStdout>,
}

impl Recorded {
    pub fn start(options: &[&str], env: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = recorder(folder.path(), &["--buffers-in", "b"]);
        // `recorder` ends its options with `--`.
        let arguments: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
        let mut command_line = Command::new(command.get_program());
        command_line.current_dir(folder.path()).args(&arguments[..arguments.len() - 1]).args(options);
        command = command_line;
        command.arg("--").arg("env").args(env).arg(program("pilot"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut recorder = command.spawn().unwrap();
        let (orders, answers) = (recorder.stdin.take().unwrap(), recorder.stdout.take().unwrap());
        Self { folder, recorder, orders, answers: BufReader::new(answers) }
    }

    pub fn order(&mut self, order: &str) -> String {
        writeln!(self.orders, "{order}").unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        answer.trim_end().to_owned()
    }

    pub fn numbers(&mut self, order: &str) -> Vec<u64> {
        self.order(order).split(' ').map(|number| number.parse().unwrap()).collect()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Kills the program and the recorder, in this order or the other.
    pub fn kill(&mut self, program_first: bool) {
        let recorder = self.recorder.id();
        let children = fs::read_to_string(format!("/proc/{recorder}/task/{recorder}/children")).unwrap();
        let program: u32 = children.split_ascii_whitespace().next().unwrap().parse().unwrap();
        // Stopped, so that it does not see its child's end and come to its own in order.
        let [first, last] = if program_first { [program, recorder] } else { [recorder, program] };
        let signals = [(recorder, libc::SIGSTOP), (first, libc::SIGKILL), (last, libc::SIGKILL)];
        for (process, signal) in signals {
            // SAFETY: processes that this test has started; the recorder has not waited for its child.
            assert_eq!(unsafe { libc::kill(process as i32, signal) }, 0);
        }
        self.recorder.wait().unwrap();
        let begin = Instant::now();
        while is_running(program) {
            assert!(begin.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// A killed child without a parent is gone as soon as init has waited for it; until then it is a zombie.
pub fn is_running(process: u32) -> bool {
    let state = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    !state.is_empty() && !state.contains(") Z ")
}

pub fn recover(folder: &Path, options: &[&str]) -> Output {
    let mut command = harness::tracewing();
    command.current_dir(folder).args(["recover", "b"]).args(options).ran()
}

/// Numbers by CPU in the order in which they are listed.
pub fn numbers(events: &[Event]) -> BTreeMap<u64, Vec<u64>> {
    let mut found = BTreeMap::<u64, Vec<u64>>::new();
    for event in events.iter().filter(|event| event.name == "pilot:count") {
        assert_eq!(event.number("cpu"), event.cpu, "was a CPU taken offline while the test ran?");
        found.entry(event.cpu).or_default().push(event.number("number"));
    }
    found
}

pub fn compare_with_babeltrace2(trace: &Path) {
    let Ok(peer) = Command::new("babeltrace2").arg(trace).output() else {
        return tracewing_testing::skip(
            tracewing_testing::Cause::Program("babeltrace2"),
            "babeltrace2 is not installed",
        );
    };
    let ours = harness::tracewing().arg("list").arg(trace).ran();
    assert!(peer.status.success() && ours.status.success(), "{}", peer.notes());
    assert!(ours.stdout == peer.stdout, "tracewing list and babeltrace2 differ");
}
