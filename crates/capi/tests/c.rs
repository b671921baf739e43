//! C and C++ programs, built by gcc and clang against the files that `cargo xtask capi` installs, and
//! recorded.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use tracewing_testing::build;

const COMPILERS: [(&str, &str, &str); 4] = [
    ("gcc", "-std=c11", "kinds.c"),
    ("g++", "-std=c++17", "kinds.cc"),
    ("clang", "-std=c11", "kinds.c"),
    ("clang++", "-std=c++17", "kinds.cc"),
];

/// The events of `kinds.h`, with payloads as `tracewing list` prints them; span ids are replaced.
const KINDS: [&str; 10] = [
    r#"kinds:all { a = 97, b = -1, c = 255, d = -2, e = 65535, f = -3, g = 4000000000, h = -4, i = 18446744073709551615, j = 0.5, k = -0.25, l = 1, m = 3, n = -7, o = 0x1234, p = "sixteen" }"#,
    r#"kinds:texts { first = "", second = "zwei", third = "drö", _fourth_length = 3, fourth = [ [0] = 0, [1] = 255, [2] = 7 ], fifth = 9, sixth = "" }"#,
    "kinds:words { a = 21, b = -21 }",
    "kinds:nothing { }",
    "kinds:outer_begin { span = A, parent = 0x0, number = 1 }",
    "kinds:inner_begin { span = B, parent = A }",
    "kinds:inner_end { span = B }",
    "kinds:outer_end { span = A }",
    "kinds:inner_begin { span = C, parent = A }",
    "kinds:inner_end { span = C }",
];

fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = [&output.stdout[..], &output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(output.status.success(), "{command:?}: {text}");
    text
}

/// The installed library's folder.
fn prefix() -> &'static Path {
    static PREFIX: OnceLock<PathBuf> = OnceLock::new();
    PREFIX.get_or_init(|| {
        let within = env!("CARGO_TARGET_TMPDIR");
        let prefix = Path::new(within).join("prefix");
        let mut xtask = Command::new(build(within, &["--package", "xtask"]).join("xtask"));
        xtask.env("CARGO_TARGET_DIR", Path::new(within).parent().unwrap());
        succeed(xtask.args(["capi", "--debug", "--prefix"]).arg(&prefix));
        prefix
    })
}

fn pkgconfig() -> PathBuf {
    prefix().join("lib/pkgconfig")
}

/// Whether a compiler is installed; a test that leaves one out prints that.
fn is_there(compiler: &str) -> bool {
    let there = Command::new(compiler).arg("--version").output().is_ok();
    if !there {
        tracewing_testing::skip(
            tracewing_testing::Cause::Program(compiler),
            format_args!("there is no {compiler}"),
        );
    }
    there
}

/// Compiles a program of this folder, with warnings as errors.
fn compile(compiler: &str, arguments: &str, source: &str, output: &Path) {
    let flags = succeed(
        Command::new("pkg-config")
            .args(["--cflags", "--libs", "tracewing"])
            .env("PKG_CONFIG_PATH", pkgconfig()),
    );
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source);
    let mut command = Command::new(compiler);
    command
        .args(["-Wall", "-Wextra", "-Wpedantic", "-Werror"])
        .args(arguments.split_whitespace())
        .arg(source);
    succeed(command.arg("-o").arg(output).args(flags.split_whitespace()));
}

fn tracewing() -> Command {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| build(env!("CARGO_TARGET_TMPDIR"), &["--package", "tracewing-cli"]));
    Command::new(folder.join("tracewing"))
}

/// Records a program, and returns its events without stamps and contexts.
fn record(folder: &Path, program: &[&Path]) -> Vec<String> {
    let trace = folder.join("trace");
    let _ = std::fs::remove_dir_all(&trace);
    succeed(tracewing().args(["record", "--no-kernel", "-o"]).arg(&trace).arg("--").args(program));
    list(&trace)
}

fn list(trace: &Path) -> Vec<String> {
    let text = succeed(tracewing().args(["list", "--no-delta"]).arg(trace));
    let event = |line: &str| {
        let (head, payload) = line.split_once(": { cpu_id")?;
        let name = head.rsplit(' ').next()?;
        Some(format!("{name} {}", payload.rsplit_once("}, ")?.1))
    };
    text.lines().filter_map(event).collect()
}

/// Replaces span ids by A, B and C, in the order in which the spans begin.
fn named(events: Vec<String>) -> Vec<String> {
    let mut text = events.join("\n");
    for name in ["A", "B", "C"] {
        let id = text.split("{ span = ").skip(1).find(|rest| rest.starts_with("0x"));
        let Some(id) = id.and_then(|rest| rest.split([',', ' ']).next()).map(str::to_owned) else { break };
        text = text.replace(&id, name);
    }
    text.lines().map(str::to_owned).collect()
}

