//! The help of `tracewing record`: examples, and what its options mean together.

pub const EXAMPLES: &str = "\
Examples:
  tracewing record -- ./server --port 8080
      a program, everything it starts, and what the kernel does for them
  tracewing record -o T -e 'shop:*' -- ./server
      write into the folder T; of the events of programs, record only those of the provider shop
  tracewing record -e 'shop:*' --exclude '*:started' --where 'depth > 3' -- ./server
      with a condition on the fields of the events
  tracewing record --system-wide -- make -j4
      kernel events of the whole machine while make runs
  tracewing record --system-wide --for 1
      the same for one second, and without a command
  tracewing record -k 'sched_*' -k 'block:*' -- dd if=/dev/zero of=x count=9
      only these kernel events
  tracewing record --pid 4711 --for 10 --profile
      a running process, for ten seconds, with samples; it continues afterwards
  tracewing record --name nginx -o T
      the running processes named nginx, and those that they fork, until the last one ends or until Ctrl-C
  tracewing record --cgroup system.slice/nginx.service --for 10
      a systemd service: its processes, and those that it starts during this time
  tracewing record --with server --for 10 -o T -e 'shop:*'
      the processes of a running recording, for ten seconds, into a second trace
  tracewing record --no-kernel -- ./server
      no kernel events: this needs no privileges
  tracewing record --probe 'libc.so.6:malloc bytes=%di:u64' \\
    --probe './server:handle%return $retval' -- ./server
      two functions of uninstrumented programs
  tracewing record --no-kernel --usdt 'python:function__*' -- /usr/bin/python3.11 server.py
      no kernel events except those of USDT probes
  tracewing record --locks -- ./server
      the locks of an uninstrumented program
  tracewing record --functions 'queue_*' -- ./server
      functions with matching names, in a program built with gcc -finstrument-functions or -pg -mfentry
  tracewing record --profile -- ./server
      also 997 samples per second, for `tracewing profile`
  tracewing record --flight-recorder -o T -- ./server
      the newest events, kept in memory; `tracewing snapshot` and the end of ./server write them to T/snapshot-1, ...
  tracewing record --rotate-size 64M -o T -- ./server
      in archives of 64 MiB, each a complete trace: T/archives/20261127T230000Z-1, ...

Kernel events need root. Without root they are left out, or refused if an option asks for them (-k, --system-wide, \
--probe). Programs that link the crate tracewing join automatically; for any other program, the recording contains \
what the kernel sees.

The exit status is that of CMD, or 0 without CMD. It is 1 instead of 0 if the recording is incomplete because the \
disk is full, or because the output was deleted or moved. Signals that are ignored when tracewing starts (nohup, \
background commands of a script) do not stop the recording.";

pub const LONG_HELP: &str = "\
Buffers: each CPU has a buffer of --sub-buffers times --sub-buffer-size bytes. When it is full, events are lost and \
counted; programs never wait. A buffer takes only the memory that it uses. If events are lost, make the buffers \
larger. The kernel's buffers have 16 MiB per CPU, but at most a 32nd of the memory for all CPUs. If kernel events are \
requested (-k, --system-wide, --probe, --usdt), --sub-buffers, --sub-buffer-size and --on-full apply to them, too. The \
kernel has sub-buffers from a page to 128 pages (before Linux 6.8, of a page) and takes the memory at once; what it makes \
of other sizes is printed.

A flight recorder writes nothing until a snapshot is requested: by `tracewing snapshot`, by SIGUSR2 sent to tracewing \
record, by the end of CMD, by tracewing::snapshot() in CMD, or by a panic in a Rust program that has called \
tracewing::snapshot_on_panic(). Each snapshot is a complete trace folder below -o with the last sub-buffers of every \
CPU. Recording continues, so the next snapshot again contains whatever the buffers still hold. Larger buffers \
(--sub-buffers, --sub-buffer-size) reach further back. --snapshot-on limits what takes a snapshot; `tracewing \
snapshot` and tracewing::snapshot() always do.

