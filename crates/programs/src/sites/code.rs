//! The address that the function of a site's record returns. Compiled with optimisation, the function is one
//! instruction and a return; without it, for coverage or with landing pads, there is a frame around it. Only
//! these instructions of the two processors are decoded: a function that does anything else yields nothing.

use crate::elf::Processor;
use crate::image::{Image, Place, half_word};

/// Maximum number of instructions to follow.
const MOST_INSTRUCTIONS: u32 = 32;

/// A value of the function's return register.
#[derive(Debug, Clone, Copy)]
enum Value {
    Unknown,
    Address(Place),
    /// The target of the pointer at this place.
    At(Place),
}

/// The effect of one instruction.
enum Step {
    /// No effect that matters.
    Skip,
    /// The register gets this value.
    Set(Value),
    /// The code continues at this place.
    Jump(Place),
    Return,
}

/// The address that the function returns; `None` if it does not always return the same address.
pub(crate) fn returned_address(image: &dyn Image, processor: Processor, function: Place) -> Option<Place> {
    let mut at = function;
    let mut value = Value::Unknown;
    for _ in 0..MOST_INSTRUCTIONS {
        let (step, length) = match processor {
            Processor::X86 => x86(image, at)?,
            Processor::Arm => arm(image, at, value)?,
        };
        at = at.plus(length);
        match step {
            Step::Skip => {}
            Step::Set(new) => value = new,
            Step::Jump(to) => at = to,
            Step::Return => {
                return match value {
                    Value::Unknown => None,
                    Value::Address(address) => Some(address),
                    Value::At(at) => image.pointer(at),
                };
            }
        }
    }
    None
}

/// Instructions without an operand that matters (Intel's manual, volume 2).
const X86_SKIPPED: &[&[u8]] = &[
    b"\xf3\x0f\x1e\xfa",     // endbr64
    b"\x55",                 // push rbp
    b"\x48\x89\xe5",         // mov rbp, rsp
    b"\x5d",                 // pop rbp
    b"\x50",                 // push rax
    b"\x59",                 // pop rcx
    b"\x90",                 // nop
    b"\x66\x90",             // nop
    b"\x0f\x1f\x00",         // nop
    b"\x0f\x1f\x40\x00",     // nop
    b"\x0f\x1f\x44\x00\x00", // nop
];

/// Instructions before 32 bits that do not change the register: coverage counters.
const X86_COUNTED: &[&[u8]] = &[
    b"\x48\xff\x05",     // inc qword [rip + …]
    b"\xf0\x48\xff\x05", // lock inc qword [rip + …]
    b"\x48\x89\x05",     // mov [rip + …], rax
];

fn x86(image: &dyn Image, at: Place) -> Option<(Step, u64)> {
    let starts_with = |bytes: &&&[u8]| {
        let mut there = [0; 8];
        let there = &mut there[..bytes.len()];
        image.read(at, there).is_some() && there == **bytes
    };
    if let Some(skipped) = X86_SKIPPED.iter().find(starts_with) {
        return Some((Step::Skip, skipped.len() as u64));
    }
    if let Some(counted) = X86_COUNTED.iter().find(starts_with) {
        return Some((Step::Skip, counted.len() as u64 + 4));
    }
    let is = |bytes: &[u8]| starts_with(&&bytes);
    // 32 bits at this offset, sign-extended.
    let number =
        |skipped: u64| half_word(image, at.plus(skipped)).map(|bits| bits.cast_signed() as i64 as u64);
    let absolute = |address: u64| Step::Set(Value::Address(Place { address, ..at }));
    Some(if is(b"\xc3") {
        (Step::Return, 1)
    } else if is(b"\x48\x8d\x05") {
        (Step::Set(Value::Address(at.plus(7).plus(number(3)?))), 7) // lea rax, [rip + …]
    } else if is(b"\x48\x8b\x05") {
        (Step::Set(Value::At(at.plus(7).plus(number(3)?))), 7) // mov rax, [rip + …]
    } else if is(b"\x48\xc7\xc0") {
        (absolute(number(3)?), 7) // mov rax, …
    } else if is(b"\xb8") {
        (absolute(u64::from(half_word(image, at.plus(1))?)), 5) // mov eax, …
    } else if is(b"\x48\x83\xc0") {
        (Step::Set(Value::Unknown), 4) // add rax, …
    } else if is(b"\xe9") {
        (Step::Jump(at.plus(5).plus(number(1)?)), 5) // jmp …
    } else {
        return None;
    })
}

/// Instructions without an operand that matters (Arm's architecture reference manual, section C6.2).
const ARM_SKIPPED: [u32; 8] = [
    0xd503_245f, // bti c
    0xd503_201f, // nop
    0xd503_233f, // paciasp
    0xd503_23bf, // autiasp
    0xa9bf_7bfd, // stp x29, x30, [sp, #-16]!
    0x9100_03fd, // mov x29, sp
    0xa8c1_7bfd, // ldp x29, x30, [sp], #16
    0xd503_237f, // pacibsp
];

