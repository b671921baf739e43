//! A whole trace: see the library.
#![no_main]

use std::sync::LazyLock;

/// In memory if the system has a file system for that.
static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder is made")
});

libfuzzer_sys::fuzz_target!(|input: &[u8]| tracewing_fuzz::folder::trace(input, FOLDER.path()));
