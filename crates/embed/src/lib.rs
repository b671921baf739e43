//! [`library!`]: the bytes of a shared library that Cargo has built for a dependency, so that a program which
//! is installed as one file (`cargo install`) has the library in it.
//!
//! A dependency whose crate types are `cdylib` and `rlib` is built as both by one run of the compiler, which
//! gives both files the same stem. The compiler of the dependent program gets the path of the rlib
//! (`--extern NAME=…/libNAME-HASH.rlib`), and the macro runs within that compiler. Cargo itself offers no
//! path: a build script runs before dependencies are compiled, and dependencies on artifacts are not
//! stable.

#![warn(unreachable_pub)]

use std::env;
use std::path::{Path, PathBuf};

use proc_macro::TokenStream;

/// The library of the dependency with this name, such as `library!(tracewing_preload)`: an
/// `Option<&'static [u8]>`. It is `None` where nothing is linked, as for `cargo check`, and if Cargo has not
/// built the library.
#[proc_macro]
pub fn library(name: TokenStream) -> TokenStream {
    let path = library_of(&name.to_string(), env::args()).filter(|path| path.is_file());
    let expression = match path.as_deref().and_then(Path::to_str) {
        Some(path) => format!("::core::option::Option::Some(include_bytes!({path:?}) as &'static [u8])"),
        None => "::core::option::Option::None::<&'static [u8]>".to_owned(),
    };
    expression.parse().unwrap_or_default()
}

/// Where the library is, by the compiler's arguments.
fn library_of(name: &str, arguments: impl Iterator<Item = String>) -> Option<PathBuf> {
    let path_of = |argument: String| {
        let path = argument.strip_prefix(name)?.strip_prefix('=')?;
        let rlib = Path::new(path).extension().is_some_and(|extension| extension == "rlib");
        rlib.then(|| Path::new(path).with_extension("so"))
    };
    let path = arguments.filter_map(path_of).next()?;
    // Paths in `include_bytes!` are relative to the source file, those of the compiler to its folder.
    Some(env::current_dir().ok()?.join(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_next_to_the_rlib() {
        let arguments = |path: &str| {
            let arguments = ["rustc", "--extern", "x_y=/d/libx_y-1.rlib", "--extern", path];
            arguments.map(str::to_owned).into_iter()
        };
        let found = |name, path| library_of(name, arguments(path));
        assert_eq!(found("x", "x=/d/libx-7f.rlib"), Some("/d/libx-7f.so".into()));
        assert_eq!(found("x", "x=/d/libx-7f.rmeta"), None, "cargo check");
        assert_eq!(found("x", "xx=/d/libxx-7f.rlib"), None);
        let relative = env::current_dir().unwrap().join("d/libx.so");
        assert_eq!(found("x", "x=d/libx.rlib"), Some(relative));
    }
}
