//! The dependencies of the programs that the tests build.

/// The dependencies of a package with sites.
pub fn dependencies(features: &str) -> String {
    let folder = env!("CARGO_MANIFEST_DIR");
    format!(
        "tracewing-trigger = {{ path = {folder:?}, default-features = false, features = [{features}] }}\n\
         tracewing-abi = {{ path = \"{folder}/../abi\" }}\n"
    )
}
