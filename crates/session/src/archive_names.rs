//! The names of archives, `YYYYMMDDTHHMMSSZ-NUMBER`, and of snapshots.

use tracewing_units::Timestamp;

/// The folder of all archives, in that of the recording.
pub(crate) const FOLDER: &str = "archives";
/// What the names of a flight recorder's snapshots begin with; a number follows.
pub(crate) const SNAPSHOT: &str = "snapshot-";

/// The name of an archive that began at this time: `YYYYMMDDTHHMMSSZ-NUMBER`, in UTC.
pub(crate) fn name(begin: Timestamp, number: u64) -> String {
    let seconds = begin.as_ns().div_euclid(1_000_000_000);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Days since 1 March of the year 0, in eras of 400 years, each with the same calendar.
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z-{number}")
}

/// Whether an archive may have this name.
pub(crate) fn is_name(name: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    name.split_once('-').is_some_and(|(time, number)| {
        let parts = time.split_once('T').and_then(|(date, time)| Some((date, time.strip_suffix('Z')?)));
        is_number(number) && parts.is_some_and(|(date, time)| is_number(date) && is_number(time))
    })
}

/// What the archives of a session are ordered by: their date, then their number.
pub(crate) fn key(name: &str) -> (String, u64) {
    let (date, number) = name.rsplit_once('-').unwrap_or((name, ""));
    (date.to_owned(), number.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_dates() {
        for (seconds, expected) in [
            (0, "19700101T000000Z-1"),
            (951_782_399, "20000228T235959Z-1"),
            (951_782_400, "20000229T000000Z-1"),
            (951_868_800, "20000301T000000Z-1"),
            (1_795_819_620, "20261127T224700Z-1"),
            (4_107_542_400, "21000301T000000Z-1"),
        ] {
            assert_eq!(name(Timestamp::from_ns(seconds * 1_000_000_000), 1), expected);
            assert!(is_name(expected) && !is_name(&expected[1..].replace('-', "")));
        }
    }
}
