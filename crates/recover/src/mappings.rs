//! Mappings of an address space that may contain buffers and tables of classes.

use tracewing_abi::class_table;
use tracewing_programs::image::{AddressSpace, Mapping};

/// The mappings that may be a buffer region or a table of classes.
pub(crate) fn candidates(space: &dyn AddressSpace) -> impl Iterator<Item = &Mapping> {
    space.mappings().iter().filter(|mapping| is_candidate(mapping))
}

/// Regions are shared memory; tables are private to each process.
fn is_candidate(mapping: &Mapping) -> bool {
    let name = mapping.name.as_deref().unwrap_or_default();
    let is_table = || {
        let of_memory = name.strip_prefix("/memfd:");
        of_memory.is_some_and(|name| name.as_bytes().starts_with(class_table::NAME.to_bytes()))
    };
    !mapping.is_private || is_table()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_memory_and_tables_only() {
        let table = format!("/memfd:{} (deleted)", class_table::NAME.to_str().unwrap());
        for (is_private, name, expected) in [
            (false, Some("/memfd:tracewing (deleted)"), true),
            (false, None, true),
            (true, Some(&*table), true),
            (true, Some("[heap]"), false),
            (true, None, false),
        ] {
            let mapping = Mapping { is_private, name: name.map(str::to_owned), ..Mapping::default() };
            assert_eq!(is_candidate(&mapping), expected, "{mapping:?}");
        }
    }
}
