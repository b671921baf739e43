//! Probes of functions: their arguments, variables, begins and returns.

use super::*;

#[test]
fn function_probes_are_exact_at_every_optimisation_level() {
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
    let answer = harness::json(&recording.trace(), &["functions"]);
    let functions = answer["functions"].as_array().unwrap();
    let called: Vec<_> = functions
        .iter()
        .map(|function| (function["function"].as_str().unwrap(), function["calls"].as_u64().unwrap()))
        .collect();
    // A function that is probed only where it begins has no known duration.
    assert_eq!(called, [("shop:main", 1), ("shop:serve", 100)], "{answer}");
}

#[test]
fn a_call_reported_by_several_probes_is_one() {
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
    let mut functions = harness::tracewing();
    let output = functions.args(["functions", "--format", "json"]).arg(recording.trace()).ran();
    let answer: Value = output.json();
    assert_eq!(answer["functions"][0]["calls"], 150, "{answer}");
    assert_eq!(answer["functions"].as_array().unwrap().len(), 1, "{answer}");
    assert_eq!(output.notes(), "", "all have begin and end");
}

#[test]
fn places_inside_a_function_have_its_variables_too() {
    if !probeable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(shop) = compile(folder.path(), "shop", &["-g", "-O0"]) else { return };
    let shop = shop.to_str().unwrap();
    // The first instruction after the frame's set-up, by the line table.
    let lines = Command::new("objdump").args(["--dwarf=decodedline", shop]).output();
    let Ok(lines) = lines else {
        return tracewing_testing::skip(
            tracewing_testing::Cause::Program("objdump"),
            "objdump is not installed",
        );
    };
    let lines = lines.text();
    let source =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../programs/tests/programs/shop.c"));
    let line = 1 + source.unwrap().lines().position(|line| line.contains("long sum = number")).unwrap();
    let address = lines.lines().find_map(|row| {
        let words: Vec<_> = row.split_whitespace().collect();
        (words.get(1) == Some(&&*line.to_string())).then(|| words[2].trim_start_matches("0x").to_owned())
    });
    let address = u64::from_str_radix(&address.unwrap(), 16).unwrap();
    let symbols = String::from_utf8(Command::new("nm").arg(shop).ran().stdout).unwrap();
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
            assert!(
                stderr.contains("does not pass the function's parameters by the standard convention"),
                "{stderr}"
            );
        }
        let stderr = refused(&["--probe", &format!("{program}:rusty::queue::twice")], &[program]);
        assert!(stderr.contains("2 functions rusty::queue::twice"), "{stderr}");
        let stderr = refused(&["--probe", &format!("{program}:queue::take")], &[program]);
        assert!(stderr.contains("similar: rusty::queue::take"), "{stderr}");
    }
}

#[test]
fn inlined_copies_are_reported() {
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
fn returns_of_go_functions_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    // A section that each Go program has, as it is not installed everywhere.
    let text = "__attribute__((section(\".go.buildinfo\"), used)) char info[] = \"go1.19\";\n\
                int work(int n) { return n + 1; }\nint main(int n, char **v) { return work(n); }\n";
    fs::write(folder.path().join("go.c"), text).unwrap();
    let mut gcc = Command::new("gcc");
    gcc.args(["-O0", "-o", "go", "go.c"]).current_dir(folder.path());
    if !gcc.status().is_ok_and(|status| status.success()) {
        return tracewing_testing::skip(tracewing_testing::Cause::Program("gcc"), "gcc is not installed");
    }
    let resolver = tracewing_programs::probes::Resolver::new(None);
    let place = format!("{}/go:work", folder.path().display());
    assert!(resolver.probe(&place).is_ok());
    let refused = resolver.probe(&format!("{place}%return")).unwrap_err().to_string();
    assert!(refused.contains("a Go program, whose stacks move"), "{refused}");
}
