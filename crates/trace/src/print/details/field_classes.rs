//! Field classes.

use super::attributes::entries;
use super::location::Place;
use super::page::{Page, decimal};
use tracewing_ctf::model::{
    Attributes, BitMapClass, DisplayBase, Encoding, EnumerationClass, FieldClass, IntegerClass,
    OptionalClass, Scope, StructureClass, VariantClass,
};

/// Whether a packet context has something besides what serves the reader.
pub(super) fn is_shown(class: &StructureClass) -> bool {
    class.members.is_empty() || class.members.iter().any(|member| is_shown_field(&member.class))
}

pub(super) fn is_shown_field(class: &FieldClass) -> bool {
    match class {
        FieldClass::Integer(class) | FieldClass::VariableInteger(class) => class.roles.is_empty(),
        FieldClass::Enumeration(class) | FieldClass::VariableEnumeration(class) => {
            class.integer.roles.is_empty()
        }
        FieldClass::Structure(class) => is_shown(class),
        _ => true,
    }
}

/// Writes the field classes of a scope.
pub(super) struct FieldWriter<'p, 'c> {
    pub(super) page: &'p mut Page,
    pub(super) place: Place<'c>,
    /// Whether options are named like labels, with an underscore that protects the name.
    pub(super) plain_names: bool,
}

