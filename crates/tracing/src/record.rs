//! Records one event, of a call site or of a span.

use crate::classes::Classes;
use crate::numbers::Numbers;
use crate::values::{Buffer, CAPACITY, TYPED_FIELDS, Values};
use core::mem::MaybeUninit;
use tracewing::dynamic::{self, EventClass};
use tracing_core::field::Visit;

/// Records an event with the fields that `visit` visits, after these ids (at most two), in the class for its
/// values. `visit` may be called several times. Returns whether that class has just been created.
#[inline]
pub(crate) fn record_visited<const IDS: usize>(
    classes: &Classes,
    ids: [u64; IDS],
    visit: impl Fn(&mut dyn Visit),
) -> bool {
    let mut is_new = false;
    if classes.have_numbers_only() {
        let mut numbers = Numbers::new(ids);
        visit(&mut numbers);
        if let Some((kinds, payload)) = numbers.all(classes.fields()) {
            let found = classes.find(kinds);
            is_new = found.is_new;
            if !found.is_text {
                if let Some(class) = found.class.filter(|class| class.is_on()) {
                    record_words(class, payload);
                }
                return is_new;
            }
        }
        classes.have_others();
    }
    record(classes, &ids, |values| visit(values)) | is_new
}

/// Records an event with the fields that `put` puts, after these ids (at most two), in the class for its
/// values. `put` may be called several times. Returns whether that class has just been created.
#[inline(never)]
pub(crate) fn record(classes: &Classes, ids: &[u64], put: impl Fn(&mut Values<'_>)) -> bool {
    let mut buffer: Buffer = [const { MaybeUninit::uninit() }; CAPACITY];
    let mut collected = collect(&mut buffer, classes.fields(), TYPED_FIELDS, ids, &put);
    let found = classes.find(collected.kinds());
    if found.is_text {
        collected = collect(&mut buffer, classes.fields(), 0, ids, &put);
    }
    if let Some(class) = found.class.filter(|class| class.is_on()) {
        dynamic::record_bytes(class, collected.payload(), 0);
    }
    found.is_new
}

#[inline]
fn collect<'a>(
    buffer: &'a mut Buffer,
    fields: usize,
    typed: usize,
    ids: &[u64],
    put: impl Fn(&mut Values<'_>),
) -> Values<'a> {
    let mut values = Values::new(buffer, fields, typed);
    ids.iter().for_each(|id| values.put_id(*id));
    values.collect(put);
    values
}

/// Records an event that consists of words.
#[inline]
pub(crate) fn record_words(class: &'static EventClass, words: &[u64]) {
    // SAFETY: any bytes of a number are valid. Little-endian on all targets for which `tracewing` compiles.
    let bytes = unsafe { core::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) };
    dynamic::record_bytes(class, bytes, 0);
}
