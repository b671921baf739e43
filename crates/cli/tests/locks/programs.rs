//! Programs: those whose locks cannot be recorded, sanitizers, and locks of their own.

use super::*;
use std::os::unix::fs::MetadataExt;

/// What the recorder says, where the program itself does what it does in any case.
fn said(program: &Path) -> String {
    let place = tempfile::tempdir().unwrap();
    let child = recorder(place.path(), &["--locks"]).arg(program).spawn().unwrap();
    let recording = ended(place, child);
    assert_eq!(recording.stdout, "1000 and more\n");
    recording.stderr
}

#[test]
fn programs_whose_locks_cannot_be_recorded_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let Some(ordinary) = program(folder.path(), "allocator", &[]) else { return };
    assert!(!said(&ordinary).contains("locks:"));
    let script = folder.path().join("script");
    fs::write(&script, format!("#!/bin/sh\nexec {}\n", ordinary.display())).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    assert!(!said(&script).contains("locks:"));
    if am_root() {
        chown(&ordinary, Some(65534), None).unwrap();
        fs::set_permissions(&ordinary, fs::Permissions::from_mode(0o4755)).unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let said = said(&ordinary);
        assert!(said.contains("gets privileges when it is executed"), "{said}");
    }
    if let Some(without_loader) = program(folder.path(), "allocator", &["-static"]) {
        let said = said(&without_loader);
        assert!(said.contains("is statically linked"), "{said}");
    }
}

#[test]
fn programs_that_the_command_starts_are_reported_too() {
    let folder = tempfile::tempdir().unwrap();
    if !harness::traceable() {
        return;
    }
    let Some(without_loader) = program(folder.path(), "allocator", &["-static"]) else { return };
    let privileged = folder.path().join("privileged");
    tracewing_testing::copy_program("/bin/true", &privileged);
    chown(&privileged, Some(65534), None).unwrap();
    fs::set_permissions(&privileged, fs::Permissions::from_mode(0o4755)).unwrap();
    let name = without_loader.file_name().unwrap().to_str().unwrap();
    for options in [&["--locks"][..], &["--functions"], &["--locks", "-k", "sched_switch"]] {
        let place = tempfile::tempdir().unwrap();
        let script =
            format!("cd {}; ./{name}; ./{name}; ./privileged; sleep 0.2; true", folder.path().display());
        let child = kernel_common::record(place.path(), options, &["sh", "-c", &script]).spawn().unwrap();
        let recording = ended(place, child);
        let notes: Vec<_> = recording.summary["notes"].as_array().unwrap().iter().collect();
        let has = |text: &str| {
            notes.iter().filter(|note| note.as_str().is_some_and(|note| note.contains(text))).count()
        };
        let of_static = has(&format!(" ./{name} is statically linked"));
        assert_eq!((of_static, has(" ./privileged gets privileges")), (1, 1), "{options:?}: {notes:?}");
    }
}

#[test]
fn without_a_library_that_can_be_loaded_nothing_begins() {
    let folder = tempfile::tempdir().unwrap();
    let copy = |to: &str| {
        let place = folder.path().join(to);
        fs::create_dir(&place).unwrap();
        tracewing_testing::copy_program(harness::TRACEWING, place.join("tracewing"));
        place
    };
    let Some(_) = program(folder.path(), "allocator", &[]) else { return };
    let own = Path::new(harness::TRACEWING).with_file_name("libtracewing_preload.so");
    let own = fs::read(own).unwrap();
    let with = |to: &str, library: &[u8]| {
        let place = copy(to);
        fs::write(place.join("libtracewing_preload.so"), library).unwrap();
        place
    };
    for (place, reported) in [
        (copy("without"), "tracewing cannot write it to the cache folder"),
        (with("un usual", b""), "spaces"),
        (with("junk", b"no library"), "is not the library that locks and functions need"),
        (with("half", &own[..own.len() / 2]), "or not all of it"),
        (with("other", &fs::read("/bin/true").unwrap()), "is not the library"),
    ] {
        let mut command = Command::new(place.join("tracewing"));
        command.current_dir(&place).env("XDG_CACHE_HOME", "/proc").args([
            "record",
            "--no-kernel",
            "--locks",
            "-o",
            "t",
            "--",
            "touch",
            "began",
        ]);
        let output = command.ran();
        let stderr = output.notes();
        assert!(output.status.code() == Some(1) && stderr.contains(reported), "{stderr}");
        assert!(!place.join("t").exists() && !place.join("began").exists());
    }
}

