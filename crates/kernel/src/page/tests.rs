//! Pages written the way `ring_buffer.c` writes them, decoded; and any other bytes.

use super::*;
use proptest::prelude::*;

const LAYOUT: PageLayout = PageLayout { word: 8, data: 16, size: 4096 };

/// Builds pages the way `ring_buffer.c` writes them.
#[derive(Default)]
struct Builder(Vec<u8>);

impl Builder {
    fn word(mut self, word: u32) -> Self {
        self.0.extend(word.to_ne_bytes());
        self
    }

    fn head(self, type_len: u32, delta: u32) -> Self {
        self.word(delta << 5 | type_len)
    }

    fn page(&self, stamp: u64, flags: u32, after: &[u8]) -> Vec<u8> {
        let mut page = stamp.to_ne_bytes().to_vec();
        // The kernel adds the flag as a negative int, hence the sign extension.
        let commit = (self.0.len() as u32 | flags) as i32 as i64;
        page.extend(commit.to_ne_bytes());
        page.extend(&self.0);
        page.extend(after);
        page.resize(4096, 0);
        page
    }
}

fn all(page: &[u8]) -> (Option<Missed>, Vec<(u64, Vec<u8>)>) {
    let page = Page::parse(&LAYOUT, page).unwrap();
    (page.missed, page.records().map(|r| r.map(|r| (r.stamp.0, r.data.to_vec())).unwrap()).collect())
}

#[test]
fn every_kind_of_record_is_decoded() {
    let page = Builder::default()
        .head(1, 0)
        .word(11)
        .head(2, 5)
        .word(21)
        .word(22)
        .head(30, 3)
        .word(2)
        .head(1, 1)
        .word(31)
        .head(0, 4)
        .word(4 + 4 * 2)
        .word(41)
        .word(42)
        .head(29, 7)
        .word(8)
        .word(99)
        .head(29, 1)
        .word(4)
        .head(1, 6)
        .word(45)
        .head(31, 9)
        .word(1 << 20)
        .head(1, 0)
        .word(51)
        .head(29, 0)
        .word(0xdead_beef)
        .page(1000, 0, &[]);
    let words = |w: &[u32]| w.iter().flat_map(|w| w.to_ne_bytes()).collect::<Vec<u8>>();
    let extended = 1005 + (2 << 27) + 3 + 1;
    assert_eq!(
        all(&page),
        (
            None,
            vec![
                (1000, words(&[11])),
                (1005, words(&[21, 22])),
                (extended, words(&[31])),
                (extended + 4, words(&[41, 42])),
                (extended + 4 + 7 + 6, words(&[45])),
                ((1 << 47) + 9, words(&[51])),
            ]
        )
    );
}

#[test]
fn missed_records_are_counted_where_the_page_has_room_for_the_number() {
    let page = Builder::default().head(1, 0).word(1);
    let stored = page.page(1, MISSED_EVENTS | MISSED_STORED, &77u64.to_ne_bytes());
    assert_eq!(all(&stored).0, Some(Missed::Count(77)));
    assert_eq!(all(&stored).1.len(), 1);
    assert_eq!(all(&page.page(1, MISSED_EVENTS, &[])).0, Some(Missed::Unknown));
    assert_eq!(all(&page.page(1, 0, &[])).0, None);
}

#[test]
fn absolute_stamps_keep_the_five_top_bits_and_carry_into_them() {
    let top = 0x1800_0000_0000_0000;
    let page =
        |word: u32| Builder::default().head(31, 1).word(word).head(1, 0).word(0).page(top | 1 << 40, 0, &[]);
    assert_eq!(all(&page(1 << 20)).1[0].0, top | 1 << 47 | 1);
    // Lower than the stamp before: the 59 bits have wrapped.
    assert_eq!(all(&page(0)).1[0].0, (top | 1) + (1 << 59));
}

#[test]
fn lengths_that_do_not_fit_are_errors_with_their_offset() {
    let errors = |page: &[u8]| Page::parse(&LAYOUT, page).unwrap().records().find_map(Result::err).unwrap();
    let short = Builder::default().head(1, 0).word(1).head(3, 0).word(1).page(1, 0, &[]);
    assert_eq!(errors(&short), PageError::Record { offset: 24, len: 16 });
    let long = Builder::default().head(0, 0).word(u32::MAX).page(1, 0, &[]);
    assert_eq!(errors(&long), PageError::Record { offset: 16, len: u32::MAX as usize });
    let nothing = Builder::default().head(0, 0).word(0).page(1, 0, &[]);
    assert_eq!(errors(&nothing), PageError::Record { offset: 16, len: 0 });
    let padding = Builder::default().head(29, 2).word(0).page(1, 0, &[]);
    assert_eq!(errors(&padding), PageError::Record { offset: 16, len: 0 });
    assert_eq!(Page::parse(&LAYOUT, &[0; 15]).unwrap_err(), PageError::Short { len: 15 });
    let mut claims = Builder::default().page(1, 0, &[]);
    claims[8..12].copy_from_slice(&4081u32.to_ne_bytes());
    assert_eq!(Page::parse(&LAYOUT, &claims).unwrap_err(), PageError::Commit { claimed: 4081, room: 4080 });
}

#[test]
fn the_page_header_of_this_and_of_a_32_bit_kernel_is_understood() {
    let header = |word: usize| {
        format!(
            "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\tfield: local_t commit;\toffset:8;\t\
             size:{word};\tsigned:1;\n\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\tfield: char \
             data;\toffset:{};\tsize:4080;\tsigned:0;\n",
            8 + word
        )
    };
    assert_eq!(PageLayout::parse(&header(8)).unwrap(), LAYOUT);
    assert_eq!(PageLayout::parse(&header(4)).unwrap(), PageLayout { word: 4, data: 12, size: 4092 });
    assert_eq!(PageLayout::parse("").unwrap_err(), FormatError::PageHeader);
}

proptest! {
    #[test]
    fn any_bytes_give_records_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..600), len in 0u32..600) {
        let mut bytes = bytes;
        if bytes.len() >= 16 {
            bytes[8..12].copy_from_slice(&len.to_ne_bytes());
        }
        if let Ok(page) = Page::parse(&LAYOUT, &bytes) {
            let mut total = 0;
            for record in page.records() {
                total += 4 + record.map_or(0, |r| r.data.len());
            }
            prop_assert!(total <= page.len() + 4);
        }
    }

    #[test]
    fn what_is_written_is_read(records in proptest::collection::vec((0u32..1 << 27, 0u32..40, 0u32..3), 0..20)) {
        let mut builder = Builder::default();
        let mut stamp = 1 << 50;
        let mut expected = Vec::new();
        for &(delta, words, kind) in &records {
            stamp += u64::from(delta);
            builder = match kind {
                1 => {
                    stamp += u64::from(delta) << 27 | 1;
                    builder.head(30, 1).word(delta)
                }
                2 => builder.head(29, 2).word(12).word(7).word(8),
                _ => builder,
            };
            if kind == 2 {
                stamp += 2;
            }
            builder = match words {
                1..=28 => builder.head(words, delta),
                _ => builder.head(0, delta).word(4 + 4 * words),
            };
            for word in 0..words {
                builder = builder.word(word);
            }
            expected.push((stamp, words as usize * 4));
        }
        let bytes = builder.page(1 << 50, 0, &[]);
        let page = Page::parse(&LAYOUT, &bytes).unwrap();
        let got: Vec<_> = page.records().map(|r| r.map(|r| (r.stamp.0, r.data.len())).unwrap()).collect();
        prop_assert_eq!(got, expected);
    }
}
