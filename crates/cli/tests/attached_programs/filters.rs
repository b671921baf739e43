//! Programs under filters for system calls: a recorder attaches if they allow everything that it needs, and
//! otherwise reports the call that they do not allow.

use super::*;
use libc::*;

/// What the program itself does.
const OWN: [c_long; 10] = [
    SYS_wait4,
    SYS_clone,
    SYS_exit_group,
    SYS_sigaltstack,
    SYS_rt_sigreturn,
    SYS_rt_sigaction,
    SYS_restart_syscall,
    SYS_sched_getaffinity,
    SYS_brk,
    SYS_mremap,
];

/// What Docker's default profile refuses (docs.docker.com, "Seccomp security profiles"), with EPERM.
const REFUSED_BY_DOCKER: [c_long; 40] = [
    SYS_acct,
    SYS_add_key,
    SYS_bpf,
    SYS_clock_adjtime,
    SYS_clock_settime,
    SYS_delete_module,
    SYS_finit_module,
    SYS_get_mempolicy,
    SYS_init_module,
    SYS_ioperm,
    SYS_iopl,
    SYS_kcmp,
    SYS_kexec_file_load,
    SYS_kexec_load,
    SYS_keyctl,
    SYS_lookup_dcookie,
    SYS_mbind,
    SYS_mount,
    SYS_move_pages,
    SYS_nfsservctl,
    SYS_open_by_handle_at,
    SYS_perf_event_open,
    SYS_personality,
    SYS_pivot_root,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_ptrace,
    SYS_quotactl,
    SYS_reboot,
    SYS_request_key,
    SYS_set_mempolicy,
    SYS_setns,
    SYS_settimeofday,
    SYS_swapoff,
    SYS_swapon,
    SYS_sysfs,
    SYS_umount2,
    SYS_unshare,
    SYS_userfaultfd,
    SYS_vhangup,
];

/// Of systemd's `@system-service` (systemd.exec(5), `systemd-analyze syscall-filter`) what concerns memory,
/// threads, signals, files, time and sockets: all that this program and the agent can come to.
const SYSTEM_SERVICE: &[c_long] = &[
    SYS_accept4,
    SYS_access,
    SYS_arch_prctl,
    SYS_bind,
    SYS_brk,
    SYS_clock_getres,
    SYS_clock_gettime,
    SYS_clock_nanosleep,
    SYS_clone,
    SYS_clone3,
    SYS_close,
    SYS_close_range,
    SYS_connect,
    SYS_dup,
    SYS_dup2,
    SYS_dup3,
    SYS_epoll_create1,
    SYS_epoll_ctl,
    SYS_epoll_pwait,
    SYS_epoll_wait,
    SYS_eventfd2,
    SYS_execve,
    SYS_exit,
    SYS_exit_group,
    SYS_fallocate,
    SYS_flock,
    SYS_fcntl,
    SYS_fstat,
    SYS_fsync,
    SYS_ftruncate,
    SYS_futex,
    SYS_getcpu,
    SYS_getdents64,
    SYS_getegid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getpeername,
    SYS_getpid,
    SYS_getppid,
    SYS_getrandom,
    SYS_getrlimit,
    SYS_getsockname,
    SYS_getsockopt,
    SYS_gettid,
    SYS_gettimeofday,
    SYS_getuid,
    SYS_ioctl,
    SYS_kill,
    SYS_listen,
    SYS_lseek,
    SYS_madvise,
    SYS_membarrier,
    SYS_memfd_create,
    SYS_mmap,
    SYS_mprotect,
    SYS_mremap,
    SYS_munmap,
    SYS_nanosleep,
    SYS_newfstatat,
    SYS_open,
    SYS_openat,
    SYS_pause,
    SYS_pipe2,
    SYS_poll,
    SYS_ppoll,
    SYS_prctl,
    SYS_pread64,
    SYS_prlimit64,
    SYS_pselect6,
    SYS_pwrite64,
    SYS_read,
    SYS_readlink,
    SYS_readv,
    SYS_recvfrom,
    SYS_recvmmsg,
    SYS_recvmsg,
    SYS_restart_syscall,
    SYS_rseq,
    SYS_rt_sigaction,
    SYS_rt_sigpending,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_rt_sigtimedwait,
    SYS_sched_getaffinity,
    SYS_sched_yield,
    SYS_select,
    SYS_sendmmsg,
    SYS_sendmsg,
    SYS_sendto,
    SYS_set_robust_list,
    SYS_set_tid_address,
    SYS_setsockopt,
    SYS_shutdown,
    SYS_sigaltstack,
    SYS_socket,
    SYS_socketpair,
    SYS_stat,
    SYS_statx,
    SYS_tgkill,
    SYS_timerfd_create,
    SYS_timerfd_settime,
    SYS_uname,
    SYS_wait4,
    SYS_waitid,
    SYS_write,
    SYS_writev,
];

fn list(calls: impl IntoIterator<Item = c_long>) -> String {
    calls.into_iter().map(|call| call.to_string()).collect::<Vec<_>>().join(",")
}

fn list_with(error: c_int, calls: &[c_long]) -> String {
    format!("{error}:{}", list(calls.iter().copied()))
}

