//! Functions, and which of them are where programs and threads begin.

/// A function, as its file's symbols name it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Function {
    /// Its name, where anybody knows it.
    pub name: Option<String>,
    /// The file that it is in, [`Function::KERNEL`] or [`Function::UNKNOWN`].
    pub object: String,
}

impl Function {
    /// The kernel, as an object.
    pub const KERNEL: &'static str = "[kernel]";
    /// What is in no file.
    pub const UNKNOWN: &'static str = "[unknown]";

    /// What it is called; functions without names by their object.
    pub fn shown(&self) -> String {
        match &self.name {
            Some(name) => name.clone(),
            None => format!("[{}]", self.object_name().trim_matches(['[', ']'])),
        }
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
        match &self.name {
            Some(name) => ROOTS.contains(&name.split('@').next().unwrap_or_default()),
            None => self.is_nameless_of_libc(),
        }
    }

    /// Where distributions take the C library's symbols away, those functions that begin threads and call
    /// `main` have no names.
    fn is_nameless_of_libc(&self) -> bool {
        let object = self.object_name();
        self.name.is_none()
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
        let nameless = Function { name: None, object: "/usr/lib/libc.so.6".to_owned() };
        assert!(nameless.is_root() && nameless.shown() == "[libc.so.6]");
        assert!(!Function { name: None, object: "/bin/x".to_owned() }.is_root());
    }
}
