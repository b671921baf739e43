//! Names of the kernel's functions, which no file tells: the kernel lies elsewhere each time that it starts.
//! Those of functions in which samples were taken go into the trace.

use std::collections::HashSet;
use std::fs;

const TABLE: &str = "/proc/kallsyms";

/// A function of the kernel.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function<'a> {
    pub(crate) begin: u64,
    /// Where the next one begins.
    pub(crate) end: u64,
    pub(crate) name: &'a str,
}

/// The kernel's functions, and which of them were told.
pub(crate) struct KernelSymbols {
    text: String,
    /// Address, and where in `text` the name is; in the order of addresses.
    functions: Vec<(u64, usize, usize)>,
    told: HashSet<u64>,
}

impl KernelSymbols {
    /// Those of the running kernel; nothing where it hides them (`kptr_restrict`).
    pub(crate) fn of_this_kernel() -> Option<Self> {
        Self::parse(fs::read_to_string(TABLE).ok()?)
    }

    fn parse(text: String) -> Option<Self> {
        let mut functions = Vec::new();
        for line in text.lines() {
            // As in `ffffffff81000000 T _stext`, with the module behind it in brackets.
            let mut words = line.split_ascii_whitespace();
            let (Some(address), Some(kind), Some(name)) = (words.next(), words.next(), words.next()) else {
                continue;
            };
            if let ("t" | "T" | "w" | "W", Ok(address)) = (kind, u64::from_str_radix(address, 16))
                && address != 0
            {
                let at = name.as_ptr().addr() - text.as_ptr().addr();
                functions.push((address, at, at + name.len()));
            }
        }
        // Of several names of one address the first in the table is kept.
        functions.sort_by_key(|function| function.0);
        functions.dedup_by_key(|function| function.0);
        (!functions.is_empty()).then_some(Self { text, functions, told: HashSet::new() })
    }

    /// The function around an address, if it was not asked for before.
    pub(crate) fn news(&mut self, address: u64) -> Option<Function<'_>> {
        let next = self.functions.partition_point(|function| function.0 <= address);
        let (begin, from, to) = *self.functions.get(next.checked_sub(1)?)?;
        let end = self.functions.get(next).map_or(u64::MAX, |function| function.0);
        self.told.insert(begin).then(|| Function { begin, end, name: &self.text[from..to] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_function_is_told_once() {
        let table = "1000 T first\n1000 t alias\n1800 d data\n2000 t second\t[module]\n\nnonsense\n";
        let mut symbols = KernelSymbols::parse(table.to_owned()).unwrap();
        assert_eq!(symbols.news(0xfff), None);
        assert_eq!(symbols.news(0x1234), Some(Function { begin: 0x1000, end: 0x2000, name: "first" }));
        assert_eq!(symbols.news(0x1fff), None, "told before");
        let second = Function { begin: 0x2000, end: u64::MAX, name: "second" };
        assert_eq!(symbols.news(0xffff_ffff), Some(second));
    }

    #[test]
    fn a_kernel_that_hides_its_addresses_has_no_names() {
        assert!(KernelSymbols::parse("0000000000000000 T _stext\n".to_owned()).is_none());
        assert!(KernelSymbols::parse(String::new()).is_none());
    }
}
