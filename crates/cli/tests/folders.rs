//! What `tracewing` writes where another user can write, too: foreign folders, planted links, folders that
//! are swapped or deleted, and which users can read the result. The other user is a number without an entry
//! in any file.

mod harness;

use harness::RunExt;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const OTHER: &str = "54321";
const PRECIOUS: &str = "precious\n";

/// A folder that everybody can write to, without the sticky bit, and a file next to it that only root can.
struct Shared {
    folder: tempfile::TempDir,
}

impl Shared {
    /// `None` where there is no second user to be had.
    fn new() -> Option<Self> {
        let has_setpriv = || Command::new("setpriv").arg("--version").output().is_ok();
        if !rustix::process::geteuid().is_root() || !has_setpriv() {
            tracewing_testing::skip(tracewing_testing::Cause::Root, "a second user needs root and setpriv");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        mode(folder.path(), 0o755);
        fs::create_dir(folder.path().join("all")).unwrap();
        mode(&folder.path().join("all"), 0o777);
        fs::write(folder.path().join("victim"), PRECIOUS).unwrap();
        Some(Self { folder })
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("all")
    }

    /// Runs a script as the other user.
    fn other(&self, script: &str) -> Output {
        Command::new("sh").args(["-c", &as_other(script)]).current_dir(self.path()).ran()
    }

    /// Runs `tracewing` as root: exit status and what it says.
    fn tracewing(&self, arguments: &[&str]) -> (i32, String) {
        let mut command = harness::tracewing();
        command.args(arguments).current_dir(self.path()).stdin(Stdio::null());
        let Output { status, stdout, stderr } = command.ran();
        let text = [stdout, stderr].concat();
        (status.code().unwrap_or(-1), String::from_utf8_lossy(&text).into_owned())
    }

    /// Records a script, which root runs.
    fn record(&self, options: &[&str], script: &str) -> (i32, String) {
        self.tracewing(&[&["record", "--no-kernel"], options, &["--", "sh", "-c", script]].concat())
    }

    fn check_victim(&self, what: &str) {
        let victim = fs::read_to_string(self.folder.path().join("victim")).unwrap();
        assert_eq!(victim, PRECIOUS, "{what}: a file was overwritten through a link");
    }
}

/// The script as the other user's, for a shell of root.
fn as_other(script: &str) -> String {
    format!("setpriv --reuid={OTHER} --regid={OTHER} --clear-groups sh -c '{script}'")
}

/// Every file and folder at and below a path.
fn all(path: &Path) -> Vec<PathBuf> {
    let mut found = vec![path.to_owned()];
    if fs::symlink_metadata(path).unwrap().is_dir() {
        found.extend(fs::read_dir(path).unwrap().flat_map(|entry| all(&entry.unwrap().path())));
    }
    found
}

/// Whether group and others have only what they may have, and `less` is taken away.
fn check_modes(path: &Path, less: u32) {
    for path in all(path) {
        let data = fs::symlink_metadata(&path).unwrap();
        let most = if data.is_dir() { 0o750 } else { 0o640 } & !less;
        let mode = data.mode() & 0o7777;
        assert_eq!(mode & !most, 0, "{}: {mode:o}", path.display());
        assert_eq!(data.uid(), 0, "{}", path.display());
    }
}

#[test]
fn an_empty_folder_of_another_user_is_refused_and_its_links_are_not_followed() {
    let Some(shared) = Shared::new() else { return };
    let plant = "for name in .tracewing.json.new .classes.new user/.metadata.new; do ln -s ../../victim d/$name; done; sleep 0.1";
    for options in [&["-o", "d"][..], &["-o", "t", "--buffers-in", "d"], &["-o", "d", "--flight-recorder"]] {
        shared.other("rm -rf d; mkdir -m 777 d");
        let (status, said) = shared.record(options, &as_other(plant));
        shared.check_victim(&format!("{options:?}: {said}"));
        assert_eq!(status, 1, "{options:?}: {said}");
        assert!(said.contains(&format!("d: it belongs to user {OTHER}")), "{said}");
        assert!(!shared.path().join("t").exists(), "not removed");
    }
}

/// A stored recording, in a folder of root's.
const RECORDING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/recordings/clerks");

#[test]
fn what_is_made_of_recordings_goes_nowhere_that_another_user_has_prepared() {
    let Some(shared) = Shared::new() else { return };
    // Buffers of a recorder that is killed while it records; buffers of an ended process would be removed
    // soon.
    let options = ["-p", "tracewing", "--example", "tasks"];
    let program = tracewing_testing::build(env!("CARGO_TARGET_TMPDIR"), &options).join("examples/tasks");
    let script = format!(
        "{} endless never > ../said & until grep -qs ready ../said; do sleep .01; done; kill -9 $PPID $!",
        program.display()
    );
    shared.record(&["-o", "../killed", "--buffers-in", "../buffers"], &script);
    let folders: [&[&str]; 3] = [
        &["convert", RECORDING, "--format", "ctf2", "-o", "out"],
        &["extract", RECORDING, "-o", "out"],
        &["recover", "../buffers", "--all", "-o", "out"],
    ];
    let files: [&[&str]; 5] = [
        &["convert", RECORDING, "--format", "csv", "-o", "out"],
        &["export", RECORDING, "--format", "chrome", "-o", "out"],
        &["export", RECORDING, "--format", "paje", "-o", "out"],
        &["functions", RECORDING, "--flame-graph", "out"],
        &["locks", RECORDING, "--histogram", "--svg", "out"],
    ];
    for (prepared, commands) in [
        (
            "mkdir -m 777 out; ln -s ../../victim out/metadata; ln -s ../../victim out/.tracewing.json.new",
            &folders[..],
        ),
        ("ln -s ../victim out", &files),
        ("echo mine > out; chmod 666 out", &files),
        ("mkdir -m 777 own; ln -s own out", &folders),
    ] {
        for command in commands {
            let prepared_by_other = shared.other(&format!("rm -rf out own; {prepared}"));
            assert!(prepared_by_other.status.success(), "{prepared_by_other:?}");
            let before = shared.other("ls -lR out").stdout;
            let (status, said) = shared.tracewing(command);
            shared.check_victim(&format!("{command:?}: {said}"));
            assert_eq!(status, 1, "{prepared}: {command:?}: {said}");
            let after = shared.other("ls -lR out").stdout;
            assert_eq!(after, before, "{prepared}: {command:?}: {said}");
        }
    }
    shared.other("rm -rf out own");
    for command in folders.iter().chain(&files) {
        let (status, said) = shared.tracewing(command);
        assert_eq!(status, 0, "{command:?}: {said}");
        check_modes(&shared.path().join("out"), 0);
        let out = shared.path().join("out");
        if out.is_dir() { fs::remove_dir_all(out).unwrap() } else { fs::remove_file(out).unwrap() }
    }
}

#[test]
fn a_folder_that_others_can_write_and_a_link_to_a_folder_are_refused() {
    let Some(shared) = Shared::new() else { return };
    let folder = shared.path().join("open");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o770)).unwrap();
    let (status, said) = shared.record(&["-o", "open"], "true");
    assert!(status == 1 && said.contains("may write to it") && said.contains("chmod go-w"), "{said}");
    let own = shared.folder.path().join("own");
    fs::create_dir(&own).unwrap();
    symlink(&own, shared.path().join("link")).unwrap();
    let (status, said) = shared.record(&["-o", "link"], "true");
    assert!(status == 1 && said.contains("it is a symbolic link"), "{said}");
    assert_eq!(fs::read_dir(&own).unwrap().count(), 0);
    let (status, said) = shared.record(&["-o", "../own"], "true");
    assert_eq!(status, 0, "an empty folder of its own is used: {said}");
}

