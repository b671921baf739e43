//! Evaluates a seccomp filter for a system call, as the kernel does: classic BPF over `struct seccomp_data`
//! (Linux, Documentation/networking/filter.rst; `seccomp(2)`).

use libc::sock_filter;

/// Bytes of `struct seccomp_data`: `u32` number, `u32` architecture, `u64` instruction pointer, six `u64`
/// arguments.
pub(crate) const DATA: usize = 64;
/// Most instructions that are executed; jumps go forward only, so that a filter cannot have more.
const MOST: usize = 4096 * 8;
const MEMORY: usize = 16;

/// What a filter returns for a call; `None` where it is no valid filter.
pub(crate) fn evaluate(filter: &[sock_filter], data: &[u8; DATA]) -> Option<u32> {
    let (mut a, mut x, mut memory) = (0_u32, 0_u32, [0_u32; MEMORY]);
    let mut at = 0_usize;
    for _ in 0..MOST {
        let &sock_filter { code, jt, jf, k } = filter.get(at)?;
        at += 1;
        let operand = if code & 0x08 == 0 { k } else { x };
        match code {
            // Loads: a word of the call, its size, a constant, a word of memory.
            0x20 => a = word(data, k)?,
            0x80 => a = DATA as u32,
            0x81 => x = DATA as u32,
            0x00 => a = k,
            0x01 => x = k,
            0x60 => a = *memory.get(k as usize)?,
            0x61 => x = *memory.get(k as usize)?,
            0x02 => *memory.get_mut(k as usize)? = a,
            0x03 => *memory.get_mut(k as usize)? = x,
            // Arithmetic with a constant or x.
            0x04 | 0x0c => a = a.wrapping_add(operand),
            0x14 | 0x1c => a = a.wrapping_sub(operand),
            0x24 | 0x2c => a = a.wrapping_mul(operand),
            0x34 | 0x3c => a = a.checked_div(operand)?,
            0x44 | 0x4c => a |= operand,
            0x54 | 0x5c => a &= operand,
            0x64 | 0x6c => a = a.checked_shl(operand)?,
            0x74 | 0x7c => a = a.checked_shr(operand)?,
            0x84 => a = a.wrapping_neg(),
            0xa4 | 0xac => a ^= operand,
            // Jumps.
            0x05 => at = at.checked_add(k as usize)?,
            0x15 | 0x1d => at += usize::from(if a == operand { jt } else { jf }),
            0x25 | 0x2d => at += usize::from(if a > operand { jt } else { jf }),
            0x35 | 0x3d => at += usize::from(if a >= operand { jt } else { jf }),
            0x45 | 0x4d => at += usize::from(if a & operand != 0 { jt } else { jf }),
            0x06 => return Some(k),
            0x16 => return Some(a),
            0x07 => x = a,
            0x87 => a = x,
            _ => return None,
        }
    }
    None
}

fn word(data: &[u8; DATA], at: u32) -> Option<u32> {
    let at = usize::try_from(at).ok().filter(|at| at.is_multiple_of(4))?;
    Some(u32::from_le_bytes(data.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(code: u16, jt: u8, jf: u8, k: u32) -> sock_filter {
        sock_filter { code, jt, jf, k }
    }

    fn call(number: u32, first: u64) -> [u8; DATA] {
        let mut data = [0; DATA];
        data[..4].copy_from_slice(&number.to_le_bytes());
        data[16..24].copy_from_slice(&first.to_le_bytes());
        data
    }

    #[test]
    fn a_filter_looks_at_number_and_arguments() {
        // Allows 41 where its first argument is 1 or more than 8.
        let filter = [
            step(0x20, 0, 0, 0),
            step(0x15, 0, 4, 41),
            step(0x20, 0, 0, 16),
            step(0x15, 1, 0, 1),
            step(0x25, 0, 1, 8),
            step(0x06, 0, 0, libc::SECCOMP_RET_ALLOW),
            step(0x06, 0, 0, libc::SECCOMP_RET_KILL_PROCESS),
        ];
        let allowed =
            |number, first| evaluate(&filter, &call(number, first)) == Some(libc::SECCOMP_RET_ALLOW);
        assert!(allowed(41, 1) && allowed(41, 9));
        assert!(!allowed(41, 2) && !allowed(40, 1));
    }

    #[test]
    fn memory_and_arithmetic() {
        let filter = [
            step(0x00, 0, 0, 6),
            step(0x02, 0, 0, 3),
            step(0x61, 0, 0, 3),
            step(0x2c, 0, 0, 0),
            step(0x54, 0, 0, 0xfc),
            step(0x74, 0, 0, 2),
            step(0x16, 0, 0, 0),
        ];
        assert_eq!(evaluate(&filter, &call(0, 0)), Some(9));
    }

    #[test]
    fn what_is_no_filter_has_no_answer() {
        for filter in [&[][..], &[step(0x20, 0, 0, 64)], &[step(0xff, 0, 0, 0)], &[step(5, 0, 0, u32::MAX)]] {
            assert_eq!(evaluate(filter, &call(0, 0)), None);
        }
    }
}
