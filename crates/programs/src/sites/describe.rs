//! Reads sites, classes and fields from memory, in the layouts of `tracewing_abi` (`site::Site`,
//! `schema::Class`, `schema::Field`). A text or a slice is stored as an address and a length, 8 bytes each.

use std::collections::HashMap;
use std::mem::offset_of;
use std::sync::Arc;

use tracewing_abi::schema::{self, Base, Label, Level, MAJORS, Scalar, Shape};
use tracewing_abi::site::{self, Kind};

use crate::image::{Image, Place, byte, half_word, word};
use crate::sites::site::{Class, Field};

/// Maximum number of bytes of all descriptions together: a hundred thousand classes have less.
const MOST_BYTES: usize = 128 << 20;
/// Maximum number of bytes of a text, fields of a class and labels of a field: the limit of messages to a
/// recorder.
const MOST_TEXT: u64 = u16::MAX as u64;
const MOST_FIELDS: u64 = u8::MAX as u64;
const MOST_LABELS: u64 = u16::MAX as u64;

const SITE_CLASS: u64 = offset_of!(site::Site, class) as u64;
const SITE_FILE: u64 = offset_of!(site::Site, file) as u64;
const SITE_LINE: u64 = offset_of!(site::Site, line) as u64;
const SITE_KIND: u64 = offset_of!(site::Site, kind) as u64;
const CLASS_NAME: u64 = offset_of!(schema::Class<'static>, name) as u64;
const CLASS_LEVEL: u64 = offset_of!(schema::Class<'static>, level) as u64;
const CLASS_MAJOR: u64 = offset_of!(schema::Class<'static>, major) as u64;
const CLASS_DESCRIPTION: u64 = offset_of!(schema::Class<'static>, description) as u64;
const CLASS_PRINT: u64 = offset_of!(schema::Class<'static>, print) as u64;
const CLASS_FILE: u64 = offset_of!(schema::Class<'static>, file) as u64;
const CLASS_LINE: u64 = offset_of!(schema::Class<'static>, line) as u64;
const CLASS_FIELDS: u64 = offset_of!(schema::Class<'static>, fields) as u64;
const FIELD_NAME: u64 = offset_of!(schema::Field<'static>, name) as u64;
const FIELD_SHAPE: u64 = offset_of!(schema::Field<'static>, shape) as u64;
const FIELD_SCALAR: u64 = offset_of!(schema::Field<'static>, scalar) as u64;
const FIELD_LENGTH: u64 = offset_of!(schema::Field<'static>, length) as u64;
const FIELD_BASE: u64 = offset_of!(schema::Field<'static>, base) as u64;
const FIELD_UNIT: u64 = offset_of!(schema::Field<'static>, unit) as u64;
const FIELD_LABELS: u64 = offset_of!(schema::Field<'static>, labels) as u64;
const FIELD_SIZE: u64 = size_of::<schema::Field<'static>>() as u64;
const LABEL_VALUE: u64 = offset_of!(Label<'static>, 0) as u64;
const LABEL_NAME: u64 = offset_of!(Label<'static>, 1) as u64;
const LABEL_SIZE: u64 = size_of::<Label<'static>>() as u64;

/// Reads descriptions, each class once.
pub(crate) struct Reader<'a> {
    image: &'a dyn Image,
    classes: HashMap<Place, Result<Arc<Class>, &'static str>>,
    /// Remaining bytes for descriptions.
    left: usize,
}

/// The contents of a `site::Site`.
pub(crate) struct Described {
    pub class: Arc<Class>,
    pub kind: Kind,
    pub file: String,
    pub line: u32,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(image: &'a dyn Image) -> Self {
        Self { image, classes: HashMap::new(), left: MOST_BYTES }
    }

    /// The site at a place, or the part of it that cannot be read.
    pub(crate) fn site(&mut self, at: Place) -> Result<Described, &'static str> {
        let class = self.image.pointer(at.plus(SITE_CLASS)).ok_or("address of the event class")?;
        let file = self.text(at.plus(SITE_FILE)).ok_or("source file")?;
        let line = half_word(self.image, at.plus(SITE_LINE)).ok_or("source line")?;
        let kind = half_word(self.image, at.plus(SITE_KIND));
        let kind = [Kind::Event, Kind::Callback].into_iter().find(|known| Some(*known as u32) == kind);
        let kind = kind.ok_or("kind")?;
        let class = match self.classes.get(&class) {
            Some(known) => known.clone(),
            None => {
                let read = self.class(class).map(Arc::new);
                self.take(size_of::<Class>()).ok_or("event class, since there are too many")?;
                self.classes.insert(class, read.clone());
                read
            }
        }?;
        Ok(Described { class, kind, file, line })
    }

    fn class(&mut self, at: Place) -> Result<Class, &'static str> {
        let image = self.image;
        let level = byte(image, at.plus(CLASS_LEVEL)).and_then(Level::from_number).ok_or("level")?;
        let major = byte(image, at.plus(CLASS_MAJOR)).filter(|major| *major < MAJORS).ok_or("major class")?;
        let mut class = Class {
            name: self.text(at.plus(CLASS_NAME)).ok_or("name")?,
            level,
            major,
            description: self.text(at.plus(CLASS_DESCRIPTION)).ok_or("description")?,
            print: self.text(at.plus(CLASS_PRINT)).ok_or("print form")?,
            file: self.text(at.plus(CLASS_FILE)).ok_or("file of the declaration")?,
            line: half_word(image, at.plus(CLASS_LINE)).ok_or("line of the declaration")?,
            fields: Vec::new(),
        };
        let (fields, count) = self.slice(at.plus(CLASS_FIELDS), MOST_FIELDS).ok_or("fields")?;
        for index in 0..count {
            class.fields.push(self.field(fields.plus(index * FIELD_SIZE)).ok_or("fields")?);
        }
        Ok(class)
    }

    fn field(&mut self, at: Place) -> Option<Field> {
        let image = self.image;
        self.take(size_of::<Field>())?;
        let mut field = Field {
            name: self.text(at.plus(FIELD_NAME))?,
            shape: Shape::from_number(byte(image, at.plus(FIELD_SHAPE))?)?,
            scalar: Scalar::from_number(byte(image, at.plus(FIELD_SCALAR))?)?,
            length: half_word(image, at.plus(FIELD_LENGTH))?,
            base: Base::from_number(byte(image, at.plus(FIELD_BASE))?)?,
            unit: self.text(at.plus(FIELD_UNIT))?,
            labels: Vec::new(),
        };
        let (labels, count) = self.slice(at.plus(FIELD_LABELS), MOST_LABELS)?;
        for index in 0..count {
            let label = labels.plus(index * LABEL_SIZE);
            self.take(size_of::<(u64, String)>())?;
            field.labels.push((word(image, label.plus(LABEL_VALUE))?, self.text(label.plus(LABEL_NAME))?));
        }
        Some(field)
    }

    /// A text; bytes that are not UTF-8 are replaced.
    fn text(&mut self, at: Place) -> Option<String> {
        let (address, length) = self.slice(at, MOST_TEXT)?;
        let length = usize::try_from(length).ok()?;
        self.take(length)?;
        let mut bytes = vec![0; length];
        if length > 0 {
            self.image.read(address, &mut bytes)?;
        }
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Address and length of a slice. The address of an empty one may point anywhere.
    fn slice(&self, at: Place, most: u64) -> Option<(Place, u64)> {
        let length = word(self.image, at.plus(8)).filter(|length| *length <= most)?;
        if length == 0 {
            return Some((at, 0));
        }
        Some((self.image.pointer(at)?, length))
    }

    fn take(&mut self, bytes: usize) -> Option<()> {
        self.left = self.left.checked_sub(bytes)?;
        Some(())
    }
}