#[test]
fn a_folder_that_is_swapped_while_it_is_written_harms_no_other_file() {
    let Some(shared) = Shared::new() else { return };
    let swap = |name: &str| {
        format!(
            "mv {name} away; mkdir {name} {name}/user; ln -s ../../victim {name}/.tracewing.json.new; \
             ln -s ../../../victim {name}/user/.metadata.new; sleep 1.5"
        )
    };
    let (status, said) = shared.record(&["-o", "t"], &as_other(&swap("t")));
    shared.check_victim(&said);
    assert_eq!(status, 1, "{said}");
    assert!(said.contains("t was moved during the recording") && said.contains("all/away"), "{said}");
    let description = fs::read_to_string(shared.path().join("away/tracewing.json")).unwrap();
    assert!(description.contains("\"complete\""), "{description}");
    assert_eq!(fs::read_dir(shared.path().join("t")).unwrap().count(), 2, "what another user has put there");

    shared.other("rm -rf t");
    fs::remove_dir_all(shared.path().join("away")).unwrap();
    let (status, said) = shared.record(&["-o", "t", "--flight-recorder"], &as_other(&swap("t")));
    shared.check_victim(&said);
    assert_eq!(status, 1, "{said}");
    assert!(shared.path().join("away/snapshot-1/tracewing.json").exists(), "{said}");
}

