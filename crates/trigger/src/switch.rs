//! Switches sites.

use core::fmt;

use tracewing_abi::site::{INSTRUCTION, OFF, ON};

use crate::Record;
use crate::patch::{self, Patcher, Refused};

/// What [`switch`] has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "sites with a breakpoint on them were left alone"]
pub struct Switched {
    /// How many sites are now what they were not before.
    pub changed: usize,
    /// How many sites were left alone, since their first byte is not what this crate puts there: a debugger's
    /// breakpoint, or a probe. They stay as they are, until they are switched again without it.
    pub obstructed: usize,
    /// The first of these.
    pub obstacle: Option<Obstacle>,
    /// Whether the change is final: every thread that comes to one of the sites from now on finds it. Not so only where
    /// the kernel knows no `membarrier` with `SYNC_CORE` (Linux before 4.16, or a filter for system calls); then a thread may
    /// execute an instruction once more that it has fetched before.
    pub is_final: bool,
}

/// A site that could not be switched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Obstacle {
    /// Address of the site's instruction.
    pub address: usize,
    /// Its first byte; `0xcc` is a breakpoint.
    pub byte: u8,
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
        write!(
            f,
            "cannot switch the trigger at {address:#x}: this process may neither write to its code through \
             /proc/self/mem ({}) nor make the page writable ({}); {changed} others were switched before. \
             Allow one of the two: mount /proc, lift the filter for system calls, set the kernel's \
             proc_mem.force_override to `always`, or lift PR_SET_MDWE (systemd: MemoryDenyWriteExecute=no)",
            refused.memory, refused.page
        )
    }
}

impl core::error::Error for SwitchError {}

/// Switches sites on (`true`) or off. Sites that are so already stay so. Threads may execute them meanwhile, and do what
/// they found either before or after.
///
/// When it returns, with [`Switched::is_final`], every thread that comes to one of the sites finds it switched; one that
/// came earlier may still be in the code behind the site.
///
/// One thread of the process at a time; others wait. A system call per site that changes, some more for all. Not for
/// signal handlers, and not for `vfork`ed children.
///
/// # Errors
/// The kernel refuses both ways of changing code. The sites before the one that was refused are switched; usually that
/// is none, since it refuses all or none.
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
    // SAFETY: the assembler has written the instruction's address into the record, and the object is loaded while there
    // are references to its records.
    let byte = unsafe { patch::load(address) };
    if byte != ON && byte != OFF {
        switched.obstructed += 1;
        switched.obstacle.get_or_insert(Obstacle { address, byte });
        return Ok(());
    }
    let wanted = if on { ON } else { OFF };
    if byte != wanted {
        // SAFETY: the instruction is a site's, of which both bytes make a whole one.
        unsafe { patcher.store(address, wanted) }.map_err(|refused| SwitchError {
            address,
            changed: switched.changed,
            refused,
        })?;
        discard_translation(address);
        switched.changed += 1;
    }
    record.set_wanted(on);
    Ok(())
}

/// Makes every thread of the process execute a serialising instruction before it goes on in its code, so that none
/// executes what it has fetched before. Says whether the kernel has done so.
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
    // SAFETY: rotates a register by 128 bits in all and exchanges another with itself. Valgrind takes that for a request,
    // reads its six words at rax and answers in rdx.
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
