//! What the chores need from the distribution, and how it gets there: the one list of Debian packages, each
//! with its reason, and their installation by apt.
//!
//! Only what is missing is installed, so nothing here needs a network once everything is there.

use anyhow::{Context, Result, bail};
use std::process::Command;

/// A Debian package and why a chore wants it.
#[derive(Clone, Copy)]
pub struct Package {
    name: &'static str,
    reason: &'static str,
}

const GCC: Package =
    Package { name: "gcc", reason: "links Rust programs, builds the C peers and test programs" };
const GXX: Package = Package { name: "g++", reason: "builds the peer Perfetto" };
const LIBC_DEV: Package = Package { name: "libc6-dev", reason: "C headers and start files to link with" };
const BABELTRACE: Package =
    Package { name: "babeltrace2", reason: "reads our traces: the oracle of the tests" };
const PYTHON_BT2: Package =
    Package { name: "python3-bt2", reason: "writes CTF traces for the tests to read" };
const LTTNG_TOOLS: Package =
    Package { name: "lttng-tools", reason: "records traces to read and to compare with" };
const LTTNG_UST: Package =
    Package { name: "liblttng-ust-dev", reason: "C tracepoints to read and to compare with" };
const GDB: Package = Package { name: "gdb", reason: "steps through the event path in the tests" };
const CLANG: Package = Package { name: "clang", reason: "compiles the header for C and C++ in the tests" };
const CMAKE: Package = Package { name: "cmake", reason: "builds the C example in the tests" };
const MAKE: Package = Package { name: "make", reason: "builds the C example in the tests" };
const PKG_CONFIG: Package =
    Package { name: "pkg-config", reason: "finds the installed C library in the tests" };
const PROCPS: Package = Package { name: "procps", reason: "kills processes by their parent in the tests" };
const PERF: Package =
    Package { name: "linux-perf", reason: "shows the scheduler's accounting to compare with" };
const STRACE: Package = Package { name: "strace", reason: "counts the system calls to compare with" };
const PAJENG: Package = Package { name: "pajeng", reason: "reads what is exported as Pajé" };
const CHROMIUM: Package =
    Package { name: "chromium", reason: "shows the viewer's page, to compare what is drawn" };
const PROTOC: Package =
    Package { name: "protobuf-compiler", reason: "decodes what is exported for Perfetto" };

const UFTRACE: Package =
    Package { name: "uftrace", reason: "records functions, to compare calls and prices with" };

const BINUTILS: Package =
    Package { name: "binutils", reason: "strips what goes into the package, lists the versions it needs" };
const DEBOOTSTRAP: Package =
    Package { name: "debootstrap", reason: "makes the bare Debian in which the package is tried" };

const PYTHON: Package = Package { name: "python3", reason: "has the USDT probes that a recipe records" };
const NODE: Package = Package { name: "nodejs", reason: "runs the recipe for Node.js" };
const GO: Package = Package { name: "golang-go", reason: "builds the recipe for Go" };
const JAVA: Package =
    Package { name: "openjdk-17-jdk-headless", reason: "builds and runs the recipe for Java" };

const SPIN: Package = Package { name: "spin", reason: "searches the models of the ring" };

/// What `cargo xtask test` needs.
pub const FOR_TESTS: &[Package] = &[
    GCC,
    LIBC_DEV,
    BABELTRACE,
    PYTHON_BT2,
    LTTNG_TOOLS,
    LTTNG_UST,
    GDB,
    PROCPS,
    SPIN,
    GXX,
    CLANG,
    CMAKE,
    CHROMIUM,
    MAKE,
    PKG_CONFIG,
    PAJENG,
    PROTOC,
    UFTRACE,
    PERF,
    STRACE,
];

/// What `cargo xtask capi` needs.
pub const FOR_CAPI: &[Package] = &[GCC, LIBC_DEV];

/// What `cargo xtask package` needs.
pub const FOR_PACKAGE: &[Package] = &[GCC, LIBC_DEV, BINUTILS];

/// What `cargo xtask package --try` needs in addition.
pub const FOR_TRIAL: &[Package] = &[DEBOOTSTRAP];

