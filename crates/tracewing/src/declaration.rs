//! From what an event's author wrote to the description of its class, at compile time: [`Declaration`] is
//! what the macros write down, [`FieldList`] adds what only the types know, [`describe`] joins both,
//! [`mistake`] finds what no trace could hold.

use crate::class::EventClass;
use crate::field::{Field, FieldType};
use crate::payload::Fields;
use core::marker::PhantomData;
use tracewing_abi::message::MAX_MESSAGE;
use tracewing_abi::schema;

/// What an event's author wrote about its class.
#[doc(hidden)]
pub trait Declaration {
    const NAME: &'static str;
    const LEVEL: schema::Level;
    const MAJOR: u8;
    const DESCRIPTION: &'static str;
    const PRINT: &'static str;
    const FILE: &'static str;
    const LINE: u32;
    const FIELDS: &'static [FieldDeclaration];
}

/// What an event's author wrote about one field.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct FieldDeclaration {
    pub name: &'static str,
    pub base: schema::Base,
    /// Empty: that of the type.
    pub unit: &'static str,
}

impl FieldDeclaration {
    /// A field without hints; `identifier` may be a raw one (`r#type`).
    pub const fn plain(identifier: &'static str) -> Self {
        let name = match identifier.as_bytes() {
            [b'r', b'#', ..] => identifier.split_at(2).1,
            _ => identifier,
        };
        Self { name, base: schema::Base::Decimal, unit: "" }
    }
}

/// A field and the fields after it; an array in memory.
#[doc(hidden)]
#[derive(Clone, Copy)]
#[repr(C)]
pub struct List<R>(schema::Field<'static>, R);

/// Types of fields that fit the declaration `D`.
#[doc(hidden)]
pub trait FieldList<D: Declaration>: Fields {
    /// `COUNT` fields in memory, alignment included.
    type List: Copy;
    const LIST: Self::List;
}

impl<D: Declaration> FieldList<D> for () {
    type List = [schema::Field<'static>; 0];
    const LIST: Self::List = [];
}

impl<D: Declaration, A: Field, R: FieldList<D>> FieldList<D> for (A, R) {
    type List = List<R::List>;
    const LIST: Self::List = List(describe_field(D::FIELDS[D::FIELDS.len() - Self::COUNT], A::TYPE), R::LIST);
}

const fn describe_field(declaration: FieldDeclaration, of_type: FieldType) -> schema::Field<'static> {
    let unit = if declaration.unit.is_empty() { of_type.unit } else { declaration.unit };
    schema::Field {
        name: declaration.name,
        shape: of_type.shape,
        scalar: of_type.scalar,
        length: of_type.length,
        base: declaration.base,
        unit,
        labels: of_type.labels,
    }
}

/// The description of the class with this declaration and these field types, which are `N`.
#[doc(hidden)]
pub extern "C" fn describe<D: Declaration, F: FieldList<D>, const N: usize>(
    _of: &'static EventClass,
) -> &'static schema::Class<'static> {
    Description::<D, F, N>::CLASS
}

/// The record of an ad-hoc class.
#[doc(hidden)]
#[cold]
#[inline(never)]
pub(crate) fn ad_hoc<D: Declaration, F: FieldList<D>, const N: usize>() -> &'static EventClass {
    let class: *const EventClass;
    // SAFETY: `pushsection` to `popsection` lay out an `EventClass` (zeroes, function pointer)
    // aligned as that type is; the instructions take its address, touch no memory and no flags.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        core::arch::asm!(
            ".pushsection .data.tracewing_class, \"aw\", @progbits",
            ".balign 64",
            "2: .zero 56",
            ".quad {describe}",
            ".popsection",
            "lea {class}, [rip + 2b]",
            class = out(reg) class,
            describe = sym describe::<D, F, N>,
            options(pure, nomem, nostack, preserves_flags)
        );
        #[cfg(target_arch = "aarch64")]
        core::arch::asm!(
            ".pushsection .data.tracewing_class, \"aw\", @progbits",
            ".balign 64",
            "2: .zero 56",
            ".quad {describe}",
            ".popsection",
            "adrp {class}, 2b",
            "add {class}, {class}, :lo12:2b",
            class = out(reg) class,
            describe = sym describe::<D, F, N>,
            options(pure, nomem, nostack, preserves_flags)
        );
        &*class
    }
}

/// The description of the class with a declaration `D` and `N` fields of the types `F`.
#[doc(hidden)]
pub struct Description<D, F, const N: usize>(PhantomData<fn(D, F)>);