With --rotate-size, --rotate-every and `tracewing rotate`, the trace is divided into archives below -o: \
archives/BEGIN-1, archives/BEGIN-2, and so on, where BEGIN is a time in UTC. Each is a complete trace folder with what \
was recorded since the one before, and begins with a state dump. Programs notice nothing, and no event is lost between \
archives, or in two of them. --on-archive runs a command for each archive that is complete, for at \
most --on-archive-limit seconds; with --total-size, \
--max-size and --keep, the oldest ones are removed. Commands that read recordings take one of them, several, or the folder of the whole.

With --on-full overwrite, a full buffer loses its oldest sub-buffer instead of the new event. The number of lost \
events of programs is then unknown, but lost sub-buffers and bytes are counted; lost events of the kernel are counted.

With --buffers-in DIR, the buffers of programs survive if tracewing and CMD are killed, even by kill -9. After a \
crash of the machine, DIR contains what had reached the disk. The buffers take their full size on the disk from the \
start. DIR is emptied when the recording is complete. It does not contain the kernel's buffers.

With --locks, the library libtracewing_preload.so is preloaded into CMD and everything it starts. POSIX mutexes, \
read-write locks, spin locks, semaphores, condition variables and barriers are recorded as events of the provider \
lock, whatever -e, --level, --major and --process say, unless --exclude names them. Locks that Rust's standard \
library and others implement themselves are recorded only when threads wait for them, as futex system calls. Locks of \
the kernel are recorded only when they are contended (contention_begin, contention_end), since the kernel has no \
other events for them. The locks of programs that are statically linked, or that gain privileges when they are \
executed, cannot be recorded.

With --probe and --usdt, the kernel places a breakpoint on an instruction, in every process that executes it, and \
records an event there (a uprobe; needs root). Events are named PROGRAM:FUNCTION and PROVIDER:NAME. ARG is \
[NAME=]WHAT[:TYPE]. WHAT is a variable of the function (`size`, `order->customer.name`; needs debug information), \
argN of a USDT probe, `$retval` at a %return, or a location in the kernel's syntax (`%di`, `+8(%si)`). TYPE is u8 to \
u64, s8 to s64, x8 to x64 or string. FUNCTION is a symbol or the name in the source; for a place without a name, give \
its address: PROGRAM:0x1234. `tracewing sites PROGRAM` lists USDT probes.

With --functions, the same library records when functions begin and end, in programs and libraries that gcc or clang \
has built with -finstrument-functions or with -pg -mfentry. Rust functions with the attribute #[tracewing::traced] \
are recorded, too. GLOB is compared with the name of each function as it is in the source, for C++ both with and \
without parameters. The events have the provider function, and event rules treat them like those of locks. `tracewing \
functions` shows them.

With --profile, the kernel takes HZ samples per second on each CPU that executes CMD: program counter and call chains \
of program and kernel. By default, chains are read by following frame pointers, which most programs lack \
(-fno-omit-frame-pointer and -C force-frame-pointers=yes keep them); --call-graph dwarf needs none. HZ is 997 by \
default, a prime number, so that samples do not coincide with other periodic work. Without root, samples cover \
programs only, and need a value of 2 or less in /proc/sys/kernel/perf_event_paranoid.

With --pid, --name, --cgroup and --with, running processes are recorded, however they were built and started: the \
kernel's events of all their threads, samples (--profile), and probes (--probe, --usdt). Programs that link the crate \
tracewing also record their own events; to make that possible, one of their sleeping threads is stopped for a moment. \
The processes are never signalled or ended. If something is in progress when the recording begins (a system call, a \
wait), its beginning is unknown. --name selects the processes that are running when the recording begins. Later \
ones are recorded if a recorded process forks them (not with --no-children), or within a second after they enter the \
--cgroup. Processes in containers appear with their ids on the host. Only root can record processes of other users. \
--locks and --functions need a library that is loaded when a program starts, so start it with `tracewing record \
--locks -- CMD`.

Ctrl-C, SIGTERM, SIGHUP and SIGQUIT are passed on to CMD; the recording ends when CMD ends, at the latest after two \
seconds. A second signal ends the recording without waiting for CMD.";
