//! Names the functions at addresses of executables and libraries from their symbol tables, and source lines
//! from debug information.
//!
//! The files are those currently at their paths. If one is not the file that was recorded, or is gone, what
//! is installed separately for the recorded build id takes its place. A path may come from anywhere: anything
//! but an ordinary ELF file has no names.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;

use cpp_demangle::DemangleOptions;
use object::{Object, ObjectSymbol, SymbolKind};

use crate::elf::{Content, Segments, by_build_id, hexadecimal};

mod debug;
mod inlined;

use debug::Debug;

/// Debug information in memory.
type Reader = gimli::EndianArcSlice<gimli::RunTimeEndian>;

/// Maximum length of a symbol's name, bytes.
const LONGEST: usize = 4096;

/// Symbols within a function's code, such as those of labels, that are looked over.
const NESTED: usize = 16;

/// A function, and an offset in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// Demangled name.
    pub name: &'a str,
    /// Bytes from its beginning.
    pub offset: u64,
}

/// A function's name, from symbols.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named {
    /// That of the function that contains the address.
    Function(String),
    /// That of the last function before it: the one that contains it has no symbol.
    Near(String),
}

/// Files whose symbols were read.
#[derive(Default)]
pub struct Symbols {
    files: HashMap<String, Code>,
    /// By path; `None` if there is none.
    debug: HashMap<String, Option<Debug>>,
    /// Paths of what is installed separately for recorded build ids; `None` if there is nothing.
    installed: HashMap<String, Option<String>>,
}

impl fmt::Debug for Symbols {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.files.keys()).finish()
    }
}

/// The code symbols of a file.
#[derive(Debug, Default)]
struct Code {
    /// Sorted by address.
    functions: Vec<Function>,
    segments: Segments,
    /// Build id in hexadecimal; empty if there is none, `None` if there is no such file.
    build_id: Option<String>,
}

/// A function of a file.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    /// Address, as in the file's program headers.
    pub begin: u64,
    /// Bytes; 0 if the table does not say.
    pub size: u64,
    /// Demangled name.
    pub name: String,
}

