//! Where the instructions of a function begin. The kernel trusts a probe's address: a breakpoint inside an
//! instruction would turn it into another one.

use iced_x86::{Decoder, DecoderOptions};

/// The instructions before and after an offset at which none begins, in code that starts with one.
pub(crate) fn around(code: &[u8], offset: u64) -> Option<(u64, u64)> {
    let mut decoder = Decoder::new(64, code, DecoderOptions::NONE);
    let mut before = 0;
    while decoder.can_decode() {
        let begin = decoder.position() as u64;
        if begin >= offset {
            return (begin > offset).then_some((before, begin));
        }
        // Data among the code: what follows is unknown.
        if decoder.decode().is_invalid() {
            return None;
        }
        before = begin;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lies_within_an_instruction_is_refused() {
        // push rbp; mov rbp, rsp; sub rsp, 0x10; ret
        let code = [0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10, 0xc3];
        for begin in [0, 1, 4, 8, 9] {
            assert_eq!(around(&code, begin), None, "{begin}");
        }
        assert_eq!(around(&code, 2), Some((1, 4)));
        assert_eq!(around(&code, 3), Some((1, 4)));
        assert_eq!(around(&code, 7), Some((4, 8)));
        // An invalid instruction before it.
        assert_eq!(around(&[0x06, 0x48, 0x89, 0xe5], 2), None);
    }
}
