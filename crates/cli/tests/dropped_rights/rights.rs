//! Losing rights, and writing to whatever memory is left.

use super::*;

pub const BY_ROOT: [&str; 5] = ["setuid", "setresuid", "setgid", "capset", "setns"];

pub const BY_ALL: [&str; 2] = ["seccomp", "unshare"];

pub fn wait_for(child: libc::pid_t) {
    let mut status = 0;
    // SAFETY: the child is this process's own.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0, "a child");
}

/// What tracewing has mapped of this process to which others can write, too: begin, end and inode.
pub fn mappings() -> Vec<(usize, usize, u64)> {
    mappings_with("")
}

pub fn mappings_with(name: &str) -> Vec<(usize, usize, u64)> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let of_recorder = maps.lines().filter(|line| line.contains("tracewing") && line.contains("rw-s"));
    let parse = |line: &str| {
        let mut words = line.split_whitespace();
        let (begin, end) = words.next()?.split_once('-')?;
        let number = |text| usize::from_str_radix(text, 16).ok();
        Some((number(begin)?, number(end)?, words.nth(3)?.parse().ok()?))
    };
    of_recorder.filter(|line| line.contains(name)).map(|line| parse(line).unwrap()).collect()
}

/// Drops rights, and writes over everything then. Says whether the rights could be dropped.
pub fn scribble(how: &str) -> bool {
    let dropped = drop_rights(how);
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for (begin, end, _) in mappings().into_iter().cycle().take(8) {
        for address in (begin..end).step_by(8) {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // SAFETY: a mapping of this process, to which it can write; that is what the test is about.
            unsafe { (address as *mut u64).write_volatile(random) };
        }
    }
    // And what it can reach by descriptors.
    for descriptor in 3..1024 {
        let target = fs::read_link(format!("/proc/self/fd/{descriptor}"));
        if target.is_ok_and(|target| target.to_string_lossy().contains("memfd:tracewing")) {
            // SAFETY: readable bytes.
            unsafe { libc::pwrite(descriptor, [0xa5_u8; 4096].as_ptr().cast(), 4096, 0) };
        }
    }
    dropped
}

/// By the kernel's calls alone: the C library would do it in all threads.
pub fn drop_rights(how: &str) -> bool {
    let user = libc::c_ulong::from(USER);
    // SAFETY: system calls with numbers, and with structures that live during the call.
    unsafe {
        match how {
            "setuid" => libc::syscall(libc::SYS_setuid, user) == 0,
            "setresuid" => libc::syscall(libc::SYS_setresuid, user, user, user) == 0,
            "setgid" => libc::syscall(libc::SYS_setgid, user) == 0,
            "capset" => {
                // _LINUX_CAPABILITY_VERSION_3, this thread; no capability in any set.
                let (header, sets) = ([0x2008_0522_u32, 0], [0_u32; 6]);
                libc::syscall(libc::SYS_capset, header.as_ptr(), sets.as_ptr()) == 0
            }
            "setns" => {
                let own = libc::open(c"/proc/self/ns/net".as_ptr(), libc::O_RDONLY);
                libc::unshare(libc::CLONE_NEWNET) == 0 && libc::syscall(libc::SYS_setns, own, 0) == 0
            }
            // Namespaces may be forbidden to users: then it has dropped nothing, and scribbles all the same.
            "unshare" => libc::syscall(libc::SYS_unshare, libc::CLONE_FS) == 0,
            "seccomp" => {
                let mut allow = libc::sock_filter { code: 6, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW };
                let program = libc::sock_fprog { len: 1, filter: &raw mut allow };
                libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                    && libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program)
                        == 0
            }
            _ => unreachable!("{how}"),
        }
    }
}
