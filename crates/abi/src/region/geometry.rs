//! The shape of a region, and what positions in it mean.

use super::{
    CONTROL, MAGIC, MAX_CPUS, MAX_SUB_BUFFER, MAX_SUB_BUFFERS, MIN_SUB_BUFFER, Mode, PAGE, RegionHeader,
    ShapeFault, VERSION,
};

/// The shape of a region, and what positions in it mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    cpus: u32,
    sub_buffers: u32,
    sub_buffer_bytes: u32,
    mode: Mode,
    /// log2 of [`Geometry::data_bytes`], which every access to a position needs.
    data_bits: u32,
}

impl Geometry {
    /// `cpus` buffers of `sub_buffers` sub-buffers of `sub_buffer_bytes` bytes, in discard mode.
    ///
    /// # Errors
    /// What is wrong with a number: not a power of two, or outside its bounds ([`MAX_CPUS`]; 2 to
    /// [`MAX_SUB_BUFFERS`]; [`MIN_SUB_BUFFER`] to [`MAX_SUB_BUFFER`]).
    pub fn new(cpus: usize, sub_buffers: usize, sub_buffer_bytes: usize) -> Result<Self, ShapeFault> {
        if !(1..=MAX_CPUS).contains(&cpus) {
            return Err(ShapeFault::Cpus);
        }
        if !sub_buffers.is_power_of_two() || !(2..=MAX_SUB_BUFFERS).contains(&sub_buffers) {
            return Err(ShapeFault::SubBuffers);
        }
        if !sub_buffer_bytes.is_power_of_two()
            || !(MIN_SUB_BUFFER..=MAX_SUB_BUFFER).contains(&sub_buffer_bytes)
        {
            return Err(ShapeFault::SubBufferBytes);
        }
        Ok(Self {
            cpus: cpus as u32,
            sub_buffers: sub_buffers as u32,
            sub_buffer_bytes: sub_buffer_bytes as u32,
            mode: Mode::Discard,
            data_bits: (sub_buffers * sub_buffer_bytes).trailing_zeros(),
        })
    }

    /// The same in overwrite mode, with one more sub-buffer per CPU: the reader's.
    pub fn overwriting(self) -> Self {
        // N + 1 sub-buffers, rounded up to 2 N.
        Self { mode: Mode::Overwrite, data_bits: self.capacity().trailing_zeros() + 1, ..self }
    }

    /// The shape that a header claims, checked against the size of the mapping it was found in.
    ///
    /// # Errors
    /// The header contradicts itself, or does not fit the mapping.
    pub fn of_header(header: &RegionHeader, mapped: usize) -> Result<Self, ShapeFault> {
        if header.magic != MAGIC {
            return Err(ShapeFault::NoRegion);
        }
        if header.version != VERSION {
            return Err(ShapeFault::Version);
        }
        let mode = Mode::from_number(header.mode).ok_or(ShapeFault::Mode)?;
        let this =
            Self::new(header.cpus as usize, header.sub_buffers as usize, header.sub_buffer_bytes as usize)?;
        let this = if mode == Mode::Overwrite { this.overwriting() } else { this };
        if this.size() != mapped || header.size != mapped as u64 || header.stride != this.stride() as u64 {
            return Err(ShapeFault::Size);
        }
        Ok(this)
    }

    /// Number of CPU buffers.
    pub fn cpus(&self) -> usize {
        self.cpus as usize
    }

    /// N, slots of a CPU's buffer.
    pub fn sub_buffers(&self) -> usize {
        self.sub_buffers as usize
    }

    /// S, bytes.
    pub fn sub_buffer_bytes(&self) -> usize {
        self.sub_buffer_bytes as usize
    }

    /// What a full buffer loses.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Sub-buffers of a CPU's data: N, and the reader's in overwrite mode.
    pub fn physical_sub_buffers(&self) -> usize {
        match self.mode {
            Mode::Discard => self.sub_buffers(),
            Mode::Overwrite => self.sub_buffers() + 1,
        }
    }

    /// N * S: bytes of events and headers that a CPU's buffer keeps.
    pub fn capacity(&self) -> usize {
        self.sub_buffers() * self.sub_buffer_bytes()
    }

    /// P * S, bytes of one CPU's data in the mapping. In overwrite mode those after the last sub-buffer are
    /// never touched; they keep whatever position a damaged word claims inside the CPU's own data.
    pub fn data_bytes(&self) -> usize {
        1 << self.data_bits
    }

    /// Bytes from one CPU's control page to the next one's.
    pub fn stride(&self) -> usize {
        CONTROL + self.data_bytes()
    }

    /// Offset of a CPU's control page in the region. The CPU's data follow [`CONTROL`] bytes later.
    pub fn control_offset(&self, cpu: usize) -> usize {
        PAGE + cpu * self.stride()
    }

    /// Bytes of the whole region.
    pub fn size(&self) -> usize {
        self.control_offset(self.cpus())
    }

