//! Prints the sites that it finds, switches each, and prints which of its functions see that. With a path as
//! argument, it loads that library and unloads it again; `plugin`: a library with its own copy of the crate,
//! `shared`: one that shares this program's copy.

use library::tracewing_trigger::{Object, objects, on_load, switch};
use library::{Named, from_library, generic, inlined, site};
use std::collections::BTreeMap;
use std::ffi::{CString, c_char};
use std::sync::atomic::{AtomicUsize, Ordering};

struct Cat;
struct Dog;

impl Named for Cat {
    const NAME: &'static str = "cat";
}

impl Named for Dog {
    const NAME: &'static str = "dog";
}

#[inline(never)]
fn from_program() -> bool {
    site!("program")
}

#[inline(never)]
fn first() -> bool {
    inlined()
}

#[inline(never)]
fn second() -> bool {
    // Differs from the first function, or the compiler would merge them.
    std::hint::black_box(2);
    inlined()
}

const FUNCTIONS: [(&str, fn() -> bool); 6] = [
    ("cat", generic::<Cat>),
    ("dog", generic::<Dog>),
    ("library", from_library),
    ("program", from_program),
    ("inlined", first),
    ("inlined", second),
];

/// The number of copies of each site.
fn sites() -> BTreeMap<&'static str, usize> {
    let mut sites = BTreeMap::new();
    for record in objects().sites() {
        *sites.entry(record.site().class.name).or_default() += 1;
    }
    sites
}

/// Switches all sites of a name.
fn set(name: &str, on: bool) {
    let objects = objects();
    let all: Vec<_> = objects
        .sites()
        .filter(|record| record.site().class.name == name)
        .map(|record| (record, on))
        .collect();
    let switched = switch(&all).unwrap();
    assert_eq!((switched.changed, switched.obstructed), (all.len(), 0), "{name}");
    assert!(switched.is_final);
}

static LOADED: AtomicUsize = AtomicUsize::new(0);

fn loaded(object: &Object) {
    LOADED.store(object.sites().len(), Ordering::Relaxed);
}

fn with_library(kind: &str, path: &str) {
    on_load(loaded);
    let before = sites();
    let path = CString::new(path).unwrap();
    for _ in 0..3 {
        // SAFETY: a string; the library's constructors are `register`.
        let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
        assert!(!library.is_null(), "cannot load {path:?}");
        let symbol = |name: &[u8]| {
            // SAFETY: a handle that was just opened, and a string.
            let symbol = unsafe { libc::dlsym(library, name.as_ptr().cast::<c_char>()) };
            assert!(!symbol.is_null());
            symbol
        };
        // SAFETY: the library exports functions of these types.
        let [hit, hit_library]: [extern "C" fn() -> bool; 2] =
            unsafe { std::mem::transmute([symbol(b"hit\0"), symbol(b"hit_library\0")]) };
        // SAFETY: likewise.
        let switch_own: extern "C" fn(bool) -> usize =
            unsafe { std::mem::transmute(symbol(b"switch_own\0")) };
        assert!(!hit() && !hit_library());
        match kind {
            "plugin" => {
                assert_eq!(sites(), before, "the library's own copy of the crate knows the library's sites");
                assert_eq!(LOADED.load(Ordering::Relaxed), 0);
                assert!(switch_own(true) >= 2 && hit() && hit_library());
                assert!(!from_library(), "the library's copy of a function is another one");
                assert!(switch_own(false) >= 2 && !hit() && !hit_library());
            }
            "shared" => {
                assert_eq!(LOADED.swap(0, Ordering::Relaxed), 1);
                assert_eq!(sites().get("plugin"), Some(&1));
                set("plugin", true);
                assert!(hit() && !hit_library());
                set("library", true);
                assert!(hit_library());
                set("library", false);
            }
            _ => unreachable!(),
        }
        // SAFETY: nothing of the library is used any more.
        assert_eq!(unsafe { libc::dlclose(library) }, 0);
        assert_eq!(sites(), before);
    }
}

fn main() {
    for (name, count) in sites() {
        println!("{name} {count}");
    }
    for (_, function) in FUNCTIONS {
        assert!(!function());
    }
    for name in ["cat", "dog", "library", "program", "inlined"] {
        set(name, true);
        for (other, function) in FUNCTIONS {
            assert_eq!(function(), other == name, "{other} while {name} is on");
        }
        set(name, false);
    }
    for (name, function) in FUNCTIONS {
        assert!(!function(), "{name}");
    }
    let mut arguments = std::env::args().skip(1);
    if let (Some(kind), Some(path)) = (arguments.next(), arguments.next()) {
        with_library(&kind, &path);
    }
    println!("done");
}
