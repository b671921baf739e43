//! Gives the shared library the name under which `cargo xtask capi` installs it.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libtracewing.so.0");
    println!("cargo::rerun-if-changed=build.rs");
}
