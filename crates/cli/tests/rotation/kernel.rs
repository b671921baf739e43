//! Rotations of kernel events: the state dump, and each event in one archive.

use super::*;

/// System calls that a command makes, by the numbers of events in each archive.
fn writes(archive: &Path) -> u64 {
    list(archive).iter().filter(|event| event.name == "syscall_entry_write").count() as u64
}

pub fn start(folder: &Path, options: &[&str], command: &[&str]) -> Child {
    let mut tracewing = harness::tracewing();
    tracewing.current_dir(folder).args(["record", "--format", "json", "-o", "t"]).args(options).arg("--");
    tracewing.args(command).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    tracewing.spawn().unwrap()
}

#[test]
fn kernel_events_are_in_one_archive_each() {
    if !traceable() {
        return;
    }
    const WRITES: u64 = 100_000;
    const ROTATIONS: u64 = 6;
    let folder = tempfile::tempdir().unwrap();
    let script = format!("dd if=/dev/zero of=/dev/null bs=1 count={WRITES} status=none");
    let mut recorder = start(
        folder.path(),
        &["-k", "syscalls:sys_enter_write", "-k", "sched_switch"],
        &["sh", "-c", &script],
    );
    let mut rotations = 0;
    while rotations < ROTATIONS && recorder.try_wait().unwrap().is_none() {
        // The last one may come too late.
        rotations += u64::from(run(&["rotate", &recorder.id().to_string()]).status.success());
    }
    let recording = recorded::ended(folder, recorder);
    assert!(rotations > 0, "{}", recording.stderr);
    let paths = archives(&recording.trace());
    let all: Vec<Found> = paths.iter().map(|path| check(path)).collect();
    let found: u64 = paths.iter().map(|path| writes(path)).sum();
    let lost: u64 = all.iter().map(|found| found.lost).sum();
    assert_eq!(lost, recording.lost());
    assert!((found..=found + lost).contains(&WRITES), "{found} of {WRITES} and {lost} lost");
    for stream in 0.. {
        let name = format!("kernel/channel_{stream}");
        let parts: Vec<&PathBuf> = paths.iter().filter(|path| path.join(&name).exists()).collect();
        if parts.is_empty() {
            break;
        }
        assert_ordered(&parts, stream);
    }
    let last = paths.last().unwrap();
    let dumped =
        list(last).iter().filter(|event| event.name == "lttng_statedump_process_state").count() as u64;
    assert!(dumped > 0, "no state dump");
    let described = description(last)["kernel_streams"].as_array().unwrap().clone();
    let state: u64 = described.iter().map(|stream| stream["state_events"].as_u64().unwrap_or(0)).sum();
    assert_eq!(state, dumped);
}

/// The events of a CPU in an archive end before those in the next one begin, state dumps aside.
fn assert_ordered(parts: &[&PathBuf], cpu: u64) {
    let mut last = 0;
    for part in parts {
        let here: Vec<u64> = list(part)
            .iter()
            .filter(|event| event.cpu == cpu && !event.name.starts_with("lttng_statedump_"))
            .map(|event| event.stamp)
            .collect();
        let (Some(first), Some(end)) = (here.iter().min(), here.iter().max()) else { continue };
        assert!(last <= *first, "CPU {cpu}: {first} after {last} in {}", part.display());
        last = *end;
    }
}

/// Whatever runs has a name and a process in each archive, though it began in an earlier one.
#[test]
fn a_later_archive_knows_the_threads_that_live() {
    if !traceable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut recorder = start(
        folder.path(),
        &["--system-wide", "-k", "sched_*"],
        &["sh", "-c", "while read line; do echo $line; done"],
    );
    let mut orders = recorder.stdin.take().unwrap();
    let mut answers = BufReader::new(recorder.stdout.take().unwrap());
    for order in ["one", "two"] {
        writeln!(orders, "{order}").unwrap();
        let mut answer = String::new();
        answers.read_line(&mut answer).unwrap();
        let archive = run(&["rotate", &recorder.id().to_string()]).text();
        let archive = Path::new(archive.trim_end());
        check(archive);
        let threads = harness::json(archive, &["threads"]);
        let shell = threads["threads"].as_array().unwrap().iter().find(|thread| thread["name"] == "sh");
        assert!(shell.is_some_and(|shell| shell["process"].is_number()), "{order}: {threads}");
    }
    drop(orders);
    recorder.stdout = Some(answers.into_inner());
    recorded::ended(folder, recorder);
}
