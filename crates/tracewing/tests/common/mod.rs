//! What the programs that the tests build depend on.

/// The dependency of a package with events.
pub fn dependency(features: &str) -> String {
    let folder = env!("CARGO_MANIFEST_DIR");
    format!("tracewing = {{ path = {folder:?}, default-features = false, features = [{features}] }}\n")
}
