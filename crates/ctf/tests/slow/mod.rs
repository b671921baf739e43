//! A decoder that follows the specification field by field and bit by bit, and shares no code with the one it
//! checks: classes of its own, printed as metadata of either version; a walk that first writes random packets
//! and then reads them.

mod print;

pub use print::{json, tsdl};
use tracewing_units::Cycles;

/// SplitMix64.
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `most`.
    pub fn below(&mut self, most: u64) -> u64 {
        self.next() % most
    }
}

/// A fixed-length integer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Int {
    pub size: u64,
    pub align: u64,
    pub signed: bool,
    pub mark: Mark,
}

/// What an integer means to the reader.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mark {
    None,
    /// Text, in arrays.
    Text,
    Magic,
    Stamp,
    Id,
    Content,
    Packet,
}

#[derive(Debug, Clone)]
pub enum Class {
    Int(Int),
    /// Labels with the first and last value of each.
    Enum(Int, Vec<(&'static str, u64, u64)>),
    /// Size and alignment.
    Float(u64, u64),
    String,
    Struct(Struct),
    Array(Box<Class>, u64),
    /// With the name of its length.
    Sequence(Box<Class>, String),
    /// The tag's name, and the options with the tag values that select them.
    Variant(String, Vec<(&'static str, Class, (u64, u64))>),
    /// LEB128, signed or not (CTF 2).
    Variable(bool),
    /// The selector's name, and the values with which the field is there (CTF 2).
    Optional(String, (u64, u64), Box<Class>),
    /// So many bytes (CTF 2).
    Blob(u64),
}

#[derive(Debug, Clone, Default)]
pub struct Struct {
    pub align: u64,
    pub members: Vec<(String, Class)>,
}

/// An event record class.
#[derive(Debug, Clone)]
pub struct Event {
    pub id: u64,
    pub context: Option<Struct>,
    pub payload: Struct,
}

#[derive(Debug, Clone)]
pub struct Trace {
    pub big: bool,
    /// babeltrace2 2.0 shows an empty text as the text that was in the field before.
    pub has_empty_texts: bool,
    /// Whether it has classes that CTF 1.8 lacks.
    pub is_ctf2: bool,
    pub packet_header: Struct,
    pub packet_context: Struct,
    pub header: Struct,
    pub context: Option<Struct>,
    pub events: Vec<Event>,
}

pub fn uint(size: u64, align: u64) -> Int {
    Int { size, align, signed: false, mark: Mark::None }
}

impl Int {
    pub fn marked(self, mark: Mark) -> Class {
        Class::Int(Int { mark, ..self })
    }
}

impl Struct {
    pub fn new(members: impl IntoIterator<Item = (&'static str, Class)>) -> Self {
        let members = members.into_iter().map(|(name, class)| (name.to_owned(), class)).collect();
        Struct { align: 1, members }
    }

    pub fn aligned(self, align: u64) -> Self {
        Struct { align, ..self }
    }

    /// Whether an option of a variant in it has an id.
    fn has_second_id(&self) -> bool {
        let is_id = |(_, class): &(String, Class)| matches!(class, Class::Int(Int { mark: Mark::Id, .. }));
        let has_id = |class: &Class| matches!(class, Class::Struct(class) if class.members.iter().any(is_id));
        self.members.iter().any(|(_, class)| {
            matches!(class, Class::Variant(_, options) if options.iter().any(|(_, class, _)| has_id(class)))
        })
    }

    /// The largest of its own alignment and its members' (4.2.1).
    fn alignment(&self) -> u64 {
        self.members.iter().map(|(_, class)| class.alignment()).fold(self.align, u64::max)
    }
}

impl Class {
    /// Sections 4.1.2 to 4.2.5; a variant has none of its own.
    pub fn alignment(&self) -> u64 {
        match self {
            Class::Int(int) | Class::Enum(int, _) => int.align,
            Class::Float(_, align) => *align,
            Class::String | Class::Variable(_) | Class::Blob(_) => 8,
            Class::Struct(class) => class.alignment(),
            Class::Array(element, _) | Class::Sequence(element, _) => element.alignment(),
            Class::Variant(..) | Class::Optional(..) => 1,
        }
    }
}

/// An event record as a reader is to show it.
#[derive(Debug, Clone, PartialEq)]
pub struct Shown {
    pub id: u64,
    pub stamp: Cycles,
    pub fields: Vec<String>,
}

/// A walk over one packet: with random numbers it writes, without it reads.
pub struct Packet<'t> {
    trace: &'t Trace,
    pub bytes: Vec<u8>,
    at: u64,
    random: Option<Rng>,
    /// The id that the next written event record gets, and whether headers have room for a second one.
    id: u64,
    has_second_id: bool,
    stamp: u64,
    read_id: u64,
    content: u64,
    fields: Vec<String>,
    /// The latest value of each field that a length or a tag may name.
    values: Vec<(String, u64)>,
    /// Where the sizes of content and packet are, to be filled in.
    sizes: Vec<(u64, Int)>,
}

impl<'t> Packet<'t> {
    fn new(trace: &'t Trace, bytes: Vec<u8>, random: Option<Rng>) -> Self {
        Packet {
            trace,
            bytes,
            at: 0,
            random,
            id: 0,
            has_second_id: trace.header.has_second_id(),
            stamp: 0,
            read_id: 0,
            content: 0,
            fields: Vec::new(),
            values: Vec::new(),
            sizes: Vec::new(),
        }
    }

    /// Writes a packet with this number of event records and bytes of padding. Its stamps come after the
    /// clock and advance it.
    pub fn write(trace: &'t Trace, seed: u64, events: u64, padding: usize, clock: &mut u64) -> Vec<u8> {
        let mut packet = Packet::new(trace, Vec::new(), Some(Rng(seed)));
        packet.stamp = *clock;
        packet.scope(&trace.packet_header);
        packet.scope(&trace.packet_context);
        for _ in 0..events {
            packet.event();
        }
        let content = packet.at;
        packet.bytes.resize(packet.bytes.len() + padding, 0xa5);
        let size = packet.bytes.len() as u64 * 8;
        for (at, int) in std::mem::take(&mut packet.sizes) {
            packet.put(at, int.size, if int.mark == Mark::Content { content } else { size });
        }
        *clock = packet.stamp;
        packet.bytes
    }

    /// Reads a packet's event records; the clock is what the packets before have left.
    pub fn read(trace: &'t Trace, bytes: &[u8], clock: &mut u64) -> Vec<Shown> {
        let mut packet = Packet::new(trace, bytes.to_vec(), None);
        packet.stamp = *clock;
        packet.scope(&trace.packet_header);
        packet.scope(&trace.packet_context);
        let mut events = Vec::new();
        while packet.at < packet.content {
            packet.fields.clear();
            packet.event();
            let fields = std::mem::take(&mut packet.fields);
            events.push(Shown { id: packet.read_id, stamp: Cycles(packet.stamp), fields });
        }
        *clock = packet.stamp;
        events
    }

    fn event(&mut self) {
        let trace = self.trace;
        if let Some(random) = &mut self.random {
            self.id = trace.events[random.below(trace.events.len() as u64) as usize].id;
        }
        self.scope(&trace.header);
        self.fields.clear();
        let id = if self.random.is_some() { self.id } else { self.read_id };
        let event = trace.events.iter().find(|event| event.id == id).expect("an event of this id");
        for scope in [&trace.context, &event.context, &Some(event.payload.clone())].into_iter().flatten() {
            self.scope(scope);
        }
    }

    fn scope(&mut self, class: &Struct) {
        self.align(class.alignment());
        self.members(class);
    }

    fn members(&mut self, class: &Struct) {
        for (name, class) in &class.members {
            self.field(Some(name), class);
        }
    }

    fn field(&mut self, name: Option<&str>, class: &Class) {
        self.align(class.alignment());
        let label = name.unwrap_or("-").to_owned();
        match class {
            Class::Int(int) | Class::Enum(int, _) => {
                let value = self.integer(&label, *int);
                let text = match int.signed && value >> (int.size - 1) == 1 {
                    true => (i128::from(value) - (1_i128 << int.size)).to_string(),
                    false => value.to_string(),
                };
                self.fields.push(format!("{label} = {text}"));
            }
            Class::Float(size, _) => {
                let bits = self.number(*size, |random| random.next());
                self.fields.push(format!("{label} = float {bits:x}"));
            }
            Class::String => {
                let mut text = Vec::new();
                loop {
                    let byte = self.character(text.is_empty(), false);
                    if byte == 0 {
                        break;
                    }
                    text.push(byte as u8);
                }
                self.fields.push(format!("{label} = {text:?}"));
            }
            Class::Variable(signed) => {
                let value = self.variable(*signed);
                self.fields.push(format!("{label} = {value}"));
            }
            Class::Optional(selector, (low, high), class) => {
                let present = (*low..=*high).contains(&self.value(selector));
                self.fields.push(format!("{label} = ?{present}"));
                if present {
                    self.field(name, class);
                }
                self.fields.push("?".to_owned());
            }
            Class::Blob(length) => {
                let bytes: Vec<u64> = (0..*length).map(|_| self.number(8, Rng::next)).collect();
                self.fields.push(format!("{label} = Blob({bytes:?})"));
            }
            Class::Struct(class) => {
                self.fields.push(format!("{label} = {{"));
                self.members(class);
                self.fields.push("}".to_owned());
            }
            Class::Array(element, length) => self.array(&label, element, *length),
            Class::Sequence(element, length) => {
                let length = self.value(length);
                self.array(&label, element, length);
            }
            Class::Variant(tag, options) => {
                let tag = self.value(tag);
                let selected = options.iter().find(|(_, _, (low, high))| (*low..=*high).contains(&tag));
                let (option, class, _) = selected.expect("an option for each value of the tag");
                self.fields.push(format!("{label} = <{option}"));
                self.field(Some(option), class);
                self.fields.push(">".to_owned());
            }
        }
    }

    fn array(&mut self, label: &str, element: &Class, length: u64) {
        if let Class::Int(Int { mark: Mark::Text, .. }) = element {
            // After the first null there are only nulls: readers differ in what they make of others.
            let mut text = Vec::new();
            for _ in 0..length {
                let ended = text.last() == Some(&0);
                text.push(self.character(text.is_empty(), ended));
            }
            text.retain(|byte| *byte != 0);
            return self.fields.push(format!("{label} = {text:?}"));
        }
        self.fields.push(format!("{label} = [{length}"));
        for _ in 0..length {
            self.field(None, element);
        }
        self.fields.push("]".to_owned());
    }

    /// Seven bits a byte, the least significant first, up to a byte without its highest bit.
    fn variable(&mut self, signed: bool) -> i128 {
        let (mut value, mut bits) = (0_i128, 0);
        loop {
            let mask = if bits < 49 { 0xFF } else { 0x7F };
            let byte = self.number(8, |random| random.next() & mask);
            value |= i128::from(byte & 0x7F) << bits;
            bits += 7;
            if byte & 0x80 == 0 {
                let negative = signed && byte & 0x40 != 0;
                return if negative { value - (1 << bits) } else { value };
            }
        }
    }

    /// A byte of a text, the first one or not; null where it has ended.
    fn character(&mut self, first: bool, ended: bool) -> u64 {
        let may_end = self.trace.has_empty_texts || !first;
        self.number(8, |random| match random.below(6) {
            _ if ended => 0,
            0 if may_end => 0,
            _ => 97 + random.below(26),
        })
    }

    fn integer(&mut self, name: &str, int: Int) -> u64 {
        let (at, id, stamp) = (self.at, self.id, self.stamp);
        let may_be_extended = self.has_second_id && int.size < 32;
        let value = self.number(int.size, |random| match int.mark {
            Mark::Magic => 0xC1FC_1FC1,
            // The id of a compact header, or the value that says that the real one follows.
            Mark::Id if may_be_extended && (random.below(3) == 0 || id >= (1 << int.size) - 1) => {
                (1 << int.size) - 1
            }
            Mark::Id => id,
            Mark::Stamp if int.size == 64 => stamp + random.below(1 << 30),
            _ => random.next() >> random.below(64),
        });
        match int.mark {
            Mark::Id => self.read_id = value,
            Mark::Content | Mark::Packet => {
                self.sizes.push((at, int));
                if int.mark == Mark::Content {
                    self.content = value;
                }
            }
            // The low bits of the clock, which has wrapped at most once (section 8).
            Mark::Stamp if int.size == 64 => self.stamp = value,
            Mark::Stamp => {
                let before = self.stamp;
                self.stamp = (before >> int.size << int.size) | value;
                if self.stamp < before {
                    self.stamp = self.stamp.wrapping_add(1 << int.size);
                }
            }
            Mark::None | Mark::Text | Mark::Magic => {}
        }
        self.values.push((name.to_owned(), value));
        value
    }

    fn value(&self, name: &str) -> u64 {
        self.values.iter().rev().find(|(other, _)| other == name).expect("an earlier field").1
    }

    fn align(&mut self, align: u64) {
        self.at = self.at.next_multiple_of(align);
        if self.random.is_some() {
            self.bytes.resize((self.at as usize).div_ceil(8).max(self.bytes.len()), 0xa5);
        }
    }

    /// Reads a number of this many bits, after writing `make`'s number at the same position.
    fn number(&mut self, size: u64, make: impl FnOnce(&mut Rng) -> u64) -> u64 {
        let at = self.at;
        if let Some(random) = &mut self.random {
            let value = make(random);
            self.put(at, size, value);
        }
        self.at += size;
        (0..size).fold(0, |value, bit| {
            let byte = self.bytes[((at + bit) / 8) as usize];
            match self.trace.big {
                false => value | u64::from(byte >> ((at + bit) % 8) & 1) << bit,
                true => value << 1 | u64::from(byte >> (7 - (at + bit) % 8) & 1),
            }
        })
    }

    fn put(&mut self, at: u64, size: u64, value: u64) {
        for bit in 0..size {
            let place = ((at + bit) / 8) as usize;
            self.bytes.resize(self.bytes.len().max(place + 1), 0xa5);
            let (one, shift) = match self.trace.big {
                false => (value >> bit & 1, (at + bit) % 8),
                true => (value >> (size - 1 - bit) & 1, 7 - (at + bit) % 8),
            };
            self.bytes[place] = self.bytes[place] & !(1 << shift) | (one as u8) << shift;
        }
    }
}
