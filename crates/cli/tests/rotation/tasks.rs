//! Tasks that are older than an archive: each archive names those that run in it, and its number of
//! events is what they emit, without their names.

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

#[test]
fn what_is_reported_again_is_state_and_no_event() {
    const MEMBERS: u64 = 8;
    let folder = tempfile::tempdir().unwrap();
    let rules = ["-e", "crew:*", "-e", "user_thread:existed"];
    let mut command = recorder(folder.path(), &rules);
    let mut rotated = Rotated::of(folder, command.arg(program("crew")).arg(MEMBERS.to_string()));
    let (mut all, mut numbers) = (0, Vec::new());
    for round in 1..=3 {
        // The program learns of the rotation at some time.
        tracewing_testing::wait_until("all report themselves", || {
            rotated.order("run") == MEMBERS.to_string()
        });
        let emitted: u64 = rotated.order(&format!("emit {}", 100 * round)).parse().unwrap();
        // The program's only thread announces itself once.
        numbers.push(emitted - all + u64::from(round == 1));
        all = emitted;
        rotated.rotate();
    }
    let recording = rotated.end();
    let whole = description(&recording.trace());
    let number = |of: &Value, name: &str| of[name].as_u64().unwrap();
    for (path, (listed, emitted)) in
        archives(&recording.trace()).iter().zip(whole["archives"].as_array().unwrap().iter().zip(&numbers))
    {
        assert_eq!((number(listed, "events"), number(listed, "lost_events")), (*emitted, 0), "{listed}");
        let events = list(path);
        let state = number(listed, "state_events");
        assert_eq!(events.len() as u64, emitted + state, "{listed}");
        let reported = events.iter().filter(|event| event.name.starts_with("user_thread:")).count() as u64;
        assert!((2 * MEMBERS..=state).contains(&reported), "{reported}: {listed}");
        let stats = harness::json(path, &["stats"]);
        assert_eq!(
            (number(&stats["total"], "events"), number(&stats["total"], "state_events")),
            (emitted + state, state)
        );
        let said = harness::print(path, &["stats"]).0;
        let expected =
            format!("of these, the recorder counts {emitted} as events, and {state} as repeated state");
        assert!(said.contains(&expected), "{said}");
        let part = harness::json(path, &["stats", "-e", "crew:*"]);
        assert_eq!(part["total"]["state_events"], Value::Null, "of a part, this is unknown");
    }
    assert_eq!(number(&recording.summary, "events"), numbers.iter().sum::<u64>());
    let stats = harness::json(&recording.trace(), &["stats"]);
    let [events, state] = ["events", "state_events"].map(|name| number(&stats["total"], name));
    assert_eq!(events - state, numbers.iter().sum::<u64>(), "of all archives");
}