    /// Largest event, bytes from its header to its end: half a sub-buffer, or what 16 bits can say.
    pub fn largest_event(&self) -> usize {
        (self.sub_buffer_bytes() / 2).min(u16::MAX as usize)
    }

    /// The position `at` bytes into sub-buffer number `sequence`, which is the data's sub-buffer `physical`.
    /// Cut off to what the fields hold.
    pub fn position(&self, sequence: u64, physical: usize, at: usize) -> u64 {
        let offset = (physical * self.sub_buffer_bytes() + at) & (self.data_bytes() - 1);
        (sequence << self.sequence_shift()) | offset as u64
    }

    /// The number of a position's sub-buffer.
    pub fn sequence(&self, position: u64) -> u64 {
        position >> self.sequence_shift()
    }

    /// The index of a position's sub-buffer in the data, below [`Geometry::physical_sub_buffers`] rounded up
    /// to a power of two.
    pub fn physical(&self, position: u64) -> usize {
        (position as usize & (self.data_bytes() - 1)) >> self.sub_buffer_bytes.trailing_zeros()
    }

    /// A position's offset in its sub-buffer; 0 where that is not opened.
    pub fn at(&self, position: u64) -> usize {
        position as usize & (self.sub_buffer_bytes() - 1)
    }

    /// The sub-buffer number that is `by` (modulo 2^64) after `sequence`; numbers wrap around.
    pub fn later(&self, sequence: u64, by: u64) -> u64 {
        sequence.wrapping_add(by) & (u64::MAX >> self.sequence_shift())
    }

    /// How many sub-buffers lie from number `from` to number `to`: negative when `to` is older.
    pub fn distance(&self, from: u64, to: u64) -> i64 {
        let shift = self.sequence_shift();
        (to.wrapping_sub(from) << shift) as i64 >> shift
    }

    /// The table's index of a sub-buffer number.
    pub fn entry(&self, sequence: u64) -> usize {
        sequence as usize & (self.sub_buffers() - 1)
    }

    /// A slot's commit count when everything before sub-buffer `sequence` is committed, and nothing of it.
    pub fn commit_count(&self, sequence: u64) -> u64 {
        (sequence >> self.sub_buffers.trailing_zeros()) << self.sub_buffer_bytes.trailing_zeros()
    }

    /// Bytes of sub-buffer `sequence` that are committed when its slot's count is `count`; more than S, and
    /// rather 2^40, while an earlier one is not complete. Numbers wrap around earlier than counts do, so the
    /// count's upper bits are cut off (002, section 4.2: "both sides of the equation overflow at the same
    /// value").
    pub fn committed(&self, count: u64, sequence: u64) -> u64 {
        let unused = self.sequence_shift() + self.sub_buffers.trailing_zeros()
            - self.sub_buffer_bytes.trailing_zeros();
        count.wrapping_sub(self.commit_count(sequence)) << unused >> unused
    }

    fn sequence_shift(&self) -> u32 {
        self.data_bits
    }
}

#[cfg(test)]
mod tests {
    use super::super::Reference;
    use super::*;

    fn geometries() -> impl Iterator<Item = Geometry> {
        let sizes = [(2, 256), (8, 1 << 19), (256, 256), (2, MAX_SUB_BUFFER), (256, MAX_SUB_BUFFER)];
        sizes.into_iter().flat_map(|(n, s)| {
            let discard = Geometry::new(2, n, s).unwrap();
            [discard, discard.overwriting()]
        })
    }

    #[test]
    fn positions_come_apart_again() {
        for geometry in geometries() {
            let newest = geometry.later(0, u64::MAX);
            for sequence in [0, 1, 77, newest] {
                let physical = geometry.physical_sub_buffers() - 1;
                let position = geometry.position(sequence, physical, geometry.sub_buffer_bytes() - 1);
                assert_eq!(geometry.sequence(position), sequence);
                assert_eq!(geometry.physical(position), physical);
                assert_eq!(geometry.at(position), geometry.sub_buffer_bytes() - 1);
                let reference = Reference { sequence, physical };
                assert_eq!(Reference::unpack(reference.pack()), reference);
            }
        }
    }

    #[test]
    fn numbers_and_counts_wrap_around() {
        for geometry in geometries() {
            let newest = geometry.later(0, u64::MAX);
            assert_eq!(geometry.later(newest, 1), 0);
            assert_eq!(geometry.distance(newest, 1), 2);
            assert_eq!(geometry.distance(1, newest), -2);
            let laps = geometry.sub_buffers() as u64;
            let before = geometry.commit_count(geometry.later(0, laps.wrapping_neg()));
            let after = before.wrapping_add(geometry.sub_buffer_bytes() as u64);
            assert_eq!(geometry.committed(after, 0), 0);
            assert_eq!(geometry.committed(after + 5, 0), 5);
            assert!(geometry.committed(before, 0) > 1 << 40);
        }
    }
}
