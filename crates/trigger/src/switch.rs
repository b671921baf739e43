//! Switches sites.

use core::fmt;

use tracewing_abi::site::{BREAKPOINT, INSTRUCTION, Instruction, OFF, ON, SWITCH};

use crate::Record;
use crate::patch::{self, Patcher, Refused};

/// What [`switch`] has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "sites with a probe on them may not do what was asked"]
pub struct Switched {
    /// How many sites are now what they were not before.
    pub changed: usize,
    /// How many sites do not do what was asked, since somebody else has changed their instruction.
    ///
    /// One that is on, with a breakpoint on it, in a process that no debugger is attached to: a uprobe keeps
    /// it from doing anything as long as it is there. It is switched nevertheless. (Under a debugger it
    /// works, with its breakpoint.)
    ///
    /// One with other bytes than this crate and debuggers put there: it was left alone.
    pub obstructed: usize,
    /// The first of these.
    pub obstacle: Option<Obstacle>,
    /// Whether the change is final: every thread that comes to one of the sites from now on finds it. Not so
    /// only where the kernel knows no `membarrier` with `SYNC_CORE` (Linux before 4.16, or a filter for
    /// system calls); then a thread may execute an instruction once more that it has fetched before.
    pub is_final: bool,
}

/// A site whose instruction somebody else has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Obstacle {
    /// Address of the site's instruction.
    pub address: usize,
    /// Its first byte that is not a site's; `0xcc` is a breakpoint.
    pub byte: u8,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, byte } = self;
        match *byte {
            BREAKPOINT => {
                write!(
                    f,
                    "a uprobe is on the site at {address:#x}, and nothing happens there until it is gone"
                )
            }
            byte => write!(
                f,
                "somebody has changed the code of the site at {address:#x}: it has the byte {byte:#04x}"
            ),
        }
    }
}

/// The kernel does not let the program change its code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwitchError {
    /// Address of the site at which it was refused.
    pub address: usize,
    /// How many sites had been switched before.
    pub changed: usize,
    refused: Refused,
}

impl fmt::Display for SwitchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, changed, refused } = self;
        let remedy = if refused.lacks_descriptors() {
            "Raise the limit on open files (ulimit -n), or close some"
        } else {
            "Allow one of the two: mount /proc, lift the filter for system calls, set the kernel's \
             proc_mem.force_override to `always`, or lift PR_SET_MDWE (systemd: MemoryDenyWriteExecute=no)"
        };
        write!(
            f,
            "cannot switch the trigger at {address:#x}: this process may neither write to its code through \
             /proc/self/mem ({}) nor make the page writable ({}); {changed} others were switched before. {remedy}",
            refused.memory, refused.page
        )
    }
}

impl core::error::Error for SwitchError {}

/// Switches sites on (`true`) or off. Sites that are so already stay so. Threads may execute them meanwhile,
/// and do what they found either before or after.
///
/// When it returns, with [`Switched::is_final`], every thread that comes to one of the sites finds it
/// switched; one that came earlier may still be in the code behind the site.
///
/// One thread of the process at a time; others wait. A system call per site that changes, some more for all.
/// Not for signal handlers, and not for `vfork`ed children.
///
/// # Errors
/// The kernel refuses both ways of changing code. The sites before the one that was refused are switched;
/// usually that is none, since it refuses all or none.
pub fn switch(changes: &[(&Record, bool)]) -> Result<Switched, SwitchError> {
    let mut switched = Switched { changed: 0, obstructed: 0, obstacle: None, is_final: true };
    let mut patcher = Patcher::new();
    let result = changes.iter().try_for_each(|&(record, on)| apply(record, on, &mut patcher, &mut switched));
    drop(patcher);
    if switched.changed > 0 {
        switched.is_final = synchronise();
    }
    result.map(|()| switched)
}

fn apply(
    record: &Record,
    on: bool,
    patcher: &mut Patcher,
    switched: &mut Switched,
) -> Result<(), SwitchError> {
    let Some(address) = record.address() else {
        if record.set_wanted(on) != on {
            switched.changed += 1;
        }
        return Ok(());
    };
    // SAFETY: the assembler has written the instruction's address into the record, and the object is loaded
    // while there are references to its records.
    let head = unsafe { patch::load(address) };
    let mut obstruct = |byte| {
        switched.obstructed += 1;
        switched.obstacle.get_or_insert(Obstacle { address, byte });
    };
    let found = match Instruction::from_head(head) {
        Ok(found) => found,
        Err(byte) => {
            obstruct(byte);
            return Ok(());
        }
    };
    if found.has_breakpoint && on && !is_debugged() {
        obstruct(BREAKPOINT);
    }
    if found.is_on != on {
        // SAFETY: the byte is a site's, with both of which there are whole instructions wherever a thread can
        // be: at the site's beginning, and in front of the jump, which does not change.
        unsafe { patcher.store(address + SWITCH, if on { ON } else { OFF }) }
            .map_err(|refused| SwitchError { address, changed: switched.changed, refused })?;
        discard_translation(address);
        switched.changed += 1;
    }
    record.set_wanted(on);
    Ok(())
}

/// Whether a debugger is attached to the process (`man 5 proc_pid_status`).
fn is_debugged() -> bool {
    const TRACER: &[u8] = b"TracerPid:\t";
    let mut status = [0; 4096];
    // SAFETY: a string, and room for so many bytes.
    let length = unsafe {
        let file = libc::open(c"/proc/self/status".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        let length = libc::read(file, status.as_mut_ptr().cast(), status.len());
        libc::close(file);
        length
    };
    let status = status.get(..usize::try_from(length).unwrap_or(0)).unwrap_or_default();
    let tracer = status.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(TRACER));
    tracer.is_some_and(|tracer| tracer != b"0")
}

/// Makes every thread of the process execute a serialising instruction before it goes on in its code, so that
/// none executes what it has fetched before. Says whether the kernel has done so.
fn synchronise() -> bool {
    const SYNC_CORE: i32 = 1 << 5;
    const REGISTER_SYNC_CORE: i32 = 1 << 6;
    // SAFETY: has no obligations.
    let membarrier = |command: i32| unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) } == 0;
    // Refused until the process has said that it will use it.
    membarrier(SYNC_CORE) || (membarrier(REGISTER_SYNC_CORE) && membarrier(SYNC_CORE))
}

/// Tells valgrind, where that runs the program, that the instruction has changed; elsewhere does nothing.
#[cfg(target_arch = "x86_64")]
fn discard_translation(address: usize) {
    /// `VG_USERREQ__DISCARD_TRANSLATIONS` of valgrind.h.
    const DISCARD: usize = 0x1002;
    let request = [DISCARD, address, INSTRUCTION, 0, 0, 0];
    // SAFETY: rotates a register by 128 bits in all and exchanges another with itself. Valgrind takes that
    // for a request, reads its six words at rax and answers in rdx.
    unsafe {
        core::arch::asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            in("rax") request.as_ptr(),
            inout("rdx") 0 => _,
            options(nostack),
        );
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn discard_translation(address: usize) {
    let _ = (address, INSTRUCTION);
}
