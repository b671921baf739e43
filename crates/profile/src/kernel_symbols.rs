//! Names of kernel functions. They must be in the trace, since no file has them: the kernel's address changes
//! at each boot. Only functions that were hit by samples are written.

use std::collections::HashSet;
use std::fs::File;
use std::io;

use crate::opening::symbols;

/// A function of the kernel.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function<'a> {
    pub(crate) begin: u64,
    /// Start of the next function.
    pub(crate) end: u64,
    pub(crate) name: &'a str,
}

/// The kernel's functions, and which of them have been written.
pub(crate) struct KernelSymbols {
    text: String,
    /// Address and range of the name in `text`, sorted by address.
    functions: Vec<(u64, usize, usize)>,
    written: HashSet<u64>,
}

impl KernelSymbols {
    /// The running kernel's functions; `None` if it hides them (`kptr_restrict`).
    pub(crate) fn of_this_kernel() -> Option<Self> {
        Self::parse(io::read_to_string(File::from(symbols().ok()?)).ok()?)
    }

    fn parse(text: String) -> Option<Self> {
        let mut functions = Vec::new();
        for line in text.lines() {
            // For example `ffffffff81000000 T _stext`; a module's name may follow in brackets.
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
        // If an address has several names, the first one in the table is kept.
        functions.sort_by_key(|function| function.0);
        functions.dedup_by_key(|function| function.0);
        (!functions.is_empty()).then_some(Self { text, functions, written: HashSet::new() })
    }

    /// In a trace that continues another one, no function was asked for.
    pub(crate) fn restart(&mut self) {
        self.written.clear();
    }

    /// The function around an address, the first time it is asked for in a trace.
    pub(crate) fn news(&mut self, address: u64) -> Option<Function<'_>> {
        let next = self.functions.partition_point(|function| function.0 <= address);
        let (begin, from, to) = *self.functions.get(next.checked_sub(1)?)?;
        let end = self.functions.get(next).map_or(u64::MAX, |function| function.0);
        self.written.insert(begin).then(|| Function { begin, end, name: &self.text[from..to] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_function_is_reported_once() {
        let table = "1000 T first\n1000 t alias\n1800 d data\n2000 t second\t[module]\n\nnonsense\n";
        let mut symbols = KernelSymbols::parse(table.to_owned()).unwrap();
        assert_eq!(symbols.news(0xfff), None);
        assert_eq!(symbols.news(0x1234), Some(Function { begin: 0x1000, end: 0x2000, name: "first" }));
        assert_eq!(symbols.news(0x1fff), None, "written already");
        let second = Function { begin: 0x2000, end: u64::MAX, name: "second" };
        assert_eq!(symbols.news(0xffff_ffff), Some(second));
    }

    #[test]
    fn a_kernel_that_hides_its_addresses_has_no_names() {
        assert!(KernelSymbols::parse("0000000000000000 T _stext\n".to_owned()).is_none());
        assert!(KernelSymbols::parse(String::new()).is_none());
    }
}
