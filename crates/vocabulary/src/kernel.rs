//! The kernel's events, by LTTng's names (`tracewing-kernel` uses the same): those that are interpreted, and
//! the naming schemes of system calls and interrupts.
//!
//! Fields and their meaning are those of the kernel's `include/trace/events`; each event names its file.

mod interrupt;
mod state;
mod system_call;

pub use interrupt::{Interrupt, InterruptEvent, softirq};
pub use state::TaskState;
pub use system_call::SystemCall;

use crate::declare::readers;
use tracewing_units::{LockAddress, Pid, Tid};

/// `CLONE_THREAD` of `include/uapi/linux/sched.h`, in [`NewTask::clone_flags`]: the new thread belongs to its
/// creator's process.
pub const CLONE_THREAD: i64 = 0x0001_0000;

/// `enum lttng_thread_type` of LTTng, in [`StateDump::type`]: a kernel thread.
pub const KERNEL_THREAD: i64 = 1;

/// A pattern for the classes of the scheduler's events.
pub const SCHEDULER_GLOB: &str = "sched_*";

/// Whether a class of this name belongs to LTTng's state dump: the state when the recording begins.
pub fn is_state_dump(name: &str) -> bool {
    name.starts_with("lttng_statedump_")
}

readers! {
    provider "kernel" named "";
    enumerations {}
    events {
        /// A CPU switches from one thread to another (`sched.h`).
        Switch<'e> "sched_switch" {
            /// Thread that leaves the CPU.
            prev_tid: Tid,
            /// Name of the thread that leaves the CPU.
            prev_comm: &'e str,
            /// Its state from now on.
            prev_state: TaskState,
            /// Thread that gets the CPU.
            next_tid: Tid,
            /// Name of the thread that gets the CPU.
            next_comm: &'e str,
        }

        /// A thread is about to be woken; recorded on the waker's CPU (`sched.h`).
        Waking<'e> "sched_waking" {
            /// Thread that is being woken.
            tid: Tid,
            /// Name of that thread, at most 15 bytes.
            comm: &'e str,
        }

        /// A woken thread is ready; recorded where it was queued, which need not be the waker's CPU
        /// (`sched.h`).
        Wakeup<'e> "sched_wakeup" {
            /// Thread that was woken.
            tid: Tid,
            /// Name of that thread, at most 15 bytes.
            comm: &'e str,
        }

        /// A new thread is ready for the first time (`sched.h`).
        WakeupNew<'e> "sched_wakeup_new" {
            /// Thread that was created.
            tid: Tid,
            /// Name of that thread, at most 15 bytes.
            comm: &'e str,
        }

        /// A thread created another one (`sched.h`).
        Fork<'e> "sched_process_fork" {
            /// Thread that was created.
            child_tid: Tid,
            /// Name of that thread, at most 15 bytes.
            child_comm: &'e str,
        }

        /// A thread was created (`task.h`).
        NewTask "task_newtask" {
            /// Thread that was created.
            tid: Tid [also = "pid"],
            /// Flags of `clone`: what it shares with its creator.
            clone_flags: i64,
        }

        /// A process executes a new program (`sched.h`).
        Exec<'e> "sched_process_exec" {
            /// Path of the program.
            filename: &'e str,
        }

        /// The running thread exits (`sched.h`).
        ThreadExit<'e> "sched_process_exit" {
            /// Its name, at most 15 bytes.
            @optional comm: &'e str,
        }

        /// A thread that exists when the recording begins (LTTng's `lttng-statedump.h`).
        StateDump<'e> "lttng_statedump_process_state" {
            /// Id of the thread.
            tid: Tid,
            /// Id of its process.
            pid: Pid,
            /// Id of its parent process.
            @optional ppid: Pid,
            /// Name of that thread, at most 15 bytes.
            name: &'e str,
            /// Whether it is a user or a kernel thread.
            @optional r#type: i64,
            /// What it executes: the program, a system call, an interrupt.
            @optional mode: i64,
            /// LTTng's detail of the mode.
            @optional submode: i64,
            /// Whether it has a CPU, waits for one, is blocked or has ended.
            @optional status: i64,
            /// The CPU that it was last on.
            @optional cpu: i64,
        }

        /// A thread that already slept when its events began to be recorded, and had not run since.
        Asleep<'e> "tracewing_statedump_asleep" {
            /// Thread that sleeps.
            tid: Tid,
            /// The system call in which it sleeps; empty if it sleeps in none, or in one that is unknown.
            system_call: &'e str,
        }

        /// A softirq is raised (`irq.h`).
        SoftirqRaise "softirq_raise" | "irq_softirq_raise" {
            /// Number of the softirq.
            vec: i64,
        }

        /// A softirq begins (`irq.h`).
        SoftirqEntry "softirq_entry" | "irq_softirq_entry" {
            /// Number of the softirq.
            @optional vec: i64,
        }

        /// The handler of a device's interrupt begins (`irq.h`).
        HandlerEntry<'e> "irq_handler_entry" {
            /// Name that the driver registered.
            @optional name: &'e str,
        }

        /// A thread sends through a socket (`sock.h`).
        SocketSend "sock_send_length" {}

        /// A thread receives from a socket (`sock.h`).
        SocketReceive "sock_recv_length" {}

        /// A program faults on a page (`arch/x86/include/asm/trace/exceptions.h`).
        PageFaultUser "x86_exceptions_page_fault_user" {
            /// Address of the page that was missing.
            @optional address: u64,
            /// Address of the instruction that needed it.
            @optional ip: u64,
        }

        /// The kernel faults on a page.
        PageFaultKernel "x86_exceptions_page_fault_kernel" {}

        /// The running thread starts waiting for a kernel lock (`lock.h`).
        ContentionBegin "contention_begin" {
            /// Address of the lock.
            lock_addr: LockAddress,
            /// Kind of lock and of access.
            flags: u64,
        }

        /// The wait for a kernel lock ends (`lock.h`).
        ContentionEnd "contention_end" {
            /// Address of the lock.
            lock_addr: LockAddress,
        }

        /// The clock of a CPU changes (`power.h`); recorded on any CPU.
        CpuFrequency "power_cpu_frequency" | "cpu_frequency" {
            /// Its frequency from now on, in kHz.
            state: u64,
            /// The CPU.
            cpu_id: u64,
        }

        /// System call `futex` is entered: it waits at an address, or wakes waiters there.
        FutexEntry "syscall_entry_futex" {
            /// The address waited at.
            uaddr: LockAddress,
            /// Operation (`include/uapi/linux/futex.h`).
            op: u64,
        }

        /// System call `futex` returns.
        FutexExit "syscall_exit_futex" {
            /// Result of the call; negative for an error.
            ret: i64,
        }
    }
}
