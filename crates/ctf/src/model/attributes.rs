//! User attributes: what CTF 2 metadata says about a class that readers need not know (CTF2-SPEC-2.0, user
//! attributes).

use std::sync::Arc;

/// A JSON value.
#[derive(Debug, Clone, PartialEq)]
pub enum Attribute {
    /// `null`
    Null,
    /// `true` or `false`
    Boolean(bool),
    /// A number without fraction that an `i64` holds.
    Integer(i64),
    /// A number without fraction that only a `u64` holds.
    Unsigned(u64),
    /// Any other number.
    Real(f64),
    /// A string.
    String(String),
    /// An array.
    Array(Vec<Attribute>),
    /// An object, in the order of the text.
    Map(Vec<(String, Attribute)>),
}

impl From<&str> for Attribute {
    fn from(text: &str) -> Self {
        Attribute::String(text.to_owned())
    }
}

impl From<u64> for Attribute {
    fn from(number: u64) -> Self {
        i64::try_from(number).map_or(Attribute::Unsigned(number), Attribute::Integer)
    }
}

/// JSON numbers are finite, so that each equals itself.
impl Eq for Attribute {}

/// User attributes by namespace; empty for most classes, and cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Attributes(Option<Arc<Vec<(String, Attribute)>>>);

impl Attributes {
    /// Attributes in this order; namespaces differ.
    pub fn new(namespaces: Vec<(String, Attribute)>) -> Self {
        Attributes((!namespaces.is_empty()).then(|| Arc::new(namespaces)))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Namespaces and what stands under each, in the order of the text.
    pub fn namespaces(&self) -> &[(String, Attribute)] {
        self.0.as_ref().map_or(&[], |namespaces| namespaces)
    }

    /// The value of `key` under `namespace`.
    pub fn get(&self, namespace: &str, key: &str) -> Option<&Attribute> {
        let (_, found) = self.namespaces().iter().find(|(name, _)| name == namespace)?;
        match found {
            Attribute::Map(entries) => entries.iter().find(|(name, _)| name == key).map(|(_, value)| value),
            _ => None,
        }
    }
}
