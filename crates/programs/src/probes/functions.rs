//! Functions by name, in the symbol tables of a file and of the file with its debug information.

use crate::symbols::demangled;
use object::elf::STT_GNU_IFUNC;
use object::read::elf::FileHeader;
use object::{LittleEndian, Object, ObjectSymbol, SymbolIndex};

use crate::probes::Error;
use crate::probes::file::Elf;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) address: u64,
    /// Bytes; 0 if the table does not say.
    pub(crate) size: u64,
    /// Symbol name; a version after `@` is not the one that programs get today.
    pub(crate) symbol: String,
    /// The symbol is not the function itself, but is_indirect one when the program starts.
    pub(crate) is_indirect: bool,
}

/// All functions of a file, including those that only `debug` lists.
#[derive(Debug, Default)]
pub(crate) struct Functions {
    list: Vec<Function>,
    /// Whether there are more symbols than the dynamic linker needs.
    complete: bool,
}

/// Maximum length of a symbol's name, bytes.
const LONGEST: usize = 4096;
/// Maximum number of suggested names.
const SUGGESTIONS: usize = 4;
/// Minimum similarity of a suggested name, by Jaro and Winkler.
const ALIKE: f64 = 0.85;

impl Functions {
    pub(crate) fn of(elf: &Elf<'_>, debug: Option<&Elf<'_>>) -> Self {
        let mut functions = Self::default();
        for elf in [Some(elf), debug].into_iter().flatten() {
            let before = functions.list.len();
            functions.list.extend(elf.symbols().filter_map(function));
            functions.complete |= functions.list.len() > before;
        }
        functions.dynamic(elf);
        functions.list.sort_by(|a, b| (a.address, &a.symbol).cmp(&(b.address, &b.symbol)));
        functions.list.dedup();
        functions
    }

    /// Adds the dynamic symbol table: the names of older versions of a function include the version.
    fn dynamic(&mut self, elf: &Elf<'_>) {
        let sections = elf.elf_header().sections(LittleEndian, elf.data()).ok();
        let versions =
            sections.and_then(|sections| sections.versions(LittleEndian, elf.data()).ok().flatten());
        for symbol in elf.dynamic_symbols() {
            let Some(mut found) = function(symbol) else { continue };
            if let Some(versions) = &versions {
                let index = versions.version_index(LittleEndian, symbol.index());
                if let Some(version) = versions.version(index.into()).ok().flatten()
                    && index.is_hidden()
                {
                    found.symbol = format!("{}@{}", found.symbol, String::from_utf8_lossy(version.name()));
                }
            }
            self.list.push(found);
        }
    }

    /// The function of that name: a symbol, or a demangled name with or without parameters.
    pub(crate) fn find(&self, program: &str, name: &str) -> Result<&Function, Error> {
        let by_symbol: Vec<_> = self.list.iter().filter(|function| function.symbol == name).collect();
        let by_name = || {
            let alike = |function: &&Function| {
                let readable = demangled(&function.symbol);
                readable == name
                    || without_parameters(&readable) == name
                    || without_generics(&readable) == name
            };
            self.list.iter().filter(alike).collect::<Vec<_>>()
        };
        let mut found = if by_symbol.is_empty() { by_name() } else { by_symbol };
        found.dedup_by_key(|function| function.address);
        match found[..] {
            [] => Err(Error::NoFunction {
                program: program.to_owned(),
                name: name.to_owned(),
                hint: self.hint(program, name),
            }),
            [function] => Ok(function),
            _ => Err(Error::Ambiguous {
                program: program.to_owned(),
                name: name.to_owned(),
                list: found
                    .iter()
                    .map(|function| format!("{} at {:#x}", function.symbol, function.address))
                    .collect(),
            }),
        }
    }

    /// Suggestions for a function name that does not exist.
    fn hint(&self, program: &str, name: &str) -> String {
        if !self.complete && self.list.is_empty() {
            return format!(
                ": it is stripped of all symbols; install its debug symbols, or give an address, as {program}:0x1234"
            );
        }
        let short = name.rsplit("::").next().unwrap_or(name);
        let mut alike: Vec<(f64, String)> = self
            .list
            .iter()
            .filter_map(|function| {
                let readable = demangled(&function.symbol);
                let last = without_parameters(&readable).rsplit("::").next().unwrap_or(&readable);
                let likeness = match last == short {
                    true => 1.0,
                    false => strsim::jaro_winkler(last, short),
                };
                (likeness >= ALIKE).then(|| (likeness, without_parameters(&readable).to_owned()))
            })
            .collect();
        alike.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        alike.dedup_by(|a, b| a.1 == b.1);
        let names: Vec<_> = alike.into_iter().take(SUGGESTIONS).map(|(_, name)| name).collect();
        let mut hint = match names.is_empty() {
            true => String::new(),
            false => format!("; similar: {}", names.join(", ")),
        };
        if !self.complete {
            hint.push_str(&format!(
                "; it is stripped: only the {} functions that other objects use are known, unless its debug symbols are installed",
                self.list.len()
            ));
        }
        hint
    }
}

