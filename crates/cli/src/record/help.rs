//! The help of `tracewing record`: examples, and what its options mean together.

pub const EXAMPLES: &str = "\
Examples:
  tracewing record -- ./server --port 8080
      a program, all that it starts, and the kernel's view of them
  tracewing record -o T -e 'shop:*' -- ./server
      into the folder T; of the events of programs, only those of the provider shop
  tracewing record -e 'shop:*' --exclude '*:started' --where 'depth > 3' -- ./server
      of these, only those that satisfy a condition
  tracewing record --system-wide -- make -j4
      kernel events of the whole machine while make runs
  tracewing record -k 'sched_*' -k 'block:*' -- dd if=/dev/zero of=x count=9
      only these kernel events
  tracewing record --pid 4711 --for 10 --profile
      a running process, for ten seconds, with samples; it continues afterwards
  tracewing record --name nginx -o T
      the running processes named nginx, and those that they fork, until the last of them ends, or Ctrl-C
  tracewing record --cgroup system.slice/nginx.service --for 10
      a service of systemd: its processes, and those that it starts meanwhile
  tracewing record --with server --for 10 -o T -e 'shop:*'
      the programs of a running recording, for ten seconds, into a second trace
  tracewing record --no-kernel -- ./server
      no kernel events: needs no privileges
  tracewing record --probe 'libc.so.6:malloc bytes=%di:u64' \\
    --probe './server:handle%return $retval' -- ./server
      two functions of programs that are not instrumented
  tracewing record --no-kernel --usdt 'python:function__*' -- /usr/bin/python3.11 server.py
      of the kernel's events only those of USDT probes
  tracewing record --locks -- ./server
      the locks of a program that is not instrumented
  tracewing record --functions 'queue_*' -- ./server
      the functions of these names, of a program built with gcc -finstrument-functions or -pg -mfentry
  tracewing record --profile -- ./server
      also 997 samples per second of what it executes, for `tracewing profile`
  tracewing record --flight-recorder -o T -- ./server
      keeps the newest events in memory; `tracewing snapshot` and the end of ./server write them to T/snapshot-1, ...

Kernel events need root: without it they are left out, or refused if options ask for them (-k, --system-wide, --probe). Programs that link the crate tracewing join by themselves; of any other program, the recording has what the kernel sees. \
The exit status is that of CMD, or 0 with --pid, --name and --cgroup. It is 1 if that would be 0 but the recording is incomplete: the disk is full, or the output was deleted or moved meanwhile. \
A signal that is ignored at the start (nohup, a script's commands in the background) does not stop the recording.";

pub const LONG_HELP: &str = "\
Buffers: each CPU has a buffer of --sub-buffers times --sub-buffer-size bytes. When it is full, events are lost \
and counted; programs never wait. A buffer takes only the memory that is used. If events were lost, make the buffers \
larger.

A flight recorder writes nothing until a snapshot is asked for: by `tracewing snapshot`, by SIGUSR2 sent to tracewing record, by the end of CMD, by tracewing::snapshot() in CMD, or by a panic in a Rust program that has called tracewing::snapshot_on_panic(). Each snapshot is a complete trace folder below -o with the last sub-buffers of every CPU; recording continues, and the next snapshot contains again what the buffers still hold. Larger buffers reach further back; of kernel events the newest 16 MiB of each CPU are kept, or a 32nd of the memory for all CPUs. With --snapshot-on, only what it names takes a snapshot, in addition to `tracewing snapshot` and tracewing::snapshot().

With --on-full overwrite, a full buffer loses its oldest sub-buffer instead of the new event. The number of events lost is then unknown; sub-buffers and bytes are counted. The kernel's buffers always lose new events.

With --buffers-in DIR the buffers of programs survive if tracewing and CMD are killed, even by kill -9; after a crash of the machine, DIR has what had reached the disk. The buffers take their full size on the disk from the start. DIR is emptied when the recording is complete. The kernel's buffers are not in it.

With --locks the library libtracewing_preload.so is pre-loaded under CMD and all that it starts: POSIX mutexes, \
read-write locks, spin locks, semaphores, condition variables and barriers are recorded as events of provider lock, \
whatever -e, --level, --major and --process say, unless --exclude names them. Locks that Rust's standard library and others build \
themselves are recorded only when threads wait for them, as futex system calls; the kernel's own only when they are contended \
(contention_begin, contention_end), since the kernel has no other events. The locks of programs that are statically linked or get \
privileges when they are executed cannot be recorded.

With --probe and --usdt the kernel puts a breakpoint onto an instruction, in every process that executes it, and \
records an event there (a uprobe; needs root). Events are named PROGRAM:FUNCTION and PROVIDER:NAME. ARG is [NAME=]WHAT[:TYPE]; WHAT is a \
variable of the function (`size`, `order->customer.name`), for which there must be debug information, argN of a USDT probe, `$retval` at a \
%return, or a place in the kernel's words (`%di`, `+8(%si)`). TYPE is u8 to u64, s8 to s64, x8 to x64 or string. A \
function is named by its symbol or as in the source, a place without a name by its address: PROGRAM:0x1234. `tracewing \
sites PROGRAM` lists USDT probes.

With --functions the same library records when functions begin and end, in programs and libraries that gcc or clang has built with \
-finstrument-functions or with -pg -mfentry, and Rust functions with the attribute #[tracewing::traced]. GLOB is \
compared with names as in the source, C++'s with and without parameters, once for each function. `tracewing functions` shows \
them. They are events of provider function, which event rules treat like those of locks.

With --profile the kernel takes HZ samples a second of what each CPU executes for CMD: program counter and call chains of program and kernel, by frame pointers (for programs: -fno-omit-frame-pointer, or -C force-frame-pointers). 997 is not a multiple of the rates of other periodic work. Without root, samples are of programs only, if /proc/sys/kernel/perf_event_paranoid is 2 or less.

With --pid, --name and --cgroup, running processes are recorded, however they were built and started: \
the kernel's events of all their threads, samples (--profile), and probes (--probe, --usdt). Programs that link the crate tracewing join with their \
own events; for this, one of their sleeping threads is stopped for a moment. The processes are never signalled or ended. What \
was in progress when the recording began (a system call, a wait) is unknown until it ends. --name means the processes that run \
when the recording begins; later ones are recorded if a recorded process forks them (not with --no-children), or \
within a second after they enter the --cgroup. Processes of containers have the numbers of the host. Only root records processes of other users. \
--locks and --functions need a library that is loaded when a program starts: start it with `tracewing record --locks -- CMD`.

Ctrl-C, SIGTERM, SIGHUP and SIGQUIT are passed on to CMD and end the recording when CMD ends, at the latest after \
two seconds; a second one ends the recording without waiting for CMD.";