/// As after `cargo install`: the executable is all that there is.
#[test]
fn the_library_in_the_executable_is_enough() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "allocator", &[]) else { return };
    let (command, cache) = (folder.path().join("tracewing"), folder.path().join("cache"));
    tracewing_testing::copy_program(harness::TRACEWING, &command);
    let recorded = |trace: &str| {
        let mut record = Command::new(&command);
        record.current_dir(folder.path()).env("XDG_CACHE_HOME", &cache);
        record.args(["record", "-q", "--no-kernel", "--locks", "-o", trace, "--"]).arg(&program);
        let output = record.ran();
        assert!(output.status.success(), "{}", output.notes());
        let info = harness::of(&folder.path().join(trace), &["info"]).ran();
        assert!(info.text().contains("lock:"), "{}", info.text());
        let kept = fs::read_dir(cache.join("tracewing/library")).unwrap();
        kept.map(|kept| fs::metadata(kept.unwrap().path().join("libtracewing_preload.so")).unwrap().ino())
            .collect()
    };
    let first: Vec<u64> = recorded("first");
    assert_eq!((first.len(), recorded("second")), (1, first), "the second recording uses the same file");
}

#[test]
fn sanitizers_work_as_they_do_without() {
    let folder = tempfile::tempdir().unwrap();
    if let Some(program) = program(folder.path(), "crash", &["-fsanitize=address"]) {
        let program = program.to_str().unwrap();
        for command in [&[program][..], &["sh", "-c", program]] {
            let place = tempfile::tempdir().unwrap();
            let mut recorder = recorder(place.path(), &["--locks"]);
            let output = recorder.args(command).env("ASAN_OPTIONS", "detect_leaks=0").ran();
            let said = output.notes();
            let reported = "AddressSanitizer, which lets no other library be loaded before its own: it gets \
                        ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0";
            assert_eq!(said.contains(reported), command == [program], "{said}");
            assert_eq!(output.status.code(), Some(134), "{said}");
            let events = recorded::list(&place.path().join("t"));
            assert!(events.iter().any(|event| event.name == "lock:requested"), "{command:?}: {said}");
        }
    }
    // Its lock functions are called by ours.
    if let Some(program) = program(folder.path(), "crash", &["-fsanitize=thread"]) {
        let place = tempfile::tempdir().unwrap();
        let output = recorder(place.path(), &["--locks"]).arg(program).ran();
        assert_eq!(output.status.code(), Some(134), "{}", output.notes());
        let events = recorded::list(&place.path().join("t"));
        assert!(events.iter().any(|event| event.name == "lock:requested"));
    }
}

#[test]
fn a_child_under_a_sanitizer_that_ends_it_for_a_thread_has_none() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "forked", &["-fsanitize=thread"]) else { return };
    let place = tempfile::tempdir().unwrap();
    let output = recorder(place.path(), &["--locks"]).arg(program).ran();
    assert_eq!(output.status.code(), Some(7), "{}", output.notes());
}

#[test]
fn programs_with_their_own_locks_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "own", &["-rdynamic"]) else { return };
    let recording = record_locks(&[], &program);
    assert_eq!(recording.stdout, "1\n");
    let events = recording.events();
    let shadowed = events.iter().find(|event| event.name == "lock:shadowed").expect("is reported");
    assert_eq!(shadowed.payload["function"], "pthread_mutex_lock");
    assert_eq!(shadowed.payload["path"].as_str().map(Path::new), Some(&*program));
}

#[test]
fn stubs_in_the_program_are_not_taken_for_functions() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "pointers", &["-no-pie", "-fno-pie"]) else { return };
    let events = record_locks(&[], &program).events();
    let shadowed: Vec<_> =
        events.iter().filter(|event| event.name == "lock:shadowed").map(|event| &event.payload).collect();
    assert!(shadowed.is_empty(), "{shadowed:?}");
    assert!(events.iter().any(|event| event.name == "lock:acquired"));
}
