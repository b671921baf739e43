//! `tracewing record --probe` and `--usdt`: events of C programs, compiled in several ways, and of programs
//! of the distribution, against what they are known to do.

mod recorded;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use recorded::{Event, Recording, list, program, record, recorder};
use serde_json::{Value, json};

const ORDERS: u64 = 1000;

/// Whether probes can be placed here; says so if not.
fn probeable() -> bool {
    if let Err(missing) = tracewing_kernel::privileges() {
        tracewing_testing::skip(tracewing_testing::Cause::KernelEvents, format_args!("{missing}"));
        return false;
    }
    let exists = Path::new("/sys/kernel/tracing/uprobe_events").exists();
    if !exists {
        tracewing_testing::skip(tracewing_testing::Cause::Uprobes, "this kernel has no uprobes");
    }
    exists
}

/// Compiles a program of `crates/programs/tests/programs` with gcc; `None` where there is none.
fn compile(folder: &Path, name: &str, options: &[&str]) -> Option<PathBuf> {
    compile_with("gcc", folder, name, options)
}

fn compile_with(compiler: &str, folder: &Path, name: &str, options: &[&str]) -> Option<PathBuf> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../programs/tests/programs");
    let made = folder.join(name);
    let source = sources.join(name).with_extension("c");
    match Command::new(compiler).arg(source).arg("-o").arg(&made).args(options).output() {
        Ok(output) if output.status.success() => Some(made),
        Ok(output) => panic!("{}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => {
            tracewing_testing::skip(
                tracewing_testing::Cause::Program(compiler),
                format_args!("{compiler}: {error}"),
            );
            None
        }
    }
}

fn events(recording: &Recording) -> Vec<Event> {
    assert_eq!(recording.lost(), 0);
    list(&recording.trace())
}

fn named<'a>(events: &'a [Event], name: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event.name == name).map(|event| &event.payload).collect()
}

/// Runs a recorder that shall refuse; gives what it says.
fn refused(options: &[&str], command: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let output = recorder(folder.path(), options).args(command).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{stderr}");
    assert!(!folder.path().join("t").exists(), "{stderr}");
    assert_eq!(stderr.matches("error:").count(), 1, "{stderr}");
    stderr
}