impl Symbols {
    /// No file has been read yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The function that contains `address` (as in the file's program headers) in the file at `path`.
    pub fn at(&mut self, path: &str, address: u64) -> Option<Symbol<'_>> {
        find(&self.code(path).functions, address)
    }

    /// The function that contains the file offset `offset` in the file at `path`; `None` if the file is not
    /// the one with this build id (hexadecimal; empty if unknown), and nothing is installed for it.
    pub fn at_offset(&mut self, path: &str, build_id: &str, offset: u64) -> Option<Symbol<'_>> {
        let file = self.recorded(path, build_id)?;
        let code = self.code(&file);
        find(&code.functions, code.segments.address(offset)?)
    }

    /// The function whose code is at the file offset `offset` in the file at `path`, or the last one before
    /// it in the same segment; `None` also if the file is another one, as above.
    pub fn function_at(&mut self, path: &str, build_id: &str, offset: u64) -> Option<Named> {
        let file = self.recorded(path, build_id)?;
        let code = self.code(&file);
        let address = code.segments.address(offset)?;
        match find(&code.functions, address) {
            Some(symbol) => Some(Named::Function(symbol.name.to_owned())),
            None => nearest(&code.functions, address)
                .filter(|near| code.segments.has_both(near.begin, address))
                .map(|near| Named::Near(near.name.clone())),
        }
    }

    /// Names of the functions that were inlined at the file offset `offset` in the file at `path`, the
    /// innermost first, as far as debug information names them; none if the file is another one, as above.
    pub fn inlined_at(&mut self, path: &str, build_id: &str, offset: u64) -> Vec<String> {
        let mut inlined = || {
            let file = self.recorded(path, build_id)?;
            let address = self.code(&file).segments.address(offset)?;
            Some(self.debug(&file)?.inlined(address))
        };
        inlined().unwrap_or_default()
    }

    /// Whether the file at `path` has another build id than this one, or none, and nothing is installed for
    /// this one; `false` if this one is empty, and where there is no file.
    pub fn is_replaced(&mut self, path: &str, build_id: &str) -> bool {
        self.recorded(path, build_id).is_none()
    }

    /// The file that has the names of the one that was recorded at `path`: this one, if it has the build id,
    /// is not there, or if the build id is unknown; otherwise what is installed separately for it.
    fn recorded(&mut self, path: &str, build_id: &str) -> Option<String> {
        let present = self.code(path).build_id.as_deref();
        let is_absent = present.is_none();
        if build_id.is_empty() || present == Some(build_id) {
            return Some(path.to_owned());
        }
        if !self.installed.contains_key(build_id) {
            let installed = by_build_id(build_id).and_then(|file| self.read_installed(&file, build_id));
            self.installed.insert(build_id.to_owned(), installed);
        }
        self.installed[build_id].clone().or_else(|| is_absent.then(|| path.to_owned()))
    }

    /// Reads the symbols of a debug file; gives its path if it is that of this build id.
    fn read_installed(&mut self, file: &Path, build_id: &str) -> Option<String> {
        let path = file.to_str()?.to_owned();
        let code = read(file)?;
        if code.build_id.as_deref() != Some(build_id) {
            return None;
        }
        self.files.insert(path.clone(), code);
        Some(path)
    }

    /// The name of that function, or file and address if the file has no name for it.
    pub fn name(&mut self, path: &str, address: u64) -> String {
        match self.at(path, address) {
            Some(symbol) => symbol.name.to_owned(),
            None => format!("{}+{address:#x}", path.rsplit('/').next().unwrap_or_default()),
        }
    }

    /// Source file and line of the code at `address` of the file at `path`, an address as for
    /// [`Symbols::at`].
    pub fn line(&mut self, path: &str, address: u64) -> Option<(String, u32)> {
        self.debug(path)?.line(address)
    }

    /// Source file and line of the code at the file offset `offset` in the file at `path`; `None` also if the
    /// file is another one, as above.
    pub fn line_at(&mut self, path: &str, build_id: &str, offset: u64) -> Option<(String, u32)> {
        let file = self.recorded(path, build_id)?;
        let address = self.code(&file).segments.address(offset)?;
        self.line(&file, address)
    }

    /// The place of a call, by the address to which it returns: function, file and line, as far as the file
    /// at `path` has them.
    pub fn call(&mut self, path: &str, address: u64) -> String {
        let last = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
        // It returns to the instruction after the call, which may be another function's first.
        let call = address.saturating_sub(1);
        let function = match self.at(path, call) {
            Some(symbol) => format!("{}+{:#x}", symbol.name, symbol.offset + 1),
            None => format!("{}+{address:#x}", last(path)),
        };
        match self.line(path, call) {
            Some((file, line)) => format!("{function} ({}:{line})", last(&file)),
            None => function,
        }
    }

    fn debug(&mut self, path: &str) -> Option<&mut Debug> {
        if !self.debug.contains_key(path) {
            self.debug.insert(path.to_owned(), Debug::read(Path::new(path)));
        }
        self.debug.get_mut(path)?.as_mut()
    }

    fn code(&mut self, path: &str) -> &Code {
        if !self.files.contains_key(path) {
            let code = read(Path::new(path)).map(with_debug_file).unwrap_or_default();
            self.files.insert(path.to_owned(), code);
        }
        &self.files[path]
    }
}

/// The last function that begins at this address or before, among functions sorted by address.
fn nearest(functions: &[Function], address: u64) -> Option<&Function> {
    functions[..functions.partition_point(|function| function.begin <= address)].last()
}

/// The function that contains this address, among functions sorted by address.
fn find(functions: &[Function], address: u64) -> Option<Symbol<'_>> {
    let before = &functions[..functions.partition_point(|function| function.begin <= address)];
    let contains = |function: &&Function| address - function.begin < function.size;
    // One without a size reaches up to the next; one with a size may have others within it.
    let function = match before.last()? {
        last if last.size == 0 => last,
        _ => before.iter().rev().take(NESTED).find(contains)?,
    };
    Some(Symbol { name: &function.name, offset: address - function.begin })
}

