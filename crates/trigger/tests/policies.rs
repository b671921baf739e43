//! Switching when the kernel refuses one way of changing code, or both, and when something else has changed
//! it.

use std::os::fd::{FromRawFd, OwnedFd};
use std::process::Command;
use std::thread;
use tracewing_abi::schema::Class;
use tracewing_abi::site::{BREAKPOINT, OFF};
use tracewing_trigger::{Kind, Obstacle, Place, Record, Site, SwitchError, Switched, is_on, objects, switch};

struct Numbered<const N: u32>;

impl<const N: u32> Place for Numbered<N> {
    const SITE: &'static Site = &Site {
        class: &Class::named("policies:site"),
        owner: Site::no_owner,
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

/// Makes these system calls of the calling thread fail from now on with a permission error.
fn refuse(calls: &[libc::c_long]) {
    const fn operation(code: u32, jump: u8, value: u32) -> libc::sock_filter {
        libc::sock_filter { code: code as u16, jt: 0, jf: jump, k: value }
    }
    // The call's number is the first word of a filter's input.
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
fn without_descriptors() {
    // SAFETY: the child ends without destructors.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: a valid limit.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const none) }, 0);
        let is_refused = set(11, true).is_err_and(|error| error.to_string().contains("ulimit -n"));
        // SAFETY: has no obligations.
        unsafe { libc::_exit(i32::from(!is_refused || site::<11>())) };
    }
    let mut status = 0;
    // SAFETY: room for a status.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0);
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
        77 => tracewing_testing::skip(
            tracewing_testing::Cause::Kernel(6, 3),
            "this kernel has no PR_SET_MDWE (Linux 6.3)",
        ),
        code => assert_eq!((code, libc::WIFEXITED(status)), (0, true)),
    }
}

/// Writes a byte as a debugger does.
fn write_byte(address: usize, byte: u8) {
    use std::os::unix::fs::FileExt;
    let memory = std::fs::OpenOptions::new().write(true).open("/proc/self/mem").unwrap();
    memory.write_all_at(&[byte], address as u64).unwrap();
}

/// The address of a site's instruction, if sites of this processor are patched.
fn address(number: u32) -> Option<usize> {
    let address = with_record(number, Record::address);
    if address.is_none() {
        tracewing_testing::skip(
            tracewing_testing::Cause::Processor,
            "sites of this processor are not patched",
        );
    }
    address
}

#[test]
fn a_site_is_switched_beneath_a_breakpoint() {
    assert!(!site::<6>());
    let Some(address) = address(6) else { return };
    for on in [true, false] {
        write_byte(address, BREAKPOINT);
        let switched = set(6, on).unwrap();
        let obstacle = on.then_some(Obstacle { address, byte: BREAKPOINT });
        assert_eq!((switched.changed, switched.obstructed, switched.obstacle), (1, on.into(), obstacle));
        write_byte(address, 0x0f);
        assert_eq!(site::<6>(), on);
    }
}

#[test]
fn a_breakpoint_on_the_jump_is_ignored() {
    let Some(address) = address(8) else { return };
    write_byte(address + 3, BREAKPOINT);
    let switched = set(8, true).unwrap();
    assert_eq!((switched.changed, switched.obstructed), (1, 0));
    assert!(!{
        let _ = set(8, false).unwrap();
        site::<8>()
    });
    write_byte(address + 3, 0xe9);
    let _ = set(8, true).unwrap();
    assert!(site::<8>());
}

#[test]
fn what_is_no_site_is_left_alone() {
    let Some(address) = address(9) else { return };
    for (at, byte, whole) in [(0, 0x66, 0x0f), (1, 0x0b, 0x1f), (2, 0x44, OFF), (3, 0xe8, 0xe9)] {
        write_byte(address + at, byte);
        let switched = set(9, true).unwrap();
        assert_eq!((switched.changed, switched.obstructed), (0, 1), "{byte:#x} at {at}");
        assert_eq!(switched.obstacle, Some(Obstacle { address, byte }));
        write_byte(address + at, whole);
        assert!(!site::<9>());
    }
}

