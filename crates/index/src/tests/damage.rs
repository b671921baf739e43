//! Damaged bytes are noticed, and nothing panics whatever they say.

use super::model::rows;
use super::{Model, opened, written};
use crate::picture::Window;
use crate::row::RowId;
use crate::{Error, Index};
use proptest::prelude::*;
use proptest::sample::Index as Place;
use std::ops::ControlFlow;
use tracewing_units::Duration;

/// Asks everything of an index.
fn read(index: &Index) -> Result<(), Error> {
    index.check()?;
    let window = Window::covering(Duration::ZERO, index.tail().length.max(Duration::from_ns(1 << 40)), 300);
    for row in (0..index.tail().rows.len() as u32).map(RowId) {
        index.picture(row, window)?;
        index.statistics(row, Duration::from_ns(5), Duration::MAX)?;
        index.next_of(row, crate::StateId::USER, Duration::ZERO)?;
        index.woken(row, Duration::from_ns(5))?;
        index.values(row, window)?;
        index.each_value(row, Duration::from_ns(5), Duration::MAX, |_| ControlFlow::Continue(()))?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn each_changed_byte_is_noticed(models in rows(), place in any::<Place>(), other in 1..=255_u8) {
        let mut bytes = written(&models);
        read(&opened(&bytes).unwrap().unwrap()).unwrap();
        let place = place.index(bytes.len());
        bytes[place] ^= other;
        let noticed = match opened(&bytes) {
            Err(_) | Ok(None) => true,
            Ok(Some(index)) => read(&index).is_err(),
        };
        prop_assert!(noticed, "byte {place} of {}", bytes.len());
    }

    #[test]
    fn sums_of_several_rows_need_all_of_them(models in rows(), place in any::<Place>(), threads in 1..5_usize) {
        let mut bytes = written(&models);
        let place = place.index(bytes.len());
        bytes[place] ^= 1;
        let Ok(Some(index)) = opened(&bytes) else { return Ok(()) };
        let rows: Vec<RowId> = (0..index.tail().rows.len() as u32).map(RowId).collect();
        let (from, to) = (Duration::from_ns(5), Duration::MAX);
        let counts: Vec<u64> = rows.iter().map(|row| index.count(*row, from, to)).collect();
        let is_error = rows.iter().any(|row| index.statistics(*row, from, to).is_err());
        prop_assert_eq!(index.by_threads(&rows, &counts, (from, to), threads).is_err(), is_error);
    }

    #[test]
    fn a_cut_is_noticed(models in rows(), place in any::<Place>()) {
        let bytes = written(&models);
        prop_assert!(opened(&bytes[..place.index(bytes.len())]).is_err());
    }

    /// Sums that fit hide what is wrong: then any answer will do, but no panic.
    #[test]
    fn nothing_panics_where_the_sums_fit(
        models in rows(),
        places in proptest::collection::vec((any::<Place>(), any::<u8>()), 1..8),
    ) {
        let mut bytes = written(&models);
        forge(&mut bytes, &models, &places);
        if let Ok(Some(index)) = opened(&bytes) {
            let _ = read(&index);
        }
    }
}

/// Changes bytes of blocks or of the tail, and then all sums.
fn forge(bytes: &mut [u8], models: &[Model], places: &[(Place, u8)]) {
    use crate::body::SUM;
    use crate::bytes::checksum;
    use crate::format::{FOOT, HEAD, foot};
    let original = opened(&written(models)).unwrap().unwrap();
    let body = bytes.len() - FOOT;
    for (place, other) in places {
        let place = HEAD + place.index(body - HEAD);
        bytes[place] = *other;
    }
    let rows = &original.tail().rows;
    for entry in
        rows.iter().flat_map(|row| row.leaves.iter().chain(&row.wakes).chain(row.levels.iter().flatten()))
    {
        let (from, to) = (entry.offset as usize, entry.offset as usize + entry.length as usize);
        let sum = (checksum(&bytes[from..to]) as u32).to_le_bytes();
        bytes[to..to + SUM].copy_from_slice(&sum);
    }
    let offset = u64::from_le_bytes(bytes[body..body + 8].try_into().unwrap());
    let head = bytes[..HEAD].try_into().unwrap();
    let foot = foot(&head, offset, &bytes[offset as usize..body]);
    bytes[body..].copy_from_slice(&foot);
}
