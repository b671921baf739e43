//! What metadata takes in memory is bounded by its size, whatever it says.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tracewing_ctf::decode::Decoder;
use tracewing_ctf::metadata;

/// Counts bytes that are held, and the most there were.
struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is done by the system's allocator; the counters do not affect it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        MOST.fetch_max(HELD.fetch_add(layout.size(), Relaxed) + layout.size(), Relaxed);
        // SAFETY: as promised to this function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as promised to this function.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes that parsing and compiling take at most, and what they say.
fn most(text: &str) -> (usize, String) {
    assert!(text.len() <= 64 << 10, "{}", text.len());
    let before = HELD.load(Relaxed);
    MOST.store(before, Relaxed);
    let compiled = metadata::parse(text.as_bytes()).and_then(|class| Decoder::new(Arc::new(class)));
    (MOST.load(Relaxed) - before, compiled.map_or_else(|error| error.to_string(), |_| "good".to_owned()))
}

const START: &str = "/* CTF 1.8 */ trace { major = 1; minor = 8; byte_order = le; }; clock { name = c; };
    stream { event.header := struct { integer { size = 16; } id; }; };\n";

/// Structures of which each has two of the one before it.
fn doubling(leaf: &str, times: usize) -> String {
    let double = |at: usize| format!("struct s{} {{ struct s{at} a; struct s{at} b; }};\n", at + 1);
    let structures: String = (0..times).map(double).collect();
    format!("{START}struct s0 {{ {leaf} }};\n{structures} event {{ fields := struct s{times}; }};")
}

#[test]
fn sixty_four_kilobytes_do_not_take_a_hundred_megabytes() {
    let mapped = "integer { size = 8; map = clock.c.value; } a;";
    let long = format!("string {};", "long".repeat(4000));
    let wide: String = (0..3000).map(|at| format!("string a{at};")).collect();
    let events: String = (0..300).map(|at| format!("event {{ id = {at}; fields := struct w; }};")).collect();
    let wide = format!("{START}struct w {{ {wide} }}; {events}");
    let fields: String = (0..8000).map(|at| format!("t a{at:x};")).collect();
    let fields = format!("{START}typealias string := t; event {{ fields := struct {{ {fields} }}; }};");
    for (text, says) in [
        (doubling("string a;", 15), "good"),
        (doubling(mapped, 15), "good"),
        (doubling(mapped, 17), "consists of more than"),
        (doubling("string a;", 30), "consists of more than"),
        (doubling(&long, 14), "names and ranges of field classes take more than"),
        (wide, "has more than"),
        (fields, "good"),
        (format!("{START}{}", ";".repeat(60_000)), "good"),
        (format!("{START}env {{ {} }};", "a=1;".repeat(15_000)), "good"),
    ] {
        let (bytes, said) = most(&text);
        assert!(said.contains(says), "{said}, expected {says}: {text:.200}");
        assert!(bytes < 100 << 20, "{bytes} bytes: {said}: {text:.200}");
    }
}