/// A uprobe on the byte of this program that is at `address` in memory, placed like `perf probe` does; `None`
/// if that is not permitted.
fn uprobe(address: usize) -> Option<OwnedFd> {
    /// `struct perf_event_attr` of linux/perf_event.h, in its first version that has `config2`.
    #[repr(C)]
    #[derive(Default)]
    struct Attributes {
        kind: u32,
        size: u32,
        config: u64,
        others: [u64; 4],
        wakeup_events: u32,
        breakpoint_type: u32,
        path: u64,
        offset: u64,
    }
    /// `PERF_FLAG_FD_CLOEXEC`: programs of other tests would keep the probe.
    const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;
    tracewing_kernel::privileges().ok()?;
    let kind = std::fs::read_to_string("/sys/bus/event_source/devices/uprobe/type").ok()?;
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let offset = maps.lines().find_map(|line| {
        let mut words = line.split(' ');
        let (start, end) = words.next()?.split_once('-')?;
        let number = |text| usize::from_str_radix(text, 16).ok();
        let (start, end, offset) = (number(start)?, number(end)?, number(words.nth(1)?)?);
        (start..end).contains(&address).then(|| address - start + offset)
    });
    let own = std::env::current_exe().unwrap();
    let path = std::ffi::CString::new(own.into_os_string().into_encoded_bytes()).unwrap();
    let attributes = Attributes {
        kind: kind.trim().parse().unwrap(),
        size: size_of::<Attributes>() as u32,
        path: path.as_ptr() as u64,
        offset: offset.unwrap() as u64,
        ..Attributes::default()
    };
    // SAFETY: valid attributes of that size; the kernel copies the path.
    let probe =
        unsafe { libc::syscall(libc::SYS_perf_event_open, &raw const attributes, 0, -1, -1, CLOSE_ON_EXEC) };
    // SAFETY: a descriptor of this function's own.
    (probe >= 0).then(|| unsafe { OwnedFd::from_raw_fd(probe as i32) })
}

#[test]
fn a_uprobe_keeps_a_site_off_as_long_as_it_is_there() {
    let Some(address) = address(10) else { return };
    let Some(probe) = uprobe(address) else {
        return tracewing_testing::skip(tracewing_testing::Cause::Uprobes, "no uprobes here");
    };
    assert!(!site::<10>());
    let switched = set(10, true).unwrap();
    assert_eq!((switched.changed, switched.obstructed), (1, 1));
    assert!(!site::<10>());
    drop(probe);
    // Another test may have forked a program that has not executed its file yet, and has a copy until then.
    tracewing_testing::wait_until("the kernel has removed it", site::<10>);
    let _probe = uprobe(address).unwrap();
    assert!(!site::<10>());
    let switched = set(10, false).unwrap();
    assert_eq!((switched.changed, switched.obstructed), (1, 0));
    assert!(!site::<10>());
}

/// Set in a process that tries to switch under valgrind, gdb or perf, and reports the result.
const ALONE: &str = "TRACEWING_TRIGGER_ALONE";

/// A site in a function whose name debuggers can resolve.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn seventh() -> bool {
    is_on::<Numbered<7>>()
}

#[test]
fn a_switched_site() {
    if std::env::var_os(ALONE).is_some() {
        let seen: Vec<bool> = [false, true, false]
            .into_iter()
            .flat_map(|on| {
                assert_eq!(set(7, on).unwrap().obstructed, 0);
                // Many times, for tools that translate code only if it is executed often.
                (0..2000).map(move |_| seventh() == on)
            })
            .collect();
        assert!(seen.into_iter().all(|right| right));
    }
}

/// Runs this program under a tool, with only the test above.
fn under(tool: &str, arguments: &[&str]) -> Option<String> {
    if Command::new(tool).arg("--version").output().is_err() {
        tracewing_testing::skip(tracewing_testing::Cause::Program(tool), format_args!("no {tool}"));
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

#[test]
fn under_gdb_with_a_breakpoint_on_the_site() {
    let Some(address) = address(7) else { return };
    let distance = address - seventh as *const () as usize;
    let stop = format!("break *((char *)&seventh + {distance})");
    let commands = ["set language c", &stop, "ignore 1 1000000", "run", "info breakpoints"];
    let each = commands.iter().flat_map(|command| ["-ex", command]);
    let arguments: Vec<&str> =
        ["-nx", "-batch", "-return-child-result"].into_iter().chain(each).chain(["--args"]).collect();
    if let Some(text) = under("gdb", &arguments) {
        assert!(text.contains("already hit 6000 times"), "{text}");
    }
}
