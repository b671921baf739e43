//! A program that does not know tracewing: it loads the plug-in that its first argument names, lets it emit
//! in threads, in a signal handler and in a child, and unloads it; as often as the second argument says,
//! while threads emit that use a copy of the plug-in under another name, the third argument.

use core::ffi::{CStr, c_int, c_void};
use std::ffi::CString;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

type Emit = extern "C" fn(u32, u32);

struct Plugin {
    handle: *mut c_void,
}

// SAFETY: a handle of the dynamic linker, which any thread may use.
unsafe impl Sync for Plugin {}

impl Plugin {
    fn load(path: &str) -> Self {
        let path = CString::new(path).unwrap();
        // SAFETY: the library's initialisers are Rust's.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        assert!(!handle.is_null(), "cannot load {path:?}");
        let this = Self { handle };
        // SAFETY: declared so there.
        unsafe { core::mem::transmute::<*mut c_void, extern "C" fn()>(this.function(c"plugin_begin"))() };
        this
    }

    fn function(&self, name: &CStr) -> *mut c_void {
        // SAFETY: a handle and a name.
        let address = unsafe { libc::dlsym(self.handle, name.as_ptr()) };
        assert!(!address.is_null(), "no {name:?}");
        address
    }

    fn emit(&self) -> Emit {
        // SAFETY: declared so there.
        unsafe { core::mem::transmute::<*mut c_void, Emit>(self.function(c"plugin_emit")) }
    }

    fn unload(self) {
        // SAFETY: nothing of the library is used any more by this program.
        unsafe { libc::dlclose(self.handle) };
    }
}

fn signals(handler: usize) {
    // SAFETY: zeroes are a valid `sigaction`; the handler is a function of that type, or SIG_IGN.
    unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = handler;
        action.sa_flags = libc::SA_RESTART;
        assert_eq!(libc::sigaction(libc::SIGALRM, &action, core::ptr::null_mut()), 0);
    }
    let interval = libc::timeval { tv_sec: 0, tv_usec: if handler == libc::SIG_IGN { 0 } else { 200 } };
    let timer = libc::itimerval { it_interval: interval, it_value: interval };
    // SAFETY: a timer whose signal is handled.
    assert_eq!(unsafe { libc::setitimer(libc::ITIMER_REAL, &timer, core::ptr::null_mut()) }, 0);
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let rounds: u32 = arguments[2].parse().unwrap();
    let other = Plugin::load(&arguments[3]);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for place in 1..4 {
            let (emit, done) = (other.emit(), &done);
            scope.spawn(move || {
                while !done.load(Relaxed) {
                    emit(place, 10);
                    thread::yield_now();
                    thread::sleep(std::time::Duration::from_micros(100));
                }
            });
        }
        for _ in 0..rounds {
            let plugin = Plugin::load(&arguments[1]);
            let emit = plugin.emit();
            signals(plugin.function(c"plugin_handler") as usize);
            thread::spawn(move || emit(10, 50)).join().unwrap();
            emit(11, 50);
            // SAFETY: the child emits and ends.
            let child = unsafe { libc::fork() };
            if child == 0 {
                emit(12, 20);
                // SAFETY: ends the child.
                unsafe { libc::_exit(0) };
            }
            let mut status: c_int = 0;
            // SAFETY: the child just made.
            while unsafe { libc::waitpid(child, &mut status, 0) } != child {}
            signals(libc::SIG_IGN);
            plugin.unload();
        }
        done.store(true, Relaxed);
    });
    // SAFETY: declared so there.
    unsafe { core::mem::transmute::<*mut c_void, extern "C" fn()>(other.function(c"plugin_print"))() };
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    println!("mapped {}", maps.lines().filter(|line| line.contains("memfd:tracewing ")).count());
    println!("loaded {}", maps.lines().filter(|line| line.contains(&arguments[1])).count());
}
