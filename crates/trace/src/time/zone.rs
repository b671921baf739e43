//! Civil time: seconds since the Unix epoch to date and time of day and back, in UTC or in the local time
//! zone.
//!
//! The C library knows the local zone (`TZ`, `/etc/localtime`), as it does for babeltrace2.

use tracewing_units::Timestamp;

/// The zone in which stamps are shown and read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Zone {
    /// The local time zone.
    #[default]
    Local,
    /// Coordinated universal time, as with `--clock-gmt`.
    Utc,
}

/// A date and a time of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Civil {
    /// Year of the common era.
    pub year: i64,
    /// 1 to 12.
    pub month: u32,
    /// 1 to 31.
    pub day: u32,
    /// 0 to 23.
    pub hour: u32,
    /// 0 to 59.
    pub minute: u32,
    /// 0 to 60: 60 is a leap second.
    pub second: u32,
}

impl Zone {
    /// The date and time at `seconds` since the Unix epoch; `None` where the year is out of range.
    pub fn civil(self, seconds: i64) -> Option<Civil> {
        let tm = match self {
            Zone::Local => convert(seconds, libc::localtime_r),
            Zone::Utc => convert(seconds, libc::gmtime_r),
        }?;
        Some(Civil {
            year: i64::from(tm.tm_year) + 1900,
            month: tm.tm_mon as u32 + 1,
            day: tm.tm_mday as u32,
            hour: tm.tm_hour as u32,
            minute: tm.tm_min as u32,
            second: tm.tm_sec as u32,
        })
    }

    /// Seconds since the Unix epoch at `civil`; `None` where that cannot be said.
    ///
    /// Fields beyond their range carry over, as C's `mktime` has it.
    pub fn seconds(self, civil: Civil) -> Option<i64> {
        let mut tm = empty();
        tm.tm_year = i32::try_from(civil.year - 1900).ok()?;
        tm.tm_mon = i32::try_from(civil.month).ok()? - 1;
        tm.tm_mday = i32::try_from(civil.day).ok()?;
        tm.tm_hour = i32::try_from(civil.hour).ok()?;
        tm.tm_min = i32::try_from(civil.minute).ok()?;
        tm.tm_sec = i32::try_from(civil.second).ok()?;
        tm.tm_isdst = -1;
        // Set to a day of the week unless the time cannot be said: -1 is also the last second of 1969.
        tm.tm_wday = -1;
        let seconds = match self {
            // SAFETY: `tm` is a valid, initialised structure that is borrowed exclusively.
            Zone::Local => unsafe { libc::mktime(&mut tm) },
            // SAFETY: as above.
            Zone::Utc => unsafe { libc::timegm(&mut tm) },
        };
        (tm.tm_wday != -1).then_some(seconds)
    }
}

impl Zone {
    /// Date and time of day of a moment on a clock whose origin is the Unix epoch, as
    /// `2026-11-21 04:25:40.934685633`; as seconds where the year is out of range.
    pub fn format(self, time: Timestamp) -> String {
        let (second, rest) = time.as_seconds();
        match self.civil(second) {
            Some(Civil { year, month, day, hour, minute, second }) => {
                format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{rest:09}")
            }
            None => format!("{second}.{rest:09}"),
        }
    }
}

fn empty() -> libc::tm {
    libc::tm {
        tm_sec: 0,
        tm_min: 0,
        tm_hour: 0,
        tm_mday: 0,
        tm_mon: 0,
        tm_year: 0,
        tm_wday: 0,
        tm_yday: 0,
        tm_isdst: 0,
        tm_gmtoff: 0,
        tm_zone: std::ptr::null(),
    }
}

type Convert = unsafe extern "C" fn(*const libc::time_t, *mut libc::tm) -> *mut libc::tm;

fn convert(seconds: i64, with: Convert) -> Option<libc::tm> {
    let mut tm = empty();
    // SAFETY: both pointers are to initialised values that live through the call; the C library's reentrant
    // functions keep neither (`tm_zone` points to the library's own names, and is not read here).
    let done = unsafe { with(&seconds, &mut tm) };
    (!done.is_null()).then_some(tm)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utc_there_and_back() {
        for (seconds, year, month, day, hour, minute, second) in [
            (0, 1970, 1, 1, 0, 0, 0),
            (1_795_235_140, 2026, 11, 21, 4, 25, 40),
            (951_782_399, 2000, 2, 28, 23, 59, 59),
            (4_102_444_800, 2100, 1, 1, 0, 0, 0),
            (-1, 1969, 12, 31, 23, 59, 59),
        ] {
            let civil = Civil { year, month, day, hour, minute, second };
            assert_eq!(Zone::Utc.civil(seconds), Some(civil));
            assert_eq!(Zone::Utc.seconds(civil), Some(seconds));
        }
        assert_eq!(Zone::Utc.civil(i64::MAX), None);
        let late =
            Civil { year: i64::from(i32::MAX) + 1900, month: 12, day: 31, hour: 48, ..Civil::default() };
        assert_eq!((Zone::Utc.seconds(late), Zone::Local.seconds(late)), (None, None));
        assert_eq!(Zone::Utc.format(Timestamp::from_ns(-1)), "1969-12-31 23:59:59.999999999");
    }
}
