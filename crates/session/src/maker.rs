//! Where and how the regions of a recording are made.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use tracewing_abi::region::{Geometry, Protocol};
use tracewing_consumer::Error;
use tracewing_consumer::clock::{Calibration, TraceClock};
use tracewing_consumer::drain::{Backing, Drain};
use tracewing_consumer::survival::BufferFolder;
use tracewing_ctf::model::Uuid;

/// What all regions have in common.
pub(crate) struct Maker {
    pub geometry: Geometry,
    pub clock: TraceClock,
    pub begin: Calibration,
    pub recording: Uuid,
    /// The regions' mask word.
    pub majors: u64,
    /// Set where buffers are to be files.
    pub files: Option<BufferFolder>,
    /// How often a name was given: process ids come back, and a process can need several regions.
    pub names: HashMap<String, u32>,
}

impl Maker {
    /// A new region, called by `name` or, if there was one of that name, by that and a number. Its streams
    /// are called by `label`. It may be for a child that is not forked yet.
    ///
    /// # Errors
    /// There is no memory or no file for it.
    pub(crate) fn drain(
        &mut self,
        name: &str,
        label: String,
        protocol: Protocol,
        for_child: bool,
    ) -> Result<Drain, Error> {
        let Self { geometry, clock, recording, .. } = *self;
        let count = self.names.entry(name.to_owned()).or_insert(0);
        *count += 1;
        let name = if *count == 1 { name.to_owned() } else { format!("{name}-{count}") };
        let backing = match &self.files {
            Some(folder) => Backing::File(folder),
            None if for_child => Backing::Child,
            None => Backing::Memory,
        };
        let drain = Drain::new(backing, name, geometry, protocol, &clock, recording);
        let drain = drain?.labelled(label);
        drain.set_real_time(&clock, &self.begin);
        drain.region().majors().store(self.majors, Ordering::Relaxed);
        Ok(drain)
    }

    /// The region of this name is done with: all of it was written, or is given up.
    pub(crate) fn let_go(&self, name: &str) {
        if let Some(folder) = &self.files {
            folder.remove(name);
        }
    }
}
