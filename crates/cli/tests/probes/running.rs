//! USDT probes, processes that run, and what a killed recorder leaves.

use super::*;

#[test]
fn usdt_probes_are_exact_and_have_their_arguments_and_semaphores() {
    if !probeable() {
        return;
    }
    for options in [&["-O0"][..], &["-O2"], &["-O2", "-static"]] {
        let folder = tempfile::tempdir().unwrap();
        let Some(usdt) = compile(folder.path(), "usdt", options) else { return };
        let usdt = usdt.to_str().unwrap();
        let alone = Command::new(usdt).arg("100").stdin(Stdio::null()).ran();
        assert_eq!(alone.stdout, b"0\n");
        let named_argument = format!("{usdt}:shop:taken who=arg2:string");
        let recording =
            record(&["--usdt", "shop:*", "--usdt", &named_argument], &[usdt, &ORDERS.to_string()]);
        assert_eq!(recording.stdout, format!("{ORDERS}\n"), "the program has seen that it is wanted");
        assert!(
            recording.stderr.contains("shop:taken: left out arg7 (8@(") && recording.stderr.contains("index"),
            "{}",
            recording.stderr
        );
        let events = events(&recording);
        let taken = named(&events, "shop:taken");
        assert_eq!(taken.len() as u64, 2 * ORDERS);
        let (texts, all): (Vec<&Value>, Vec<&Value>) =
            taken.iter().partition(|taken| taken.get("who").is_some());
        assert_eq!((texts.len(), &texts[1]["who"]), (ORDERS as usize, &json!("Ann")));
        for (i, taken) in all.iter().enumerate() {
            let i = i as i64;
            let expected = json!({
                "ip": taken["ip"], "arg1": i - 1, "arg2": taken["arg2"], "arg3": i % 256, "arg4": 77, "arg5": 41, "arg6": -5
            });
            assert_eq!(**taken, expected, "{options:?}");
        }
        // Its two places.
        let done = named(&events, "shop:done");
        assert_eq!(done.len() as u64, ORDERS + 1);
        assert_eq!(done.last().unwrap()["arg1"], -7);
    }
}

#[test]
fn a_process_that_runs_is_probed_and_shows_what_is_on() {
    if !probeable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(usdt) = compile(folder.path(), "usdt", &["-O1"]) else { return };
    let mut child =
        Command::new(&usdt).arg("1").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
    let sites = |pid: u32| -> Vec<(String, String)> {
        let mut command = harness::tracewing();
        let output = command.args(["sites", "--format", "json", &pid.to_string()]).ran();
        let answer: Value = output.json();
        let text = |site: &Value, field: &str| site[field].as_str().unwrap().to_owned();
        let sites = answer["sites"].as_array().unwrap().iter();
        sites.map(|site| (text(site, "name"), text(site, "state"))).collect()
    };
    let states = |taken: &str, done: &str| {
        [("shop:done", done), ("shop:done", done), ("shop:taken", taken)]
            .map(|(name, state)| (name.to_owned(), state.to_owned()))
    };
    assert_eq!(sites(child.id()), states("off", "off"));
    let probe = format!("{}:shop:taken", usdt.display());
    let mut recorder = harness::tracewing()
        .current_dir(folder.path())
        .args(["record", "-q", "--system-wide", "--no-kernel", "-o", "t", "--usdt", &probe])
        .args(["--", "sleep", "100"])
        .spawn()
        .unwrap();
    let begin = Instant::now();
    while sites(child.id()) != states("on", "off") {
        assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", sites(child.id()));
        std::thread::sleep(Duration::from_millis(20));
    }
    // SAFETY: a process that this test has started and not waited for.
    unsafe { libc::kill(recorder.id() as i32, libc::SIGTERM) };
    recorder.wait().unwrap();
    assert_eq!(sites(child.id()), states("off", "off"));
    drop(child.stdin.take());
    child.wait().unwrap();
}

#[test]
fn a_killed_recorder_leaves_no_probe() {
    if !probeable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut recorder = recorder(folder.path(), &["--probe", "libc.so.6:getppid"]);
    let mut recorder = recorder.args(["sleep", "100"]).spawn().unwrap();
    let probes = || {
        let text = fs::read_to_string("/sys/kernel/tracing/uprobe_events").unwrap();
        text.matches(&format!(":tracewing_{}_", recorder.id())).count()
    };
    let wait_for = |count: usize| {
        let begin = Instant::now();
        while probes() != count {
            assert!(begin.elapsed() < Duration::from_secs(60), "{} probes", probes());
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    wait_for(1);
    // SAFETY: a process that this test has started and not waited for.
    unsafe { libc::kill(recorder.id() as i32, libc::SIGKILL) };
    wait_for(0);
    recorder.wait().unwrap();
}

#[test]
fn python_reports_its_audits_and_cpp_its_exceptions() {
    if !probeable() {
        return;
    }
    let python = "/usr/bin/python3";
    if Path::new(python).exists() {
        let script = "import sys\nfor i in range(1000): sys.audit('tracewing.test', i)\n";
        let probe = format!("{python}:python:audit event=arg1:string");
        let recording = record(&["--usdt", &probe], &[python, "-c", script]);
        let events = events(&recording);
        let audits = named(&events, "python:audit");
        assert_eq!(audits.iter().filter(|audit| audit["event"] == "tracewing.test").count(), 1000);
    } else {
        tracewing_testing::skip(
            tracewing_testing::Cause::File(std::path::Path::new(python)),
            format_args!("{python} is not there"),
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("throws.cpp");
    let text = "namespace shop { struct Till { void close(int); void close(long); }; \
                __attribute__((noinline)) void Till::close(int i) { if (i % 2) throw i; } \
                __attribute__((noinline)) void Till::close(long i) { throw i; } } \
                int main() { shop::Till till; int n = 0; \
                for (int i = 0; i < 100; i++) try { till.close(i); } catch (int) { n++; } return n != 50; }";
    fs::write(&source, text).unwrap();
    let made = Command::new("g++")
        .args(["-g", "-O1", "throws.cpp", "-o", "throws"])
        .current_dir(folder.path())
        .output();
    match made {
        Ok(Output { status, .. }) if status.success() => {}
        _ => {
            return tracewing_testing::skip(tracewing_testing::Cause::Program("g++"), "g++ is not installed");
        }
    }
    let throws = folder.path().join("throws");
    let throws = throws.to_str().unwrap();
    let close = format!("{throws}:shop::Till::close(int) i");
    let recording = record(&["--usdt", "libstdcxx:throw", "--probe", &close], &[throws]);
    let events = events(&recording);
    let calls = named(&events, "throws:shop::Till::close(int)");
    assert_eq!((calls.len(), &calls[7]["i"]), (100, &json!(7)));
    assert_eq!(named(&events, "libstdcxx:throw").len(), 50);
    let stderr = refused(&["--probe", &format!("{throws}:shop::Till::close")], &[throws]);
    assert!(stderr.contains("2 functions") && stderr.contains("_ZN4shop4Till5closeEl at 0x"), "{stderr}");
}
