//! The help of `tracewing record`: examples, and what its options mean together.

pub const EXAMPLES: &str = "\
Examples:
  tracewing record -- ./server --port 8080
      a program, all that it starts, and the kernel's view of them
  tracewing record -o T -e 'shop:*' -- ./server
      into the folder T, of user events only those of the provider shop
  tracewing record -e 'shop:*' --exclude '*:started' --where 'depth > 3' -- ./server
      of these only those that meet a condition
  tracewing record --system-wide -- make -j4
      kernel events of the whole machine while make runs
  tracewing record -k 'sched_*' -k 'block:*' -- dd if=/dev/zero of=x count=9
      only these kernel events
  tracewing record --pid 4711 --for 10 --profile
      a process that runs already, for ten seconds; it continues
  tracewing record --name nginx -o T
      all processes that are called nginx now, and what they fork, until the last of them ends, or Ctrl-C
  tracewing record --cgroup system.slice/nginx.service --for 10
      a service of systemd: its processes, and those that it starts meanwhile
  tracewing record --with server --for 10 -o T -e 'shop:*'
      the programs of a recording that runs, for ten seconds, into a trace of their own
  tracewing record --no-kernel -- ./server
      no kernel events: needs no privileges
  tracewing record --probe 'libc.so.6:malloc bytes=%di:u64' \\
    --probe './server:handle%return $retval' -- ./server
      two functions of programs that were never instrumented
  tracewing record --no-kernel --usdt 'python:function__*' -- /usr/bin/python3.11 server.py
      of the kernel's events only those of USDT probes
  tracewing record --locks -- ./server
      the locks of a program that was never instrumented
  tracewing record --functions 'queue_*' -- ./server
      the functions of these names, of a program built with gcc -finstrument-functions or -pg -mfentry
  tracewing record --profile -- ./server
      also 997 samples a second of what it executes, for `tracewing profile`
  tracewing record --flight-recorder -o T -- ./server
      keeps the newest events in memory; `tracewing snapshot` and the end of ./server write them to T/snapshot-1, ...

Kernel events need root: without it they are left out, or refused where they are asked for (-k, --system-wide, --probe). Programs that link the crate tracewing join by themselves; any other program can be \
recorded as the kernel sees it. The exit status is that of CMD (0 of processes that ran already), or 1 where that is 0 and a flight recorder's \
last snapshot could not be written, or the output was deleted or moved while it was recorded. A signal that is ignored at the start \
(nohup, a script's commands in the background) does not stop the recording.";

pub const LONG_HELP: &str = "\
Buffers: each CPU has a buffer of --sub-buffers times --sub-buffer-size bytes. When one is full, events are lost \
and counted; programs never wait. Memory is taken only as far as it is used. If events were lost, make the buffers \
larger.

A flight recorder writes nothing until a snapshot is asked for: by `tracewing snapshot`, by SIGUSR2 sent to tracewing record, by the end of CMD, by tracewing::snapshot() in CMD, or by a panic in a Rust program that has called tracewing::snapshot_on_panic(). Each snapshot is a complete trace folder below -o with the last sub-buffers of every CPU; recording continues, and the next snapshot has again what is still there. Larger buffers reach further back; of kernel events the newest 16 MiB of each CPU are kept, or a 32nd of the memory for all CPUs. --snapshot-on chooses: with it, only what it names leads to a snapshot, in addition to `tracewing snapshot` and tracewing::snapshot().

With --on-full overwrite a buffer that is full loses its oldest sub-buffer instead of the new event. How many events were in it is unknown; sub-buffers and bytes are counted. The kernel's buffers lose new events in any case.

With --buffers-in DIR the buffers of programs survive the death of tracewing and CMD, also by kill -9; after a crash of the machine, DIR has what had reached the disk. The buffers take their full size on the disk from the start. DIR is emptied when the recording ends well. The kernel's buffers are not in it.

With --locks the library libtracewing_preload.so is pre-loaded under CMD and all that it starts: POSIX mutexes, \
read-write locks, spin locks, semaphores, condition variables and barriers are events of provider lock, which are recorded \
whatever -e, --level, --major and --process ask for, but not where --exclude names them. Locks that Rust's standard library and others build \
themselves are seen only where threads wait for them, as futex system calls; the kernel's own only where they are contended \
(contention_begin, contention_end), since the kernel has no event for others. Programs that are statically linked or get \
privileges when they are executed cannot be recorded so.

With --probe and --usdt the kernel puts a breakpoint onto an instruction, in every process that executes it, and \
records an event there (a uprobe; needs root). Events are named PROGRAM:FUNCTION and PROVIDER:NAME. ARG is [NAME=]WHAT[:TYPE]; WHAT is a \
variable of the function (`size`, `order->customer.name`), for which there must be debug information, argN of a USDT probe, `$retval` at a \
%return, or a place in the kernel's words (`%di`, `+8(%si)`). TYPE is u8 to u64, s8 to s64, x8 to x64 or string. A \
function is named by its symbol or as in the source, a place without a name by its address: PROGRAM:0x1234. `tracewing \
sites PROGRAM` lists USDT probes.

With --functions the same library records when functions begin and end, of programs and libraries that gcc or clang has built with \
-finstrument-functions, or with -pg -mfentry; and functions of Rust that have the attribute #[tracewing::traced]. GLOB is \
compared with names as in the source, C++'s with and without parameters, once for each function. `tracewing functions` reads \
them. They are events of provider function, chosen like locks.

With --profile the kernel takes HZ samples a second of what each CPU executes for CMD: program counter and call chains of program and kernel, by frame pointers (for programs: -fno-omit-frame-pointer, or -C force-frame-pointers). 997 is not a multiple of the rates of other periodic work. Without root, samples are of programs only, if /proc/sys/kernel/perf_event_paranoid is 2 or less.

With --pid, --name and --cgroup, processes are recorded that run already, which need not have been built or started for it: \
the kernel's events of all their threads, samples (--profile), and probes (--probe, --usdt). Programs that link the crate tracewing join with their \
own events; for this, one of their sleeping threads is stopped for a moment. The processes are never signalled or ended. What \
was under way when the recording began (a system call, a wait) is unknown up to its end. --name is for the processes that run \
when the recording begins; those that come later are recorded if a recorded process has forked them (not with --no-children), or \
if they enter the --cgroup, within a second. Processes of containers have the numbers of the host. Processes of other users are for root. \
--locks and --functions need a library that is loaded when a program starts: start it with `tracewing record --locks -- CMD`.

Ctrl-C, SIGTERM, SIGHUP and SIGQUIT are passed on to CMD and end the recording when CMD ends, at the latest after \
two seconds; a second one ends the recording without waiting for CMD.";
