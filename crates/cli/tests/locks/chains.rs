//! Call chains of acquisitions.

use super::*;

#[test]
fn chains_of_all_acquisitions_or_of_none() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "allocator", &[]) else { return };
    for chains in ["all", "contended", "none"] {
        let recording = record_locks(&["--lock-chains", chains, "-e", "none:*"], &program);
        assert_eq!(recording.stdout, "1000 and more\n");
        let events = recording.events();
        // The program's own thread: where that ends the process, the agent's can be between any two events.
        let own = events.iter().find(|event| event.name == "lock:acquired").expect("it is recorded").tid;
        let of_own = events.iter().filter(|event| event.tid == own);
        let count = |name: &str| of_own.clone().filter(|event| event.name == name).count();
        // The allocator's lock, before and after `main` begins; whatever -e says.
        let acquired = count("lock:acquired");
        assert!(acquired >= 1000, "{acquired}");
        let brings = |event: &&Event| event.name == "lock:shadowed" && event.payload["function"] == "malloc";
        let path = events.iter().find(brings).expect("it is recorded").payload["path"].as_str();
        assert_eq!(path.map(Path::new), Some(&*program));
        let expected = match chains {
            "all" => acquired,
            "contended" => count("lock:requested"),
            _ => 0,
        };
        assert_eq!(count("lock:called_from"), expected, "{chains}");
    }
}

#[test]
fn a_flight_recorder_has_what_its_chains_mean_however_fast_it_forgets() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "allocator", &[]) else { return };
    let place = tempfile::tempdir().unwrap();
    let buffers = ["--flight-recorder", "--sub-buffer-size", "4K", "--sub-buffers", "2"];
    let mut recorder = recorder(place.path(), &[&["--locks", "--lock-chains", "all"], &buffers[..]].concat());
    assert!(recorder.arg(program).ran().status.success());
    let events = recorded::list(&place.path().join("t/snapshot-1"));
    let of = |name: &'static str| events.iter().filter(move |event| event.name == name);
    let reported: BTreeSet<u64> = of("lock:call_chain").map(|event| event.number("chain")).collect();
    let named: BTreeSet<u64> = of("lock:called_from").map(|event| event.number("chain")).collect();
    assert!((1..1000).contains(&of("lock:called_from").count()), "only the last are there");
    assert!(named.is_subset(&reported), "{named:x?} are named, {reported:x?} recorded");
}

#[test]
fn chains_continue_through_code_without_tables() {
    let folder = tempfile::tempdir().unwrap();
    let without_tables = [
        "-fno-omit-frame-pointer",
        "-fno-asynchronous-unwind-tables",
        "-fno-unwind-tables",
        "-fcf-protection=none",
    ];
    let Some(program) = program(folder.path(), "frames", &without_tables) else { return };
    let recording = record_locks(&["--lock-chains", "all", "-e", "none:*"], &program);
    assert_eq!(recording.stdout, "done\n", "{}", recording.stderr);
    let found = table(&recording, &["--by", "chain"]);
    // The C library's functions have tables, and need no frame pointers; which there are is its own affair.
    let own = ["takes", "wild", "compares", "sorts", "in_thread", "on_stack", "main", "_start", "clone3"];
    let chains: BTreeSet<String> = found["locks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            let names = row["at"].as_str().unwrap().split(" < ").map(|at| at.split('+').next().unwrap());
            names.filter(|name| own.contains(name)).collect::<Vec<_>>().join(" < ")
        })
        .filter(|chain| chain.starts_with("takes"))
        .collect();
    let expected = [
        "takes < compares < sorts < in_thread < clone3",
        "takes < compares < sorts < main < _start",
        "takes < main < _start",
        "takes < wild",
    ];
    assert_eq!(chains.iter().map(String::as_str).collect::<Vec<_>>(), expected);
}

#[test]
fn code_that_a_program_has_made_itself_has_addresses_for_names() {
    let folder = tempfile::tempdir().unwrap();
    // Its own code has frame pointers, so that chains continue beyond code without tables.
    let Some(program) = program(folder.path(), "jit", &["-fno-omit-frame-pointer"]) else { return };
    let recording = record_locks(&["--lock-chains", "all"], &program);
    let made: BTreeSet<&str> = recording.stdout.lines().collect();
    assert_eq!(made.len(), 1, "both at the same place: {}", recording.stdout);
    let page = made.first().unwrap().strip_suffix("000").unwrap();
    let acquired = |by: &str| -> Vec<(String, u64)> {
        let found = table(&recording, &["--by", by]);
        let rows = found["locks"].as_array().unwrap().iter();
        let row = |row: &Value| (row["at"].as_str().unwrap().to_owned(), row["acquired"].as_u64().unwrap());
        let mut own: Vec<_> = rows.map(row).filter(|(at, _)| at.starts_with(page)).collect();
        own.sort();
        own
    };
    let offsets = ["00c", "010"]; // after the calls
    let callers = offsets.map(|offset| (format!("{page}{offset}"), 100));
    assert_eq!(acquired("caller"), callers);
    let chains = acquired("chain");
    let [(with_frame, 100), (without, 100)] = &chains[..] else { panic!("{chains:?}") };
    let (with_frame, own) = with_frame.split_once(" < ").expect("its caller is there");
    assert!(
        with_frame == callers[0].0 && own.starts_with("takes+") && own.contains(" < main+"),
        "{chains:?}"
    );
    assert_eq!(*without, callers[1].0, "nothing leads on");
}