impl<'c> FieldWriter<'_, 'c> {
    pub(super) fn root(&mut self, name: &str, class: &'c StructureClass) {
        self.page.begin_line();
        self.page.text(&format!("{name}: "));
        self.structure(None, class);
        self.page.newline();
    }

    fn structure(&mut self, name: Option<&'c str>, class: &'c StructureClass) {
        let in_context = self.place.scope == Scope::PacketContext;
        let shown = |class: &FieldClass| !in_context || is_shown_field(class);
        let count = class.members.iter().filter(|member| shown(&member.class)).count();
        self.page.text(&format!("Structure ({} member{})", decimal(count as i128), plural(count)));
        let listed = self.begin(&class.attributes, "Members", count > 0);
        for (index, member) in class.members.iter().enumerate().filter(|(_, member)| shown(&member.class)) {
            self.place.structures.push((name, class, index));
            self.named(&member.name, "", &member.attributes, &member.class);
            self.place.structures.pop();
        }
        self.end(listed);
    }

    /// A line for a member or an option.
    fn named(&mut self, name: &'c str, ranges: &str, attributes_of: &Attributes, class: &'c FieldClass) {
        self.page.newline();
        self.page.begin_line();
        self.page.text(&format!("{name}:{ranges}"));
        if attributes_of.is_empty() {
            self.page.text(" ");
            return self.field(Some(name), class);
        }
        self.page.newline();
        self.page.deeper();
        self.page.begin_line();
        self.page.text("Field class: ");
        self.field(Some(name), class);
        self.page.newline();
        self.page.begin_line();
        self.page.text("User attributes:");
        entries(self.page, attributes_of.namespaces());
        self.page.shallower();
    }

    /// Begins the lines below a class's own: attributes, and a list under `title`, which is only needed after
    /// attributes. Returns how many levels that took.
    fn begin(&mut self, attributes: &Attributes, title: &str, has_list: bool) -> usize {
        self.page.deeper();
        if attributes.is_empty() {
            if has_list {
                self.page.text(":");
            }
            return 1;
        }
        self.page.end_line(":");
        self.page.begin_line();
        self.page.text("User attributes:");
        entries(self.page, attributes.namespaces());
        if !has_list || title.is_empty() {
            return 1;
        }
        self.page.newline();
        self.page.begin_line();
        self.page.text(&format!("{title}:"));
        self.page.deeper();
        2
    }

    fn end(&mut self, levels: usize) {
        (0..levels).for_each(|_| self.page.shallower());
    }

    fn field(&mut self, name: Option<&'c str>, class: &'c FieldClass) {
        match class {
            FieldClass::BitArray(class) => self.leaf("Bit array", &class.attributes),
            FieldClass::BitMap(class) => self.bit_map(class),
            FieldClass::Boolean(class) => self.leaf("Boolean", &class.attributes),
            FieldClass::Integer(class) | FieldClass::VariableInteger(class) => {
                let sign = if class.signed { "Signed" } else { "Unsigned" };
                self.leaf(&format!("{sign} integer ({})", integer(class)), &class.attributes);
            }
            FieldClass::Enumeration(class) | FieldClass::VariableEnumeration(class) => {
                self.enumeration(class)
            }
            FieldClass::Float(class) => {
                let precision = if class.size <= 32 { "Single" } else { "Double" };
                self.leaf(&format!("{precision}-precision real"), &class.attributes);
            }
            FieldClass::String(class) => self.leaf("String", &class.attributes),
            FieldClass::StaticString(class) => self.leaf("String", &class.attributes),
            FieldClass::DynamicString(class) => self.leaf("String", &class.attributes),
            FieldClass::StaticBlob(class) => {
                let length = decimal(class.length.into());
                let text = format!("Static BLOB (Length {length}, Media type `{}`)", class.media_type);
                self.leaf(&text, &class.attributes);
            }
            FieldClass::DynamicBlob(class) => {
                let place = self.place.find(&class.length).text;
                let media = &class.media_type;
                let text = format!(
                    "Dynamic BLOB (with length field) (Length field location {place}, Media type `{media}`)"
                );
                self.leaf(&text, &class.attributes);
            }
            FieldClass::Structure(class) => self.structure(name, class),
            FieldClass::StaticArray(class) if is_text(&class.element) => {
                self.leaf("String", &class.attributes)
            }
            FieldClass::DynamicArray(class) if is_text(&class.element) => {
                self.leaf("String", &class.attributes);
            }
            FieldClass::StaticArray(class) => {
                self.page.text(&format!("Static array (Length {})", decimal(class.length.into())));
                self.content(name, "Element", &class.attributes, &class.element);
            }
            FieldClass::DynamicArray(class) => {
                let place = self.place.find(&class.length).text;
                self.page.text(&format!("Dynamic array (with length field) (Length field location {place})"));
                self.content(name, "Element", &class.attributes, &class.element);
            }
            FieldClass::Optional(class) => self.optional(name, class),
            FieldClass::Variant(class) => self.variant(class),
        }
    }

    fn optional(&mut self, name: Option<&'c str>, class: &'c OptionalClass) {
        let selector = self.place.find(&class.selector);
        let kind = match selector.class {
            _ if class.ranges.is_empty() => "boolean",
            Some(class) if is_signed(class) => "signed integer",
            _ => "unsigned integer",
        };
        let place = selector.text;
        self.page.text(&format!("Option ({kind} selector) (Selector field location {place})"));
        let listed = self.begin(&class.attributes, "", true);
        self.page.newline();
        self.page.line(&match class.ranges.is_empty() {
            true => "Selector is reversed: No".to_owned(),
            false => format!("Selector ranges:{}", ranges(class.ranges.clone())),
        });
        self.page.begin_line();
        self.page.text("Content: ");
        self.field(name, &class.class);
        self.end(listed);
    }

    /// An option's ranges are its own in CTF 2; in CTF 1.8 they are those of the tag's label with its name.
    fn variant(&mut self, class: &'c VariantClass) {
        let tag = self.place.find(&class.tag);
        let kind = if tag.class.is_some_and(is_signed) { "signed" } else { "unsigned" };
        let (count, place) = (class.options.len(), tag.text);
        let options = format!("{} option{}", decimal(count as i128), plural(count));
        self.page
            .text(&format!("Variant ({kind} integer selector) ({options}, Selector field location {place})"));
        let listed = self.begin(&class.attributes, "Options", count > 0);
        for option in &class.options {
            let own = match option.ranges.as_slice() {
                [] => tag.class.map_or(Vec::new(), |tag| labelled_ranges(tag, &option.name)),
                ranges => ranges.to_vec(),
            };
            let plain = option.name.strip_prefix('_').filter(|_| self.plain_names);
            let name = plain.unwrap_or(&option.name);
            self.named(name, &format!("{}:", ranges(own)), &option.attributes, &option.class);
        }
        self.end(listed);
    }

    /// A class of one line and its attributes.
    fn leaf(&mut self, text: &str, attributes: &Attributes) {
        self.page.text(text);
        let listed = self.begin(attributes, "", false);
        self.end(listed);
    }

    /// What an array consists of.
    fn content(
        &mut self,
        name: Option<&'c str>,
        title: &str,
        attributes: &Attributes,
        class: &'c FieldClass,
    ) {
        let listed = self.begin(attributes, "", true);
        self.page.newline();
        self.page.begin_line();
        self.page.text(&format!("{title}: "));
        self.field(name, class);
        self.end(listed);
    }

    fn enumeration(&mut self, class: &EnumerationClass) {
        let sign = if class.integer.signed { "Signed" } else { "Unsigned" };
        let count = class.mappings.len();
        let mappings = format!("{} mapping{}", decimal(count as i128), plural(count));
        self.page.text(&format!("{sign} enumeration ({}, {mappings})", integer(&class.integer)));
        let listed = self.begin(&class.integer.attributes, "Mappings", count > 0);
        let mut mappings: Vec<_> = class.mappings.iter().collect();
        mappings.sort_by(|left, right| left.label.cmp(&right.label));
        for mapping in mappings {
            self.labelled(&mapping.label, mapping.ranges.clone());
        }
        self.end(listed);
    }

    fn bit_map(&mut self, class: &BitMapClass) {
        self.page.text("Bit array");
        let listed = self.begin(&class.bits.attributes, "Flags", true);
        let mut flags: Vec<_> = class.flags.iter().collect();
        flags.sort_by(|left, right| left.name.cmp(&right.name));
        for flag in flags {
            let wide = flag.ranges.iter().map(|&(first, last)| (first.into(), last.into()));
            self.labelled(&flag.name, wide.collect());
        }
        self.end(listed);
    }

    /// A line with a label and its ranges.
    fn labelled(&mut self, label: &str, of: Vec<(i128, i128)>) {
        self.page.newline();
        self.page.begin_line();
        self.page.text(&format!("{label}:{}", ranges(of)));
    }
}

