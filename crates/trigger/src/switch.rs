//! Switches sites on and off.

use core::fmt;

use tracewing_abi::site::{BREAKPOINT, INSTRUCTION, Instruction, OFF, ON, SWITCH};

use crate::Record;
use crate::patch::{self, Patcher, Refused};

/// The result of [`switch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "sites with a probe on them may not do what was asked"]
pub struct Switched {
    /// Number of sites whose state changed.
    pub changed: usize,
    /// Number of sites that do not do what was asked, since something else has changed their instruction.
    ///
    /// A site that is on, with a breakpoint on it, in a process without a debugger: a uprobe keeps it from
    /// working as long as it is there. The site is switched nevertheless. (Under a debugger it works, with
    /// its breakpoint.)
    ///
    /// A site with bytes that neither this crate nor debuggers write: it was left alone.
    pub obstructed: usize,
    /// The first obstructed site.
    pub obstacle: Option<Obstacle>,
    /// Whether the change is final: every thread that reaches one of the sites from now on sees it. `false`
    /// only if the kernel has no `membarrier` with `SYNC_CORE` (Linux before 4.16, or a filter for system
    /// calls); then a thread may once more execute an instruction that it has fetched before.
    pub is_final: bool,
}

/// A site whose instruction something else has changed.
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
                "the code of the site at {address:#x} was changed by another tool: it has the byte {byte:#04x}"
            ),
        }
    }
}

/// The kernel does not let the program change its code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwitchError {
    /// Address of the site whose change was refused.
    pub address: usize,
    /// Number of sites switched before that.
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

/// Switches sites on (`true`) or off; sites already in that state stay unchanged. Threads may execute them
/// meanwhile, and see either the old or the new state.
///
/// After it returns with [`Switched::is_final`], every thread that reaches one of the sites finds it
/// switched; a thread that reached it earlier may still be in the site's code.
///
/// One thread of the process runs this at a time; others wait. It costs one system call per changed site, and
/// a few for all. Must not be called in a signal handler or a `vfork`ed child.
///
/// # Errors
/// The kernel refuses both ways of changing code. The sites before the refused one are switched; usually
/// there are none, since it refuses all or nothing.
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
        if record.set_enabled(on) != on {
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
        // SAFETY: the byte belongs to a site, and with both values there are whole instructions wherever a
        // thread can be: at the site's beginning, and before the jump, which does not change.
        unsafe { patcher.store(address + SWITCH, if on { ON } else { OFF }) }
            .map_err(|refused| SwitchError { address, changed: switched.changed, refused })?;
        discard_translation(address);
        switched.changed += 1;
    }
    record.set_enabled(on);
    Ok(())
}

/// Whether a debugger is attached to the process (`man 5 proc_pid_status`).
fn is_debugged() -> bool {
    const TRACER: &[u8] = b"TracerPid:\t";
    let mut status = [0; 4096];
    // SAFETY: a string, and room for that many bytes.
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

/// Makes every thread of the process execute a serialising instruction before it continues, so that none
/// executes what it has fetched before. Returns whether the kernel has done so.
fn synchronise() -> bool {
    const SYNC_CORE: i32 = 1 << 5;
    const REGISTER_SYNC_CORE: i32 = 1 << 6;
    // SAFETY: has no obligations.
    let membarrier = |command: i32| unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) } == 0;
    // Refused until the process has registered for it.
    membarrier(SYNC_CORE) || (membarrier(REGISTER_SYNC_CORE) && membarrier(SYNC_CORE))
}

/// Notifies valgrind, if it runs the program, that the instruction has changed; otherwise does nothing.
#[cfg(target_arch = "x86_64")]
fn discard_translation(address: usize) {
    /// `VG_USERREQ__DISCARD_TRANSLATIONS` of valgrind.h.
    const DISCARD: usize = 0x1002;
    let request = [DISCARD, address, INSTRUCTION, 0, 0, 0];
    // SAFETY: rotates a register by 128 bits in all and exchanges another with itself. Valgrind treats that
    // as a request, reads its six words at rax and answers in rdx.
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
