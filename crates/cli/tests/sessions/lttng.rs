//! The page for users of LTTng: each of its commands is run, LTTng's and ours.

use crate::background::{Background, Pilot};
use crate::harness::{self, Printed, RunExt};
use crate::recorded::list;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tracewing_testing::{Cause, installed, skip, wait_until};

const PAGE: &str = include_str!("../../../../docs/how-to/coming-from-lttng.md");

/// A session daemon of its own, with its home and files in a folder.
struct Lttng {
    folder: PathBuf,
    daemon: Child,
}

impl Lttng {
    /// `None` where LTTng or its headers are missing.
    fn start(folder: &Path) -> Option<Self> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../trace/tests/lttng");
        let mut cc = Command::new("cc");
        cc.arg("-O1").arg(format!("-I{}", source.display())).arg("-o").arg(folder.join("app"));
        cc.args(["kinds.c", "kinds-tp.c"].map(|name| source.join(name)));
        cc.args(["-llttng-ust", "-lpthread", "-ldl", "-lm"]).stderr(Stdio::null());
        if !installed(&["lttng", "lttng-sessiond", "babeltrace2", "cc"]) {
            return None;
        }
        if !cc.status().is_ok_and(|status| status.success()) {
            skip(Cause::Program("lttng"), "liblttng-ust-dev is not installed");
            return None;
        }
        let daemon = lttng_environment(&mut Command::new("lttng-sessiond"), folder)
            .arg("--no-kernel")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let this = Self { folder: folder.to_owned(), daemon };
        wait_until("LTTng's daemon answers", || {
            this.command("lttng --no-sessiond list").status().unwrap().success()
        });
        Some(this)
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new("bash");
        command.args(["-c", line]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        lttng_environment(&mut command, &self.folder);
        command
    }
}

fn lttng_environment<'a>(command: &'a mut Command, folder: &Path) -> &'a mut Command {
    command.current_dir(folder).env("HOME", folder).env("LTTNG_HOME", folder);
    command.env("LTTNG_UST_REGISTER_TIMEOUT", "5000")
}

impl Drop for Lttng {
    fn drop(&mut self) {
        tracewing_testing::signal(self.daemon.id(), libc::SIGTERM);
        let _ = self.daemon.wait();
    }
}

#[test]
fn each_command_of_the_page_does_what_it_says() {
    let sessions = Background::new();
    let Some(lttng) = Lttng::start(sessions.folder()) else { return };
    let mut emitted = Vec::new();
    for line in PAGE.lines().filter_map(|line| line.strip_prefix("$ ")) {
        let ran = match line.split(' ').next() {
            Some("lttng") => lttng.command(line).stdout(Stdio::piped()).stderr(Stdio::piped()).ran(),
            Some("tracewing") => {
                let line = format!("{}{}", harness::TRACEWING, &line["tracewing".len()..]);
                sessions.command(&[], "bash").args(["-c", &line]).ran()
            }
            _ => {
                emitted.push(Pilot::start(&sessions).emit(100));
                lttng.command("./app 2 2").stdout(Stdio::null()).ran()
            }
        };
        // Texts of LTTng's program are no UTF-8.
        let printed = String::from_utf8_lossy(&ran.stdout);
        assert!(ran.status.success(), "{line}: {printed}\n{}", ran.notes());
        assert!(line != "lttng view web" || printed.lines().count() > 10, "{printed}");
    }
    let only = |folder: &str| {
        let mut starts = fs::read_dir(sessions.folder().join(folder)).unwrap();
        starts.next().unwrap().unwrap().path()
    };
    let main =
        list(&only("traces").join("main")).iter().filter(|event| event.name == "pilot:count").count() as u64;
    assert_eq!(main, emitted[..2].iter().sum::<u64>(), "the two programs that have started meanwhile");
    assert_eq!(fs::read_dir(only("flights").join("main")).unwrap().count(), 2, "asked for, and at the end");
}