/// Whether an integer is signed.
fn is_signed(class: &FieldClass) -> bool {
    match class {
        FieldClass::Integer(class) | FieldClass::VariableInteger(class) => class.signed,
        FieldClass::Enumeration(class) | FieldClass::VariableEnumeration(class) => class.integer.signed,
        _ => false,
    }
}

/// The values that a tag has a label for.
fn labelled_ranges(tag: &FieldClass, label: &str) -> Vec<(i128, i128)> {
    match tag {
        FieldClass::Enumeration(class) | FieldClass::VariableEnumeration(class) => {
            let mapping = class.mappings.iter().find(|mapping| mapping.label == label);
            mapping.map_or(Vec::new(), |mapping| mapping.ranges.clone())
        }
        _ => Vec::new(),
    }
}

/// Ranges in order, each after a blank.
fn ranges(mut ranges: Vec<(i128, i128)>) -> String {
    ranges.sort_unstable();
    let range = |(first, last): (i128, i128)| match first == last {
        true => format!(" [{}]", decimal(first)),
        false => format!(" [{}, {}]", decimal(first), decimal(last)),
    };
    ranges.into_iter().map(range).collect()
}

fn integer(class: &IntegerClass) -> String {
    let base = match class.base {
        DisplayBase::Binary => 2,
        DisplayBase::Octal => 8,
        DisplayBase::Decimal => 10,
        DisplayBase::Hexadecimal => 16,
    };
    format!("{}-bit, Base {base}", class.size)
}

fn is_text(class: &FieldClass) -> bool {
    matches!(class, FieldClass::Integer(class) if class.size == 8 && class.align == 8 && class.encoding != Encoding::None)
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}
