//! Parts of a rule that are not patterns: levels and major classes.

use std::fmt;
use std::str::FromStr;
use tracewing_abi::schema::{Level, MAJORS};

/// The levels and their words, the most severe first.
pub(crate) const LEVELS: [(&str, Level); 5] = [
    ("error", Level::Error),
    ("warn", Level::Warn),
    ("info", Level::Info),
    ("debug", Level::Debug),
    ("trace", Level::Trace),
];

/// A text that does not denote levels or major classes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    /// A text that is neither a level nor a range of levels.
    #[error(
        "{0:?} is not a level: write error, warn, info, debug or trace for that level and all more severe ones, or a \
         range of two levels, as in debug..info"
    )]
    Level(String),
    /// A number that is not a major class.
    #[error("{0:?} is not a major class: write numbers from 0 to {last}, and ranges, as in 3,8-12", last = MAJORS - 1)]
    Major(String),
}

/// A range of levels, both ends included. As text: `warn` is that level and all more severe ones,
/// `debug..info` the levels from one to the other, in either order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Levels {
    most: Level,
    least: Level,
}

impl Levels {
    /// Every level.
    pub const ALL: Self = Self { most: Level::Error, least: Level::Trace };

    /// From one level to another, in either order.
    pub fn between(one: Level, other: Level) -> Self {
        Self { most: one.min(other), least: one.max(other) }
    }

    /// Whether the range contains the level.
    pub fn contain(self, level: Level) -> bool {
        (self.most..=self.least).contains(&level)
    }

    /// The numbers of both ends, the more severe one first.
    pub(crate) fn numbers(self) -> [u8; 2] {
        [self.most as u8, self.least as u8]
    }

    pub(crate) fn from_numbers([most, least]: [u8; 2]) -> Option<Self> {
        let level = |number| LEVELS.into_iter().map(|(_, level)| level).find(|level| *level as u8 == number);
        let this = Self { most: level(most)?, least: level(least)? };
        (this.most <= this.least).then_some(this)
    }
}

impl Default for Levels {
    fn default() -> Self {
        Self::ALL
    }
}

impl FromStr for Levels {
    type Err = SelectionError;

    fn from_str(text: &str) -> Result<Self, SelectionError> {
        let level = |word: &str| {
            let found = LEVELS.into_iter().find(|(name, _)| *name == word.trim());
            found.map(|(_, level)| level).ok_or_else(|| SelectionError::Level(text.to_owned()))
        };
        match text.split_once("..") {
            Some((one, other)) => Ok(Self::between(level(one)?, level(other)?)),
            None => Ok(Self::between(Level::Error, level(text)?)),
        }
    }
}

impl fmt::Display for Levels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |level| LEVELS.into_iter().find(|(_, other)| *other == level).map_or("", |(word, _)| word);
        if self.most == Level::Error {
            f.write_str(word(self.least))
        } else {
            write!(f, "{}..{}", word(self.most), word(self.least))
        }
    }
}

/// A set of major classes: bit `n` is class `n`. As text: `3,8-12`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Majors(pub u64);

impl Majors {
    /// Every major class.
    pub const ALL: Self = Self(u64::MAX);

    /// Whether the set contains the class.
    pub fn contain(self, major: u8) -> bool {
        self.0.checked_shr(major.into()).is_some_and(|bits| bits & 1 != 0)
    }
}

impl Default for Majors {
    fn default() -> Self {
        Self::ALL
    }
}

impl FromStr for Majors {
    type Err = SelectionError;

    fn from_str(text: &str) -> Result<Self, SelectionError> {
        let fail = || SelectionError::Major(text.to_owned());
        let number = |word: &str| {
            let number = word.trim().parse::<u8>().ok().filter(|number| *number < MAJORS);
            number.ok_or_else(fail)
        };
        let mut mask = 0;
        for part in text.split(',') {
            let (first, last) = match part.split_once('-') {
                Some((first, last)) => (number(first)?, number(last)?),
                None => (number(part)?, number(part)?),
            };
            if first > last {
                return Err(fail());
            }
            mask |= (first..=last).fold(0, |mask, major| mask | 1 << major);
        }
        Ok(Self(mask))
    }
}

impl fmt::Display for Majors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        let mut next = 0;
        while let Some(first) = (next..MAJORS).find(|major| self.contain(*major)) {
            let end = (first..MAJORS).find(|major| !self.contain(*major)).unwrap_or(MAJORS);
            match end - first {
                1 => write!(f, "{separator}{first}")?,
                _ => write!(f, "{separator}{first}-{}", end - 1)?,
            }
            (separator, next) = (",", end);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_ranges() {
        for (text, most, least, shown) in [
            ("warn", Level::Error, Level::Warn, "warn"),
            ("debug..info", Level::Info, Level::Debug, "info..debug"),
            ("info .. debug", Level::Info, Level::Debug, "info..debug"),
            ("info..info", Level::Info, Level::Info, "info..info"),
            ("trace", Level::Error, Level::Trace, "trace"),
        ] {
            let levels: Levels = text.parse().unwrap();
            assert_eq!(levels, Levels { most, least }, "{text}");
            assert_eq!(levels.to_string(), shown);
            assert_eq!(Levels::from_numbers(levels.numbers()), Some(levels));
        }
        let levels: Levels = "warn".parse().unwrap();
        assert!(levels.contain(Level::Error) && levels.contain(Level::Warn) && !levels.contain(Level::Info));
        for text in ["", "loud", "warn..", "..info", "info..loud"] {
            assert!(text.parse::<Levels>().unwrap_err().to_string().contains(&format!("{text:?}")));
        }
        assert_eq!(Levels::from_numbers([5, 14]), None);
        assert_eq!(Levels::from_numbers([14, 3]), None);
    }

    #[test]
    fn majors_are_sets() {
        for (text, mask, shown) in [
            ("3,8-12", 0x1f08, "3,8-12"),
            ("0", 1, "0"),
            ("63", 1 << 63, "63"),
            ("0-63", u64::MAX, "0-63"),
            ("2,1, 3", 0b1110, "1-3"),
        ] {
            let majors: Majors = text.parse().unwrap();
            assert_eq!(majors, Majors(mask), "{text}");
            assert_eq!(majors.to_string(), shown);
        }
        assert!(Majors(1 << 63).contain(63) && !Majors(1 << 63).contain(62) && !Majors::ALL.contain(64));
        for text in ["", "64", "a", "3-", "5-2", "1,,2", "-1"] {
            assert!(text.parse::<Majors>().is_err(), "{text}");
        }
    }
}
