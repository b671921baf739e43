//! Rotations of samples: files that were mapped earlier, and counters.

use super::*;

/// A row of a table of `profile`.
fn row(archive: &Path, options: &[&str], table: &str, is_meant: impl Fn(&Value) -> bool) -> Option<Value> {
    let profile = harness::json(archive, &[&["profile"], options].concat());
    profile[table].as_array().unwrap().iter().find(|row| is_meant(row)).cloned()
}

/// Nanoseconds for which the threads ran.
fn ran(archive: &Path) -> u64 {
    let clock = row(archive, &["--counters"], "counters", |row| row["counter"] == "task_clock");
    clock.unwrap()["value"].as_u64().unwrap()
}

/// A shell that works for each line that it reads.
const WORK: &str = "while read line; do i=0; while test $i -lt 100000; do i=$((i+1)); done; echo $line; done";

#[test]
fn each_archive_knows_the_files_that_were_mapped_before_it_and_counts_from_its_begin() {
    if !traceable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut recorder =
        kernel::start(folder.path(), &["--profile", "-k", "sched_switch"], &["sh", "-c", WORK]);
    let mut orders = recorder.stdin.take().unwrap();
    let mut answers = BufReader::new(recorder.stdout.take().unwrap());
    let mut paths = Vec::new();
    // Without work in the third.
    for works in [true, true, false] {
        if works {
            writeln!(orders, "go").unwrap();
            answers.read_line(&mut String::new()).unwrap();
        }
        let archive = run(&["rotate", &recorder.id().to_string()]);
        assert!(archive.status.success(), "{}", archive.notes());
        paths.push(PathBuf::from(archive.text().trim_end()));
    }
    drop(orders);
    recorder.stdout = Some(answers.into_inner());
    let recording = recorded::ended(folder, recorder);
    paths.push(archives(&recording.trace()).pop().unwrap());
    for (at, path) in paths.iter().enumerate() {
        check(path);
        let described = description(path)["profile_streams"].as_array().unwrap().clone();
        let state: u64 = described.iter().map(|stream| stream["state_events"].as_u64().unwrap_or(0)).sum();
        assert_eq!(state > 0, at > 0, "{described:?}");
    }
    for path in &paths[..2] {
        let is_shell = |row: &Value| row["object"].as_str().is_some_and(|object| object.ends_with("sh"));
        let shell = row(path, &["--by", "object"], "profile", is_shell);
        assert!(shell.is_some_and(|row| row["self_samples"].as_u64() > Some(10)), "{}", path.display());
    }
    let [first, second, idle, _] = [0, 1, 2, 3].map(|at| ran(&paths[at]));
    assert!(idle < first && idle < second, "{first} {second} {idle} ns");
    assert_eq!(ran(&recording.trace()), paths.iter().map(|path| ran(path)).sum::<u64>());
}
