//! Tasks that are older than an archive: each archive names those that run in it.

use super::*;

/// The tasks of an archive by name, without those that it does not name.
fn named(archive: &Path) -> Vec<String> {
    let table = harness::json(archive, &["tasks", "-n", "100"]);
    let names = table["tasks"].as_array().unwrap().iter().filter_map(|task| task["name"].as_str());
    let mut names: Vec<String> = names.filter(|name| !name.is_empty()).map(str::to_owned).collect();
    names.sort();
    names
}

#[test]
fn a_later_archive_names_the_tasks_that_run_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let resident = recorded::build(&["-p", "tracewing-tokio", "--example", "resident_tasks"]);
    let mut command = recorder(folder.path(), &[]);
    let mut rotated = Rotated::of(folder, command.arg(resident.join("examples/resident_tasks")));
    assert_eq!(rotated.answer(), "ready");
    let first = rotated.rotate();
    let present = archives(&rotated.trace()).pop().unwrap();
    let serve = "resident_tasks::serve".to_owned();
    // The program learns of the rotation at some time; the task is reported when it next runs.
    tracewing_testing::wait_until("the task is reported again", || {
        assert_eq!(rotated.order("serve 1"), "done");
        named(&present).contains(&serve)
    });
    assert_eq!(rotated.order("release"), "done");
    let second = rotated.rotate();
    let recording = rotated.end();
    assert_eq!(named(&first), ["aborted", "keeper", "resident_tasks::serve", "waiter"]);
    assert_eq!(named(&second), ["keeper", "resident_tasks::serve", "waiter"]);
    assert_eq!(named(&recording.trace()), named(&first), "the same tasks, not new ones");
}