fn function<'a, R: object::ReadRef<'a>>(
    symbol: object::read::elf::ElfSymbol<'a, '_, object::elf::FileHeader64<LittleEndian>, R>,
) -> Option<Function> {
    let is_indirect = symbol.elf_symbol().st_type() == STT_GNU_IFUNC;
    let is_code = symbol.kind() == object::SymbolKind::Text || is_indirect;
    if !is_code
        || !symbol.is_definition() && !is_indirect
        || symbol.index() == SymbolIndex(0)
        || symbol.address() == 0
    {
        return None;
    }
    let name = symbol.name().ok().filter(|name| !name.is_empty() && name.len() <= LONGEST)?;
    // In a program's own table, the current version follows `@@`.
    let name = name.split_once("@@").map_or(name, |(name, _)| name);
    Some(Function { address: symbol.address(), size: symbol.size(), symbol: name.to_owned(), is_indirect })
}

/// A C++ function's name without its parameters: `shop::take` of `shop::take(int) const`.
fn without_parameters(name: &str) -> &str {
    let mut depth = 0;
    for (at, c) in name.char_indices() {
        let rest = &name[at..];
        match c {
            '<' => depth += 1,
            '>' => depth -= 1,
            // `operator()` and the anonymous namespace contain parentheses of their own.
            '(' if depth == 0 && !rest.starts_with("()(") && !rest.starts_with("(anonymous") => {
                return &name[..at];
            }
            _ => {}
        }
    }
    name
}

/// A Rust function's name without its generic arguments: `shop::take` of `shop::take::<u8>`.
fn without_generics(name: &str) -> &str {
    let mut depth = 0;
    for (at, c) in name.char_indices().rev() {
        match c {
            '>' => depth += 1,
            '<' => depth -= 1,
            _ => {}
        }
        if depth <= 0 {
            let before = (c == '<').then(|| name[..at].strip_suffix("::")).flatten();
            return before.unwrap_or(name);
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn functions(symbols: &[(u64, &str)]) -> Functions {
        let function = |(address, symbol): &(u64, &str)| Function {
            address: *address,
            size: 16,
            symbol: (*symbol).to_owned(),
            is_indirect: false,
        };
        Functions { list: symbols.iter().map(function).collect(), complete: true }
    }

    #[test]
    fn names_go_without_parameters_and_generic_arguments() {
        assert_eq!(without_parameters("foo::bar(int) const"), "foo::bar");
        assert_eq!(without_parameters("foo::call<int (*)(char)>(int)"), "foo::call<int (*)(char)>");
        assert_eq!(without_parameters("foo::operator()(int)"), "foo::operator()");
        assert_eq!(without_parameters("(anonymous namespace)::f(int)"), "(anonymous namespace)::f");
        assert_eq!(without_parameters("core::fmt::write"), "core::fmt::write");
        assert_eq!(without_generics("shop::take::<Vec<u8>, u8>"), "shop::take");
        assert_eq!(without_generics("<shop::A<u8> as B>::take"), "<shop::A<u8> as B>::take");
        assert_eq!(without_generics("A<u8>"), "A<u8>");
        assert_eq!(without_generics("shop::f"), "shop::f");
        assert_eq!(without_generics(">"), ">");
    }

    #[test]
    fn a_function_has_several_names_and_a_name_several_functions() {
        let all = functions(&[
            (16, "_ZN3foo3barEi"),
            (32, "_ZN3foo3barEc"),
            (48, "_ZN4shop4take17h0123456789abcdefE"),
            (64, "main"),
            (80, "read@GLIBC_2.2"),
            (96, "read"),
        ]);
        let found = |name| all.find("p", name).map(|function| function.address);
        assert_eq!(found("main").unwrap(), 64);
        assert_eq!(found("foo::bar(int)").unwrap(), 16);
        assert_eq!(found("_ZN3foo3barEc").unwrap(), 32);
        assert_eq!(found("shop::take").unwrap(), 48);
        assert_eq!(found("read").unwrap(), 96);
        assert_eq!(found("read@GLIBC_2.2").unwrap(), 80);
        let ambiguous = found("foo::bar").unwrap_err().to_string();
        assert!(
            ambiguous.contains("2 functions") && ambiguous.contains("_ZN3foo3barEi at 0x10"),
            "{ambiguous}"
        );
        let missing = found("mian").unwrap_err().to_string();
        assert_eq!(missing, "p has no function mian; similar: main");
        let other = found("stall::take").unwrap_err().to_string();
        assert!(other.contains("shop::take"), "{other}");
    }
}
