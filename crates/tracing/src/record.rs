//! Records one event, of a call site or of a span.

use crate::classes::Classes;
use crate::values::{Buffer, CAPACITY, TYPED_FIELDS, Values};
use core::mem::MaybeUninit;
use tracewing::dynamic::{self, EventClass};

/// Records an event with the fields that `put` puts, behind these ids (at most two), in the class that its values ask for. It may be
/// called several times. Says whether that class has just been made.
#[inline]
pub fn record(classes: &Classes, ids: &[u64], put: impl Fn(&mut Values<'_>)) -> bool {
    let mut buffer: Buffer = [const { MaybeUninit::uninit() }; CAPACITY];
    let mut collected = collect(&mut buffer, classes.fields(), TYPED_FIELDS, ids, &put);
    let found = classes.find(collected.kinds());
    if found.is_text {
        collected = collect(&mut buffer, classes.fields(), 0, ids, &put);
    }
    if let Some(class) = found.class.filter(|class| class.is_on()) {
        dynamic::record_bytes(class, collected.payload());
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

/// Records an event that has ids only.
#[inline]
pub fn tell(class: &'static EventClass, ids: &[u64]) {
    // SAFETY: all bytes of a number are values. Little-endian on all targets for which `tracewing` compiles.
    let ids = unsafe { core::slice::from_raw_parts(ids.as_ptr().cast(), size_of_val(ids)) };
    dynamic::record_bytes(class, ids);
}