/// All of systemd's `@system-service`, as this machine's systemd has it. `None` where it has none.
fn system_service() -> Option<Vec<c_long>> {
    if !tracewing_testing::installed(&["systemd-analyze"]) {
        return None;
    }
    let sets = Command::new("systemd-analyze").arg("syscall-filter").output().unwrap();
    let sets = String::from_utf8(sets.stdout).unwrap();
    let numbers = std::fs::read_to_string("/usr/include/x86_64-linux-gnu/asm/unistd_64.h").unwrap();
    let number = |name: &str| {
        let line = numbers.lines().find_map(|line| line.strip_prefix("#define __NR_")?.strip_prefix(name));
        line?.trim().parse::<c_long>().ok()
    };
    let (mut todo, mut calls) = (vec!["@system-service"], Vec::new());
    while let Some(name) = todo.pop() {
        // A set's name stands at the beginning of a line, and what it has on indented lines after that.
        let lines = sets.lines().skip_while(|line| *line != name).skip(1);
        let members = lines.take_while(|line| line.starts_with(' ')).map(str::trim);
        for member in members.filter(|member| !member.starts_with('#')) {
            match member.starts_with('@') {
                true => todo.push(member),
                // Of other processors, or newer than the headers.
                false => calls.extend(number(member)),
            }
        }
    }
    assert!(calls.len() > 200 && calls.contains(&SYS_clone3) && !calls.contains(&SYS_ptrace), "{calls:?}");
    Some(calls)
}

fn program(filters: &[String]) -> Resident {
    Resident::of(Command::new(&*PROGRAM).args(filters))
}

/// Has the class enabled or disabled. On a busy machine, the program may take longer to confirm that than
/// the recorder waits.
fn change(recorder: &Recorder, what: &str) {
    let mut said = String::new();
    wait_until("the program confirms", || {
        let output = harness::run(&[what, &recorder.pid(), "-e", "resident:step"]);
        said = output.notes();
        let is_late = said.contains("has not confirmed the change");
        assert!(output.status.success() || is_late, "{what}: {said}");
        output.status.success()
    });
    assert!(harness::run(&["rules", &recorder.pid()]).text().contains("1 program is recorded"), "{said}");
}

/// A filter ends the process for every other call: the program lives, so the recorder knows all calls.
#[test]
fn programs_under_filters_that_let_through_what_is_needed() {
    if !am_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let docker =
        [list_with(EPERM, &REFUSED_BY_DOCKER), list_with(ENOSYS, &[SYS_clone3]), "namespaces".to_owned()];
    let exactly = tracewing_session::calls_of_programs().chain(OWN);
    let mut cases = vec![vec![list(exactly)], docker.to_vec(), vec![list(SYSTEM_SERVICE.iter().copied())]];
    // Programs are as systemd ends them by default, for every other call.
    cases.extend(system_service().map(|calls| vec![list(calls)]));
    for (number, filters) in cases.iter().enumerate() {
        let mut program = program(filters);
        let before = program.state();
        for round in 0..3 {
            let trace = folder.path().join(format!("{number}.{round}"));
            let recorder = Recorder::start(&trace, program.pid, &["-e", "resident:answer"], 1);
            program.order("emit 10");
            change(&recorder, "enable");
            program.order("emit 20");
            program.order("thread 10");
            // Before it changes anything, the recorder looks for filters.
            change(&recorder, "disable");
            program.order("emit 10");
            if round == 1 {
                recorder.kill();
            } else {
                let said = recorder.stop();
                assert!(!said.contains("seccomp"), "{filters:?}: {said}");
                assert_eq!(count(&trace, "resident:step"), 30, "{filters:?}");
            }
            wait_until("the agent has ended", || program.state() == before);
        }
        program.end();
    }
}

/// Its copy of tracewing does not know whether the filter lets through what it would do, and the recorder
/// does.
#[test]
fn a_plug_in_under_a_filter_is_attached_to() {
    if !am_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let plugin = PROGRAM.with_file_name("libplugin.so");
    // What the dynamic linker does, and the plug-in's memory in which it counts.
    let calls = [SYS_openat, SYS_read, SYS_pread64, SYS_fstat, SYS_lseek, SYS_readlink, SYS_ftruncate];
    let all = tracewing_session::calls_of_programs().chain(OWN).chain(calls);
    let mut program = program(&[list(all)]);
    let recorder = Recorder::start(&folder.path().join("t"), program.pid, &[], 1);
    assert_eq!(program.order(&format!("load {}", plugin.display())), "loaded");
    wait_until("the plug-in is recorded", || agents(program.pid) == 2);
    wait_until("it has its classes", || {
        program.order("plugin 1");
        count(recorder.trace(), "plugin:step") > 0
    });
    let said = recorder.stop();
    assert!(said.contains("libplugin.so, which it has loaded at "), "{said}");
    program.end();
}

#[test]
fn a_program_whose_filter_would_end_it_is_left_alone() {
    if !am_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let without = |call| move |other: &c_long| *other != call;
    for (call, name) in [
        (SYS_membarrier, "membarrier"),
        (SYS_socketpair, "socketpair"),
        (SYS_clone3, "clone3"),
        (SYS_sched_yield, "sched_yield"),
    ] {
        let allowed = tracewing_session::calls_of_programs().chain(OWN).filter(without(call));
        let mut program = program(&[list(allowed)]);
        let recorder = Recorder::spawn(&folder.path().join(name), program.pid, &["--for", "1"]);
        let said = recorder.ended();
        assert!(said.contains(&format!("does not allow `{name}`")), "{said}");
        program.order("emit 10");
        program.end();
    }
}