/// The functions of a file whose symbols are chosen, in the order of its tables; several may have the same
/// address.
pub fn functions(path: &Path, is_chosen: impl Fn(&str) -> bool) -> Vec<Function> {
    let functions = || {
        let data = Content::open(path)?;
        Some(functions_of(&object::File::parse(&data).ok()?, is_chosen))
    };
    functions().unwrap_or_default()
}

/// Whether a file calls one of these functions without defining it.
pub fn needs_one_of(path: &Path, names: &[&str]) -> bool {
    let needs = || {
        let data = Content::open(path)?;
        let file = object::File::parse(&data).ok()?;
        let mut requested = file.dynamic_symbols().filter(ObjectSymbol::is_undefined);
        Some(requested.any(|symbol| symbol.name().is_ok_and(|name| names.contains(&name))))
    };
    needs().unwrap_or(false)
}

fn read(path: &Path) -> Option<Code> {
    let data = Content::open(path)?;
    let file = object::File::parse(&data).ok()?;
    let build_id = file.build_id().ok().flatten().unwrap_or_default();
    Some(Code {
        functions: in_order(functions_of(&file, |_| true)),
        segments: Segments::restored(&file),
        build_id: Some(hexadecimal(build_id)),
    })
}

/// Adds the functions of a stripped file whose symbols are installed in a file of their own.
fn with_debug_file(mut code: Code) -> Code {
    let more = || {
        let data = Content::open(&by_build_id(code.build_id.as_ref()?)?)?;
        Some(functions_of(&object::File::parse(&data).ok()?, |_| true))
    };
    if let Some(more) = more() {
        code.functions = in_order(code.functions.into_iter().chain(more).collect());
    }
    code
}

fn functions_of<'d>(file: &impl Object<'d>, is_chosen: impl Fn(&str) -> bool) -> Vec<Function> {
    let symbols = file.symbols().chain(file.dynamic_symbols());
    symbols
        .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition())
        .filter_map(|symbol| {
            let is_one = |name: &&str| !name.is_empty() && name.len() <= LONGEST && is_chosen(name);
            let name = symbol.name().ok().filter(is_one)?;
            Some(Function { begin: symbol.address(), size: symbol.size(), name: demangled(name) })
        })
        .collect()
}

/// Functions sorted by address, one per address.
fn in_order(mut functions: Vec<Function>) -> Vec<Function> {
    // Of several at an address, the largest with the shortest name comes last.
    functions.sort_by(|a, b| {
        (a.begin, a.size, b.name.len(), &b.name).cmp(&(b.begin, b.size, a.name.len(), &a.name))
    });
    functions.dedup_by(|later, earlier| {
        let same = later.begin == earlier.begin;
        if same {
            std::mem::swap(later, earlier);
        }
        same
    });
    functions
}

/// A name as in the source: demangled for Rust and C++, otherwise unchanged.
pub(crate) fn demangled(name: &str) -> String {
    if let Ok(name) = rustc_demangle::try_demangle(name) {
        return format!("{name:#}");
    }
    let cpp = cpp(name).and_then(|symbol| symbol.demangle().ok());
    cpp.unwrap_or_else(|| name.to_owned())
}

/// The names by which a request may name a function with this symbol, both without its return type: with its
/// parameters and qualifiers, as `Shop::get<int>(int) const`, and without, as `Shop::get<int>`. The second
/// also lacks the suffixes that compilers add to copies: `scaled` for `scaled.constprop.0`. Otherwise both
/// are equal if a symbol has no parameters.
pub fn request_names(symbol: &str) -> [String; 2] {
    let options = DemangleOptions::new().no_return_type();
    let of_cpp = |symbol: cpp_demangle::Symbol<_>| {
        let [whole, short] =
            [options, options.no_params()].map(|options| symbol.demangle_with_options(&options).ok());
        Some([whole?, without_qualifiers(&short?).to_owned()])
    };
    cpp(symbol).and_then(of_cpp).unwrap_or_else(|| {
        let name = demangled(symbol);
        // No language allows dots in such names.
        let of_copy = symbol.split_once('.').filter(|(front, _)| name == symbol && !front.is_empty());
        let short = of_copy.map_or_else(|| name.clone(), |(front, _)| front.to_owned());
        [name, short]
    })
}