#[test]
fn every_kind_of_field_in_c_and_cpp_by_both_compilers() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("kinds");
    for (compiler, standard, source) in COMPILERS {
        if !is_there(compiler) {
            continue;
        }
        for options in ["-O0", "-O2", "-O2 -fPIC", "-O2 -flto"] {
            if compiler.starts_with("clang") && options.ends_with("flto") {
                continue; // needs a linker of clang's own
            }
            compile(compiler, &format!("{standard} {options}"), source, &program);
            assert_eq!(succeed(&mut Command::new(&program)), "evaluated 0\n", "off: nothing is evaluated");
            let events = record(folder.path(), &[&program]);
            let events: Vec<String> = events.into_iter().filter(|event| event.starts_with("kinds")).collect();
            assert_eq!(named(events)[..KINDS.len()], KINDS, "{compiler} {options}");
        }
    }
}

#[test]
fn a_site_that_is_off_is_one_instruction() {
    let folder = tempfile::tempdir().unwrap();
    let object = folder.path().join("path.o");
    compile("gcc", "-std=c11 -O2 -c", "path.c", &object);
    let mut functions = ["with", "without"].map(|name| {
        let text = succeed(
            Command::new("objdump")
                .args(["-d", "--no-show-raw-insn", &format!("--disassemble={name}")])
                .arg(&object),
        );
        let instructions =
            text.lines().filter_map(|line| line.split_once(":\t")).map(|(_, code)| code.trim().to_owned());
        instructions.take_while(|code| !code.starts_with("ret")).collect::<Vec<_>>()
    });
    let at = functions[0].iter().position(|code| code.starts_with("nopl")).expect("a site");
    functions[0].remove(at);
    assert_eq!(functions[0], functions[1]);
}

#[test]
fn disabled_no_event_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("kinds");
    for (compiler, standard, source) in &COMPILERS[..2] {
        compile(compiler, &format!("{standard} -DTRACEWING_DISABLE"), source, &program);
        assert!(!succeed(Command::new("objdump").arg("-h").arg(&program)).contains("tracewing"));
        assert_eq!(succeed(&mut Command::new(&program)), "evaluated 0\n");
    }
}

#[test]
fn a_library_that_is_loaded_and_unloaded() {
    let folder = tempfile::tempdir().unwrap();
    let (host, plugin) = (folder.path().join("host"), folder.path().join("plugin.so"));
    compile("gcc", "-std=c11", "host.c", &host);
    compile("gcc", "-std=c11 -shared -fPIC", "plugin.c", &plugin);
    let events = record(folder.path(), &[&host, &plugin]);
    let expected = [1, 2, 3].map(|times| format!("plugin:loaded {{ times = {times} }}"));
    assert_eq!(events[1..], [&["host:began { }".to_owned()][..], &expected].concat());
}

#[test]
fn the_example_is_built_by_make_and_by_cmake_and_records_itself() {
    let folder = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/shop");
    let path = |name: &str| folder.path().join(name);
    std::fs::create_dir(path("make")).unwrap();
    for file in ["shop.c", "Makefile"] {
        std::fs::copy(source.join(file), path("make").join(file)).unwrap();
    }
    succeed(Command::new("make").arg("-C").arg(path("make")).env("PKG_CONFIG_PATH", pkgconfig()));
    if is_there("cmake") {
        let mut cmake = Command::new("cmake");
        succeed(
            cmake.arg("-S").arg(&source).arg("-B").arg(path("cmake")).env("PKG_CONFIG_PATH", pkgconfig()),
        );
        succeed(Command::new("cmake").arg("--build").arg(path("cmake")));
        assert!(record(folder.path(), &[&path("cmake/shop")]).len() > 8000);
    }
    let shop = path("make/shop");
    let output = succeed(Command::new(&shop).arg("100").arg(path("own")));
    let events = list(&path("own"));
    assert_eq!(output, format!("{} events, 0 lost\n", events.len()));
    let count = |name: &str| events.iter().filter(|event| event.starts_with(name)).count();
    let counts = ["cshop:opened", "cshop:sold", "cshop:order_begin", "cshop:order_end", "user_thread:switch"]
        .map(count);
    assert_eq!(counts, [1, 200, 200, 200, 4]);
    let origin = events.iter().find(|event| event.starts_with("user_thread:origin")).unwrap();
    assert!(origin.contains("shop.c\", line = 28"), "{origin}");
    // The folder is not empty any more.
    let refused = Command::new(&shop).arg("100").arg(path("own")).output().unwrap();
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("choose another folder"), "{refused:?}");
}

#[test]
fn the_static_library_does_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let (source, shop) =
        (Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/shop/shop.c"), folder.path().join("shop"));
    let mut gcc = Command::new("gcc");
    gcc.arg("-I").arg(prefix().join("include")).arg(source).arg(prefix().join("lib/libtracewing.a"));
    succeed(gcc.args(["-lpthread", "-ldl", "-lm", "-lgcc_s", "-o"]).arg(&shop));
    let events = record(folder.path(), &[&shop, Path::new("10")]);
    assert_eq!(events.iter().filter(|event| event.starts_with("cshop:sold")).count(), 20);
}

#[test]
fn a_thread_gives_up_the_clock() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("strict");
    if is_there("gcc") {
        compile("gcc", "-std=gnu11", "strict.c", &program);
        let events = record(folder.path(), &[&program]);
        assert_eq!(
            events.iter().filter(|event| *event == "strict:step { number = 1 }").count(),
            1,
            "{events:?}"
        );
        assert!(!events.iter().any(|event| event.contains("number = 2")), "{events:?}");
    }
}