fn arm(image: &dyn Image, at: Place, value: Value) -> Option<(Step, u64)> {
    let code = half_word(image, at)?;
    // 12 bits, in units of a power of two.
    let small = |shift: u32| u64::from(code >> 10 & 0xfff) << shift;
    let set = |value| Step::Set(value);
    let step = match code {
        0xd65f_03c0 => Step::Return,
        _ if ARM_SKIPPED.contains(&code) => Step::Skip,
        // adr x0, …; adrp x0, …: 21 bits, the two lowest stored separately.
        _ if code & 0x1f00_001f == 0x1000_0000 => {
            let bits = (code >> 5 & 0x7_ffff) << 2 | code >> 29 & 3;
            let distance = ((bits << 11).cast_signed() >> 11) as i64 as u64;
            set(Value::Address(if code >> 31 == 0 {
                at.plus(distance)
            } else {
                Place { address: at.address & !0xfff, ..at }.plus(distance << 12)
            }))
        }
        // add x0, x0, …
        _ if code & 0xff80_03ff == 0x9100_0000 => match value {
            Value::Address(address) => {
                set(Value::Address(address.plus(small(if code >> 22 & 1 == 1 { 12 } else { 0 }))))
            }
            _ => return None,
        },
        // ldr x0, [x0, …]
        _ if code & 0xffc0_03ff == 0xf940_0000 => match value {
            Value::Address(address) => set(Value::At(address.plus(small(3)))),
            _ => return None,
        },
        // b …
        _ if code >> 26 == 0b00_0101 => {
            Step::Jump(at.plus((((code << 6).cast_signed() >> 6) as i64 as u64).wrapping_mul(4)))
        }
        _ => return None,
    };
    Some((step, 4))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Object;

    /// Code from 0x1000 on, and the pointer 0x7777 at 0x5000.
    struct Code(Vec<u8>);

    impl Image for Code {
        fn objects(&self) -> &[Object] {
            &[]
        }

        fn read(&self, at: Place, into: &mut [u8]) -> Option<()> {
            let from = usize::try_from(at.address.checked_sub(0x1000)?).ok()?;
            into.copy_from_slice(self.0.get(from..from.checked_add(into.len())?)?);
            Some(())
        }

        fn pointer(&self, at: Place) -> Option<Place> {
            (at.address == 0x5000).then_some(Place { address: 0x7777, ..at })
        }
    }

    fn returned(processor: Processor, code: &[u8]) -> Option<u64> {
        let start = Place { object: 0, address: 0x1000 };
        returned_address(&Code(code.to_vec()), processor, start).map(|place| place.address)
    }

    #[test]
    fn what_compilers_make_of_it_on_x86_64() {
        let of = |code: &[u8]| returned(Processor::X86, code);
        assert_eq!(of(b"\x48\x8d\x05\xf9\x2f\0\0\xc3"), Some(0x4000));
        assert_eq!(of(b"\x48\x8d\x05\xf9\xff\xff\xff\xc3"), Some(0x1000));
        assert_eq!(of(b"\xf3\x0f\x1e\xfa\x55\x48\x89\xe5\x48\x8d\x05\0\0\0\0\x5d\xc3"), Some(0x100f));
        assert_eq!(of(b"\x48\x8b\x05\xf9\x3f\0\0\xc3"), Some(0x7777));
        assert_eq!(of(b"\xb8\x34\x12\x40\0\xc3"), Some(0x40_1234));
        assert_eq!(of(b"\x48\xff\x05\x01\x02\0\0\xb8\x34\x12\x40\0\xc3"), Some(0x40_1234));
        assert_eq!(of(b"\xe9\x01\0\0\0\xcc\xb8\x34\x12\0\0\xc3"), Some(0x1234));
    }

    #[test]
    fn what_compilers_make_of_it_on_arm() {
        let of = |code: &[u32]| {
            returned(Processor::Arm, &code.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>())
        };
        // adrp x0, +0x3000; add x0, x0, #0x10; ret
        assert_eq!(of(&[0xf000_0000, 0x9100_4000, 0xd65f_03c0]), Some(0x4010));
        // bti c; adr x0, -4; ret
        assert_eq!(of(&[0xd503_245f, 0x10ff_ffe0, 0xd65f_03c0]), Some(0x1000));
        // adrp x0, +0x4000; ldr x0, [x0]; ret
        assert_eq!(of(&[0x9000_0020, 0xf940_0000, 0xd65f_03c0]), Some(0x7777));
        // b +8; nop; adr x0, 0; ret
        assert_eq!(of(&[0x1400_0002, 0, 0x1000_0000, 0xd65f_03c0]), Some(0x1008));
    }

    #[test]
    fn other_functions_return_an_unknown_address() {
        for code in [
            &b"\xc3"[..],
            b"\xe8\0\0\0\0\xc3",
            b"\xe9\xfb\xff\xff\xff",
            b"\x48\x8d\x05\0\0\0\0\x48\x83\xc0\x01\xc3",
            b"",
        ] {
            assert_eq!(returned(Processor::X86, code), None, "{code:x?}");
        }
    }
}
