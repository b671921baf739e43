//! A program with events, which loads the plug-in that its argument names.

use std::ffi::CString;
use tracewing::{Event, emit, event};

#[derive(Event)]
struct FromProgram {
    value: i64,
}

fn emit_all() -> u32 {
    let mut count = library::emit_all();
    emit!(FromProgram { value: { count += 1; 1 } });
    event!("program:ad_hoc", value = { count += 1; true });
    event!("program:empty");
    count
}

fn print_classes() {
    for line in library::classes() {
        println!("program {line}");
    }
}

fn main() {
    print_classes();
    println!("program evaluates {}", emit_all());
    library::switch_on();
    print_classes();
    println!("program evaluates {}", emit_all());
    assert!(tracewing::__private::classes().iter().any(|class| core::ptr::eq(*class, FromProgram::class())));

    let Some(plugin) = std::env::args().nth(1) else { return };
    let path = CString::new(plugin).unwrap();
    // SAFETY: the plug-in's initialisers are Rust's; both functions are declared in it as they are here.
    unsafe {
        let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL);
        assert!(!handle.is_null(), "dlopen failed");
        let function = |name: &std::ffi::CStr| {
            let address = libc::dlsym(handle, name.as_ptr());
            assert!(!address.is_null(), "dlsym failed");
            address
        };
        core::mem::transmute::<_, extern "C" fn()>(function(c"plugin_print_classes"))();
        let evaluated = core::mem::transmute::<_, extern "C" fn() -> u32>(function(c"plugin_emit_all"))();
        println!("plugin evaluates {evaluated}");
    }
}