#[test]
fn others_can_read_nothing_that_root_writes() {
    let Some(shared) = Shared::new() else { return };
    for (umask, less) in [("000", 0), ("022", 0o022), ("077", 0o077)] {
        let folder = format!("new/{umask}");
        let exe = harness::TRACEWING;
        let run = |arguments: String| {
            let script = format!("umask {umask}; exec {exe} {arguments}");
            let output = Command::new("sh").args(["-c", &script]).current_dir(shared.path()).ran();
            assert!(output.status.success(), "{arguments}: {output:?}");
        };
        run(format!("record -o {folder}/t sh -c 'sleep 0.01'"));
        run(format!("record --flight-recorder -o {folder}/f sleep 0.01"));
        run(format!(
            "record -o {folder}/u --buffers-in {folder}/b sh -c 'ls -ld {folder}/b {folder}/b/* > {folder}/modes'"
        ));
        if fs::read_dir(shared.path().join(&folder).join("t/kernel")).is_ok() {
            run(format!("convert --to ctf2 {folder}/t -o {folder}/c"));
            run(format!("convert --to csv -e sched_switch {folder}/t -o {folder}/csv"));
            run(format!("export --format chrome {folder}/t -o {folder}/chrome"));
        }
        let modes = shared.path().join(&folder).join("modes");
        let listed = fs::read_to_string(&modes).unwrap();
        assert!(listed.lines().count() >= 3 && listed.lines().all(|line| line[7..10] == *"---"), "{listed}");
        fs::remove_file(modes).unwrap();
        check_modes(&shared.path().join("new"), less);
        let read = shared.other(&format!("ls new || cat {folder}/t/tracewing.json"));
        assert!(!read.status.success(), "{read:?}");
        fs::remove_dir_all(shared.path().join("new")).unwrap();
    }
}

/// Records a script that does something to the output: exit status and what the recorder says.
fn record_and(options: &[&str], script: &str) -> (i32, String, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = harness::tracewing();
    command.args(["record", "--no-kernel"]).args(options).args(["--", "sh", "-c", script]);
    let Output { status, stderr, .. } = command.current_dir(folder.path()).ran();
    (status.code().unwrap(), String::from_utf8(stderr).unwrap(), folder)
}

#[test]
fn an_output_folder_that_is_deleted_is_reported_and_no_success() {
    let (status, said, folder) =
        record_and(&["-o", "t"], "rm -rf t; for i in 1 2 3 4 5 6; do sleep 0.5; done; touch end");
    assert_eq!(status, 1, "{said}");
    assert!(said.contains("t was deleted during the recording") && said.contains("record again"), "{said}");
    assert!(!said.contains("complete"), "{said}");
    assert!(said.contains("the recording is over; waiting for the command"), "noticed while it ran: {said}");
    assert!(folder.path().join("end").exists(), "the command runs on");
    for script in ["rm -rf t", "rm t/user/metadata", "rm -r t/user/index", "rm t/tracewing.json"] {
        let (status, said, _folder) = record_and(&["-o", "t"], script);
        assert!(status == 1 && said.contains("was deleted during the recording"), "{script}: {said}");
    }
    let (status, said, folder) = record_and(&["-o", "t"], "mv t elsewhere");
    assert!(status == 1 && said.contains("t was moved") && said.contains("/elsewhere"), "{said}");
    assert!(folder.path().join("elsewhere/tracewing.json").exists());
}

#[test]
fn deleted_folders_of_snapshots_and_buffers_are_reported() {
    let (status, said, _folder) = record_and(&["-o", "t", "--flight-recorder"], "rm -rf t; sleep 1.5");
    assert!(status == 1 && said.contains("t was deleted during the recording"), "{said}");
    let (status, said, folder) = record_and(&["-o", "t", "--buffers-in", "b"], "rm -rf b; sleep 1.5");
    assert!(status == 1 && said.contains("b was deleted during the recording"), "{said}");
    assert!(folder.path().join("t/tracewing.json").exists(), "the trace itself is whole: {said}");
    let (status, said, _folder) = record_and(&["-o", "t", "--flight-recorder"], "true");
    assert_eq!(status, 0, "{said}");
}

#[test]
fn links_in_a_recording_that_lead_out_of_it_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let exe = harness::TRACEWING;
    let run = |arguments: &[&str]| {
        let Output { status, stdout, stderr } =
            Command::new(exe).args(arguments).current_dir(folder.path()).ran();
        (status.success(), String::from_utf8([stdout, stderr].concat()).unwrap())
    };
    let (recorded, said) = run(&["record", "--no-kernel", "-o", "t", "true"]);
    assert!(recorded, "{said}");
    fs::write(folder.path().join("secret"), "only for its owner").unwrap();
    let link = folder.path().join("t/user/uid0_0");
    symlink("../../secret", &link).unwrap();
    for command in ["list", "info", "stats"] {
        let (read, said) = run(&[command, "t"]);
        assert!(
            !read && said.contains("uid0_0: a symbolic link leads out of the recording"),
            "{command}: {said}"
        );
    }
    let (read, said) = run(&["convert", "--to", "ctf2", "t", "-o", "out"]);
    assert!(!read && !folder.path().join("out").exists(), "{said}");
    fs::remove_file(&link).unwrap();
    symlink("t", folder.path().join("named")).unwrap();
    let (read, said) = run(&["info", "named"]);
    assert!(read, "a link that the user names is followed: {said}");
}
