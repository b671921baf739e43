//! Switching where the kernel refuses one way of changing code, or both, and where somebody else has changed it.

use std::process::Command;
use std::thread;
use tracewing_abi::schema::{Class, Level};
use tracewing_trigger::{Kind, Obstacle, Place, Record, Site, SwitchError, Switched, is_on, objects, switch};

struct Numbered<const N: u32>;

impl<const N: u32> Place for Numbered<N> {
    const SITE: &'static Site = &Site {
        class: &Class {
            name: "policies:site",
            level: Level::Info,
            major: 0,
            description: "",
            print: "",
            file: file!(),
            line: 0,
            fields: &[],
        },
        owner: std::ptr::null,
        file: file!(),
        line: N,
        kind: Kind::Event,
    };
}

#[inline(never)]
fn site<const N: u32>() -> bool {
    is_on::<Numbered<N>>()
}

/// Runs `use_it` on the record of a site.
fn with_record<R>(number: u32, use_it: impl FnOnce(&Record) -> R) -> R {
    let objects = objects();
    let record = objects.sites().find(|record| record.site().line == number).expect("the site's record");
    use_it(record)
}

fn set(number: u32, on: bool) -> Result<Switched, SwitchError> {
    with_record(number, |record| switch(&[(record, on)]))
}

/// From now on, these system calls of the calling thread fail for want of permission.
fn refuse(calls: &[libc::c_long]) {
    const fn operation(code: u32, jump: u8, value: u32) -> libc::sock_filter {
        libc::sock_filter { code: code as u16, jt: 0, jf: jump, k: value }
    }
    // The call's number is the first word of what a filter gets.
    let mut program = vec![operation(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0)];
    for &call in calls {
        program.push(operation(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, call as u32));
        let refused = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
        program.push(operation(libc::BPF_RET | libc::BPF_K, 0, refused));
    }
    program.push(operation(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW));
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the filter is valid, and copied.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter), 0);
    }
}

/// Runs a test on a thread of its own, whose system calls may be refused.
fn on_a_thread(run: fn()) {
    thread::spawn(run).join().unwrap();
}

#[test]
fn without_writing_to_memory_as_a_file() {
    on_a_thread(|| {
        refuse(&[libc::SYS_pwrite64]);
        for on in [true, false, true] {
            let switched = set(1, on).unwrap();
            assert_eq!((switched.changed, switched.is_final), (1, true));
            assert_eq!(site::<1>(), on);
        }
    });
}

#[test]
fn without_a_mounted_proc() {
    on_a_thread(|| {
        refuse(&[libc::SYS_open, libc::SYS_openat]);
        assert_eq!(set(2, true).unwrap().changed, 1);
        assert!(site::<2>());
    });
}

#[test]
fn refused_altogether() {
    on_a_thread(|| {
        refuse(&[libc::SYS_pwrite64, libc::SYS_mprotect]);
        let error = set(3, true).unwrap_err();
        assert_eq!(error.changed, 0);
        let text = error.to_string();
        assert!(text.contains("/proc/self/mem (Operation not permitted)"), "{text}");
        assert!(text.contains("make the page writable (Operation not permitted)"), "{text}");
        assert!(!site::<3>());
        assert_eq!(set(3, false).unwrap().changed, 0, "nothing to do, nothing to refuse");
    });
    assert_eq!(set(3, true).unwrap().changed, 1, "other threads may");
    assert!(site::<3>());
}

#[test]
fn without_membarrier() {
    on_a_thread(|| {
        refuse(&[libc::SYS_membarrier]);
        let switched = set(4, true).unwrap();
        assert!(switched.changed == 1 && !switched.is_final);
        assert!(site::<4>());
    });
}

#[test]
fn while_pages_must_not_be_writable_and_executable() {
    const PR_SET_MDWE: libc::c_int = 65;
    const REFUSE_EXEC_GAIN: libc::c_ulong = 1;
    // SAFETY: the child ends without destructors.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: has no obligations.
        let forbidden = unsafe { libc::prctl(PR_SET_MDWE, REFUSE_EXEC_GAIN, 0, 0, 0) } == 0;
        let mut status = if forbidden { 0 } else { 77 };
        if forbidden && !(set(5, true).is_ok() && site::<5>()) {
            status = 1;
        }
        // Now the other way is refused as well.
        refuse(&[libc::SYS_pwrite64]);
        if forbidden && !(set(5, false).is_err() && site::<5>()) {
            status = 2;
        }
        // SAFETY: has no obligations.
        unsafe { libc::_exit(status) };
    }
    let mut status = 0;
    // SAFETY: room for a status.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    match libc::WEXITSTATUS(status) {
        77 => eprintln!("skipped: this kernel has no PR_SET_MDWE (Linux 6.3)"),
        code => assert_eq!((code, libc::WIFEXITED(status)), (0, true)),
    }
}

/// What a debugger does, and undoes.
fn write_byte(address: usize, byte: u8) {
    use std::os::unix::fs::FileExt;
    let memory = std::fs::OpenOptions::new().write(true).open("/proc/self/mem").unwrap();
    memory.write_all_at(&[byte], address as u64).unwrap();
}

#[test]
fn breakpoints_are_left_alone() {
    assert!(!site::<6>());
    let Some(address) = with_record(6, Record::address) else {
        eprintln!("skipped: sites of this processor are not patched");
        return;
    };
    write_byte(address, 0xcc);
    let switched = set(6, true).unwrap();
    assert_eq!((switched.changed, switched.obstructed), (0, 1));
    assert_eq!(switched.obstacle, Some(Obstacle { address, byte: 0xcc }));
    write_byte(address, tracewing_abi::site::OFF);
    assert!(!site::<6>());
    assert_eq!(set(6, true).unwrap().changed, 1);
    assert!(site::<6>());
}

/// Set in a program that shall try to switch under valgrind, gdb or perf, and tell what came of it.
const ALONE: &str = "TRACEWING_TRIGGER_ALONE";

#[test]
fn a_switched_site() {
    if std::env::var_os(ALONE).is_some() {
        let seen: Vec<bool> = [false, true, false]
            .into_iter()
            .flat_map(|on| {
                let _ = set(7, on).unwrap();
                // Often, for those that translate what is executed often.
                (0..2000).map(move |_| site::<7>() == on)
            })
            .collect();
        assert!(seen.into_iter().all(|right| right));
    }
}

/// This program under a tool, with only the test above.
fn under(tool: &str, arguments: &[&str]) -> Option<String> {
    if Command::new(tool).arg("--version").output().is_err() {
        eprintln!("skipped: no {tool}");
        return None;
    }
    let own = std::env::current_exe().unwrap();
    let output = Command::new(tool)
        .args(arguments)
        .arg(own)
        .args(["--exact", "a_switched_site", "--test-threads=1"])
        .env(ALONE, "1")
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(output.status.success(), "{tool}: {text}");
    assert!(text.contains("1 passed"), "{tool}: {text}");
    Some(text)
}

#[test]
fn under_valgrind() {
    under("valgrind", &["--error-exitcode=9"]);
}

#[test]
fn under_gdb() {
    under("gdb", &["-nx", "-batch", "-return-child-result", "-ex", "run", "--args"]);
}