#[test]
fn functions_are_met_exactly_with_their_arguments_whatever_the_optimisation() {
    if !probeable() {
        return;
    }
    for (compiler, options) in [
        ("gcc", &["-g", "-O0"][..]),
        ("gcc", &["-g", "-O2"]),
        ("gcc", &["-g", "-O2", "-gdwarf-4", "-no-pie"]),
        ("gcc", &["-gz", "-g", "-O1", "-fomit-frame-pointer"]),
        ("clang", &["-g", "-O0"]),
        ("clang", &["-g", "-O1"]),
        ("clang", &["-g", "-O0", "-fomit-frame-pointer"]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let Some(shop) = compile_with(compiler, folder.path(), "shop", options) else { continue };
        let shop = shop.to_str().unwrap();
        let serve = format!(
            "{shop}:serve number customer order->basket.items order->basket.coupon order->note small colour sixth \
             stacked before=order->previous->number raw=%di:s32"
        );
        let returned = format!("{shop}:serve%return $retval");
        let name = format!("{shop}:name_of%return $retval");
        let library = "libc.so.6:getppid%return parent=$retval:s32";
        let probes = [&serve, &returned, &name, library].map(|probe| ["--probe", probe]).concat();
        let recording = record(&probes, &[shop, &ORDERS.to_string()]);
        let events = events(&recording);
        let calls = named(&events, "shop:serve");
        assert_eq!(calls.len() as u64, ORDERS, "{options:?}");
        for (i, call) in calls.iter().enumerate() {
            let i = i as i64;
            let expected = json!({
                "number": i - 1, "raw": i - 1, "customer": if i % 2 == 1 { "Ann" } else { "Bob" }, "items": i % 5,
                "coupon": "ten percent", "note": "fragile", "small": i % 256, "colour": i % 3, "sixth": -i, "stacked": 2 * i,
                "before": i - 1, "ip": call["ip"],
            });
            assert_eq!(**call, expected, "{options:?}");
        }
        let words: Vec<i64> = recording.stdout.split_whitespace().map(|word| word.parse().unwrap()).collect();
        let results = named(&events, "shop:serve%return");
        assert_eq!(results.len() as u64, ORDERS);
        assert_eq!(results.iter().map(|result| result["retval"].as_i64().unwrap()).sum::<i64>(), words[0]);
        assert!(results.iter().all(|result| result["func"] == calls[0]["ip"]));
        assert_eq!(named(&events, "shop:name_of%return").len() as u64, ORDERS);
        assert_eq!(named(&events, "shop:name_of%return")[1]["retval"], "Ann");
        assert_eq!(named(&events, "libc.so.6:getppid%return").len() as i64, words[1]);
        recording.compare_with_babeltrace2();
    }
}

#[test]
fn what_is_asked_for_twice_is_one() {
    if !probeable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(shop) = compile(folder.path(), "shop", &["-g", "-O1"]) else { return };
    let shop = shop.to_str().unwrap();
    let serve = format!("{shop}:serve number");
    let other = serve.replace("/shop:", "/./shop:"); // the same file
    let returned = format!("{shop}:serve%return");
    let probes = [&serve, &other, &returned, &serve].map(|probe| ["--probe", probe]).concat();
    let recording = record(&probes, &[shop, &ORDERS.to_string()]);
    let events = events(&recording);
    for name in ["shop:serve", "shop:serve%return"] {
        assert_eq!(named(&events, name).len() as u64, ORDERS, "{name}");
    }
}

#[test]
fn a_probe_at_begin_and_return_is_a_function() {
    if !probeable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(shop) = compile(folder.path(), "shop", &["-O1"]) else { return };
    let shop = shop.to_str().unwrap();
    let probes =
        ["main", "main%return", "serve", "serve%return", "name_of"].map(|name| format!("{shop}:{name}"));
    let options: Vec<_> = probes.iter().flat_map(|probe| ["--probe", probe]).collect();
    let recording = record(&options, &[shop, "100"]);
    let mut functions = Command::new(env!("CARGO_BIN_EXE_tracewing"));
    let output = functions.args(["functions", "--format", "json"]).arg(recording.trace()).output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let functions = answer["functions"].as_array().unwrap();
    let called: Vec<_> = functions
        .iter()
        .map(|function| (function["function"].as_str().unwrap(), function["calls"].as_u64().unwrap()))
        .collect();
    // Of one that is only met where it begins nobody knows how long it takes.
    assert_eq!(called, [("shop:main", 1), ("shop:serve", 100)], "{answer}");
}

#[test]
fn a_call_that_several_probes_tell_is_one() {
    if !probeable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(shop) = compile(folder.path(), "shop", &["-g", "-O1"]) else { return };
    let shop = shop.to_str().unwrap();
    let probes = ["serve", "serve number", "serve%return", "serve%return $retval"]
        .map(|probe| ["--probe".to_owned(), format!("{shop}:{probe}")]);
    let options: Vec<_> = probes.iter().flatten().map(String::as_str).collect();
    let recording = record(&options, &["sh", "-c", &format!("{shop} 100 & {shop} 50; wait")]);
    for name in ["shop:serve", "shop:serve%return"] {
        assert_eq!(named(&events(&recording), name).len(), 300, "{name}");
    }
    let mut functions = Command::new(env!("CARGO_BIN_EXE_tracewing"));
    let output = functions.args(["functions", "--format", "json"]).arg(recording.trace()).output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["functions"][0]["calls"], 150, "{answer}");
    assert_eq!(answer["functions"].as_array().unwrap().len(), 1, "{answer}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "all have begin and end");
}

#[test]
fn places_behind_a_functions_beginning_have_its_variables_too() {
    if !probeable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(shop) = compile(folder.path(), "shop", &["-g", "-O0"]) else { return };
    let shop = shop.to_str().unwrap();
    // The first instruction behind what sets up the frame: as the line table has it.
    let lines = Command::new("objdump").args(["--dwarf=decodedline", shop]).output();
    let Ok(lines) = lines else {
        return tracewing_testing::skip(
            tracewing_testing::Cause::Program("objdump"),
            "objdump is not installed",
        );
    };
    let lines = String::from_utf8(lines.stdout).unwrap();
    let source =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../programs/tests/programs/shop.c"));
    let line = 1 + source.unwrap().lines().position(|line| line.contains("long sum = number")).unwrap();
    let address = lines.lines().find_map(|row| {
        let words: Vec<_> = row.split_whitespace().collect();
        (words.get(1) == Some(&&*line.to_string())).then(|| words[2].trim_start_matches("0x").to_owned())
    });
    let address = u64::from_str_radix(&address.unwrap(), 16).unwrap();
    let symbols = String::from_utf8(Command::new("nm").arg(shop).output().unwrap().stdout).unwrap();
    let begin = symbols.lines().find_map(|line| line.strip_suffix(" T serve")).unwrap();
    let offset = address - u64::from_str_radix(begin, 16).unwrap();
    let probe = format!("{shop}:serve+{offset:#x} number customer stacked order->previous->basket.coupon");
    let recording = record(&["--probe", &probe], &[shop, "100"]);
    let events = events(&recording);
    let calls = named(&events, &format!("shop:serve+{offset:#x}"));
    assert_eq!(calls.len(), 100);
    assert_eq!(
        *calls[3],
        json!({"ip": calls[0]["ip"], "number": 2, "customer": "Ann", "stacked": 6, "coupon": "ten percent"})
    );
}

#[test]
fn rust_functions_are_named_as_in_the_source_and_have_their_arguments() {
    if !probeable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let text = "mod queue {
        pub struct Order { pub number: u64, pub small: u16 }
        pub trait Serve { fn serve(&self, times: u8) -> i32; }
        impl Serve for Order {
            #[inline(never)]
            fn serve(&self, times: u8) -> i32 { std::hint::black_box(i32::from(times) - 7) }
        }
        #[inline(never)]
        pub fn take(order: &Order, depth: u32, offset: i64) -> u64 {
            // So that the optimiser does not pass what is in it.
            let order = std::hint::black_box(order);
            let sum = order.number + u64::from(depth) + u64::from(order.small);
            std::hint::black_box((sum, offset)).0
        }
        #[inline(never)]
        pub fn name(text: &str, depth: u32) -> usize { std::hint::black_box((text.len(), depth)).0 }
        // Where it is optimised, the compiler knows what it gets, and does not pass it.
        #[inline(never)]
        pub fn known(number: u32) { std::hint::black_box(&number); }
        #[inline(never)]
        pub fn twice<T: Copy>(value: T) -> (T, T) { std::hint::black_box((value, value)) }
    }
    use queue::Serve;
    fn main() {
        for i in 0..100 {
            let order = queue::Order { number: i, small: 3 };
            queue::take(&order, i as u32 + 1, -(i as i64));
            std::hint::black_box(order.serve(i as u8));
            queue::name([\"Ann\", \"Berta\"][i as usize % 2], i as u32);
            queue::known(7);
            (queue::twice(1_u8), queue::twice(1_i64));
        }
    }";
    fs::write(folder.path().join("rusty.rs"), text).unwrap();
    for build in [&["-g"][..], &["-g", "-O"], &["-g", "-O", "-Csymbol-mangling-version=v0"]] {
        let mut rustc = Command::new("rustc");
        rustc.args(["--edition=2024", "rusty.rs", "-o", "rusty"]).args(build).current_dir(folder.path());
        if !rustc.output().is_ok_and(|output| output.status.success()) {
            return tracewing_testing::skip(
                tracewing_testing::Cause::Program("rustc"),
                "rustc is not in the PATH",
            );
        }
        let program = folder.path().join("rusty");
        let program = program.to_str().unwrap();
        let serve = "<rusty::queue::Order as rusty::queue::Serve>::serve";
        let probes = [
            format!("{program}:rusty::queue::take order->number order->small depth offset"),
            format!("{program}:{serve} times"),
            format!("{program}:{serve}%return $retval"),
            format!("{program}:rusty::queue::name text.length depth"),
        ];
        let options: Vec<_> = probes.iter().flat_map(|probe| ["--probe", probe]).collect();
        let recording = record(&options, &[program]);
        let events = events(&recording);
        for (i, call) in named(&events, "rusty:rusty::queue::take").iter().enumerate() {
            let expected =
                json!({"ip": call["ip"], "number": i, "small": 3, "depth": i + 1, "offset": -(i as i64)});
            assert_eq!(**call, expected, "{options:?}");
        }
        assert_eq!(named(&events, "rusty:rusty::queue::take").len(), 100);
        assert_eq!(named(&events, &format!("rusty:{serve}"))[9]["times"], 9);
        assert_eq!(named(&events, &format!("rusty:{serve}%return"))[9]["retval"], 2);
        let names = named(&events, "rusty:rusty::queue::name");
        let of = |call: &&Value| (call["length"].as_u64().unwrap(), call["depth"].as_u64().unwrap());
        let expected = (0..100).map(|i| ([3, 5][i as usize % 2], i));
        assert!(names.iter().map(of).eq(expected), "{options:?}: {names:?}");
        let stderr = refused(&["--probe", &format!("{program}:rusty::queue::name text")], &[program]);
        assert!(stderr.contains("two words") && stderr.contains("data_ptr, length"), "{stderr}");
        if build.len() > 1 {
            let stderr = refused(&["--probe", &format!("{program}:rusty::queue::known number")], &[program]);
            assert!(stderr.contains("passes the function's parameters otherwise"), "{stderr}");
        }
        let stderr = refused(&["--probe", &format!("{program}:rusty::queue::twice")], &[program]);
        assert!(stderr.contains("2 functions rusty::queue::twice"), "{stderr}");
        let stderr = refused(&["--probe", &format!("{program}:queue::take")], &[program]);
        assert!(stderr.contains("similar: rusty::queue::take"), "{stderr}");
    }
}

#[test]
fn copies_that_the_compiler_has_inlined_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let text = "#include <unistd.h>\nint twice(int a) { return getppid() * a * 2; }\n\
                int main(int n, char **v) { return twice(n) + twice(n + (v != 0)) == 1; }\n";
    fs::write(folder.path().join("copies.c"), text).unwrap();
    let mut gcc = Command::new("gcc");
    gcc.args(["-g", "-O2", "-o", "copies", "copies.c"]).current_dir(folder.path());
    if !gcc.status().is_ok_and(|status| status.success()) {
        return tracewing_testing::skip(tracewing_testing::Cause::Program("gcc"), "gcc is not installed");
    }
    let resolver = tracewing_programs::probes::Resolver::new(None);
    let resolved = resolver.probe(&format!("{}/copies:twice", folder.path().display())).unwrap();
    assert_eq!(resolved.remarks, ["copies:twice is also inlined 2 times, which a probe does not see"]);
}

#[test]
fn what_cannot_be_probed_is_refused_with_a_reason() {
    if !probeable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(shop) = compile(folder.path(), "shop", &["-g", "-O1"]) else { return };
    let shop = shop.to_str().unwrap();
    let resolver = tracewing_programs::probes::Resolver::new(None);
    let fits = |offset: &i32| resolver.probe(&format!("{shop}:serve+{offset}")).is_ok();
    let within = (1..20).find(|offset| !fits(offset)).unwrap();
    let within = &*format!("serve+{within}");
    let stripped = folder.path().join("stripped");
    assert!(Command::new("strip").arg("-o").arg(&stripped).arg(shop).status().unwrap().success());
    let stripped = stripped.to_str().unwrap();
    for (probe, reasons) in [
        ("serv", &["shop has no function serv", "similar: serve"][..]),
        ("serve what", &["what cannot be recorded", "number, customer, order"]),
        ("serve weight", &["floating-point register"]),
        ("serve order->basket", &["a structure", "items, coupon"]),
        ("serve order.number", &["behind a pointer: write ->number"]),
        ("serve order->urgent", &["bit field"]),
        ("serve order->nothing", &["there is no member nothing; there are number, basket"]),
        ("serve $retval", &["add %return"]),
        ("serve%return number", &["are gone when it returns"]),
        ("serve number order->number", &["another field is called number"]),
        ("serve+100000", &["the function has", "bytes"]),
        (within, &["no instruction begins there; those around it are at +0x"]),
        ("0x10", &["there is no code"]),
        ("serve a=%nothing", &["cannot place the probe", "Invalid argument"]),
    ] {
        let stderr = refused(&["--probe", &format!("{shop}:{probe}")], &[shop, "1"]);
        assert!(reasons.iter().all(|reason| stderr.contains(reason)), "{probe}: {stderr}");
    }
    for (probe, reason) in [
        (format!("{stripped}:serve"), "stripped of all symbols"),
        ("libc.so.6:nothing_like_that".to_owned(), "libc.so.6 has no function"),
        ("libc.so.6:memcpy".to_owned(), "chooses one for the processor"),
        ("/etc/passwd:f".to_owned(), "not a 64-bit ELF file"),
        ("libnowhere.so:f".to_owned(), "no such program, nor a library"),
        ("serve".to_owned(), "is no probe: it has no colon"),
    ] {
        let stderr = refused(&["--probe", &probe], &[stripped, "1"]);
        assert!(stderr.contains(reason), "{probe}: {stderr}");
    }
    let stderr = refused(&["--usdt", "shop:taken"], &[shop, "1"]);
    assert!(
        stderr.contains("no USDT probe is named shop:taken in the command and its libraries"),
        "{stderr}"
    );
}

#[test]
fn stripped_programs_are_probed_by_address_and_static_ones_in_themselves() {
    if !probeable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(shop) = compile(folder.path(), "shop", &["-O1", "-static"]) else { return };
    let shop = shop.to_str().unwrap();
    let symbols = String::from_utf8(Command::new("nm").arg(shop).output().unwrap().stdout).unwrap();
    let address = symbols.lines().find_map(|line| line.strip_suffix(" T serve")).unwrap();
    let address = format!("{:#x}", u64::from_str_radix(address, 16).unwrap());
    let own = record(&["--probe", &format!("{shop}:getppid"), "--probe", "libc.so.6:getppid"], &[shop, "50"]);
    assert!(own.stderr.contains("shop is statically linked: it does not use libc.so.6"), "{}", own.stderr);
    assert_eq!(named(&events(&own), "shop:getppid").len(), 50);
    assert!(own.stderr.contains("no event of libc.so.6:getppid: nothing"), "{}", own.stderr);

    assert!(Command::new("strip").arg(shop).status().unwrap().success());
    let probe = format!("{shop}:{address} number=%di:s32 customer=+0(%si):string");
    let recording = record(&["--probe", &probe], &[shop, "50"]);
    let events = events(&recording);
    let calls = named(&events, &format!("shop:{address}"));
    assert_eq!(calls.len(), 50);
    assert_eq!((&calls[9]["number"], &calls[9]["customer"]), (&json!(8), &json!("Ann")));
}

#[test]
fn debug_information_and_symbols_are_found_in_a_file_of_their_own() {
    if !probeable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(shop) = compile(folder.path(), "shop", &["-g", "-O0"]) else { return };
    let run = |program: &str, arguments: &[&str]| {
        let status = Command::new(program).args(arguments).current_dir(folder.path()).status().unwrap();
        assert!(status.success(), "{program} {arguments:?}");
    };
    run("objcopy", &["--only-keep-debug", "shop", "shop.debug"]);
    run("strip", &["shop"]);
    run("objcopy", &["--add-gnu-debuglink=shop.debug", "shop"]);
    let shop = shop.to_str().unwrap();
    let recording = record(&["--probe", &format!("{shop}:serve customer")], &[shop, "10"]);
    let events = events(&recording);
    assert_eq!(named(&events, "shop:serve").len(), 10);
    assert_eq!(named(&events, "shop:serve")[1]["customer"], "Ann");
}

#[test]
fn restartable_sequences_and_own_sites_are_refused() {
    if !probeable() {
        return;
    }
    let tasks = program("tasks");
    let tasks = tasks.to_str().unwrap();
    let mut child =
        Command::new(tasks).arg("sequences").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let number = |text: &str| u64::from_str_radix(text, 16).unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let sequences: Vec<(u64, u64)> = lines
        .map_while(|line| {
            let words: Vec<_> = line.split_ascii_whitespace().skip(1).map(number).collect();
            matches!(words[..], [_, _]).then(|| (words[0], words[1]))
        })
        .collect();
    drop(child.stdin.take());
    let _ = child.kill();
    child.wait().unwrap();
    assert!(!sequences.is_empty());
    let headers = Command::new("readelf").args(["-lW", tasks]).output();
    let Ok(headers) = headers else {
        return tracewing_testing::skip(
            tracewing_testing::Cause::Program("readelf"),
            "readelf is not installed",
        );
    };
    let headers = String::from_utf8(headers.stdout).unwrap();
    let code = headers.lines().find(|line| line.contains("LOAD") && line.contains("R E")).unwrap();
    let parts: Vec<u64> = code
        .split_ascii_whitespace()
        .skip(1)
        .take(2)
        .map(|word| number(word.trim_start_matches("0x")))
        .collect();
    let distance = parts[1] - parts[0];
    let resolver = tracewing_programs::probes::Resolver::new(None);
    for &(begin, length) in &sequences {
        let resolved = |at: u64| resolver.probe(&format!("{tasks}:{:#x}", at + distance));
        for inside in [begin, begin + length - 1] {
            let error = resolved(inside).unwrap_err().to_string();
            assert!(error.contains("restartable sequence"), "{error}");
        }
        // Not placed, as no instruction may begin there.
        for outside in [begin - 1, begin + length] {
            assert!(resolved(outside).is_ok());
        }
    }
    let sites =
        Command::new(env!("CARGO_BIN_EXE_tracewing")).args(["sites", "--format", "json", tasks]).output();
    let sites: Value = serde_json::from_slice(&sites.unwrap().stdout).unwrap();
    let site = &sites["sites"][0];
    let probe = format!("{tasks}:{}", site["address"].as_str().unwrap());
    let error = resolver.probe(&probe).unwrap_err().to_string();
    assert!(error.contains(&format!("the site of the event {}", site["name"].as_str().unwrap())), "{error}");

    let probe = format!("{tasks}:{:#x}", sequences[0].0 + distance);
    assert!(refused(&["--probe", &probe], &["true"]).contains("restartable sequence"));
}

#[test]
fn usdt_probes_are_met_exactly_have_their_arguments_and_their_semaphores() {
    if !probeable() {
        return;
    }
    for options in [&["-O0"][..], &["-O2"], &["-O2", "-static"]] {
        let folder = tempfile::tempdir().unwrap();
        let Some(usdt) = compile(folder.path(), "usdt", options) else { return };
        let usdt = usdt.to_str().unwrap();
        let alone = Command::new(usdt).arg("100").stdin(Stdio::null()).output().unwrap();
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
        let mut command = Command::new(env!("CARGO_BIN_EXE_tracewing"));
        let output = command.args(["sites", "--format", "json", &pid.to_string()]).output().unwrap();
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
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
    let mut recorder = Command::new(env!("CARGO_BIN_EXE_tracewing"))
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
fn python_tells_its_audits_and_cpp_its_exceptions() {
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
