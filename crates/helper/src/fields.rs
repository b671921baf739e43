//! Fields of a message: numbers in the machine's byte order, and bytes after their number.

/// Reads the fields of a message. Each read gives `None` if the message ends before the field does.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'m>(&'m [u8]);

/// Bytes to which fields are added.
pub trait Text {
    /// Adds bytes after their number, at most `most` of them.
    fn put_bytes(&mut self, bytes: &[u8], most: u16);
}

impl Text for Vec<u8> {
    fn put_bytes(&mut self, bytes: &[u8], most: u16) {
        let len = bytes.len().min(most.into());
        // Not more than `most`.
        self.extend((len as u16).to_ne_bytes());
        self.extend(&bytes[..len]);
    }
}

impl<'m> Fields<'m> {
    /// The fields of a message.
    pub fn of(message: &'m [u8]) -> Self {
        Self(message)
    }

    /// The next `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*array)
    }

    /// A byte.
    pub fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_ne_bytes)
    }

    /// A number of two bytes.
    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_ne_bytes)
    }

    /// A number of four bytes.
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_ne_bytes)
    }

    /// A signed number of four bytes.
    pub fn i32(&mut self) -> Option<i32> {
        self.array().map(i32::from_ne_bytes)
    }

    /// A number of eight bytes.
    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_ne_bytes)
    }

    /// A signed number of eight bytes.
    pub fn i64(&mut self) -> Option<i64> {
        self.array().map(i64::from_ne_bytes)
    }

    /// Bytes after their number, at most `most` of them.
    pub fn bytes(&mut self, most: u16) -> Option<&'m [u8]> {
        let len = self.u16().filter(|len| *len <= most)?;
        let (bytes, rest) = self.0.split_at_checked(len.into())?;
        self.0 = rest;
        Some(bytes)
    }

    /// All bytes that were not read yet.
    pub fn rest(&mut self) -> &'m [u8] {
        std::mem::take(&mut self.0)
    }

    /// Whether all bytes were read: what follows the last field is not part of a valid message.
    pub fn is_end(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_as_they_were_written() {
        let mut message = Vec::new();
        message.push(7);
        message.extend(300_u16.to_ne_bytes());
        message.extend((-5_i64).to_ne_bytes());
        message.put_bytes(b"a name that is too long", 6);
        let mut fields = Fields::of(&message);
        assert_eq!((fields.u8(), fields.u16(), fields.i64()), (Some(7), Some(300), Some(-5)));
        assert!(!fields.is_end());
        assert_eq!((fields.bytes(6), fields.u8()), (Some(&b"a name"[..]), None));
        assert!(fields.is_end());
    }

    #[test]
    fn fields_that_are_cut_off_or_too_long_are_none() {
        let mut message = Vec::new();
        message.put_bytes(b"name", 4);
        assert_eq!(Fields::of(&message).bytes(3), None);
        for len in 0..message.len() {
            assert_eq!(Fields::of(&message[..len]).bytes(4), None);
        }
        assert_eq!(Fields::of(&[0; 7]).u64(), None);
    }
}
