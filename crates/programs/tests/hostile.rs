//! Damaged programs: probes or errors, never a panic.

use std::fs;
use std::path::Path;
use std::process::Command;

use tracewing_programs::probes::{Resolver, usdt};
use tracewing_programs::symbols::Symbols;

/// Pseudo-random numbers (Marsaglia's xorshift), so that every run damages the same bytes.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

fn compile(folder: &Path, name: &str) -> Option<Vec<u8>> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name).with_extension("c");
    let made = folder.join(name);
    match Command::new("gcc").args(["-g", "-O1", "-o"]).arg(&made).arg(source).output() {
        Ok(output) if output.status.success() => Some(fs::read(made).unwrap()),
        _ => {
            tracewing_testing::skip(tracewing_testing::Cause::Program("gcc"), "gcc is not installed");
            None
        }
    }
}

fn ask(path: &Path) -> usize {
    let resolver = Resolver::new(path.to_str());
    let path = path.display();
    let probes = [
        "serve number order->basket.items order->note",
        "serve%return $retval",
        "take kind behind",
        "0x1200",
    ];
    let mut symbols = Symbols::new();
    for offset in (0..0x4000).step_by(0x40) {
        let path = path.to_string();
        let _ = (symbols.function_at(&path, "", offset), symbols.line(&path, offset));
        let _ = symbols.inlined_at(&path, "", offset);
    }
    let resolved = probes.iter().filter(|probe| resolver.probe(&format!("{path}:{probe}")).is_ok()).count();
    resolved + usize::from(resolver.usdt(&format!("{path}:shop:*")).is_ok())
}

#[test]
fn any_bytes_give_probes_or_errors() {
    let folder = tempfile::tempdir().unwrap();
    let mut numbers = Numbers(0x2545_f491_4f6c_dd1d);
    let mut good = 0;
    for name in ["shop", "usdt"] {
        let Some(whole) = compile(folder.path(), name) else { return };
        assert!(ask(&folder.path().join(name)) >= 2);
        let path = folder.path().join("damaged");
        for round in 0..300 {
            let mut bytes = whole.clone();
            for _ in 0..=numbers.below(40) {
                // Alternates between the headers and the whole file.
                let bound = if round % 2 == 0 { 1024 } else { bytes.len() };
                let at = numbers.below(bound);
                bytes[at] = numbers.below(256) as u8;
            }
            if round % 10 == 0 {
                bytes.truncate(numbers.below(whole.len()));
            }
            fs::write(&path, bytes).unwrap();
            good += ask(&path);
            let _ = usdt(&path);
        }
    }
    // Damage does not always hit bytes that are read.
    assert!(good > 50, "{good}");
}
