//! A program that does not know tracewing, and loads a plug-in that does (`plugin.rs`). Orders on standard
//! input, as `resident.rs` has them: `load PATH`, `plugin N`, and
//!
//! | order | does | answer |
//! |---|---|---|
//! | `reload PATH` | loads and unloads it for 5 s, over and over | `reloaded`; `stalled` if once it took a second |

use std::ffi::{CStr, CString, c_void};
use std::io::{BufRead, Write};
use std::time::{Duration, Instant};

type Emit = extern "C" fn(u32, u32);

fn load(path: &CStr) -> *mut c_void {
    // SAFETY: the library's initialisers are Rust's.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    assert!(!handle.is_null(), "cannot load {path:?}");
    handle
}

fn function(handle: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: a handle and a name.
    let address = unsafe { libc::dlsym(handle, name.as_ptr()) };
    assert!(!address.is_null(), "no {name:?}");
    address
}

fn main() {
    println!("ready");
    let mut emit: Option<Emit> = None;
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let (order, rest) = line.split_once(' ').unwrap_or((&line, ""));
        let answer = match order {
            "load" => {
                let handle = load(&CString::new(rest).unwrap());
                // SAFETY: declared so there.
                unsafe {
                    std::mem::transmute::<*mut c_void, extern "C" fn()>(function(handle, c"plugin_begin"))()
                };
                // SAFETY: as above.
                emit = Some(unsafe {
                    std::mem::transmute::<*mut c_void, Emit>(function(handle, c"plugin_emit"))
                });
                "loaded"
            }
            "plugin" => {
                emit.unwrap()(1, rest.parse().unwrap());
                "emitted"
            }
            "reload" => {
                let (path, begin, mut longest) =
                    (CString::new(rest).unwrap(), Instant::now(), Duration::ZERO);
                while begin.elapsed() < Duration::from_secs(5) {
                    let loaded = Instant::now();
                    let handle = load(&path);
                    std::thread::sleep(Duration::from_millis(2));
                    // SAFETY: nothing of the library is in use.
                    unsafe { libc::dlclose(handle) };
                    longest = longest.max(loaded.elapsed());
                }
                if longest < Duration::from_millis(900) { "reloaded" } else { "stalled" }
            }
            other => panic!("no order: {other:?}"),
        };
        println!("{answer}");
        std::io::stdout().flush().unwrap();
    }
}
