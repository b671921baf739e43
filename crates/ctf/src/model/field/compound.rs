//! Field classes that contain others: structures, arrays, optionals and variants.

use std::sync::Arc;

use super::FieldClass;
use crate::model::{Attributes, FieldLocation, Place, Role};

/// Named members, one after the other.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StructureClass {
    /// Least alignment in bits; 0 or 1 for none.
    pub min_align: u32,
    /// The members; their names differ.
    pub members: Vec<Member>,
    /// User attributes.
    pub attributes: Attributes,
}

impl StructureClass {
    /// A structure without members.
    pub fn new() -> Self {
        StructureClass::default()
    }

    /// Adds a member.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, class: impl Into<FieldClass>) -> Self {
        self.members.push(Member::new(name, class));
        self
    }

    /// Alignment in bits of the first member: the largest that a member or the declaration asks for.
    pub fn alignment(&self) -> u32 {
        self.members.iter().map(|member| member.class.alignment()).fold(self.min_align.max(1), u32::max)
    }

    /// The member called `name`.
    pub fn member(&self, name: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.name == name)
    }

    /// The size in bits of the first integer with this role, however deep.
    pub(crate) fn role_bits(&self, role: Role) -> Option<u32> {
        fn search(class: &FieldClass, role: Role) -> Option<u32> {
            match class {
                FieldClass::Integer(class) | FieldClass::VariableInteger(class) => {
                    class.roles.has(role).then_some(class.size)
                }
                FieldClass::Enumeration(class) | FieldClass::VariableEnumeration(class) => {
                    class.integer.roles.has(role).then_some(class.integer.size)
                }
                FieldClass::Structure(class) => class.role_bits(role),
                FieldClass::StaticArray(class) => search(&class.element, role),
                FieldClass::DynamicArray(class) => search(&class.element, role),
                FieldClass::Optional(class) => search(&class.class, role),
                FieldClass::Variant(class) => {
                    class.options.iter().find_map(|option| search(&option.class, role))
                }
                _ => None,
            }
        }
        self.members.iter().find_map(|member| search(&member.class, role))
    }
}

impl From<StructureClass> for FieldClass {
    fn from(class: StructureClass) -> Self {
        FieldClass::Structure(Arc::new(class))
    }
}

/// A member of a structure.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// The name shown to people; TSDL's protecting underscore is not part of it.
    pub name: String,
    /// The field class.
    pub class: FieldClass,
    /// User attributes.
    pub attributes: Attributes,
    /// Where it is declared.
    pub place: Place,
}

impl Member {
    /// A member without attributes.
    pub fn new(name: impl Into<String>, class: impl Into<FieldClass>) -> Self {
        Member {
            name: name.into(),
            class: class.into(),
            attributes: Attributes::default(),
            place: Place::default(),
        }
    }
}

/// A known number of elements.
#[derive(Debug, Clone, PartialEq)]
pub struct StaticArrayClass {
    /// Number of elements.
    pub length: u64,
    /// The field class of each element.
    pub element: FieldClass,
    /// Least alignment in bits of the first element; 0 or 1 for that of an element.
    pub min_align: u32,
    /// User attributes.
    pub attributes: Attributes,
}

impl StaticArrayClass {
    /// `length` elements, aligned as each is.
    pub fn new(length: u64, element: impl Into<FieldClass>) -> Self {
        let element = element.into();
        StaticArrayClass { length, element, min_align: 0, attributes: Attributes::default() }
    }
}

/// As many elements as an earlier field says.
#[derive(Debug, Clone, PartialEq)]
pub struct DynamicArrayClass {
    /// An earlier unsigned integer field.
    pub length: FieldLocation,
    /// What each element is.
    pub element: FieldClass,
    /// Least alignment in bits of the first element; 0 or 1 for that of an element.
    pub min_align: u32,
    /// User attributes.
    pub attributes: Attributes,
}

impl DynamicArrayClass {
    /// As many elements as the field at `length` says, aligned as each is.
    pub fn new(length: impl Into<FieldLocation>, element: impl Into<FieldClass>) -> Self {
        let (length, element) = (length.into(), element.into());
        DynamicArrayClass { length, element, min_align: 0, attributes: Attributes::default() }
    }
}

/// A field that is there or not, as an earlier field says (CTF 2).
#[derive(Debug, Clone, PartialEq)]
pub struct OptionalClass {
    /// An earlier boolean or integer field.
    pub selector: FieldLocation,
    /// The selector's values for which the field is there; empty where the selector is a boolean.
    pub ranges: Vec<(i128, i128)>,
    /// Class of the field, if it is there.
    pub class: FieldClass,
    /// User attributes.
    pub attributes: Attributes,
}

impl OptionalClass {
    /// A field that is there while the boolean field at `selector` is true.
    pub fn new(selector: impl Into<FieldLocation>, class: impl Into<FieldClass>) -> Self {
        let (selector, class) = (selector.into(), class.into());
        OptionalClass { selector, ranges: Vec::new(), class, attributes: Attributes::default() }
    }
}

impl From<OptionalClass> for FieldClass {
    fn from(class: OptionalClass) -> Self {
        FieldClass::Optional(Arc::new(class))
    }
}

/// One of several options, chosen by an earlier field.
#[derive(Debug, Clone, PartialEq)]
pub struct VariantClass {
    /// An earlier enumeration (TSDL: tag) or integer field (CTF 2: selector).
    pub tag: FieldLocation,
    /// The options, in order of declaration.
    pub options: Vec<VariantOption>,
    /// User attributes.
    pub attributes: Attributes,
}

/// An option of a variant.
#[derive(Debug, Clone, PartialEq)]
pub struct VariantOption {
    /// The name shown to people. TSDL: the label of the tag that selects it, even where
    /// [`ranges`](Self::ranges) say it; CTF 2 may have none, which is empty here.
    pub name: String,
    /// The tag's values that select it. Empty (as TSDL has it) for those that have the label `name`.
    pub ranges: Vec<(i128, i128)>,
    /// The field class.
    pub class: FieldClass,
    /// User attributes.
    pub attributes: Attributes,
    /// Where it is declared.
    pub place: Place,
}

impl VariantOption {
    /// An option that the tag's label `name` selects.
    pub fn new(name: impl Into<String>, class: impl Into<FieldClass>) -> Self {
        let (name, class) = (name.into(), class.into());
        VariantOption {
            name,
            ranges: Vec::new(),
            class,
            attributes: Attributes::default(),
            place: Place::default(),
        }
    }
}

impl VariantClass {
    /// A variant without options.
    pub fn new(tag: impl Into<FieldLocation>) -> Self {
        VariantClass { tag: tag.into(), options: Vec::new(), attributes: Attributes::default() }
    }

    /// Adds an option that the tag's label `name` selects.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, class: impl Into<FieldClass>) -> Self {
        self.options.push(VariantOption::new(name, class));
        self
    }
}

impl From<VariantClass> for FieldClass {
    fn from(class: VariantClass) -> Self {
        FieldClass::Variant(Arc::new(class))
    }
}
