//! Labels of user threads by their origins, the place of their creation (`serve.rs:253`), for threads without
//! a name, such as tasks that only hooks of their runtime report. Only recent ones are kept, so that programs
//! that use a new name for each do not need ever more memory.

use super::map::Map;
use tracewing_units::Origin;

/// So many are known at least, and twice as many at most.
const KNOWN: usize = 1 << 16;

pub(super) type Names = Map<Origin, Box<[u8]>>;

/// Names by the numbers of origins.
#[derive(Debug, Clone, Default)]
pub(super) struct Origins {
    pub(super) new: Names,
    /// Those that were new before.
    pub(super) old: Names,
}

impl Origins {
    pub(super) fn learn(&mut self, origin: Origin, name: &[u8], (file, line): (&[u8], u64)) {
        if self.new.len() == KNOWN {
            self.old = std::mem::take(&mut self.new);
        }
        self.new.entry(origin).or_insert_with(|| match (name, file) {
            (b"", [_, ..]) => {
                let file = file.rsplit(|byte| *byte == b'/').next().unwrap_or(file);
                [file, format!(":{line}").as_bytes()].concat().into()
            }
            _ => name.into(),
        });
    }

    pub(super) fn get(&self, origin: Origin) -> Option<&[u8]> {
        self.new.get(&origin).or_else(|| self.old.get(&origin)).map(|name| &**name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_without_a_name_is_called_by_its_place() {
        let mut origins = Origins::default();
        let place: (&[u8], u64) = (b"src/net/serve.rs", 253);
        origins.learn(Origin(1), b"", place);
        origins.learn(Origin(2), b"reader", place);
        origins.learn(Origin(3), b"", (b"", 0));
        assert_eq!(
            [1, 2, 3].map(|origin| origins.get(Origin(origin)).unwrap()),
            [b"serve.rs:253", &b"reader"[..], b""]
        );
    }

    #[test]
    fn the_last_ones_are_known() {
        let mut origins = Origins::default();
        (0..200_000).for_each(|origin: u64| origins.learn(Origin(origin), &origin.to_le_bytes(), (b"", 0)));
        assert!(origins.new.len() + origins.old.len() <= 2 * KNOWN);
        assert!(
            (200_000 - KNOWN as u64..200_000)
                .all(|origin| origins.get(Origin(origin)) == Some(&origin.to_le_bytes()))
        );
        assert_eq!(origins.get(Origin(1)), None);
    }
}