/// What `cargo xtask recipes` needs.
pub const FOR_RECIPES: &[Package] = &[GCC, LIBC_DEV, PYTHON, NODE, GO, JAVA];

/// What `cargo xtask models` needs.
pub const FOR_MODELS: &[Package] = &[GCC, LIBC_DEV, SPIN];

/// What `cargo xtask bench record` needs.
pub const FOR_BENCH: &[Package] = &[GCC, GXX, LIBC_DEV, LTTNG_TOOLS, LTTNG_UST];

/// What `cargo xtask bench attach` needs.
pub const FOR_BENCH_ATTACH: &[Package] = &[GCC, LIBC_DEV, LTTNG_TOOLS, LTTNG_UST, STRACE];

/// What `cargo xtask bench functions` needs.
pub const FOR_BENCH_FUNCTIONS: &[Package] = &[GCC, LIBC_DEV, UFTRACE];

/// What `cargo xtask bench read` needs.
pub const FOR_BENCH_READ: &[Package] = &[GCC, LIBC_DEV, BABELTRACE];

/// What `cargo xtask bench view` needs.
pub const FOR_BENCH_VIEW: &[Package] = &[GCC, LIBC_DEV, CHROMIUM];

/// What `cargo xtask demo` needs: a linker, and another reader to show the same trace with.
pub const FOR_DEMO: &[Package] = &[GCC, LIBC_DEV, BABELTRACE];

/// Installs those of `packages` that are missing. On a system without dpkg it lists them and succeeds, since
/// the same tools may be installed under other names; what is missing then shows as skipped tests.
pub fn ensure(packages: &[Package]) -> Result<()> {
    if !is_debian() {
        println!(
            "packages: this is not Debian; install the equivalents of these yourself, or see tests skipped:"
        );
        for package in packages {
            println!("  {:18} {}", package.name, package.reason);
        }
        return Ok(());
    }
    let missing: Vec<Package> =
        packages.iter().copied().filter(|package| !is_installed(package.name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    for package in &missing {
        println!("packages: installing {} ({})", package.name, package.reason);
    }
    install(&missing)
}

fn install(missing: &[Package]) -> Result<()> {
    let names: Vec<&str> = missing.iter().map(|package| package.name).collect();
    let by_hand = format!("apt-get install --no-install-recommends {}", names.join(" "));
    let prefix: &[&str] = if is_root() {
        &[]
    } else if on_path("sudo") {
        &["sudo"]
    } else {
        bail!("these packages are missing, and neither root nor sudo is here; run as root: {by_hand}");
    };
    // A fresh machine or container has no package lists yet, an old one lists packages that are gone.
    apt(prefix, &["update", "-qq"])?;
    // Recommended packages would bring a kernel module to build; nothing here needs one.
    let mut arguments = vec!["install", "-y", "-qq", "--no-install-recommends"];
    arguments.extend(&names);
    apt(prefix, &arguments).with_context(|| format!("to do it by hand, run as root: {by_hand}"))
}

fn apt(prefix: &[&str], arguments: &[&str]) -> Result<()> {
    let mut words: Vec<&str> = prefix.to_vec();
    words.extend(["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]);
    words.extend(arguments);
    let status = Command::new(words[0])
        .args(&words[1..])
        .status()
        .with_context(|| format!("cannot run {}", words[0]))?;
    if !status.success() {
        bail!("`{}` failed ({status})", words.join(" "));
    }
    Ok(())
}

fn is_debian() -> bool {
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let like_debian = release
        .lines()
        .filter(|line| line.starts_with("ID=") || line.starts_with("ID_LIKE="))
        .any(|line| line.contains("debian"));
    like_debian && on_path("dpkg-query") && on_path("apt-get")
}

fn is_installed(name: &str) -> bool {
    let query =
        Command::new("dpkg-query").args(["--show", "--showformat=${db:Status-Status}", name]).output();
    query.is_ok_and(|output| output.status.success() && output.stdout == b"installed")
}

fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    // "Uid:" is followed by the real, effective, saved and file system user id.
    status.lines().find_map(|line| line.strip_prefix("Uid:")).and_then(|ids| ids.split_whitespace().nth(1))
        == Some("0")
}

/// Whether a program of this name is in one of the folders of `PATH`.
pub fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
