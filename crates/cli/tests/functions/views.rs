//! Other views of calls than the table: replay, differences, flame graphs, slices.

use super::*;

#[test]
fn too_many_functions_within_each_other_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "g++", &["-pg", "-mfentry"]) else { return };
    let recording =
        record(&["--functions=recursive", "--sub-buffers", "64"], &[program.as_os_str(), "deep".as_ref()]);
    let table = json(&recording, &[]);
    let found = counted(&rows(&table))["recursive"];
    let not_followed = table["not_followed"].as_u64().unwrap();
    assert!(not_followed > 0 && found > 60_000, "{table}");
    assert_eq!(found + not_followed, reported(&recording.stdout)["recursive"]);
}

#[test]
fn a_flight_recorder_knows_names() {
    for (compiler, options) in BUILDS {
        let folder = tempfile::tempdir().unwrap();
        let Some(program) = program(folder.path(), compiler, options) else { continue };
        let small = ["--functions", "--flight-recorder", "--sub-buffer-size", "64K", "--sub-buffers", "4"];
        recorder(folder.path(), &small).arg(&program).arg("long").succeeds();
        let mut functions = harness::tracewing();
        functions.args(["functions", "t/snapshot-1", "--format", "json"]).current_dir(folder.path());
        let found = counted(&rows(&serde_json::from_slice(&functions.ran().stdout).unwrap()));
        assert!(found["inner"] > 1000 && found["inner"] < 150_000, "{compiler} {options:?}: {found:?}");
    }
}

#[test]
fn replay_has_each_call_where_it_was_made() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "g++", &["-finstrument-functions"]) else { return };
    let recording = record(&["--functions"], &[&program]);
    let replay = text(&recording, &["--replay", "-n", "12"]);
    let lines: Vec<String> = replay.lines().skip(1).map(|line| line.chars().skip(22).collect()).collect();
    let one =
        ["outer() {", "  inner();", "  inner();", "  inner();", "} /* outer */", "calls() {", "  called();"];
    assert_eq!(lines, [&one[..], &["} /* calls */"], &one[..4]].concat(), "{replay}");
    let has_duration: Vec<bool> =
        replay.lines().skip(1).map(|line| line.chars().take(10).any(|letter| letter != ' ')).collect();
    assert_eq!(has_duration[..8], [false, true, true, true, true, false, true, true]);
    let whole = text(&recording, &["--replay"]);
    let count = |text: &str| whole.lines().filter(|line| line.ends_with(text)).count();
    assert_eq!((count("recursive() {"), count("recursive();"), count("} /* recursive */")), (20, 1, 20));
}

#[test]
fn recordings_are_compared_and_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "g++", &["-finstrument-functions"]) else { return };
    let before = record(&["--functions=outer"], &[&program]);
    let after = record(&["--functions"], &[&program]);
    let other = after.trace();
    let difference = rows(&json(&before, &["--diff", other.to_str().unwrap()]));
    let calls = |name: &str| {
        ["calls", "calls_other", "calls_delta"].map(|column| difference[name][column].as_i64().unwrap())
    };
    assert_eq!(calls("outer"), [10, 10, 0]);
    assert_eq!(calls("inner"), [0, 30, 30]);
    let row = &difference["inner"];
    assert_eq!(row["total_ns"], 0);
    assert_eq!(row["total_other_ns"], row["total_delta_ns"]);

    let drawn = folder.path().join("graph.svg");
    text(&after, &["--flame-graph", drawn.to_str().unwrap()]);
    let svg = fs::read_to_string(drawn).unwrap();
    assert!(
        svg.starts_with("<?xml") && svg.contains("<title>outer(int) (") && svg.contains("inner(int)"),
        "{svg:.300}"
    );
}

#[test]
fn a_function_is_a_slice_for_other_viewers() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "g++", &["-finstrument-functions"]) else { return };
    let recording = record(&["--functions"], &[&program]);
    let reported = reported(&recording.stdout);
    let export = |format: &str| {
        let mut command = harness::tracewing();
        command.args(["export", "--format", format, "-o", "-"]).arg(recording.trace());
        String::from_utf8_lossy(&command.succeeds().stdout).into_owned()
    };
    let chrome: Value = serde_json::from_str(&export("chrome")).unwrap();
    let (mut open, mut calls) = (Vec::new(), BTreeMap::new());
    for event in chrome["traceEvents"].as_array().unwrap() {
        match event["ph"].as_str().unwrap() {
            "B" => {
                let name = event["name"].as_str().unwrap().split('(').next().unwrap().to_owned();
                let within: Option<&String> = open.last();
                assert!(name != "inner" || within.is_some_and(|name| name == "outer"), "inner in {within:?}");
                *calls.entry(name.clone()).or_default() += 1;
                open.push(name);
            }
            "E" => drop(open.pop().expect("a begin")),
            "i" => panic!("an event that is no slice: {event}"),
            _ => {}
        }
    }
    assert!(open.is_empty(), "{open:?}");
    assert_eq!(calls, reported);
    let paje = export("paje");
    let lines =
        |begin: &str| paje.lines().filter(|line| line.starts_with(begin) && line.contains(" SF F")).count();
    assert_eq!([lines("14 "), lines("9 ")], [reported.values().sum::<u64>() as usize; 2]);
    assert!(export("perfetto").contains("recursive(int)"));
}

#[test]
fn arguments_and_results_stay_as_they_are() {
    build(
        &[&["-p", "tracewing-preload"][..], if cfg!(debug_assertions) { &[] } else { &["--release"] }]
            .concat(),
    );
    let folder = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../preload/tests/programs/arguments.c");
    for options in [&["-O0"][..], &["-O2"], &["-O1", "-fcf-protection=full"], &["-O1", "-fno-pie", "-no-pie"]]
    {
        let program = folder.path().join("arguments");
        let mut gcc = Command::new("gcc");
        gcc.args(["-w", "-pg", "-mfentry", "-o"]).arg(&program).arg(&source).args(options);
        if !gcc.output().is_ok_and(|output| output.status.success()) {
            return tracewing_testing::skip(
                tracewing_testing::Cause::Listed("compiler option"),
                format_args!("gcc cannot make this with {options:?}"),
            );
        }
        let alone = Command::new(&program).current_dir(folder.path()).ran();
        let recording = record(&["--functions"], &[&program]);
        assert_eq!(recording.stdout, alone.text(), "{options:?}");
        let rows = rows(&json(&recording, &[]));
        let calls =
            |name: &str| rows.iter().find(|(known, _)| known.starts_with(name)).unwrap().1["calls"].clone();
        assert_eq!(["within", "apply", "variadic"].map(calls), [100, 100, 100], "{options:?}");
        let chosen = record(&["--functions", "within*"], &[&program]);
        let table = json(&chosen, &[]);
        assert_eq!(table["functions"][0]["calls"], 100, "{options:?}: {table}");
        assert_eq!(table["functions"].as_array().unwrap().len(), 1, "{options:?}");
    }
}
