//! Clock classes: what a stamp in cycles means.

use super::{Attributes, Uuid};
use tracewing_units::{Cycles, Duration, Timestamp};

/// A clock (specification 1.8.3, section 8; CTF2-SPEC-2.0, clock class fragment).
///
/// A value of `v` cycles is `offset_seconds + (offset_cycles + v) / frequency` seconds after the clock's
/// origin, which is the Unix epoch for most traces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClockClass {
    /// What data stream classes and, as `map = clock.ID.value`, TSDL's integers refer to it by. In TSDL it is
    /// the name.
    pub id: String,
    /// Namespace of name and unique id (CTF 2).
    pub namespace: Option<String>,
    /// The name shown to people.
    pub name: Option<String>,
    /// Two clocks with one UUID are the same clock.
    pub uuid: Option<Uuid>,
    /// Unique id that is no UUID (CTF 2).
    pub uid: Option<String>,
    /// Description for people.
    pub description: Option<String>,
    /// Cycles per second.
    pub frequency: u64,
    /// Random error, if known; 0 if TSDL does not give it.
    pub precision: Option<Cycles>,
    /// Systematic error, if known (CTF 2).
    pub accuracy: Option<Cycles>,
    /// Whole seconds from the origin to value 0.
    pub offset_seconds: i64,
    /// Cycles from there to value 0.
    pub offset_cycles: Cycles,
    /// What it counts from, and whether clocks of other traces count from there too.
    pub origin: ClockOrigin,
    /// User attributes.
    pub attributes: Attributes,
}

/// What a clock counts from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ClockOrigin {
    /// The origin is unknown: times of other clocks cannot be compared with it.
    #[default]
    Unknown,
    /// 1970-01-01 00:00:00 UTC (TSDL: `absolute = true`).
    UnixEpoch,
    /// Something that clocks of the same origin share (CTF 2).
    Custom {
        /// Namespace of name and unique id.
        namespace: Option<String>,
        /// Name.
        name: String,
        /// Unique id.
        uid: String,
    },
}

impl ClockClass {
    /// A clock of `frequency` cycles per second that starts at the origin.
    pub fn new(name: impl Into<String>, frequency: u64) -> Self {
        let name = name.into();
        ClockClass {
            id: name.clone(),
            namespace: None,
            name: Some(name),
            uuid: None,
            uid: None,
            description: None,
            frequency,
            precision: Some(Cycles::ZERO),
            accuracy: None,
            offset_seconds: 0,
            offset_cycles: Cycles::ZERO,
            origin: ClockOrigin::Unknown,
            attributes: Attributes::default(),
        }
    }

    /// The moment at which the clock has the value `cycles`; `None` where a [`Timestamp`] cannot hold it.
    ///
    /// The rounding is babeltrace2's, whose stamps a reader will compare with these: an offset in cycles of a
    /// second or more is first reduced to whole seconds, and if the frequency is not 1 GHz the rest goes
    /// through a double.
    pub fn time(&self, cycles: Cycles) -> Option<Timestamp> {
        let whole = self.offset_cycles.0.checked_div(self.frequency)?;
        let rest = Cycles(self.offset_cycles.0 % self.frequency);
        let seconds = self.offset_seconds.checked_add(i64::try_from(whole).ok()?)?;
        let base = Timestamp::from_ns(seconds.checked_mul(1_000_000_000)?);
        base.checked_add(self.span(rest))?.checked_add(self.span(cycles))
    }

    /// The time that `cycles` last.
    fn span(&self, Cycles(cycles): Cycles) -> Duration {
        Duration::from_ns(if self.frequency == 1_000_000_000 {
            cycles
        } else {
            (1e9 * cycles as f64 / self.frequency as f64) as u64
        })
    }
}