impl<D: Declaration, F: FieldList<D>, const N: usize> Description<D, F, N> {
    const FIELDS: &'static [schema::Field<'static>; N] = &{
        assert!(
            F::COUNT == N && D::FIELDS.len() == N && size_of::<F::List>() == size_of::<[schema::Field; N]>()
        );
        let list = F::LIST;
        // SAFETY: a `List` is its first field followed by the rest (`repr(C)`, all of one alignment), so this
        // one is `N` consecutive fields, as the size confirms.
        unsafe { (&raw const list).cast::<[schema::Field<'static>; N]>().read() }
    };

    /// The description.
    pub const CLASS: &'static schema::Class<'static> = {
        let () = Self::FITS;
        Self::DESCRIBED
    };

    const DESCRIBED: &'static schema::Class<'static> = &schema::Class {
        name: D::NAME,
        level: D::LEVEL,
        major: D::MAJOR,
        description: D::DESCRIPTION,
        print: D::PRINT,
        file: D::FILE,
        line: D::LINE,
        fields: Self::FIELDS,
    };

    const FITS: () = assert!(
        encoded_size(Self::DESCRIBED) <= MAX_MESSAGE / 2,
        "description, print form, fields and labels of an event are more than 30 KiB of text"
    );
}

/// Bytes of a class description in a message, as [`schema`] lays it out.
pub(crate) const fn encoded_size(class: &schema::Class<'static>) -> usize {
    let mut size = 2 + 2 + 4 * 2 + 4 + 1;
    size += class.name.len() + class.description.len() + class.print.len() + class.file.len();
    let mut at = 0;
    while at < class.fields.len() {
        let field = &class.fields[at];
        size += 2 + field.name.len() + 1 + 1 + 4 + 1 + 2 + field.unit.len() + 2;
        let mut label = 0;
        while label < field.labels.len() {
            size += 8 + 2 + field.labels[label].1.len();
            label += 1;
        }
        at += 1;
    }
    size
}

/// Why no trace could hold the declaration's names. Where the names were given to a derive macro, that has
/// looked already, with a better place for the message; the crate's name it has not seen.
#[doc(hidden)]
pub const fn mistake<D: Declaration>() -> Option<&'static str> {
    if D::FIELDS.len() > 255 {
        return Some("an event has at most 255 fields");
    }
    let mut at = 0;
    while at < D::FIELDS.len() {
        let name = D::FIELDS[at].name.as_bytes();
        if !name.is_ascii() {
            return Some("names of fields are made of ASCII letters, digits and `_`");
        }
        let mut other = 0;
        while other < at {
            if equal(D::FIELDS[other].name.as_bytes(), name) {
                return Some("two fields have the same name");
            }
            other += 1;
        }
        at += 1;
    }
    mistake_in_name(D::NAME.as_bytes())
}

const fn mistake_in_name(name: &[u8]) -> Option<&'static str> {
    if name.len() > 255 {
        return Some("the name of an event has at most 255 bytes");
    }
    let (mut at, mut colon) = (0, None);
    while at < name.len() {
        match name[at] {
            b':' if colon.is_none() => colon = Some(at),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' | b'.' | b':' => {}
            _ => return Some("the name of an event is made of ASCII letters, digits, `_`, `-`, `.` and `:`"),
        }
        at += 1;
    }
    match colon {
        Some(colon) if 0 < colon && colon + 1 < name.len() => None,
        _ => Some("the name of an event has the form \"provider:event\""),
    }
}

const fn equal(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

/// The first part of a module's path: the crate.
#[doc(hidden)]
pub const fn crate_name(module: &'static str) -> &'static str {
    let (bytes, mut end) = (module.as_bytes(), 0);
    while end < bytes.len() && bytes[end] != b':' {
        end += 1;
    }
    module.split_at(end).0
}

/// Bytes of `provider:event`.
#[doc(hidden)]
pub const fn length_of_joined(provider: &str, event: &str) -> usize {
    provider.len() + 1 + event.len()
}

/// `provider:event`, of `N` bytes.
#[doc(hidden)]
pub const fn joined<const N: usize>(provider: &str, event: &str) -> [u8; N] {
    assert!(N == length_of_joined(provider, event));
    let mut name = [b':'; N];
    name.split_at_mut(provider.len()).0.copy_from_slice(provider.as_bytes());
    name.split_at_mut(provider.len() + 1).1.copy_from_slice(event.as_bytes());
    name
}
