//! Functions, and which of them are where programs and threads begin.

/// A function, as its file's symbols name it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Function {
    /// Its name, where anybody knows it.
    pub name: Option<String>,
    /// The file that it is in, [`Function::KERNEL`], [`Function::JIT`] or [`Function::UNKNOWN`].
    pub object: String,
    /// How the name belongs to the code.
    pub kind: FunctionKind,
}

/// How a function's name belongs to the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FunctionKind {
    /// It is that of the function that contains the code.
    Whole,
    /// The function's code was put into that of its caller.
    Inlined,
    /// The function that contains the code has no symbol: the name is that of the last one before it.
    Near,
}

/// The functions at one place of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Frames {
    /// Functions whose code was put into that of their callers, the innermost first.
    pub inlined: Vec<String>,
    /// The function that contains all of them, where it has a symbol.
    pub name: Option<String>,
    /// Else the last function before it.
    pub near: Option<String>,
}

impl Function {
    /// The kernel, as an object.
    pub const KERNEL: &'static str = "[kernel]";
    /// What programs have compiled at run time, as an object.
    pub const JIT: &'static str = "[jit]";
    /// What is in no file.
    pub const UNKNOWN: &'static str = "[unknown]";

    /// A function that contains the code as it was compiled.
    pub(super) fn whole(name: Option<String>, object: &str) -> Self {
        Self { name, object: object.to_owned(), kind: FunctionKind::Whole }
    }

    /// What it is called; functions without names by their object.
    pub fn shown(&self) -> String {
        match (&self.name, self.kind) {
            (Some(name), FunctionKind::Whole) => name.clone(),
            (Some(name), FunctionKind::Inlined) => format!("{name} (inlined)"),
            (Some(name), FunctionKind::Near) => format!("near {name}"),
            (None, _) => format!("[{}]", self.object_name().trim_matches(['[', ']'])),
        }
    }

    /// Its name, if that is of the function that contains the code.
    pub(super) fn own_name(&self) -> Option<&str> {
        self.name.as_deref().filter(|_| self.kind == FunctionKind::Whole)
    }

    /// Its object without folders.
    pub fn object_name(&self) -> &str {
        self.object.rsplit('/').next().unwrap_or_default()
    }

    /// Whether this is where a program or a thread begins: a chain that leads there is whole.
    pub(super) fn is_root(&self) -> bool {
        const ROOTS: [&str; 10] = [
            "_start",
            "main",
            "__libc_start_main",
            "__libc_start_call_main",
            "start_thread",
            "clone",
            "__clone",
            "clone3",
            "__clone3",
            "ret_from_fork_asm",
        ];
        match self.own_name() {
            Some(name) => ROOTS.contains(&name.split('@').next().unwrap_or_default()),
            None => self.is_nameless_of_libc(),
        }
    }

    /// Where distributions take the C library's symbols away, those functions that begin threads and call
    /// `main` have no names.
    fn is_nameless_of_libc(&self) -> bool {
        let object = self.object_name();
        self.own_name().is_none()
            && ["libc.so.", "libc-2.", "libpthread", "ld-linux", "ld-musl"]
                .iter()
                .any(|name| object.starts_with(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_c_librarys_nameless_functions_begin_threads() {
        let nameless = Function::whole(None, "/usr/lib/libc.so.6");
        assert!(nameless.is_root() && nameless.shown() == "[libc.so.6]");
        assert!(!Function::whole(None, "/bin/x").is_root());
        let near = Function { name: Some("qsort".to_owned()), kind: FunctionKind::Near, ..nameless };
        assert!(near.is_root() && near.shown() == "near qsort");
    }
}
