//! The sequences as they were assembled: their descriptors in memory, their instructions by objdump.

use std::process::Command;

use tracewing_ring::publish::SIGNATURE;

use crate::publisher::Publisher;
use crate::tracer::Descriptor;

unsafe extern "C" {
    #[link_name = "__start___rseq_cs"]
    static FIRST: Descriptor;
    #[link_name = "__stop___rseq_cs"]
    static END: Descriptor;
    #[link_name = "__executable_start"]
    static PROGRAM: u8;
}

/// The descriptors of all sequences in this program, which are the crate's.
fn descriptors() -> &'static [Descriptor] {
    let (first, end) = (&raw const FIRST, &raw const END);
    // SAFETY: the linker's symbols for the beginning and the end of section `__rseq_cs`, an array of 32-byte
    // records.
    unsafe { std::slice::from_raw_parts(first, end.offset_from(first) as usize) }
}

#[test]
fn descriptors_are_as_the_kernel_expects() {
    let found = descriptors();
    assert!(found.len() >= 4, "two events of constant size, the gathering one and opening at least");
    for descriptor in found {
        assert_eq!((descriptor.version, descriptor.flags), (0, 0), "{descriptor:x?}");
        assert!((20..20_000).contains(&descriptor.len), "{descriptor:x?}");
        assert!(descriptor.abort.wrapping_sub(descriptor.start) >= descriptor.len, "{descriptor:x?}");
        // SAFETY: the four bytes of code before the abort handler.
        let signature = unsafe { ((descriptor.abort - 4) as *const u32).read_unaligned() };
        assert_eq!(signature, SIGNATURE, "{descriptor:x?}");
    }
}

/// The instructions between two addresses of this program, as objdump prints them.
fn disassemble(start: u64, end: u64) -> Option<Vec<String>> {
    let bias = &raw const PROGRAM as u64;
    let output = Command::new("objdump")
        .args(["-d", "-M", "intel", "--no-show-raw-insn"])
        .arg(format!("--start-address={:#x}", start - bias))
        .arg(format!("--stop-address={:#x}", end - bias))
        .arg(std::env::current_exe().unwrap())
        .output();
    let Ok(output) = output else {
        tracewing_testing::skip(tracewing_testing::Cause::Program("objdump"), "there is no objdump");
        return None;
    };
    let text = String::from_utf8(output.stdout).unwrap();
    let lines =
        text.lines().filter_map(|line| line.split_once(":\t").map(|(_, line)| line.trim().to_owned()));
    Some(lines.collect())
}

#[test]
fn a_sequence_calls_nothing_and_its_commit_is_its_last_store() {
    // Sequences of several sizes, so that each kind occurs.
    if let Some(publisher) = Publisher::new(2, 256) {
        publisher.enter(1);
        let _ = publisher.emit_any(1, 0);
    }
    let (mut fixed, mut looping) = (0, 0);
    for descriptor in descriptors() {
        let end = descriptor.start + descriptor.len;
        let Some(lines) = disassemble(descriptor.start, end) else { return };
        let (commit, others) = lines.split_last().expect("instructions");
        let text = lines.join("\n");
        // `mov QWORD PTR [base],register`: the plain store to `head`, the control page's first word.
        let target = |line: &str| {
            let (to, from) = line.strip_prefix("mov")?.split_once(',')?;
            let to = to.trim();
            (to.contains('[') && !from.contains('[')).then(|| to.to_owned())
        };
        let head = target(commit).unwrap_or_else(|| panic!("does not end with a store:\n{text}"));
        assert!(head.starts_with("QWORD PTR [r") && !head.contains(['+', '*']), "{head}\n{text}");
        for line in others {
            let name = line.split_whitespace().next().unwrap_or_default();
            let allowed = [
                "mov", "movzx", "lea", "cmp", "cmovb", "add", "sub", "and", "or", "shl", "shr", "imul",
                "inc", "test", "bt", "lfence", "rdtsc", "jne", "jae", "ja", "jb", "je", "jmp",
            ];
            assert!(allowed.contains(&name), "{line}\n{text}");
            let writes_memory = name != "cmp"
                && name != "test"
                && line.split_once(',').is_some_and(|(to, _)| to.contains('['));
            assert!(!writes_memory || name == "mov", "changes memory in place: {line}\n{text}");
        }
        // Between the check and the commit there is only the check's jump.
        let [.., address, check, jump] = others else { panic!("{text}") };
        assert!(address.starts_with("lea") && check.starts_with("cmp") && check.contains("fs:"), "{text}");
        assert!(jump.starts_with("jne"), "{text}");
        assert_eq!(lines.iter().filter(|line| *line == "rdtsc").count(), 1, "{text}");
        // The last comparison with the descriptor is the check, and no earlier store goes to `head`.
        let stores: Vec<_> = others.iter().filter_map(|line| target(line)).collect();
        let backward = others.iter().any(|line| line.starts_with("jmp") || line.starts_with("jae"));
        if others.iter().any(|line| line.starts_with("imul")) && stores.iter().all(|to| to.contains('+')) {
            assert!(stores.len() >= 3, "{text}");
            fixed += 1;
        } else {
            assert!(backward || others.iter().any(|line| line == "lfence"), "{text}");
            looping += 1;
        }
        assert!(!stores.contains(&head), "an earlier store to the write position:\n{text}");
    }
    assert!(fixed >= 4 && looping >= 2, "{fixed} of constant size, {looping} others");
}