/// Removes qualifiers that the demangler leaves after it has removed the parameters. Qualifiers of types have
/// no blank before `&`.
fn without_qualifiers(name: &str) -> &str {
    let shorter =
        [" const", " volatile", " &", " &&"].iter().find_map(|qualifier| name.strip_suffix(qualifier));
    shorter.map_or(name, without_qualifiers)
}

fn cpp(symbol: &str) -> Option<cpp_demangle::Symbol<&[u8]>> {
    let is_cpp = symbol.starts_with("_Z") && rustc_demangle::try_demangle(symbol).is_err();
    is_cpp.then(|| cpp_demangle::Symbol::new(symbol.as_bytes()).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::ObjectSegment;

    fn function(begin: u64, size: u64, name: &str) -> Function {
        Function { begin, size, name: name.to_owned() }
    }

    #[test]
    fn addresses_belong_to_the_function_around_them() {
        let functions = [function(16, 8, "a"), function(32, 0, "b"), function(64, 4, "c")];
        let name = |address| find(&functions, address).map(|symbol| (symbol.name, symbol.offset));
        assert_eq!(name(15), None);
        assert_eq!(name(16), Some(("a", 0)));
        assert_eq!(name(23), Some(("a", 7)));
        assert_eq!(name(24), None);
        assert_eq!(name(60), Some(("b", 28)));
        assert_eq!(name(67), Some(("c", 3)));
        assert_eq!(name(68), None);
        let around = [function(16, 32, "a"), function(20, 4, "label")];
        let name = |address| find(&around, address).map(|symbol| (symbol.name, symbol.offset));
        assert_eq!((name(22), name(24), name(48)), (Some(("label", 2)), Some(("a", 8)), None));
    }

    #[test]
    fn names_are_as_people_write_them() {
        assert_eq!(demangled("_ZN3foo3barEv"), "foo::bar()");
        assert_eq!(
            demangled("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE"),
            "core::fmt::Write::write_fmt"
        );
        assert_eq!(demangled("_Znonsense"), "_Znonsense");
        assert_eq!(demangled("main"), "main");
    }

    #[test]
    fn functions_are_requested_without_their_return_type() {
        for (symbol, whole, short) in [
            ("main", "main", "main"),
            ("scaled.constprop.0.isra.0", "scaled.constprop.0.isra.0", "scaled"),
            (".hidden", ".hidden", ".hidden"),
            ("_Znonsense", "_Znonsense", "_Znonsense"),
            (
                "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE",
                "core::fmt::Write::write_fmt",
                "core::fmt::Write::write_fmt",
            ),
            ("_Z2twIiET_S0_", "tw<int>(int)", "tw<int>"),
            ("_Z2fpIiEPFiiET_", "fp<int>(int)", "fp<int>"),
            ("_Z3retIiEDTplfp_Li1EET_", "ret<int>(int)", "ret<int>"),
            ("_ZN12_GLOBAL__N_13fooEi", "(anonymous namespace)::foo(int)", "(anonymous namespace)::foo"),
            (
                "_ZNK12_GLOBAL__N_12In2goEv",
                "(anonymous namespace)::In::go() const",
                "(anonymous namespace)::In::go",
            ),
            ("_ZN4ShopclEi", "Shop::operator()(int)", "Shop::operator()"),
            ("_ZNK4ShopltERKS_", "Shop::operator<(Shop const&) const", "Shop::operator<"),
            ("_ZN4ShopptEv", "Shop::operator->()", "Shop::operator->"),
            ("_ZNK4ShopcviEv", "Shop::operator int() const", "Shop::operator int"),
            ("_ZN4ShopcvRiEv", "Shop::operator int&()", "Shop::operator int&"),
            ("_ZN4ShopaaEi", "Shop::operator&&(int)", "Shop::operator&&"),
            ("_ZNKR4Shop3getIdEET_S1_", "Shop::get<double>(double) const &", "Shop::get<double>"),
            ("_ZN4ShopD1Ev", "Shop::~Shop()", "Shop::~Shop"),
            (
                "_ZNKSt8functionIFiiEEclEi",
                "std::function<int (int)>::operator()(int) const",
                "std::function<int (int)>::operator()",
            ),
            (
                "_Z5applyIZ4mainEUliE_EiT_",
                "apply<main::{lambda(int)#1}>(main::{lambda(int)#1})",
                "apply<main::{lambda(int)#1}>",
            ),
            (
                "_ZNK4globMUliE_clEi",
                "glob::{lambda(int)#1}::operator()(int) const",
                "glob::{lambda(int)#1}::operator()",
            ),
            (
                "_ZZ4onlyIiEiT_ENKUlS0_E_clIiEEDaS0_",
                "only<int>(int)::{lambda(auto:1)#1}::operator()<int>(int) const",
                "only<int>(int)::{lambda(auto:1)#1}::operator()<int>",
            ),
            ("_ZL4partPii.isra.0", "part(int*, int) [clone .isra.0]", "part"),
        ] {
            assert_eq!(request_names(symbol), [whole, short], "{symbol}");
        }
    }

    #[test]
    fn this_program_knows_its_functions() {
        let own = std::env::current_exe().unwrap();
        let Code { functions, segments, build_id } = read(&own).unwrap();
        let build_id = build_id.unwrap();
        assert!(functions.is_sorted_by_key(|function| function.begin));
        assert!(functions.iter().any(|function| function.name.ends_with("names_are_as_people_write_them")));
        let mut symbols = Symbols::new();
        let main = functions.iter().find(|function| function.name == "main").unwrap();
        let found = symbols.at(own.to_str().unwrap(), main.begin + 1);
        assert_eq!(found, Some(Symbol { name: "main", offset: 1 }));
        let file = std::fs::read(&own).unwrap();
        let file = object::File::parse(&*file).unwrap();
        let segment =
            file.segments().find(|segment| main.begin.wrapping_sub(segment.address()) < segment.size());
        let segment = segment.unwrap();
        let offset = main.begin - segment.address() + segment.file_range().0;
        assert_eq!(segments.address(offset), Some(main.begin));
        let own = own.to_str().unwrap();
        for known in ["", &build_id] {
            assert_eq!(symbols.at_offset(own, known, offset), Some(Symbol { name: "main", offset: 0 }));
        }
        assert_eq!(symbols.at_offset(own, "00", offset).is_none(), !build_id.is_empty());
        for other in ["/dev/zero", "/nowhere", "/etc/passwd", "/"] {
            assert_eq!(symbols.at(other, 1), None);
            assert_eq!(symbols.line(other, 1), None);
        }
    }

    #[test]
    fn stripped_files_have_the_names_that_are_installed_separately() {
        let libc = "/lib/x86_64-linux-gnu/libc.so.6";
        let names =
            |code: &Code| code.functions.iter().filter(|function| function.name == "start_thread").count();
        let Some(code) = read(Path::new(libc)).filter(|code| names(code) == 0).map(with_debug_file) else {
            return tracewing_testing::skip(
                tracewing_testing::Cause::Processor,
                format_args!("there is no stripped libc at {libc}"),
            );
        };
        if names(&code) == 0 {
            return tracewing_testing::skip(
                tracewing_testing::Cause::Listed("libc symbols"),
                "its symbols (libc6-dbg) are not installed",
            );
        }
        assert!(code.functions.is_sorted_by_key(|function| function.begin));
        let start = code.functions.iter().find(|function| function.name == "start_thread").unwrap().begin;
        assert_eq!(Symbols::new().at(libc, start + 1), Some(Symbol { name: "start_thread", offset: 1 }));
    }

    #[test]
    fn this_program_knows_its_sources() {
        let own = std::env::current_exe().unwrap();
        let name = "this_program_knows_its_sources";
        let function = functions(&own, |symbol| demangled(symbol).ends_with(name)).pop().unwrap();
        let (file, line) = Symbols::new().line(own.to_str().unwrap(), function.begin).unwrap();
        assert!(file.ends_with("symbols/mod.rs") && line > 100, "{file}:{line}");
    }
}
